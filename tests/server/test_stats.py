"""Counts for monitoring."""

from __future__ import annotations

import pytest

from interlock.server.routes.stats import StatsHistory, WorkspaceStats
from tests.interlock_server import make_keys
from tests.server.conftest import ClientFactory
from tests.server.test_calls import decide, propose
from tests.support import AppServices, Clock


# R18
@pytest.mark.postgres_smoke
async def test_what_waits_and_how_it_ended_is_counted(
    client: ClientFactory, keys: dict[str, str], clock: Clock, services: AppServices
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    for number, kind in enumerate(("approve", "reject", "")):
        told = await propose(agent, call_id=f"c{number}")
        if kind:
            await decide(bob, told, kind)
    late = await propose(agent, call_id="late", expires_in="1s")
    clock.advance(2_000)
    await agent.get(f"/api/calls/{late['approval_id']}")
    told = (await client(keys["viewer"]).get("/api/stats")).json()
    WorkspaceStats.model_validate(told)
    by_status = told.pop("by_status")
    assert told == {
        "pending": 1,
        "waiting_agents": 1,
        "decided": 2,
        "expired": 1,
        "cancelled": 0,
        "allowed_reads": 0,
        "oldest_pending_seconds": 2.0,
        "freezes": 0,
    }
    assert {status for status, count in by_status.items() if count} == {"pending", "approved", "rejected", "expired"}
    assert (await agent.get("/api/stats")).status_code == 403
    elsewhere = client((await make_keys(services, "elsewhere"))["viewer"])
    assert (await elsewhere.get("/api/stats")).json()["pending"] == 0


# R18
@pytest.mark.postgres_smoke
async def test_history_for_plots_is_cached_briefly(client: ClientFactory, keys: dict[str, str]) -> None:
    agent, bob, vic = client(keys["agent"]), client(keys["reviewer"]), client(keys["viewer"])
    await decide(bob, await propose(agent))
    told = (await vic.get("/api/stats/history", params={"days": 1})).json()
    StatsHistory.model_validate(told)
    assert [len(told["parts"]), told["parts"][-1]["approved"], told["decisions"]] == [24, 1, 1]
    await decide(bob, await propose(agent, call_id="other"))
    assert (await vic.get("/api/stats/history", params={"days": 1})).json() == told
    assert (await vic.get("/api/stats/history", params={"days": 30})).json()["decisions"] == 2
    assert (await vic.get("/api/stats/history", params={"days": 91})).status_code == 400
    assert (await agent.get("/api/stats/history")).status_code == 403
