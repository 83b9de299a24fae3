"""Policies as people write them: the file, its conditions, and explanation, diff and rehearsal of its verdicts."""
