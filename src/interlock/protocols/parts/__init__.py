"""What is too long for the one file of a protocol."""
