"""Retries under the same Idempotency-Key: done once, answered alike."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock.config.models import QuotaSettings, ServerSettings, Settings
from interlock.core.ledger.erasure import Erasure
from interlock.server.state import ServerState
from interlock.storage.tables.idempotency import TAKEOVER_AFTER, IdempotencyKey
from tests.databases import Database
from tests.server.conftest import ClientFactory
from tests.server.test_calls import CALL, propose
from tests.support import AppServices, Clock, event_kinds

Keys = dict[str, str]


# R24
async def test_the_same_request_is_done_once_and_answered_the_same(
    client: ClientFactory, keys: Keys, services: AppServices
) -> None:
    told = await propose(client(keys["agent"]))
    bob = client(keys["reviewer"], **{"idempotency-key": "one"})
    path = f"/api/approvals/{told['approval_id']}/comment"
    first, second = [await bob.post(path, json={"text": "hello"}) for _ in range(2)]
    assert (first.status_code, "idempotency-replayed" in first.headers) == (200, False)
    assert (second.status_code, second.headers["idempotency-replayed"]) == (200, "true")
    assert first.content == second.content
    assert second.headers["x-content-type-options"] == "nosniff"
    assert (await event_kinds(services)).count("commented") == 1


# R24
async def test_hot_routes_honour_it_too(client: ClientFactory, keys: Keys) -> None:
    agent = client(keys["agent"], **{"idempotency-key": "one"})
    first, second = [await agent.post("/api/calls", json=CALL) for _ in range(2)]
    assert first.json() == second.json()
    assert second.headers["idempotency-replayed"] == "true"
    wrong = [await client(keys["agent"], **{"idempotency-key": "two"}).post("/api/calls", json={}) for _ in range(2)]
    assert [answer.status_code for answer in wrong] == [400, 400]
    assert wrong[1].headers["idempotency-replayed"] == "true"


# R24
@pytest.mark.postgres_smoke
async def test_a_hundred_at_once_are_one(client: ClientFactory, keys: Keys, services: AppServices) -> None:
    told = await propose(client(keys["agent"]))
    bob = client(keys["reviewer"], **{"idempotency-key": "storm"})
    path = f"/api/approvals/{told['approval_id']}/comment"
    answers = await asyncio.gather(*[bob.post(path, json={"text": "hello"}) for _ in range(100)])
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert (await event_kinds(services)).count("commented") == 1


async def test_the_key_of_another_request_is_a_conflict(client: ClientFactory, keys: Keys) -> None:
    agent = client(keys["agent"], **{"idempotency-key": "one"})
    await agent.post("/api/calls", json=CALL)
    for path, body in (
        ("/api/calls", {**CALL, "call_id": "other"}),
        ("/api/calls?x=1", CALL),
        ("/api/questions", CALL),
    ):
        answer = await agent.post(path, json=body)
        assert (answer.status_code, answer.json()["error"]) == (409, "idempotency_mismatch")


# R40
async def test_keys_of_others_are_others(client: ClientFactory, keys: Keys) -> None:
    header = {"idempotency-key": "one"}
    told = await propose(client(keys["agent"]))
    path = f"/api/approvals/{told['approval_id']}/comment"
    answers = [await client(keys[role], **header).post(path, json={"text": "hi"}) for role in ("reviewer", "admin")]
    assert ["idempotency-replayed" in answer.headers for answer in answers] == [False, False]
    assert [answer.json()["timeline"][-1]["actor"] for answer in answers] == ["bob", "ada"]


# R24: a crash between the claim and the answer
@pytest.mark.postgres_smoke
async def test_what_somebody_left_half_done_is_taken_over_in_time(
    client: ClientFactory, keys: Keys, state: ServerState, clock: Clock
) -> None:
    agent = client(keys["agent"], **{"idempotency-key": "one"})
    first = await agent.post("/api/calls", json=CALL)
    who = f"agent:{(await state.accounts.authenticate_key(keys['agent'])).owner}"
    kept = await state.store.idempotency.reserve(IdempotencyKey("default", who, "one"), "")
    left = IdempotencyKey("default", who, "left")
    assert (await state.store.idempotency.reserve(left, kept.digest)).reservation_token
    later = client(keys["agent"], **{"idempotency-key": "left"})
    answer = await later.post("/api/calls", json=CALL)
    assert (answer.status_code, answer.json()["error"]) == (409, "in_progress")
    clock.advance(TAKEOVER_AFTER)
    answers = await asyncio.gather(*[later.post("/api/calls", json=CALL) for _ in range(10)])
    assert {each.json()["approval_id"] for each in answers if each.status_code == 200} == {first.json()["approval_id"]}
    assert {each.status_code for each in answers} <= {200, 409}


async def test_superseded_request_changes_nothing(state: ServerState, clock: Clock) -> None:
    slot = IdempotencyKey("default", "bob", "one")
    slow = (await state.store.idempotency.reserve(slot, "d")).reservation_token
    clock.advance(TAKEOVER_AFTER)
    quick = (await state.store.idempotency.reserve(slot, "d")).reservation_token
    assert slow
    assert quick
    await state.store.idempotency.save(slot, slow, 200, b"slow")
    await state.store.idempotency.release(slot, slow)
    await state.store.idempotency.save(slot, quick, 201, b"quick")
    kept = await state.store.idempotency.reserve(slot, "d")
    assert (kept.status, kept.body, kept.reservation_token) == (201, b"quick", b"")


# R24
async def test_a_secret_that_is_shown_once_is_never_stored(
    client: ClientFactory, keys: Keys, database: Database
) -> None:
    ada = client(keys["admin"], **{"idempotency-key": "one"})
    body = {"name": "new", "role": "agent"}
    first, second = [await ada.post("/api/keys", json=body) for _ in range(2)]
    assert first.status_code == 201, first.text
    assert (second.status_code, second.json()["error"]) == (409, "answered_once")
    secret = first.json()["key"]
    assert all(secret.encode() not in bytes(row[0]) for row in database.sql("select body from answers"))
    assert len((await ada.get("/api/keys")).json()["items"]) == 5


# R24, R41
async def test_an_erasure_reaches_what_was_answered(
    client: ClientFactory, keys: Keys, services: AppServices, state: ServerState, database: Database
) -> None:
    await state.workspaces.put_policy("default", "rules: [{name: notes, tools: [note], then: allow}]", "ada")
    agent, note = client(keys["agent"], **{"idempotency-key": "one"}), {**CALL, "tool": "note", "call_id": "n"}
    told = (await agent.post("/api/calls", json=note)).json()
    assert told["args"] == {"path": "/tmp/x"}
    again = client(keys["agent"], **{"idempotency-key": "two"})
    approval_id = (await again.post("/api/calls", json=CALL)).json()["approval_id"]
    async for _ in services.store.erase("default", Erasure("approval", approval_id, by="ada")):
        pass
    assert all(b"/tmp/x" not in bytes(row[0]) for row in database.sql("select body from answers"))
    assert (await agent.post("/api/calls", json=note)).status_code == 409


@pytest.mark.parametrize("key", ["x" * 201, "two\x7f"])
async def test_an_odd_key_is_refused(client: ClientFactory, keys: Keys, key: str) -> None:
    answer = await client(keys["agent"], **{"idempotency-key": key}).post("/api/calls", json=CALL)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


async def test_without_a_key_to_come_in_nothing_is_kept(client: ClientFactory, database: Database) -> None:
    answer: Any = await client(**{"idempotency-key": "one"}).post("/api/calls", json=CALL)
    assert answer.status_code == 401
    assert database.sql("select count(*) from answers") == [(0,)]


async def test_response_to_an_allowed_read_is_not_stored(client: ClientFactory, keys: Keys, state: ServerState) -> None:
    await state.workspaces.put_policy("default", "rules: [{name: free, then: allow}]", "ada")

    async def replayed(key: str, **more: Any) -> bool:
        agent = client(keys["agent"], **{"idempotency-key": key})
        answers = [await agent.post("/api/calls", json={**CALL, **more}) for _ in range(2)]
        assert answers[0].json()["outcome"] == answers[1].json()["outcome"] == "proceed"
        assert answers[0].json().get("approval_id") == answers[1].json().get("approval_id")
        return "idempotency-replayed" in answers[1].headers

    assert not await replayed("read", effect="read", call_id="r", args={"text": "A" * 900_000})
    assert not await replayed("large", effect="write", call_id="w", args={"text": "A" * 900_000})
    assert await replayed("small", effect="write", call_id="s")


@pytest.mark.parametrize("settings", [Settings(server=ServerSettings(quotas=QuotaSettings(2, 0)))])
async def test_an_agent_has_as_many_answers_kept_as_it_may_make_calls(
    client: ClientFactory, keys: Keys, clock: Clock
) -> None:
    async def replayed(key: str) -> bool:
        agent = client(keys["agent"], **{"idempotency-key": key})
        return "idempotency-replayed" in [await agent.post("/api/calls", json={}) for _ in range(2)][1].headers

    assert [await replayed(f"k{number}") for number in range(3)] == [True, True, False]
    clock.advance(60_000)
    assert await replayed("k9")
