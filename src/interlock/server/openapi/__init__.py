"""The document of the HTTP interface: what programs, people and docs/http.md read of it."""
