"""Linear: issues, comments, labels, projects and cycles. Settings: `key`, and if wanted `team` and `url`.

Everything that is made gets an id that follows from the call, so a second try of the same call makes nothing new. All
else sets a value, and to set it twice is to set it once.
"""

from interlock.chat.tools.linear.pack import reads, writes

__all__ = ["reads", "writes"]
