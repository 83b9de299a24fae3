"""Reads what people write in files, and remembers on which line."""
