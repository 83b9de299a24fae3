"""The chat's streams: cut anywhere and taken up again, nothing is missing and nothing comes twice."""

from __future__ import annotations

import asyncio

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.chat.transcript import ModelReply, ToolRequest
from interlock.core.errors import ModelFailed
from interlock.server import middleware, router
from interlock.server.middleware import RequestMiddleware
from interlock.server.state import ServerState
from interlock.server.streams import sse, thread_stream
from tests.server.chat_harness import TIMEOUT, Event, ScriptedModel, StreamReader, fold_events, run_chat_loop
from tests.server.conftest import ClientFactory
from tests.support import ADA, Clock, approve

Keys = dict[str, str]
LIST = ToolRequest("c1", "cms_list_posts", "{}")
PUBLISH = ToolRequest("c2", "cms_publish_post", '{"slug": "hello"}')


def send_message(app: RequestMiddleware, key: str, message: str = "Hello", **more: object) -> StreamReader:
    return StreamReader(app, key, "POST", "/api/chat", message=message, **more)


def follow_thread(app: RequestMiddleware, key: str, thread_id: str, last: str = "") -> StreamReader:
    return StreamReader(app, key, "GET", f"/api/threads/{thread_id}/events", last)


async def run_turn(
    app: RequestMiddleware, state: ServerState, services: AppServices, key: str
) -> tuple[str, list[Event]]:
    """One with words, a free call, one that a person approves, and more words."""
    model = ScriptedModel(["Let me ", "see.", LIST], ["And ", "now this.", PUBLISH], ["All ", "done."])
    async with run_chat_loop(state, model):
        stream = await send_message(app, key).wait_started()
        card = (await stream.read_until("approval_request"))[-1].data["approval"]
        assert card["status"] == "pending"
        await approve(services, card["id"], ADA)
        events = await stream.read_all()
    return stream.thread_id, events


async def test_message_is_streamed_until_its_turn_is_over(  # R3, R4
    app: RequestMiddleware, state: ServerState, services: AppServices, keys: Keys
) -> None:
    thread_id, events = await run_turn(app, state, services, keys["reviewer"])
    told = fold_events(events)
    assert [name for name, _ in told] == [
        "delta", "tool_call_start", "tool_call_result", "delta", "tool_call_start", "approval_request",
        "approval_resolved", "tool_call_result", "delta", "done",
    ]  # fmt: skip
    assert [words for name, words in told if name == "delta"] == ["Let me see.", "And now this.", "All done."]
    assert {event.data["thread_id"] for event in events} == {thread_id}
    assert all(event.data["type"] == event.name for event in events)


async def test_suggestions_come_with_the_end_of_their_turn_and_stay_in_the_thread(  # R3
    app: RequestMiddleware, state: ServerState, client: ClientFactory, keys: Keys
) -> None:
    offers = ModelReply("Which one?", suggestions=("List pages", "List posts"))
    async with run_chat_loop(state, ScriptedModel([offers], ["Done."])):
        stream = await send_message(app, keys["reviewer"]).wait_started()
        assert (await stream.read_all())[-1].data["suggestions"] == ["List pages", "List posts"]
        thread = {"thread_id": stream.thread_id}
        more = await send_message(app, keys["reviewer"], "List pages", **thread).wait_started()
        assert "suggestions" not in (await more.read_all())[-1].data
    lines = (await client(keys["reviewer"]).get(f"/api/threads/{stream.thread_id}")).json()["lines"]
    ended = [line["body"] for line in lines if line["kind"] == "ended"]
    assert [body.get("suggestions") for body in ended] == [["List pages", "List posts"], None]


async def test_a_turn_without_a_last_word_is_done(app: RequestMiddleware, state: ServerState, keys: Keys) -> None:  # R3
    async with run_chat_loop(state, ScriptedModel([LIST], [], ["Hello."])):
        stream = await send_message(app, keys["reviewer"]).wait_started()
        assert [event.name for event in await stream.read_all()] == ["tool_call_start", "tool_call_result", "done"]
        more = await send_message(app, keys["reviewer"], thread_id=stream.thread_id).wait_started()
        assert fold_events(await more.read_all())[0] == ("delta", "Hello.")


async def test_a_stream_that_is_cut_after_any_event_goes_on_with_the_next(  # R3
    app: RequestMiddleware, state: ServerState, services: AppServices, keys: Keys
) -> None:
    key = keys["reviewer"]
    thread_id, events = await run_turn(app, state, services, key)
    whole = fold_events(events)
    for number, event in enumerate(events[:-1], 1):
        again = await follow_thread(app, key, thread_id, event.id).wait_started()
        await again.read_until("done")
        await again.leave()
        assert fold_events([*events[:number], *again.events]) == whole
    anew = await follow_thread(app, key, thread_id).wait_started()
    assert fold_events(await anew.read_until("done")) == whole
    await anew.leave()


@pytest.mark.parametrize("failing", [False, True])
async def test_a_reader_who_hangs_up_after_each_event_gets_the_same_as_one_who_stays(  # R3
    app: RequestMiddleware, state: ServerState, keys: Keys, clock: Clock, *, failing: bool
) -> None:
    key, steps = keys["reviewer"], [asyncio.Event() for _ in range(6)]
    first: list[list[str | asyncio.Event | ModelFailed | ToolRequest]] = (
        [["Wro", steps[0], "ng ", steps[1], ModelFailed("The line broke.", is_retryable=True)]] if failing else []
    )
    turns = [*first, ["One ", steps[2], "two ", steps[3], "three.", LIST], ["Four", steps[4], " five.", steps[5]]]
    async with run_chat_loop(state, ScriptedModel(*turns)):
        stays = await send_message(app, key).wait_started()
        taken: list[Event] = []
        while not taken or taken[-1].name != "done":
            last = taken[-1].id if taken else "1.0"
            stream = await follow_thread(app, key, stays.thread_id, last).wait_started()
            taken.append(await stream.next_event())
            await stream.leave()
            spoken = next((step for step in steps[0 if failing else 2 :] if not step.is_set()), None)
            if spoken is not None:
                spoken.set()
            clock.advance(5_000)  # the model is tried again after a while
        assert fold_events(taken) == fold_events(await stays.read_all())
    assert [words for name, words in fold_events(taken) if name == "delta"] == ["One two three.", "Four five."]
    assert any(event.data.get("reset") for event in taken) == failing


@pytest.mark.postgres_smoke
async def test_words_come_while_they_are_said(app: RequestMiddleware, state: ServerState, keys: Keys) -> None:  # R4
    go_on = asyncio.Event()
    async with run_chat_loop(state, ScriptedModel(["Hello", go_on, " there."])):
        stream = await send_message(app, keys["reviewer"]).wait_started()
        assert (await stream.next_event()).data["content"] == "Hello"
        assert (await state.store.threads.entries("default", stream.thread_id))[-1].kind == "said"
        go_on.set()
        assert (await stream.read_all())[-1].name == "done"


async def test_two_readers_see_the_same(
    app: RequestMiddleware, state: ServerState, services: AppServices, keys: Keys
) -> None:  # R3
    go_on = asyncio.Event()
    async with run_chat_loop(state, ScriptedModel(["Let ", go_on, "me see.", PUBLISH], ["Done."])):
        stream = await send_message(app, keys["reviewer"]).wait_started()
        await stream.next_event()
        both = [await follow_thread(app, keys[role], stream.thread_id).wait_started() for role in ("reviewer", "admin")]
        go_on.set()
        for each in both:
            card = (await each.read_until("approval_request"))[-1].data["approval"]
        await approve(services, card["id"], ADA)
        for each in both:
            assert fold_events(await each.read_until("done")) == fold_events(await stream.read_all())
            await each.leave()


async def test_a_model_that_cannot_be_reached_ends_with_an_error(
    app: RequestMiddleware, state: ServerState, keys: Keys
) -> None:
    async with run_chat_loop(
        state, ScriptedModel([ModelFailed("No such model.", is_retryable=False)], ["Here I am."])
    ):  # R4
        stream = await send_message(app, keys["reviewer"]).wait_started()
        last = (await stream.read_all())[-1]
        assert (last.name, last.data["error"]) == ("error", "No such model.")
        again = await follow_thread(app, keys["reviewer"], stream.thread_id, last.id).wait_started()
        await state.assistant.threads.retry(await state.accounts.authenticate_key(keys["reviewer"]), stream.thread_id)
        assert [name for name, _ in fold_events(await again.read_until("done"))] == ["delta", "done"]
        await again.leave()


async def test_another_persons_thread_is_as_unknown_as_none(  # R48
    app: RequestMiddleware, state: ServerState, services: AppServices, keys: Keys, client: ClientFactory
) -> None:
    thread_id, _ = await run_turn(app, state, services, keys["reviewer"])
    await services.accounts.add_user("default", "eve", "reviewer", "test")
    eve = (await services.accounts.create_key("default", "eve-key", "reviewer", "test", "eve"))[1]
    other = client(eve)
    for path in ("", "/events"):
        theirs = await other.get(f"/api/threads/{thread_id}{path}")
        nobody = await other.get(f"/api/threads/thread-0{path}")
        assert (theirs.status_code, theirs.json()["error"]) == (404, "not_found")
        assert theirs.text.replace(thread_id, "ID") == nobody.text.replace("thread-0", "ID")
    for verb in ("stop", "retry"):
        assert (await other.post(f"/api/threads/{thread_id}/{verb}")).status_code == 404
    answer = await other.post("/api/chat", json={"message": "yes", "thread_id": thread_id})
    assert answer.status_code == 404
    assert (await other.get("/api/threads")).json()["items"] == []
    assert len((await client(keys["admin"]).get("/api/threads?user=*")).json()["items"]) == 1
    assert (await other.get("/api/threads?user=*")).json()["items"] == []


async def test_a_place_that_a_thread_does_not_have_is_refused(
    app: RequestMiddleware, state: ServerState, services: AppServices, keys: Keys, client: ClientFactory
) -> None:
    thread_id, _ = await run_turn(app, state, services, keys["reviewer"])
    for last in ("999.0", "x", "1.2.3", "-1"):
        headers = {"last-event-id": last}
        answer = await client(keys["reviewer"]).get(f"/api/threads/{thread_id}/events", headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), last


async def test_a_stream_shows_that_it_lives(
    app: RequestMiddleware, state: ServerState, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_stream, "TICK", 0.01)
    async with run_chat_loop(state, ScriptedModel(["Hello."])):
        stream = await send_message(app, keys["reviewer"]).wait_started()
        await stream.read_all()
    idle = await follow_thread(app, keys["reviewer"], stream.thread_id).wait_started()
    await idle.wait_heartbeat()
    await idle.leave()
    assert idle.status == 200


async def test_a_revoked_key_ends_its_streams(
    app: RequestMiddleware, state: ServerState, services: AppServices, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:  # R48
    monkeypatch.setattr(thread_stream, "TICK", 0.01)
    async with run_chat_loop(state, ScriptedModel(["Hello."])):
        stream = await send_message(app, keys["reviewer"]).wait_started()
        await stream.read_all()
    idle = await follow_thread(app, keys["reviewer"], stream.thread_id).wait_started()
    await idle.read_until("done")
    (key,) = [key for key in await services.accounts.keys("default") if key.name == "bob-key"]
    await services.accounts.revoke_key("default", key.id, "ada")
    await idle.read_all()
    assert idle.text.endswith(": Sign in again.\n\n")


async def test_a_server_that_stops_sends_its_readers_away(
    app: RequestMiddleware, state: ServerState, keys: Keys, client: ClientFactory
) -> None:
    never = asyncio.Event()
    async with run_chat_loop(state, ScriptedModel(["Hello", never])):
        stream = await send_message(app, keys["reviewer"]).wait_started()
        last = await stream.next_event()
        state.stopping.set()
        await stream.read_all()
        assert stream.text.endswith(": The server stops here. Connect again.\n\n")
        never.set()
    assert last.data["content"] == "Hello"
    assert (await client(keys["reviewer"]).get(f"/api/threads/{stream.thread_id}/events")).status_code == 503


async def test_a_reader_who_takes_nothing_is_dropped_and_holds_up_nobody(
    app: RequestMiddleware, state: ServerState, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "STALL_TIMEOUT", 0.05)
    go_on = asyncio.Event()
    async with run_chat_loop(state, ScriptedModel(["Hello", go_on, " there."])):
        stream = await send_message(app, keys["reviewer"]).wait_started()
        other = await follow_thread(app, keys["reviewer"], stream.thread_id).wait_started()
        await asyncio.gather(stream.next_event(), other.next_event())
        other.stall()
        go_on.set()
        assert (await stream.read_all())[-1].name == "done"
        await other.wait_dropped()
    assert [event.name for event in other.events] == ["delta"]


async def test_a_stream_outlives_the_time_that_an_answer_may_take(
    app: RequestMiddleware, state: ServerState, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_stream, "TICK", 0.01)
    loop, go_on = asyncio.get_running_loop(), asyncio.Event()  # the loop is of this test alone
    async with run_chat_loop(state, ScriptedModel(["Hello", go_on, " there."])):
        stream = await send_message(app, keys["reviewer"]).wait_started()
        await stream.next_event()
        real_time, beats = loop.time, stream.heartbeats
        loop.time = lambda: real_time() + middleware.RESPONSE_TIMEOUT  # type: ignore[method-assign]  # every deadline has passed
        await stream.wait_until(lambda: stream.heartbeats > beats + 1)
        go_on.set()
        assert (await stream.read_all())[-1].name == "done"


async def test_as_many_streams_as_there_is_room_for(
    app: RequestMiddleware, state: ServerState, keys: Keys, client: ClientFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "MAX_STREAMS", 1)
    async with run_chat_loop(state, ScriptedModel(["Hello."], ["Hello."])):
        stream = await send_message(app, keys["reviewer"]).wait_started()
        await stream.read_all()
        idle = await follow_thread(app, keys["reviewer"], stream.thread_id).wait_started()
        answer = await client(keys["reviewer"]).post("/api/chat", json={"message": "Hello"})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "15")
        assert len((await client(keys["reviewer"]).get("/api/threads")).json()["items"]) == 1  # nothing was said
        await idle.leave()
        assert (await (await send_message(app, keys["reviewer"]).wait_started()).read_all())[-1].name == "done"
    assert state.counters.streams == 0


async def test_waiting_reader_costs_no_task_besides_its_connection(
    app: RequestMiddleware, state: ServerState, keys: Keys
) -> None:
    async with run_chat_loop(state, ScriptedModel(["Hello."])):
        stream = await send_message(app, keys["reviewer"]).wait_started()
        last = (await stream.read_all())[-1].id
    before = len(asyncio.all_tasks())
    idle = [await follow_thread(app, keys["reviewer"], stream.thread_id, last).wait_started() for _ in range(50)]
    async with asyncio.timeout(TIMEOUT):
        while len(asyncio.all_tasks()) > before + 50 + 1:  # noqa: ASYNC110  each looks once, as it begins
            await asyncio.sleep(0.01)
    more = len(asyncio.all_tasks()) - before
    assert more in (50, 51)  # the connections, and the one that gives all of them signs of life
    for each in idle:
        await each.leave()
