"""What those who run a server want to know of a database: the batches it wrote, and how quickly people decide."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from interlock.storage.engine.rows import Row

Fetch = Callable[..., Awaitable[list[Row]]]
MINUTE = 60_000
MAX_CALLS = 100_000  # as the query says
SIZE_BUCKETS = 11  # batches of up to 1,024 items have a size of their own, to the power of two


class WriterStats:
    """Of a writer's batches: `sizes[n]` of them had less than 2**n items. Whoever has the turn to write counts."""

    __slots__ = ("failed", "items", "sizes")

    def __init__(self) -> None:
        self.sizes = [0] * (SIZE_BUCKETS + 1)
        self.items = 0
        self.failed = 0

    def add(self, items: int) -> None:
        self.sizes[min(items.bit_length(), SIZE_BUCKETS)] += 1  # those of none at all are not told
        self.items += items


class EventMetric(NamedTuple):
    """A line of the ledger; `decision_ms` is how long people took, in milliseconds, where they decided something.

    `data` is there where something was told to people.
    """

    seq: int
    kind: str
    decision_ms: int | None
    data: str | None


class ChannelBacklog(NamedTuple):
    """Of one channel: how many of its first 1,000 wait, since when there is something to say, and what went wrong."""

    pending_count: int
    since: int | None
    error: str


class ToolStatusCounts(NamedTuple):
    """Of one tool: by status, and reads that were only counted. Not `complete` if there was more than is looked at."""

    by_status: Mapping[str, int]
    reads: int
    complete: bool


class MetricsReader:
    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    async def oldest_pending(self, workspace: str) -> int | None:
        """When it was proposed; of the ten thousand that expire first, so that a long queue costs no more."""
        found: int | None = (await self._fetch("oldest_pending", workspace))[0][0]
        return found

    async def event_metrics(self, workspace: str, after: int, limit: int) -> Sequence[EventMetric]:
        return [EventMetric(*row) for row in await self._fetch("happened", workspace, after, limit)]

    async def channel_backlog(self, workspace: str, channel: str, now: int) -> ChannelBacklog:
        """What quiet hours hold back is counted, and has no age."""
        count, since, error = (await self._fetch("waiting_deliveries", now, channel, workspace))[0]
        return ChannelBacklog(count, since, error or "")

    async def dead_letter_errors(self, workspace: str) -> Mapping[str, Sequence[str]]:
        """By channel, what went wrong with each; of the newest 1,000, the newest first."""
        found: dict[str, list[str]] = {}
        for channel, error in await self._fetch("parked_deliveries", workspace):
            found.setdefault(str(channel), []).append(str(error))
        return found

    async def last_sent_at(self, workspace: str, channel: str) -> int | None:
        """When somebody was last disturbed through a channel."""
        found: int | None = (await self._fetch("last_told", workspace, channel))[0][0]
        return found

    async def tool_status_counts(self, workspace: str, tool: str, agent: str, since: int) -> ToolStatusCounts:
        """Of an agent or of all, among the newest 100,000 calls of the workspace."""
        found = await self._fetch("calls_of_tool", tool, agent, agent, workspace, since)
        reads = await self._fetch("reads_of_tool", workspace, tool, since // MINUTE)
        by_status = {str(status): int(n) for status, n, _ in found if n}
        return ToolStatusCounts(by_status, int(reads[0][0]), sum(row[2] for row in found) < MAX_CALLS)


CheckStatus = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """`todo` says what to do about it; empty where there is nothing to do."""

    state: CheckStatus
    what: str
    found: str
    todo: str = ""
