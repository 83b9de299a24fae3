"""Decisions back through a webhook: signed, once, in the name of the account that the settings say. Both databases."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks import Webhook as Standard

from interlock.app.bootstrap import AppServices
from interlock.config.models import ChannelSettings, Settings
from interlock.core.outcome import Waiting
from interlock.core.ports import User
from interlock.server.middleware import RequestMiddleware
from interlock.server.state import ServerState
from tests.interlock_server import make_keys
from tests.server.asgi_request import Response, send_request
from tests.support import WRITE, Clock, call, event_kinds, propose_pending, status

SECRET, OLD, OTHER = (f"whsec_{base64.b64encode(bytes([each]) * 32).decode()}" for each in (1, 2, 3))
PATH = "/channels/hook/callback"


@pytest.fixture
def settings() -> Settings:
    hook = {"url": "https://hooks.example.com/x", "secrets": [SECRET, OLD]}
    return Settings(
        channels={
            "hook": ChannelSettings("webhook", {**hook, "acts_as": "bob"}),
            "deaf": ChannelSettings("webhook", hook),
        }
    )


async def post_signed(app: RequestMiddleware, clock: Clock, body: object, name: str = "msg_1", **more: Any) -> Response:
    """As the other side does, with the standard's library; `secret`, `path` and `at` may be given."""
    content = body if isinstance(body, str) else json.dumps(body)
    at = datetime.fromtimestamp(more.get("at", clock()) // 1000, UTC)
    headers = {
        "webhook-id": name,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Standard(more.get("secret", SECRET)).sign(name, at, content),
    }
    return await send_request(
        app,
        "POST",
        more.get("path", PATH),
        body=content.encode(),
        headers={**headers, "content-type": "application/json"},
    )


async def decision(services: AppServices, approval_id: str, kind: str = "approve", **more: object) -> dict[str, object]:
    approval = (await services.store.get(str(more.pop("workspace", "default")), approval_id)).approval
    return {
        "approval_id": approval_id,
        "decision": {"kind": kind, "args_sha256": approval.args_sha256, **more},
    }


@pytest.mark.parametrize("secret", [SECRET, OLD])
async def test_a_signed_decision_counts_for_the_account_of_the_settings(
    app: RequestMiddleware, services: AppServices, clock: Clock, keys: dict[str, str], secret: str
) -> None:  # R25 R47 R48
    approval_id = await propose_pending(services)
    got = await post_signed(app, clock, await decision(services, approval_id), secret=secret)
    assert (got.status, got.json()["status"]) == (200, "approved")
    decided = (await services.store.get("default", approval_id)).approval.decision
    assert decided is not None
    assert (decided.by, decided.via, decided.kind) == ("bob", "hook", "approve")


async def test_what_is_not_signed_by_the_other_side_decides_nothing(
    app: RequestMiddleware, services: AppServices, clock: Clock, keys: dict[str, str]
) -> None:  # R47
    approval_id = await propose_pending(services)
    body = await decision(services, approval_id)
    late, early = clock() - 301_000, clock() + 301_000
    refused = [await post_signed(app, clock, body, secret=OTHER), await post_signed(app, clock, body, at=late)]
    refused += [
        await post_signed(app, clock, body, at=early),
        await send_request(app, "POST", PATH, body=json.dumps(body).encode()),
    ]
    assert [(got.status, got.error_code) for got in refused] == [(401, "unauthenticated")] * 4
    assert await status(services, approval_id) == "pending"


async def test_a_channel_without_an_account_takes_nothing(
    app: RequestMiddleware, services: AppServices, clock: Clock, keys: dict[str, str]
) -> None:  # R48
    approval_id = await propose_pending(services)
    got = await post_signed(app, clock, await decision(services, approval_id), path="/channels/deaf/callback")
    assert (got.status, got.error_code) == (404, "not_found")
    assert await status(services, approval_id) == "pending"


@pytest.mark.postgres_smoke
async def test_the_same_message_many_times_changes_one_thing_and_gets_one_answer(
    app: RequestMiddleware, services: AppServices, clock: Clock, keys: dict[str, str]
) -> None:  # R24
    approval_id = await propose_pending(services)
    body = await decision(services, approval_id)
    first = await asyncio.gather(*(post_signed(app, clock, body) for _ in range(20)))
    clock.advance(60_000)
    later = await post_signed(app, clock, body)
    assert {(got.status, got.body) for got in (*first, later)} == {(200, first[0].body)}
    assert (await event_kinds(services)).count("approved") == 1
    other = await post_signed(app, clock, await decision(services, approval_id, "reject"))
    assert (other.status, other.error_code) == (409, "conflict")


async def test_late_decision_gets_the_first_one(
    app: RequestMiddleware, services: AppServices, clock: Clock, keys: dict[str, str]
) -> None:  # R24
    approval_id = await propose_pending(services)
    await post_signed(app, clock, await decision(services, approval_id, "reject", reason="not today"))
    late = await post_signed(app, clock, await decision(services, approval_id), "msg_2")
    assert (late.status, late.error_code) == (409, "already_decided")
    assert late.json()["decision"]["kind"] == "reject"
    assert late.json()["decision"]["at"].endswith("Z")
    forgotten = await decision(services, await propose_pending(services, 2))
    clock.advance(86_400_000)
    expired = await post_signed(app, clock, forgotten, "msg_3")
    assert (expired.status, expired.error_code) == (410, "expired")


async def test_a_decision_needs_the_digest_of_what_was_seen(
    app: RequestMiddleware, services: AppServices, clock: Clock, keys: dict[str, str]
) -> None:  # R47
    approval_id = await propose_pending(services)
    bare = {"approval_id": approval_id, "decision": {"kind": "approve"}}
    wrong = {"approval_id": approval_id, "decision": {"kind": "approve", "args_sha256": "0" * 64}}
    missing, mismatch = await post_signed(app, clock, bare), await post_signed(app, clock, wrong, "msg_2")
    assert (missing.status, missing.error_code) == (422, "invalid_decision")
    assert (mismatch.status, mismatch.error_code) == (409, "digest_mismatch")
    assert await status(services, approval_id) == "pending"
    assert (await event_kinds(services))[-2:] == ["decision_refused", "decision_refused"]  # R41


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "null",
        "{",
        '{"approval_id":"x"}',
        '{"approval_id":"x","decision":{"kind":"approve"},"by":"ada"}',
        '{"approval_id":"x","approval_id":"y","decision":{}}',
        '{"approval_id":7,"decision":{}}',
        '{"approval_id":"x","workspace":"\\u0000","decision":{}}',
        '{"approval_id":"x","decision":true}',
        '{"type":"approval.pending","timestamp":"2027-01-15T08:00:00.000Z","data":{"id":"x"}}',
    ],
)
async def test_other_signed_bodies_are_refused_with_a_reason(
    app: RequestMiddleware, clock: Clock, keys: dict[str, str], body: str
) -> None:  # R47
    got = await post_signed(app, clock, body)
    assert (got.status, got.error_code) in {(400, "invalid_request"), (422, "invalid_decision")}
    assert got.json()["message"]


async def test_there_is_nothing_to_decide_in_another_workspace_or_under_another_id(
    app: RequestMiddleware, services: AppServices, clock: Clock, keys: dict[str, str]
) -> None:  # R48
    body = await decision(services, await propose_pending(services))
    elsewhere = await post_signed(app, clock, {**body, "workspace": "theirs"})
    nowhere = await post_signed(app, clock, {**body, "approval_id": "nothing"}, "msg_2")
    assert (elsewhere.status, nowhere.status) == (403, 404)


async def test_the_account_has_its_own_rights_and_loses_them_when_it_is_removed(
    app: RequestMiddleware, services: AppServices, state: ServerState, clock: Clock, keys: dict[str, str]
) -> None:  # R48
    approval_id = await propose_pending(services)
    await services.store.put_user("default", User("bob", "viewer"), "ada")
    await state.workspaces.refresh("default")
    weak = await post_signed(app, clock, await decision(services, approval_id))
    await services.store.put_user("default", User("bob", "reviewer", removed_at=clock()), "ada")
    await state.workspaces.refresh("default")
    gone = await post_signed(app, clock, await decision(services, approval_id), "msg_2")
    assert [(got.status, got.error_code) for got in (weak, gone)] == [(403, "forbidden")] * 2
    assert await status(services, approval_id) == "pending"


async def test_an_edit_comes_back_with_its_arguments(
    app: RequestMiddleware, services: AppServices, clock: Clock, keys: dict[str, str]
) -> None:  # R25
    approval_id = await propose_pending(services)
    got = await post_signed(app, clock, await decision(services, approval_id, "edit", args={"path": "/tmp/y"}))
    assert (got.status, got.json()["decision"]["kind"]) == (200, "edit")
    assert json.loads((await services.store.get("default", approval_id)).payload.args or b"") == {"path": "/tmp/y"}


async def test_the_same_person_through_the_webhook_and_the_page_has_one_vote(
    app: RequestMiddleware, services: AppServices, state: ServerState, clock: Clock, keys: dict[str, str]
) -> None:  # R48
    rule = 'version: 1\nrules: [{name: two, tools: ["*"], then: ask, quorum: 2}]'
    await state.workspaces.put_policy("default", rule, "ada")
    waiting = await (await state.workspaces.services("default")).gate.check(call(), WRITE)
    assert isinstance(waiting, Waiting)
    body = await decision(services, waiting.approval_id)
    first = await post_signed(app, clock, body)
    again = await _on_the_page(app, keys["reviewer"], waiting.approval_id, body["decision"])
    assert [(got.status, got.json()["status"]) for got in (first, again)] == [(200, "pending")] * 2
    other = await _on_the_page(app, keys["admin"], waiting.approval_id, body["decision"])
    assert (other.status, other.json()["status"]) == (200, "approved")


async def _on_the_page(app: RequestMiddleware, key: str, approval_id: str, said: object) -> Response:
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    return await send_request(app, "POST", f"/api/approvals/{approval_id}/decision", headers, json.dumps(said).encode())


@pytest.mark.postgres_smoke
async def test_the_secret_of_a_channel_decides_in_its_own_workspace_alone(
    app: RequestMiddleware, services: AppServices, state: ServerState, clock: Clock, keys: dict[str, str]
) -> None:  # R60
    """Even where the account that it acts as is a member of both."""
    await make_keys(services, "theirs")
    await state.workspaces.refresh("theirs")
    body = await decision(services, await propose_pending(services, workspace="theirs"), workspace="theirs")
    answers = [await post_signed(app, clock, {**body, "workspace": name}, name) for name in ("theirs", "nobodys")]
    assert [(got.status, got.error_code) for got in answers] == [(403, "forbidden")] * 2
    assert answers[0].body == answers[1].body
    assert await status(services, str(body["approval_id"]), "theirs") == "pending"
