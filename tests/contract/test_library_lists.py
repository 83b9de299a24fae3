"""Approvals as the library lists them: over a database, and over a server with the key of an agent or a person."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from interlock import Acknowledgement, Approve, Interlock, ToolSpec, propose
from interlock.app.bootstrap import AppServices, build_services
from interlock.core.errors import Forbidden, InvalidRequest, NotFound
from interlock.sdk import interlock as sdk
from interlock.sdk.backend import ApprovalDecision, ApprovalRecord
from interlock.sdk.codec import parse_approval_record
from tests.databases import Database
from tests.interlock_server import make_keys, run_server_in_thread
from tests.support import BOB, approve, propose_pending

POLICY = "version: 1\ndefaults: {undo_window: 0s, expires_in: 2h}\n"
SEND = ToolSpec("send", "write", describe="Send to {to}", secret=("token",))
Locks = dict[str, Interlock]
APPROVAL_FIELDS = [each.name for each in fields(ApprovalRecord)]


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


@pytest.fixture
def locks(database: Database, server: str, keys: dict[str, str], agent_lock: Interlock) -> Iterator[Locks]:
    """Locks that list, by what they list with: the database, or the key of an agent or a person."""
    own, viewer = Interlock(database.url), Interlock(server, key=keys["viewer"])
    yield {"database": own, "agent": agent_lock, "viewer": viewer}
    own.close()
    viewer.close()


async def send(lock: Interlock, number: int, **more: Any) -> str:
    call = propose("send", {"to": f"to{number}", "token": "hunter2"}, "run", f"call{number}", agent="mailer", **more)
    outcome = await lock.check(call, SEND)
    return outcome.approval_id


async def listed(lock: Interlock, **filters: Any) -> list[str]:
    return [record.call_id async for record in lock.approvals(**filters)]


async def test_approvals_are_listed_page_by_page_and_filtered(
    locks: Locks, agent_lock: Interlock, services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:  # R66
    monkeypatch.setattr(sdk, "LISTED_AT_ONCE", 2)
    ids = [await send(agent_lock, number, thread_id=f"t{number % 2}", requester="rita") for number in range(5)]
    await approve(services, ids[0], BOB)
    for lock in locks.values():
        assert await listed(lock) == ["call4", "call3", "call2", "call1", "call0"]
        assert await listed(lock, status="approved") == ["call0"]
        assert sorted(await listed(lock, status=["pending", "approved"], thread="t0")) == ["call0", "call2", "call4"]
        assert len(await listed(lock, status="pending", user="rita", tool="send", agent="mailer", run_id="run")) == 4
        assert await listed(lock, user="nobody") == []
        with pytest.raises(InvalidRequest, match="There is no status"):
            await listed(lock, status="waiting")


@pytest.mark.postgres_nightly
async def test_one_approval_has_its_arguments_and_its_decision(
    locks: Locks, agent_lock: Interlock, services: AppServices
) -> None:  # R66
    approval_id = await send(agent_lock, 1, thread_id="t1")
    await approve(services, approval_id, BOB)
    started = await agent_lock.start(approval_id)
    await agent_lock.finish(approval_id, started.fence, {"id": 7})
    for key, lock in locks.items():
        assert (await anext(lock.approvals())).args is None
        record = await lock.approval(approval_id)
        assert (record.id, record.tool, record.status, record.thread_id) == (approval_id, "send", "succeeded", "t1")
        assert record.args is not None
        assert record.args["to"] == "to1"
        assert "hunter2" not in str(record)
        assert (record.result, record.error) == ({"id": 7}, None)
        assert isinstance(record.created_at, datetime)
        assert record.expires_at - record.created_at == timedelta(hours=2)
        assert record.decision is not None
        assert (record.decision.kind, record.decision.by) == ("approve", "" if key == "agent" else "bob")
        with pytest.raises(NotFound):
            await lock.approval("00000000-0000-7000-8000-000000000000")


@pytest.mark.postgres_nightly
async def test_counts_are_of_the_whole_workspace_and_not_for_agents(
    locks: Locks, agent_lock: Interlock
) -> None:  # R64 R66
    for number in range(3):
        await send(agent_lock, number)
    for stats in (await locks["database"].stats(), await locks["viewer"].stats()):
        assert (stats.pending, stats.decided, stats.by_status["pending"]) == (3, 0, 3)
    with pytest.raises(Forbidden, match="use the key of a person"):
        await agent_lock.stats()


@pytest.mark.postgres_nightly
async def test_synchronous_code_gets_the_same(
    locks: Locks, agent_lock: Interlock, monkeypatch: pytest.MonkeyPatch
) -> None:  # R66
    monkeypatch.setattr(sdk, "LISTED_AT_ONCE", 2)
    ids = [await send(agent_lock, number) for number in range(3)]
    for lock in locks.values():
        found = await asyncio.to_thread(lambda lock: list(lock.approvals_sync(status="pending")), lock)
        assert sorted(record.id for record in found) == sorted(ids)
        assert await asyncio.to_thread(lock.approval_sync, ids[0]) == await lock.approval(ids[0])
    stats = await asyncio.to_thread(locks["viewer"].stats_sync)
    assert stats.by_status == (await locks["viewer"].stats()).by_status


async def test_a_lock_that_only_lists_opens_no_run(database: Database, services: AppServices) -> None:  # R66
    await propose_pending(services)
    lock = Interlock(database.url, agent="reader")
    assert await listed(lock) == ["call1"]
    assert not lock.is_open
    await asyncio.to_thread(lock.close)
    assert await services.store.runs("default", "reader") == []


async def test_what_a_list_shows_can_be_decided(database: Database, services: AppServices) -> None:  # R66
    await propose_pending(services)
    with Interlock(database.url, agent="desk") as desk:
        [record] = [each async for each in desk.approvals(status="pending")]
        decided = await desk.decide(record.id, Approve(Acknowledgement(record.args_sha256)), reviewer="bob")
    assert decided.status == "approved"


def test_what_a_newer_server_adds_to_an_approval_is_ignored() -> None:  # R66
    at = "2027-01-01T00:00:00Z"
    decision = {"kind": "approve", "at": at, "reason": "Checked.", "added_later": {"x": 1}}
    body = {**dict.fromkeys(APPROVAL_FIELDS, ""), "agent_path": [], "created_at": at, "expires_at": at}
    record = parse_approval_record({**body, "decision": decision, "added_later": True})
    assert record.decision == ApprovalDecision(kind="approve", at=datetime(2027, 1, 1, tzinfo=UTC), reason="Checked.")
