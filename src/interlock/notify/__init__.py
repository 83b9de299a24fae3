"""Tells people what needs them: which channels, when, and what comes back through them."""
