"""One call that waits on people: proposed, decided, voted on, executed; its timers and its discussion."""
