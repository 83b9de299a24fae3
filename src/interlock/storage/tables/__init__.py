"""One module for each group of tables: its reads, and the batch items that change it."""
