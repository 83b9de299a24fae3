"""PostgreSQL: `database.py` first; the rest is what it stands on."""
