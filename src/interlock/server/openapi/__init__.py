"""The OpenAPI document of the HTTP API, and the reference made from it: /docs and docs/http.md."""
