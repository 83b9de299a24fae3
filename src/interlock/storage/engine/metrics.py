"""Metrics of a database for operators: batch sizes of the writer, delivery backlogs and decision times."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from interlock.runtime.durations import MINUTE
from interlock.storage.engine.rows import Row

Fetch = Callable[..., Awaitable[list[Row]]]
MAX_CALLS = 100_000  # the limit in the query
SIZE_BUCKETS = 11  # batches of up to 1,024 items have a bucket by power of two


class WriterStats:
    """Statistics of a writer's batches: `sizes[n]` of them had fewer than 2**n items. Updated under the write lock."""

    __slots__ = ("failed", "items", "sizes")

    def __init__(self) -> None:
        self.sizes = [0] * (SIZE_BUCKETS + 1)
        self.items = 0
        self.failed = 0

    def add(self, items: int) -> None:
        self.sizes[min(items.bit_length(), SIZE_BUCKETS)] += 1  # bucket 0, of batches without items, is not reported
        self.items += items


class EventMetric(NamedTuple):
    """A ledger entry; `decision_ms` is the time that people took to decide, in milliseconds, if they decided something.

    `data` is set if the entry is about a notification.
    """

    seq: int
    kind: str
    decision_ms: int | None
    data: str | None


class ChannelBacklog(NamedTuple):
    """Backlog of one channel: pending deliveries (of the first 1,000), the time of the oldest, and the last error."""

    pending_count: int
    since: int | None
    error: str


class ToolStatusCounts(NamedTuple):
    """Calls of one tool by status, and its counted reads. Not `complete` if there were more calls than the limit."""

    by_status: Mapping[str, int]
    reads: int
    complete: bool


class MetricsReader:
    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    async def oldest_pending(self, workspace: str) -> int | None:
        """Return when the oldest pending approval was proposed, of the 10,000 that expire first, to bound the cost."""
        found: int | None = (await self._fetch("oldest_pending", workspace))[0][0]
        return found

    async def event_metrics(self, workspace: str, after: int, limit: int) -> Sequence[EventMetric]:
        return [EventMetric(*row) for row in await self._fetch("event_metrics", workspace, after, limit)]

    async def channel_backlog(self, workspace: str, channel: str, now: int) -> ChannelBacklog:
        """Return the backlog of a channel. Deliveries held back by quiet hours are counted, but have no age."""
        count, since, error = (await self._fetch("waiting_deliveries", now, channel, workspace))[0]
        return ChannelBacklog(count, since, error or "")

    async def dead_letter_errors(self, workspace: str) -> Mapping[str, Sequence[str]]:
        """Return the errors of dead letters by channel, the newest first, among the newest 1,000."""
        found: dict[str, list[str]] = {}
        for channel, error in await self._fetch("parked_deliveries", workspace):
            found.setdefault(str(channel), []).append(str(error))
        return found

    async def last_sent_at(self, workspace: str, channel: str) -> int | None:
        """Return when a notification was last sent through a channel."""
        found: int | None = (await self._fetch("last_sent_at", workspace, channel))[0][0]
        return found

    async def tool_status_counts(self, workspace: str, tool: str, agent: str, since: int) -> ToolStatusCounts:
        """Count calls of one agent or of all, among the newest 100,000 calls of the workspace."""
        found = await self._fetch("calls_of_tool", tool, agent, agent, workspace, since)
        reads = await self._fetch("reads_of_tool", workspace, tool, since // MINUTE)
        by_status = {str(status): int(n) for status, n, _ in found if n}
        return ToolStatusCounts(by_status, int(reads[0][0]), sum(row[2] for row in found) < MAX_CALLS)


CheckStatus = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of a health check; `todo` is the remedy, empty if nothing needs to be done."""

    state: CheckStatus
    what: str
    found: str
    todo: str = ""
