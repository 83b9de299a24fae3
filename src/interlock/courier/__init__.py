"""Tells people what happened."""

from interlock.courier.courier import Courier
from interlock.courier.lane import Lane, Log, Office

__all__ = ["Courier", "Lane", "Log", "Office"]
