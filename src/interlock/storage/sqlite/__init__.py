"""SQLite: a file, one writer thread, and a lock between processes."""
