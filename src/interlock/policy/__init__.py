"""Policies as people write them: the file, its conditions, and what it does or would do to a call."""
