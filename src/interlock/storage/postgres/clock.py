"""The server's clock as this process knows it: every batch sets it, and in between it ticks by itself."""

from __future__ import annotations

import time
from typing import Protocol

from interlock.core.ports import Clock


class AdjustableClock(Protocol):
    def __call__(self) -> int: ...

    def past(self) -> int:
        """A time that the server has surely reached."""

    def set(self, now: int) -> None: ...


class ServerClock:
    def __init__(self) -> None:
        self._ahead = 0.0  # of this process's own ticking, in milliseconds

    def __call__(self) -> int:
        return int(time.monotonic() * 1000 + self._ahead)

    def past(self) -> int:
        return self() - 1

    def set(self, now: int) -> None:
        self._ahead = now - time.monotonic() * 1000


class InjectedClock:
    """For tests, which set the server's clock to their own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __call__(self) -> int:
        return self._clock()

    def past(self) -> int:
        return self._clock()

    def set(self, now: int) -> None:
        """It is what it is."""
