"""Claude Code and the Claude Agent SDK: their hooks ask the gate before a tool runs, and say how it ended."""

from interlock.integrations.claude_code.gate import hooks

__all__ = ["hooks"]
