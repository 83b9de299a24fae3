"""Chat threads, their transcript, and the next step of a turn."""
