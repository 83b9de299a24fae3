"""The approval of one tool call: proposal, decision, votes, execution, timers and discussion."""
