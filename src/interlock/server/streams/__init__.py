"""Server-sent events: the ledger, and the threads of the chat."""
