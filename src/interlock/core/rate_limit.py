"""Rate limits in memory: for failed attempts by name, and for ledger entries of refused reads."""

from __future__ import annotations

from collections import OrderedDict

MINUTE = 60_000  # milliseconds
MAX_NAMES = 10_000  # keys that are remembered; then the oldest is dropped


class AttemptLimiter:
    """Limiter that counts attempts when they begin and uncounts successes, so that parallel attempts gain nothing."""

    def __init__(self, limit: int, within: int = MINUTE) -> None:
        self._limit = limit
        self._within = within
        self._begun: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def retry_after(self, key: str, now: int) -> int:
        """Seconds until the next attempt is allowed; 0 if it is allowed now."""
        begun = self._begun.get(key)
        if begun is None:
            return 0
        since, count = begun
        if not 0 <= now - since < self._within or count < self._limit:
            return 0
        return -(-(since + self._within - now) // 1000)

    def record_attempt(self, key: str, now: int) -> None:
        since, count = self._begun.get(key, (now, 0))
        if not 0 <= now - since < self._within:
            since, count = now, 0
        self._begun[key] = since, count + 1
        if len(self._begun) > MAX_NAMES:
            self._begun.popitem(last=False)

    def forgive(self, key: str) -> None:
        since, count = self._begun.get(key, (0, 0))
        if count > 1:
            self._begun[key] = since, count - 1
        else:
            self._begun.pop(key, None)


class ReadEntryLimiter:
    """Rate limit for ledger entries of refused reads, so that a flood of them does not fill the ledger."""

    MAX_PER_MINUTE = 60

    def __init__(self) -> None:
        self._minute = 0
        self._count = 0

    def allow(self, now: int) -> bool:
        minute = now // MINUTE
        self._count = self._count + 1 if minute == self._minute else 1
        self._minute = minute
        return self._count <= self.MAX_PER_MINUTE
