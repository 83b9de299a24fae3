"""Server-sent events (SSE): the ledger, and the threads of the chat."""
