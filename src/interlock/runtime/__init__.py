"""Shared runtime helpers: offloading, an event loop on a thread, durations, JSON Schema, process identity, signals."""
