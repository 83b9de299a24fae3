"""The HTTP interface: `app.py` puts it together, `document` describes it, most other files are a group of routes."""
