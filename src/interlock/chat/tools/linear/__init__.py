"""Linear: issues, comments, labels, projects and cycles. Settings: `key`, and optionally `team` and `url`.

Everything that is created gets an id derived from the call, so a retry of the same call creates nothing new. All other
writes set a value, so repeating them changes nothing.
"""

from interlock.chat.tools.linear.pack import read_tools, write_tools

__all__ = ["read_tools", "write_tools"]
