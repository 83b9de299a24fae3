"""Approvals as the library lists them: over a database, and over a server with the key of an agent or a person."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from interlock import Acknowledgement, ApprovalRecord, Approve, Interlock, ToolSpec, propose
from interlock.app.bootstrap import AppServices, build_services
from interlock.core.errors import Forbidden, InvalidRequest, NotFound
from interlock.sdk import interlock as sdk
from tests.databases import Database
from tests.interlock_server import make_keys, run_server_in_thread
from tests.support import BOB, approve

POLICY = "version: 1\ndefaults: {undo_window: 0s, expires_in: 2h}\n"
SEND = ToolSpec("send", "write", describe="Send to {to}", secret=("token",))
WHERE = ("database", "agent", "viewer")


@pytest.fixture
async def services(database: Database) -> AsyncIterator[AppServices]:
    services = build_services(database.url)
    await services.store.open()
    await services.put_policy("default", POLICY, "ada", {})
    yield services
    await services.store.close()


@pytest.fixture
async def keys(services: AppServices) -> dict[str, str]:
    return await make_keys(services)


@pytest.fixture
def server(database: Database, keys: dict[str, str]) -> Iterator[str]:
    with run_server_in_thread(database.url) as url:
        yield url


@pytest.fixture
def agent_lock(server: str, keys: dict[str, str]) -> Iterator[Interlock]:
    """The program that makes the calls."""
    with Interlock(server, key=keys["agent"], agent="mailer") as lock:
        yield lock


@pytest.fixture(params=WHERE)
def lock(
    request: pytest.FixtureRequest, database: Database, server: str, keys: dict[str, str], agent_lock: Interlock
) -> Iterator[Interlock]:
    """A lock that lists; it opens no run."""
    if request.param == "agent":
        yield agent_lock
        return
    made = Interlock(database.url) if request.param == "database" else Interlock(server, key=keys["viewer"])
    yield made
    made.close()


async def send(lock: Interlock, number: int, **more: Any) -> str:
    call = propose("send", {"to": f"to{number}", "token": "hunter2"}, "run", f"call{number}", agent="mailer", **more)
    outcome = await lock.check(call, SEND)
    return outcome.approval_id


async def listed(lock: Interlock, **filters: Any) -> list[str]:
    return [record.call_id async for record in lock.approvals(**filters)]


async def test_approvals_are_listed_page_by_page_and_filtered(
    lock: Interlock, agent_lock: Interlock, services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:  # R66
    monkeypatch.setattr(sdk, "LISTED_AT_ONCE", 2)
    ids = [await send(agent_lock, number, thread_id=f"t{number % 2}", requester="rita") for number in range(5)]
    await approve(services, ids[0], BOB)
    assert await listed(lock) == ["call4", "call3", "call2", "call1", "call0"]
    assert await listed(lock, status="approved") == ["call0"]
    assert sorted(await listed(lock, status=["pending", "approved"], thread="t0")) == ["call0", "call2", "call4"]
    assert len(await listed(lock, status="pending", user="rita", tool="send", agent="mailer", run_id="run")) == 4
    assert await listed(lock, user="nobody") == []
    with pytest.raises(InvalidRequest, match="There is no status"):
        await listed(lock, status="waiting")


async def test_one_approval_has_its_arguments_and_its_decision(
    lock: Interlock, agent_lock: Interlock, services: AppServices, request: pytest.FixtureRequest
) -> None:  # R66
    approval_id = await send(agent_lock, 1, thread_id="t1")
    assert (await anext(lock.approvals())).args is None
    await approve(services, approval_id, BOB)
    started = await agent_lock.start(approval_id)
    await agent_lock.finish(approval_id, started.fence, {"id": 7})
    record = await lock.approval(approval_id)
    assert isinstance(record, ApprovalRecord)
    assert (record.id, record.tool, record.status, record.thread_id) == (approval_id, "send", "succeeded", "t1")
    assert record.args is not None
    assert record.args["to"] == "to1"
    assert "hunter2" not in str(record)
    assert (record.result, record.error) == ({"id": 7}, None)
    assert isinstance(record.created_at, datetime)
    assert record.expires_at - record.created_at == timedelta(hours=2)
    assert record.decision is not None
    by = "" if request.node.callspec.params["lock"] == "agent" else "bob"
    assert (record.decision.kind, record.decision.by) == ("approve", by)
    with pytest.raises(NotFound):
        await lock.approval("00000000-0000-7000-8000-000000000000")


async def test_counts_are_of_the_whole_workspace_and_not_for_agents(
    lock: Interlock, agent_lock: Interlock, request: pytest.FixtureRequest
) -> None:  # R64 R66
    for number in range(3):
        await send(agent_lock, number)
    if request.node.callspec.params["lock"] == "agent":
        with pytest.raises(Forbidden, match="use the key of a person"):
            await lock.stats()
        return
    stats = await lock.stats()
    assert (stats.pending, stats.decided, stats.by_status["pending"]) == (3, 0, 3)


async def test_synchronous_code_gets_the_same(
    lock: Interlock, agent_lock: Interlock, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:  # R66
    monkeypatch.setattr(sdk, "LISTED_AT_ONCE", 2)
    ids = [await send(agent_lock, number) for number in range(3)]

    def look() -> tuple[list[str], ApprovalRecord]:
        return [record.call_id for record in lock.approvals_sync(status="pending")], lock.approval_sync(ids[0])

    call_ids, record = await asyncio.to_thread(look)
    assert sorted(call_ids) == ["call0", "call1", "call2"]
    assert record == await lock.approval(ids[0])
    if request.node.callspec.params["lock"] != "agent":
        assert (await asyncio.to_thread(lock.stats_sync)).by_status == (await lock.stats()).by_status


async def test_a_lock_that_only_lists_opens_no_run(database: Database, services: AppServices) -> None:  # R66
    lock = Interlock(database.url, agent="reader")
    assert await listed(lock) == []
    assert not lock.is_open
    await asyncio.to_thread(lock.close)
    assert await services.store.runs("default", "reader") == []


async def test_what_a_list_shows_can_be_decided(
    database: Database, agent_lock: Interlock, services: AppServices
) -> None:  # R66
    await send(agent_lock, 1)
    with Interlock(database.url, agent="desk") as desk:
        [record] = [each async for each in desk.approvals(status="pending")]
        shown = await services.inbox.show("default", record.id)
        seen = Acknowledgement(record.args_sha256, tuple(f.id for f in shown.card.findings if f.level == "alarm"))
        decided = await desk.decide(record.id, Approve(seen), reviewer="bob")
    assert decided.status == "approved"
