"""Who is let in: people, keys, sessions and one-time links; their rules, their look-ups and their passwords."""
