"""The HTTP server: `app.py` assembles it, `openapi` describes its API, `routes` and `protocols` hold the endpoints."""
