"""A thread, its transcript, and the next step."""
