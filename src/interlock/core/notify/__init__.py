"""Notifications as values: recipients, channels and times, and their delivery."""
