"""Statistics for monitoring and charts: pending calls, their approvers, outcomes, and times to decide."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from interlock.core.approval.approval import Approval
from interlock.core.approval.vote import open_stage
from interlock.core.ports import ApprovalQuery, EntryFilter
from interlock.presenters.approval import workspace_stats_json
from interlock.runtime.durations import DAY, HOUR, rfc3339
from interlock.server.dependencies import (
    VIEWERS,
    PrincipalDep,
    StateDep,
    documented_responses,
    require_roles,
    to_starlette,
)
from interlock.server.http import json_response
from interlock.server.models import ResponseModel, Timestamp
from interlock.server.state import ServerState
from interlock.storage.store import SqlStore
from interlock.storage.tables.history import DecisionTimes, LedgerRange, NamedEventCount, TimeBucketCount

MAX_ENTRIES = 500_000  # entries that are counted for one response: the newest
CACHE_SECONDS = 5.0  # seconds for which a response is cached
MAX_CACHED = 100
MAX_NAMES = 20  # tools or agents
MAX_PENDING = 2_000  # calls that are read to count them by approver
PAGE = 500
END_KINDS = ("approved", "edited", "rejected", "responded", "expired", "cancelled", "allowed")
LEAVES_PENDING_KINDS = (
    "approved",
    "rejected",
    "responded",
    "expired",
    "cancelled",
)  # how a call stops being pending

router = APIRouter(tags=["operations"])


class WorkspaceStats(ResponseModel):
    """`waiting_agents` is the number of runs with a pending call, `decided` that of decided approvals.

    `freezes` are the active ones.
    """

    pending: int
    waiting_agents: int
    decided: int
    expired: int
    cancelled: int
    allowed_reads: int
    oldest_pending_seconds: float
    freezes: int
    by_status: dict[str, int]


class StatsInterval(ResponseModel):
    """Events from `at` until the next interval; `pending` is the number of pending calls at its end.

    `refused` are attempts to decide that were refused. Of decisions by people, half took at most `p50_seconds`.
    """

    at: Timestamp
    pending: int
    proposed: int
    allowed: int
    denied: int
    approved: int
    edited: int
    rejected: int
    responded: int
    expired: int
    cancelled: int
    refused: int
    decisions: int
    p50_seconds: float | None
    p95_seconds: float | None


class OutcomeCounts(ResponseModel):
    """Outcomes of calls of a tool or agent; `approved` are those without an edit, `allowed` needed no approval."""

    name: str
    approved: int
    edited: int
    rejected: int
    responded: int
    expired: int
    cancelled: int
    allowed: int
    refused: int


class PendingByApprover(ResponseModel):
    """The number of pending calls of an agent for a person or a team; for `anyone`, if every reviewer may decide."""

    agent: str
    kind: Literal["anyone", "team", "person"]
    on: str
    pending: int
    oldest_seconds: float


class ReadCount(ResponseModel):
    tool: str
    count: int


class StatsHistory(ResponseModel):
    """`since` is later than requested if more happened than is counted at once; then `complete` is false.

    `waiting` is of the `waiting_of` calls that expire first.
    """

    since: Timestamp
    until: Timestamp
    step_seconds: int
    complete: bool
    decisions: int
    p50_seconds: float | None
    p95_seconds: float | None
    parts: list[StatsInterval]
    tools: list[OutcomeCounts]
    agents: list[OutcomeCounts]
    waiting: list[PendingByApprover]
    waiting_of: int
    reads: list[ReadCount]


class StatsHistoryCache:
    """Computed one at a time, since it reads a lot; cached for all of a workspace for a few seconds."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._lock = asyncio.Lock()
        self._cache: dict[tuple[str, int], tuple[float, dict[str, object]]] = {}

    async def get(self, workspace: str, days: int) -> dict[str, object]:
        async with self._lock:
            now = asyncio.get_running_loop().time()
            made, body = self._cache.get((workspace, days), (float("-inf"), {}))
            if now - made < CACHE_SECONDS:
                return body
            if len(self._cache) >= MAX_CACHED:
                self._cache.clear()
            body = await compute_stats_history(self._state.store, workspace, days, self._state.clock())
            self._cache[workspace, days] = asyncio.get_running_loop().time(), body
            return body


async def stats_history_cache(request: Request) -> StatsHistoryCache:
    history_cache: StatsHistoryCache = request.app.state.stats_history
    return history_cache


@router.get("/api/stats", responses=documented_responses(WorkspaceStats), **require_roles(VIEWERS))
async def show_stats(state: StateDep, principal: PrincipalDep) -> Response:
    """Approvals of this workspace, counted by status."""
    return to_starlette(json_response(await workspace_stats_json(state.store, principal.workspace)))


@router.get("/api/stats/history", responses=documented_responses(StatsHistory), **require_roles(VIEWERS))
async def show_stats_history(
    principal: PrincipalDep,
    history_cache: Annotated[StatsHistoryCache, Depends(stats_history_cache)],
    days: Annotated[int, Query(ge=1, le=90)] = 7,
) -> Response:
    """Events of the last days, by interval, tool and agent. The response may be five seconds old."""
    return to_starlette(json_response(await history_cache.get(principal.workspace, days)))


async def compute_stats_history(store: SqlStore, workspace: str, days: int, now: int) -> dict[str, object]:
    step = interval_length(days)
    last = now // step
    first = last - days * DAY // step + 1
    pending = (await store.stats(workspace)).by_status.get("pending", 0)
    head = (await store.head(workspace)).seq
    start_seq = await entry_before(store, workspace, first * step)
    ledger_range = LedgerRange(workspace, max(start_seq, head - MAX_ENTRIES), head)
    whole = await store.statistics.times(ledger_range)
    waiting, looked_at = await _pending_by_approver(store, workspace, now)
    return {
        "since": rfc3339(first * step if ledger_range.after == start_seq else await _start_time(store, ledger_range)),
        "until": rfc3339(now),
        "step_seconds": step // 1000,
        "complete": ledger_range.after == start_seq,
        "decisions": sum(each.decisions for each in whole),
        **_percentiles(whole[0] if whole else None),
        "parts": _intervals(
            await store.statistics.over_time(ledger_range, step),
            await store.statistics.times(ledger_range, step),
            range(first, last + 1),
            step,
            pending,
        ),
        "tools": _outcome_counts(await store.statistics.by_tool(ledger_range)),
        "agents": _outcome_counts(await store.statistics.by_agent(ledger_range)),
        "waiting": waiting,
        "waiting_of": looked_at,
        "reads": [{"tool": tool, "count": n} for tool, n in await store.statistics.reads(workspace, first * step)],
    }


def interval_length(days: int) -> int:
    """The length of an interval: some dozens of them for any period."""
    if days == 1:
        return HOUR
    return 6 * HOUR if days <= 7 else DAY


async def entry_before(store: SqlStore, workspace: str, moment: int) -> int:
    """The last entry before a time, by bisection: entries are ordered by time."""
    low, high = 0, (await store.head(workspace)).seq
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if await _entry_time(store, workspace, middle) < moment else (low, middle - 1)
    return low


async def _entry_time(store: SqlStore, workspace: str, seq: int) -> int:
    [entry] = await store.filter_entries(workspace, (seq - 1, seq), EntryFilter(limit=1))
    return entry.at


async def _start_time(store: SqlStore, ledger_range: LedgerRange) -> int:
    return await _entry_time(store, ledger_range.workspace, ledger_range.after + 1)


def _intervals(
    bucket_counts: Iterable[TimeBucketCount], times: Iterable[DecisionTimes], parts: range, step: int, pending: int
) -> list[dict[str, object]]:
    """From the newest back: the pending calls before an interval follow from its own changes."""
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for each in bucket_counts:
        counts[each.bucket][each.kind] += each.n
        counts[each.bucket]["begun"] += each.previously_approved
    times_by_interval = {each.bucket: each for each in times}
    listed = []
    for part in reversed(parts):
        count = counts[part]
        listed.append(
            {"at": rfc3339(part * step), "pending": max(0, pending), **_interval(count, times_by_interval.get(part))}
        )
        left = sum(count[kind] for kind in LEAVES_PENDING_KINDS) - count["begun"]
        pending += left - count["proposed"] - count["undone"]
    return listed[::-1]


def _interval(count: Mapping[str, int], decision_times: DecisionTimes | None) -> dict[str, object]:
    kinds = ("proposed", "allowed", "denied", "approved", "edited", "responded", "expired", "cancelled")
    return {
        **{kind: count.get(kind, 0) for kind in kinds},
        "rejected": max(0, count.get("rejected", 0) - count.get("undone", 0)),
        "refused": count.get("decision_refused", 0),
        "decisions": 0 if decision_times is None else decision_times.decisions,
        **_percentiles(decision_times),
    }


def _percentiles(decision_times: DecisionTimes | None) -> dict[str, float | None]:
    if decision_times is None:
        return {"p50_seconds": None, "p95_seconds": None}
    return {"p50_seconds": decision_times.median / 1000, "p95_seconds": decision_times.p95 / 1000}


def _outcome_counts(ended: Iterable[NamedEventCount]) -> list[dict[str, object]]:
    """The names with the most calls; an undone rejection does not count."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for name, kind, count in ended:
        match kind:
            case "undone":
                counts[name]["rejected"] -= count
            case "decision_refused":
                counts[name]["refused"] += count
            case _:
                counts[name][kind] += count
    most = sorted(counts, key=lambda name: (-sum(counts[name][kind] for kind in END_KINDS), name))[:MAX_NAMES]
    return [
        {"name": name, **{kind: max(0, counts[name][kind]) for kind in END_KINDS}, "refused": counts[name]["refused"]}
        for name in most
    ]


async def _pending_by_approver(store: SqlStore, workspace: str, now: int) -> tuple[Sequence[dict[str, object]], int]:
    counts: Counter[tuple[str, str, str]] = Counter()
    oldest: dict[tuple[str, str, str], int] = {}
    looked_at = 0
    cursor: str | None = ""
    while cursor is not None and looked_at < MAX_PENDING:
        page = await store.list(workspace, ApprovalQuery(("pending",), cursor=cursor, limit=PAGE))
        for approval in (stored.approval for stored in page.items):
            for kind, name in _current_approvers(approval):
                key = (approval.subject.agent, kind, name)
                counts[key] += 1
                oldest[key] = min(approval.created_at, oldest.get(key, approval.created_at))
        cursor, looked_at = page.next, looked_at + len(page.items)
        await asyncio.sleep(0)
    return [
        {
            "agent": key[0],
            "kind": key[1],
            "on": key[2],
            "pending": n,
            "oldest_seconds": max(0, now - oldest[key]) / 1000,
        }
        for key, n in counts.most_common(MAX_NAMES * 5)
    ], looked_at


def _current_approvers(approval: Approval) -> Iterator[tuple[str, str]]:
    """The people and teams who can decide now: of the open stage, and of the escalations so far."""
    stages = approval.terms.stages
    named = stages[min(open_stage(approval), len(stages) - 1)].approvers
    if named is None:
        yield "anyone", ""
        return
    people = (named, *(step.to for step in approval.terms.escalation_steps[: approval.timers.escalated]))
    yield from (("person", name) for name in sorted({name for each in people for name in each.users}))
    yield from (("team", name) for name in sorted({name for each in people for name in each.teams}))
