"""Who is told of what, where and when, as values."""
