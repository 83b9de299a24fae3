"""The object that people import, over a database."""

from interlock.library.interlock import ASK, Interlock

__all__ = ["ASK", "Interlock"]
