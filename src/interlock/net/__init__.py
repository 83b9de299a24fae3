"""Outgoing connections with SSRF protection: which addresses are allowed, and a client that connects to no other."""
