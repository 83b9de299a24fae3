"""Where approvals live: one port, one set of named queries, one file for each database."""
