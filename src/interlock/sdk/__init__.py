"""The SDK: `Interlock` and `Agent`, over a database or over HTTP, and the HTTP client."""
