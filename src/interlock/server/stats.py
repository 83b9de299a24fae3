"""Counts for monitoring: what waits, who waits for it, and how it ended."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from interlock.core.approval import STATUSES
from interlock.server.models import Told
from interlock.server.routing import LOOKERS, Caller, Here, gives, may, response
from interlock.web.asgi import json_answer

DECIDED = ("approved", "rejected", "responded", "running", "succeeded", "failed", "unknown")

router = APIRouter(tags=["operations"])


class Counted(Told):
    """`waiting_agents` are runs with a call that waits for people; `decided` were let through or turned down."""

    pending: int
    waiting_agents: int
    decided: int
    expired: int
    cancelled: int
    allowed_reads: int
    oldest_pending_seconds: float
    by_status: dict[str, int]


@router.get("/api/stats", responses=gives(Counted), **may(LOOKERS))
async def count(site: Here, caller: Caller) -> Response:
    """How many approvals of this workspace are in which status."""
    stats = await site.store.stats(caller.workspace)
    oldest = await site.store.measures.oldest_pending(caller.workspace)
    by_status = {status: stats.by_status.get(status, 0) for status in STATUSES}
    body = {
        "pending": by_status["pending"],
        "waiting_agents": stats.waiting_runs,
        "decided": sum(by_status[status] for status in DECIDED),
        "expired": by_status["expired"],
        "cancelled": by_status["cancelled"],
        "allowed_reads": stats.allowed_reads,
        "oldest_pending_seconds": 0.0 if oldest is None else max(0, site.clock() - oldest) / 1000,
        "by_status": by_status,
    }
    return response(json_answer(body))
