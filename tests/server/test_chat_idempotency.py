"""A message that is sent again under the same Idempotency-Key is one message, and is told from there on."""

from __future__ import annotations

import asyncio

import pytest

from interlock.app.bootstrap import AppServices, build_services_from_store
from interlock.config.models import Settings
from interlock.core.chat.transcript import ToolRequest
from interlock.server.app import build_app
from interlock.server.middleware import RequestMiddleware
from interlock.server.serve import make_server_state
from interlock.server.state import ServerState
from tests.server.chat_harness import Following, Speaker, folded, speaking
from tests.server.conftest import As

Keys = dict[str, str]
PUBLISH = ToolRequest("c1", "cms_publish_post", '{"slug": "hello"}')


def said(app: RequestMiddleware, key: str, once: str, message: str = "Hello", **more: object) -> Following:
    return Following(app, key, "POST", "/api/chat", once=once, message=message, **more)


async def messages(site: ServerState, thread_id: str) -> list[str]:
    lines = await site.store.threads.entries("default", thread_id)
    return [str(line.body["text"]) for line in lines if line.kind == "said"]


async def test_sent_again_while_the_first_is_told_it_joins_in(
    app: RequestMiddleware, site: ServerState, keys: Keys
) -> None:  # R3
    go_on, key = asyncio.Event(), keys["reviewer"]
    async with speaking(site, Speaker(["One ", go_on, "two."])):
        first = await said(app, key, "a").begun()
        await first.next()
        second = await said(app, key, "a").begun()
        assert (await second.next()).data["content"] == "One "
        go_on.set()
        assert folded(await first.ended()) == folded(await second.ended())
    assert second.thread_id == first.thread_id
    assert ("idempotency-replayed" in first.headers, second.headers["idempotency-replayed"]) == (False, "true")
    assert await messages(site, first.thread_id) == ["Hello"]


@pytest.mark.postgres_smoke
async def test_sent_many_times_at_once_it_is_one_message(app: RequestMiddleware, site: ServerState, keys: Keys) -> None:
    async with speaking(site, Speaker(["Hello."])):
        streams = [await said(app, keys["reviewer"], "a").begun() for _ in range(10)]
        ended = [folded(await stream.ended()) for stream in streams]
    assert ended == [ended[0]] * 10
    assert len({stream.thread_id for stream in streams}) == 1
    assert await messages(site, streams[0].thread_id) == ["Hello"]


async def test_sent_again_after_a_restart_it_is_still_the_same(
    app: RequestMiddleware, site: ServerState, keys: Keys
) -> None:
    key = keys["reviewer"]
    async with speaking(site, Speaker(["First."], ["Second."], ["Third."])):
        first = await said(app, key, "a", "one").begun()
        await first.ended()
        second = await said(app, key, "b", "two", thread_id=first.thread_id).begun()
        await second.ended()
        await (await said(app, key, "c", "three", thread_id=first.thread_id).begun()).ended()
    anew = build_app(await make_server_state(Settings(), build_services_from_store(site.store)))
    for before, once, message, more in ((first, "a", "one", {}), (second, "b", "two", {"thread_id": first.thread_id})):
        again = await said(anew, key, once, message, **more).begun()
        assert folded(await again.ended()) == folded(before.events)
    assert await messages(site, first.thread_id) == ["one", "two", "three"]


async def test_sent_again_it_withdraws_no_card(
    app: RequestMiddleware, site: ServerState, keys: Keys, parts: AppServices
) -> None:
    key = keys["reviewer"]
    async with speaking(site, Speaker(["Hello."], ["Now.", PUBLISH])):
        first = await said(app, key, "a").begun()
        await first.ended()
        second = await said(app, key, "b", "publish", thread_id=first.thread_id).begun()
        card = (await second.until("approval_request"))[-1].data["approval"]["id"]
        again = await said(app, key, "b", "publish", thread_id=first.thread_id).begun()
        assert (await again.until("approval_request"))[-1].data["approval"]["id"] == card
        await again.leave()
        await second.leave()
    assert (await parts.store.get("default", card)).approval.status == "pending"


async def test_another_message_under_the_same_key_is_refused(
    app: RequestMiddleware, site: ServerState, keys: Keys, client: As
) -> None:
    async with speaking(site, Speaker(["Hello."])):
        first = await said(app, keys["reviewer"], "a").begun()
        await first.ended()
    headers = {"idempotency-key": "a"}
    answer = await client(keys["reviewer"]).post("/api/chat", json={"message": "Other"}, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (409, "idempotency_mismatch")
    assert len((await client(keys["admin"]).get("/api/threads?user=*")).json()["items"]) == 1


async def test_the_same_key_of_somebody_else_is_another_message(
    app: RequestMiddleware, site: ServerState, keys: Keys
) -> None:  # R48
    async with speaking(site, Speaker(["Hello."], ["Hello."])):
        streams = [await said(app, keys[role], "a").begun() for role in ("reviewer", "admin")]
        for stream in streams:
            await stream.ended()
    assert streams[0].thread_id != streams[1].thread_id


async def test_a_message_that_was_refused_may_be_sent_again(
    app: RequestMiddleware, site: ServerState, keys: Keys, client: As
) -> None:
    headers, body = {"idempotency-key": "a"}, {"message": "Hello", "thread_id": "thread-0"}
    for _ in range(2):
        assert (await client(keys["reviewer"]).post("/api/chat", json=body, headers=headers)).status_code == 404
    async with speaking(site, Speaker(["Hello."])):
        stream = await said(app, keys["reviewer"], "a").begun()
        assert [event.name for event in await stream.ended()][-1] == "done"
