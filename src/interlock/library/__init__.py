"""The object that people import, over a database or a server."""

from interlock.library.interlock import ASK, Interlock

__all__ = ["ASK", "Interlock"]
