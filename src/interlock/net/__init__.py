"""Outgoing connections: which addresses are allowed, and a client that connects to no other (SSRF)."""
