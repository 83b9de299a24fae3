"""Channels, one module or package each, found by the `kind` in the configuration."""
