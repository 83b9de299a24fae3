"""The audit ledger: events, their hash chain, the invariants, and erasure of content."""
