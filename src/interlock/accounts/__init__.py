"""Accounts and authentication: people, keys, sessions, one-time links and passwords."""
