"""Rules, verdicts and what they are judged by; what a policy did, or would have done."""
