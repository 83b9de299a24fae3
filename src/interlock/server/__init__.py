"""The HTTP interface: `app.py` puts it together, each other file is one group of routes."""
