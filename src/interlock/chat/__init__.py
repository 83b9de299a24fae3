"""The chat agent: threads, model turns, and tool calls that go through the gate if they change anything."""
