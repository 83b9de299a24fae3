"""One file for each group of tables: what is read, and the pieces of work that change it."""
