"""Retries of a chat message under the same Idempotency-Key join the first response."""

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
from tests.server.chat_harness import ScriptedModel, StreamReader, fold_events, run_chat_loop
from tests.server.conftest import ClientFactory

Keys = dict[str, str]
PUBLISH = ToolRequest("c1", "cms_publish_post", '{"slug": "hello"}')


def send_message(app: RequestMiddleware, key: str, once: str, message: str = "Hello", **more: object) -> StreamReader:
    return StreamReader(app, key, "POST", "/api/chat", once=once, message=message, **more)


async def messages(state: ServerState, thread_id: str) -> list[str]:
    lines = await state.store.threads.entries("default", thread_id)
    return [str(line.body["text"]) for line in lines if line.kind == "said"]


async def test_retry_during_the_first_response_joins_its_stream(
    app: RequestMiddleware, state: ServerState, keys: Keys
) -> None:  # R3
    go_on, key = asyncio.Event(), keys["reviewer"]
    async with run_chat_loop(state, ScriptedModel(["One ", go_on, "two."])):
        first = await send_message(app, key, "a").wait_started()
        await first.next_event()
        second = await send_message(app, key, "a").wait_started()
        assert (await second.next_event()).data["content"] == "One "
        go_on.set()
        assert fold_events(await first.read_all()) == fold_events(await second.read_all())
    assert second.thread_id == first.thread_id
    assert ("idempotency-replayed" in first.headers, second.headers["idempotency-replayed"]) == (False, "true")
    assert await messages(state, first.thread_id) == ["Hello"]


@pytest.mark.postgres_smoke
async def test_sent_many_times_at_once_it_is_one_message(
    app: RequestMiddleware, state: ServerState, keys: Keys
) -> None:
    async with run_chat_loop(state, ScriptedModel(["Hello."])):
        streams = [await send_message(app, keys["reviewer"], "a").wait_started() for _ in range(10)]
        ended = [fold_events(await stream.read_all()) for stream in streams]
    assert ended == [ended[0]] * 10
    assert len({stream.thread_id for stream in streams}) == 1
    assert await messages(state, streams[0].thread_id) == ["Hello"]


async def test_retry_after_a_restart_is_the_same_message(
    app: RequestMiddleware, state: ServerState, keys: Keys
) -> None:
    key = keys["reviewer"]
    async with run_chat_loop(state, ScriptedModel(["First."], ["Second."], ["Third."])):
        first = await send_message(app, key, "a", "one").wait_started()
        await first.read_all()
        second = await send_message(app, key, "b", "two", thread_id=first.thread_id).wait_started()
        await second.read_all()
        await (await send_message(app, key, "c", "three", thread_id=first.thread_id).wait_started()).read_all()
    anew = build_app(await make_server_state(Settings(), build_services_from_store(state.store)))
    for before, once, message, more in ((first, "a", "one", {}), (second, "b", "two", {"thread_id": first.thread_id})):
        again = await send_message(anew, key, once, message, **more).wait_started()
        assert fold_events(await again.read_all()) == fold_events(before.events)
    assert await messages(state, first.thread_id) == ["one", "two", "three"]


async def test_retry_withdraws_no_card(
    app: RequestMiddleware, state: ServerState, keys: Keys, services: AppServices
) -> None:
    key = keys["reviewer"]
    async with run_chat_loop(state, ScriptedModel(["Hello."], ["Now.", PUBLISH])):
        first = await send_message(app, key, "a").wait_started()
        await first.read_all()
        second = await send_message(app, key, "b", "publish", thread_id=first.thread_id).wait_started()
        card = (await second.read_until("approval_request"))[-1].data["approval"]["id"]
        again = await send_message(app, key, "b", "publish", thread_id=first.thread_id).wait_started()
        assert (await again.read_until("approval_request"))[-1].data["approval"]["id"] == card
        await again.leave()
        await second.leave()
    assert (await services.store.get("default", card)).approval.status == "pending"


async def test_another_message_under_the_same_key_is_refused(
    app: RequestMiddleware, state: ServerState, keys: Keys, client: ClientFactory
) -> None:
    async with run_chat_loop(state, ScriptedModel(["Hello."])):
        first = await send_message(app, keys["reviewer"], "a").wait_started()
        await first.read_all()
    headers = {"idempotency-key": "a"}
    answer = await client(keys["reviewer"]).post("/api/chat", json={"message": "Other"}, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (409, "idempotency_mismatch")
    assert len((await client(keys["admin"]).get("/api/threads?user=*")).json()["items"]) == 1


async def test_the_same_key_of_somebody_else_is_another_message(
    app: RequestMiddleware, state: ServerState, keys: Keys
) -> None:  # R48
    async with run_chat_loop(state, ScriptedModel(["Hello."], ["Hello."])):
        streams = [await send_message(app, keys[role], "a").wait_started() for role in ("reviewer", "admin")]
        for stream in streams:
            await stream.read_all()
    assert streams[0].thread_id != streams[1].thread_id


async def test_a_message_that_was_refused_may_be_sent_again(
    app: RequestMiddleware, state: ServerState, keys: Keys, client: ClientFactory
) -> None:
    headers, body = {"idempotency-key": "a"}, {"message": "Hello", "thread_id": "thread-0"}
    for _ in range(2):
        assert (await client(keys["reviewer"]).post("/api/chat", json=body, headers=headers)).status_code == 404
    async with run_chat_loop(state, ScriptedModel(["Hello."])):
        stream = await send_message(app, keys["reviewer"], "a").wait_started()
        assert [event.name for event in await stream.read_all()][-1] == "done"
