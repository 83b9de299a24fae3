"""One module per command, imported on first use."""
