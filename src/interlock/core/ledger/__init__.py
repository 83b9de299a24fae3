"""The record: events, their hash chain, what must hold of them, and how content is erased."""
