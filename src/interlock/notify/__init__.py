"""Notifications: routing to channels, delivery with retries, and inbound decisions from channels."""
