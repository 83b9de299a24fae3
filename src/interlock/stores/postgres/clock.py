"""The server's clock as this process knows it: every batch sets it, and in between it ticks by itself."""

from __future__ import annotations

import time


class ServerClock:
    def __init__(self) -> None:
        self._ahead = 0.0  # of this process's own ticking, in milliseconds

    def __call__(self) -> int:
        return int(time.monotonic() * 1000 + self._ahead)

    def set(self, now: int) -> None:
        self._ahead = now - time.monotonic() * 1000
