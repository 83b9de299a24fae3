"""What programs import: Interlock and Agent, over a database or over HTTP, and the HTTP client itself."""
