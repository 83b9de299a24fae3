"""Shared by all databases: transactions, the writer with its group commit, caches, wake-ups and named statements."""
