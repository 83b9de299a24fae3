"""Statistics for monitoring and charts: pending calls, their approvers, outcomes, and times to decide."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from interlock.core.approval.approval import STATUSES
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
from interlock.server.stats_history import StatsHistoryCache

DECIDED_STATUSES = ("approved", "rejected", "responded", "running", "succeeded", "failed", "unknown")

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


async def stats_history_cache(request: Request) -> StatsHistoryCache:
    history_cache: StatsHistoryCache = request.app.state.plots
    return history_cache


@router.get("/api/stats", responses=documented_responses(WorkspaceStats), **require_roles(VIEWERS))
async def show_stats(state: StateDep, principal: PrincipalDep) -> Response:
    """Approvals of this workspace, counted by status."""
    stats = await state.store.stats(principal.workspace)
    oldest = await state.store.metrics.oldest_pending(principal.workspace)
    by_status = {status: stats.by_status.get(status, 0) for status in STATUSES}
    body = {
        "pending": by_status["pending"],
        "waiting_agents": stats.waiting_runs,
        "decided": sum(by_status[status] for status in DECIDED_STATUSES),
        "expired": by_status["expired"],
        "cancelled": by_status["cancelled"],
        "allowed_reads": stats.allowed_reads,
        "oldest_pending_seconds": 0.0 if oldest is None else max(0, state.clock() - oldest) / 1000,
        "freezes": sum(each.is_on for each in await state.store.open_freezes(principal.workspace)),
        "by_status": by_status,
    }
    return to_starlette(json_response(body))


@router.get("/api/stats/history", responses=documented_responses(StatsHistory), **require_roles(VIEWERS))
async def show_stats_history(
    principal: PrincipalDep,
    history_cache: Annotated[StatsHistoryCache, Depends(stats_history_cache)],
    days: Annotated[int, Query(ge=1, le=90)] = 7,
) -> Response:
    """Events of the last days, by interval, tool and agent. The response may be five seconds old."""
    return to_starlette(json_response(await history_cache.get(principal.workspace, days)))
