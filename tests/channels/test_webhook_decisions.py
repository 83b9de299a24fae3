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
from tests.server.asgi_request import Got, ask
from tests.support import WRITE, Clock, call, kinds, pending, status

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


async def say(app: RequestMiddleware, clock: Clock, body: object, name: str = "msg_1", **more: Any) -> Got:
    """As the other side does, with the standard's library; `secret`, `path` and `at` may be given."""
    content = body if isinstance(body, str) else json.dumps(body)
    at = datetime.fromtimestamp(more.get("at", clock()) // 1000, UTC)
    headers = {
        "webhook-id": name,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Standard(more.get("secret", SECRET)).sign(name, at, content),
    }
    return await ask(
        app,
        "POST",
        more.get("path", PATH),
        body=content.encode(),
        headers={**headers, "content-type": "application/json"},
    )


async def decision(parts: AppServices, approval_id: str, kind: str = "approve", **more: object) -> dict[str, object]:
    approval = (await parts.store.get(str(more.pop("workspace", "default")), approval_id)).approval
    return {
        "approval_id": approval_id,
        "decision": {"kind": kind, "args_sha256": approval.args_sha256, **more},
    }


@pytest.mark.parametrize("secret", [SECRET, OLD])
async def test_a_signed_decision_counts_for_the_account_of_the_settings(
    app: RequestMiddleware, parts: AppServices, clock: Clock, keys: dict[str, str], secret: str
) -> None:  # R25 R47 R48
    approval_id = await pending(parts)
    got = await say(app, clock, await decision(parts, approval_id), secret=secret)
    assert (got.status, got.json()["status"]) == (200, "approved")
    decided = (await parts.store.get("default", approval_id)).approval.decision
    assert decided is not None
    assert (decided.by, decided.via, decided.kind) == ("bob", "hook", "approve")


async def test_what_is_not_signed_by_the_other_side_decides_nothing(
    app: RequestMiddleware, parts: AppServices, clock: Clock, keys: dict[str, str]
) -> None:  # R47
    approval_id = await pending(parts)
    body = await decision(parts, approval_id)
    late, early = clock() - 301_000, clock() + 301_000
    refused = [await say(app, clock, body, secret=OTHER), await say(app, clock, body, at=late)]
    refused += [await say(app, clock, body, at=early), await ask(app, "POST", PATH, body=json.dumps(body).encode())]
    assert [(got.status, got.error) for got in refused] == [(401, "unauthenticated")] * 4
    assert await status(parts, approval_id) == "pending"


async def test_a_channel_without_an_account_takes_nothing(
    app: RequestMiddleware, parts: AppServices, clock: Clock, keys: dict[str, str]
) -> None:  # R48
    approval_id = await pending(parts)
    got = await say(app, clock, await decision(parts, approval_id), path="/channels/deaf/callback")
    assert (got.status, got.error) == (404, "not_found")
    assert await status(parts, approval_id) == "pending"


@pytest.mark.postgres_smoke
async def test_the_same_message_many_times_changes_one_thing_and_gets_one_answer(
    app: RequestMiddleware, parts: AppServices, clock: Clock, keys: dict[str, str]
) -> None:  # R24
    approval_id = await pending(parts)
    body = await decision(parts, approval_id)
    first = await asyncio.gather(*(say(app, clock, body) for _ in range(20)))
    clock.forward(60_000)
    later = await say(app, clock, body)
    assert {(got.status, got.body) for got in (*first, later)} == {(200, first[0].body)}
    assert (await kinds(parts)).count("approved") == 1
    other = await say(app, clock, await decision(parts, approval_id, "reject"))
    assert (other.status, other.error) == (409, "conflict")


async def test_who_comes_too_late_is_told_who_was_first(
    app: RequestMiddleware, parts: AppServices, clock: Clock, keys: dict[str, str]
) -> None:  # R24
    approval_id = await pending(parts)
    await say(app, clock, await decision(parts, approval_id, "reject", reason="not today"))
    late = await say(app, clock, await decision(parts, approval_id), "msg_2")
    assert (late.status, late.error) == (409, "already_decided")
    assert late.json()["decision"]["kind"] == "reject"
    assert late.json()["decision"]["at"].endswith("Z")
    forgotten = await decision(parts, await pending(parts, 2))
    clock.forward(86_400_000)
    expired = await say(app, clock, forgotten, "msg_3")
    assert (expired.status, expired.error) == (410, "expired")


async def test_a_decision_needs_the_digest_of_what_was_seen(
    app: RequestMiddleware, parts: AppServices, clock: Clock, keys: dict[str, str]
) -> None:  # R47
    approval_id = await pending(parts)
    bare = {"approval_id": approval_id, "decision": {"kind": "approve"}}
    wrong = {"approval_id": approval_id, "decision": {"kind": "approve", "args_sha256": "0" * 64}}
    missing, mismatch = await say(app, clock, bare), await say(app, clock, wrong, "msg_2")
    assert (missing.status, missing.error) == (422, "invalid_decision")
    assert (mismatch.status, mismatch.error) == (409, "digest_mismatch")
    assert await status(parts, approval_id) == "pending"


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
async def test_whatever_else_is_signed_is_refused_in_words(
    app: RequestMiddleware, clock: Clock, keys: dict[str, str], body: str
) -> None:  # R47
    got = await say(app, clock, body)
    assert (got.status, got.error) in {(400, "invalid_request"), (422, "invalid_decision")}
    assert got.json()["message"]


async def test_there_is_nothing_to_decide_in_another_workspace_or_under_another_id(
    app: RequestMiddleware, parts: AppServices, clock: Clock, keys: dict[str, str]
) -> None:  # R48
    body = await decision(parts, await pending(parts))
    elsewhere = await say(app, clock, {**body, "workspace": "theirs"})
    nowhere = await say(app, clock, {**body, "approval_id": "nothing"}, "msg_2")
    assert (elsewhere.status, nowhere.status) == (403, 404)


async def test_the_account_has_its_own_rights_and_loses_them_when_it_is_removed(
    app: RequestMiddleware, parts: AppServices, site: ServerState, clock: Clock, keys: dict[str, str]
) -> None:  # R48
    approval_id = await pending(parts)
    await parts.store.put_user("default", User("bob", "viewer"), "ada")
    await site.workspaces.refresh("default")
    weak = await say(app, clock, await decision(parts, approval_id))
    await parts.store.put_user("default", User("bob", "reviewer", removed_at=clock()), "ada")
    await site.workspaces.refresh("default")
    gone = await say(app, clock, await decision(parts, approval_id), "msg_2")
    assert [(got.status, got.error) for got in (weak, gone)] == [(403, "forbidden")] * 2
    assert await status(parts, approval_id) == "pending"


async def test_an_edit_comes_back_with_its_arguments(
    app: RequestMiddleware, parts: AppServices, clock: Clock, keys: dict[str, str]
) -> None:  # R25
    approval_id = await pending(parts)
    got = await say(app, clock, await decision(parts, approval_id, "edit", args={"path": "/tmp/y"}))
    assert (got.status, got.json()["decision"]["kind"]) == (200, "edit")
    assert json.loads((await parts.store.get("default", approval_id)).payload.args or b"") == {"path": "/tmp/y"}


async def test_the_same_person_through_the_webhook_and_the_page_has_one_vote(
    app: RequestMiddleware, parts: AppServices, site: ServerState, clock: Clock, keys: dict[str, str]
) -> None:  # R48
    rule = 'version: 1\nrules: [{name: two, tools: ["*"], then: ask, quorum: 2}]'
    await site.workspaces.put_policy("default", rule, "ada")
    waiting = await (await site.workspaces.services("default")).gate.check(call(), WRITE)
    assert isinstance(waiting, Waiting)
    body = await decision(parts, waiting.approval_id)
    first = await say(app, clock, body)
    again = await _on_the_page(app, keys["reviewer"], waiting.approval_id, body["decision"])
    assert [(got.status, got.json()["status"]) for got in (first, again)] == [(200, "pending")] * 2
    other = await _on_the_page(app, keys["admin"], waiting.approval_id, body["decision"])
    assert (other.status, other.json()["status"]) == (200, "approved")


async def _on_the_page(app: RequestMiddleware, key: str, approval_id: str, said: object) -> Got:
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    return await ask(app, "POST", f"/api/approvals/{approval_id}/decision", headers, json.dumps(said).encode())


@pytest.mark.postgres_smoke
async def test_the_secret_of_a_channel_decides_in_its_own_workspace_alone(
    app: RequestMiddleware, parts: AppServices, site: ServerState, clock: Clock, keys: dict[str, str]
) -> None:  # R60
    """Even where the account that it acts as is a member of both."""
    await make_keys(parts, "theirs")
    await site.workspaces.refresh("theirs")
    body = await decision(parts, await pending(parts, workspace="theirs"), workspace="theirs")
    answers = [await say(app, clock, {**body, "workspace": name}, name) for name in ("theirs", "nobodys")]
    assert [(got.status, got.error) for got in answers] == [(403, "forbidden")] * 2
    assert answers[0].body == answers[1].body
    assert await status(parts, str(body["approval_id"]), "theirs") == "pending"
