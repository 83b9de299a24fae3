"""Policy: rules, verdicts, claims of callers, and analysis of what a policy did or would have done (rehearsal)."""
