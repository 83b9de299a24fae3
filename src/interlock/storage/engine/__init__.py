"""What all databases share: transactions, the writer with its group commit, caches, wake-ups and named statements."""
