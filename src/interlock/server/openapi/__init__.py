"""The OpenAPI document of the HTTP API, and docs/http.md, which is made from it as the page at /docs is."""
