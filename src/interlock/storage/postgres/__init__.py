"""PostgreSQL: start with `database.py`; the other modules are its parts."""
