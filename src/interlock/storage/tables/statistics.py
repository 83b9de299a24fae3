"""What happened in a stretch of the ledger, counted by the database: over time, by tool and by agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from interlock.storage.engine.queries import load_queries
from interlock.storage.engine.rows import Row

WHOLE_RANGE = 2**60  # milliseconds: one part that holds every time
MINUTE = 60_000


class StatisticsDatabase(Protocol):
    async def fetch_beside(self, statement: str, values: Any) -> list[Row]: ...


class LedgerRange(NamedTuple):
    """The entries after one number and up to another; how many of them there are bounds what it costs to count."""

    workspace: str
    after: int
    until: int


class TimeBucketCount(NamedTuple):
    """So many entries of a kind in a part of the time; `begun` of them were about calls that were approved before."""

    part: int
    kind: str
    n: int
    begun: int


class NamedEventCount(NamedTuple):
    """So many entries of a kind about a tool or an agent; an approval of edited arguments counts as `edited`."""

    name: str
    kind: str
    n: int


class DecisionTimes(NamedTuple):
    """Of the decisions by people in a part of the time, in milliseconds: half were quicker, and 19 of 20 were."""

    part: int
    decisions: int
    half: int
    most: int


class Statistics:
    """Beside the event loop: each of them may look at hundreds of thousands of entries."""

    def __init__(self, place: StatisticsDatabase) -> None:
        self._place = place
        self._queries = load_queries()

    async def over_time(self, stretch: LedgerRange, step: int) -> Sequence[TimeBucketCount]:
        return [TimeBucketCount(*row) for row in await self._fetch("told_over_time", step, *stretch)]

    async def by_tool(self, stretch: LedgerRange) -> Sequence[NamedEventCount]:
        return [NamedEventCount(*row) for row in await self._fetch("told_by_tool", *stretch)]

    async def by_agent(self, stretch: LedgerRange) -> Sequence[NamedEventCount]:
        return [NamedEventCount(*row) for row in await self._fetch("told_by_agent", *stretch)]

    async def times(self, stretch: LedgerRange, step: int = WHOLE_RANGE) -> Sequence[DecisionTimes]:
        return [DecisionTimes(*row) for row in await self._fetch("times_to_decide", step, *stretch)]

    async def reads(self, workspace: str, since: int) -> Sequence[tuple[str, int]]:
        """Of the first thousand tools, the hundred that were read most."""
        found = await self._fetch("reads_of_tools", workspace, workspace, workspace, since // MINUTE)
        return [(row[0], int(row[1])) for row in found]

    async def _fetch(self, name: str, *values: object) -> list[Row]:
        return await self._place.fetch_beside(self._queries[name], values)
