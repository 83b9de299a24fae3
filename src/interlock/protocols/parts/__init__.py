"""What one protocol needs besides its own file: `NAME_*.py` is for NAME.py alone."""
