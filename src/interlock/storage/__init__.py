"""Storage: the Store port, one set of named SQL queries, and one package for each database."""
