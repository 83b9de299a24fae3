"""The chat's streams: cut anywhere and taken up again, nothing is missing and nothing comes twice."""

from __future__ import annotations

import asyncio

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.chat.transcript import ToolRequest
from interlock.core.errors import ModelFailed
from interlock.server import middleware, router
from interlock.server.middleware import RequestMiddleware
from interlock.server.state import ServerState
from interlock.server.streams import sse, thread_stream
from tests.server.chat_harness import PATIENCE, Event, Following, Speaker, folded, speaking
from tests.server.conftest import As
from tests.support import ADA, Clock, approve

Keys = dict[str, str]
LIST = ToolRequest("c1", "cms_list_posts", "{}")
PUBLISH = ToolRequest("c2", "cms_publish_post", '{"slug": "hello"}')


def said(app: RequestMiddleware, key: str, message: str = "Hello", **more: object) -> Following:
    return Following(app, key, "POST", "/api/chat", message=message, **more)


def followed(app: RequestMiddleware, key: str, thread_id: str, last: str = "") -> Following:
    return Following(app, key, "GET", f"/api/threads/{thread_id}/events", last)


async def a_turn(app: RequestMiddleware, site: ServerState, parts: AppServices, key: str) -> tuple[str, list[Event]]:
    """One with words, a free call, one that a person approves, and more words."""
    speaker = Speaker(["Let me ", "see.", LIST], ["And ", "now this.", PUBLISH], ["All ", "done."])
    async with speaking(site, speaker):
        stream = await said(app, key).begun()
        card = (await stream.until("approval_request"))[-1].data["approval"]
        assert card["status"] == "pending"
        await approve(parts, card["id"], ADA)
        events = await stream.ended()
    return stream.thread_id, events


async def test_a_message_is_told_until_its_turn_is_over(  # R3, R4
    app: RequestMiddleware, site: ServerState, parts: AppServices, keys: Keys
) -> None:
    thread_id, events = await a_turn(app, site, parts, keys["reviewer"])
    told = folded(events)
    assert [name for name, _ in told] == [
        "delta", "tool_call_start", "tool_call_result", "delta", "tool_call_start", "approval_request",
        "approval_resolved", "tool_call_result", "delta", "done",
    ]  # fmt: skip
    assert [words for name, words in told if name == "delta"] == ["Let me see.", "And now this.", "All done."]
    assert {event.data["thread_id"] for event in events} == {thread_id}
    assert all(event.data["type"] == event.name for event in events)


async def test_a_stream_that_is_cut_after_any_event_goes_on_with_the_next(  # R3
    app: RequestMiddleware, site: ServerState, parts: AppServices, keys: Keys
) -> None:
    key = keys["reviewer"]
    thread_id, events = await a_turn(app, site, parts, key)
    whole = folded(events)
    for number, event in enumerate(events[:-1], 1):
        again = await followed(app, key, thread_id, event.id).begun()
        await again.until("done")
        await again.leave()
        assert folded([*events[:number], *again.events]) == whole
    anew = await followed(app, key, thread_id).begun()
    assert folded(await anew.until("done")) == whole
    await anew.leave()


@pytest.mark.parametrize("failing", [False, True])
async def test_a_reader_who_hangs_up_after_each_event_gets_the_same_as_one_who_stays(  # R3
    app: RequestMiddleware, site: ServerState, keys: Keys, clock: Clock, *, failing: bool
) -> None:
    key, steps = keys["reviewer"], [asyncio.Event() for _ in range(6)]
    first: list[list[str | asyncio.Event | ModelFailed | ToolRequest]] = (
        [["Wro", steps[0], "ng ", steps[1], ModelFailed("The line broke.", is_retryable=True)]] if failing else []
    )
    turns = [*first, ["One ", steps[2], "two ", steps[3], "three.", LIST], ["Four", steps[4], " five.", steps[5]]]
    async with speaking(site, Speaker(*turns)):
        stays = await said(app, key).begun()
        taken: list[Event] = []
        while not taken or taken[-1].name != "done":
            last = taken[-1].id if taken else "1.0"
            stream = await followed(app, key, stays.thread_id, last).begun()
            taken.append(await stream.next())
            await stream.leave()
            spoken = next((step for step in steps[0 if failing else 2 :] if not step.is_set()), None)
            if spoken is not None:
                spoken.set()
            clock.forward(5_000)  # the model is tried again after a while
        assert folded(taken) == folded(await stays.ended())
    assert [words for name, words in folded(taken) if name == "delta"] == ["One two three.", "Four five."]
    assert any(event.data.get("reset") for event in taken) == failing


@pytest.mark.postgres_smoke
async def test_words_come_while_they_are_said(app: RequestMiddleware, site: ServerState, keys: Keys) -> None:  # R4
    go_on = asyncio.Event()
    async with speaking(site, Speaker(["Hello", go_on, " there."])):
        stream = await said(app, keys["reviewer"]).begun()
        assert (await stream.next()).data["content"] == "Hello"
        assert (await site.store.threads.entries("default", stream.thread_id))[-1].kind == "said"
        go_on.set()
        assert (await stream.ended())[-1].name == "done"


async def test_two_readers_see_the_same(
    app: RequestMiddleware, site: ServerState, parts: AppServices, keys: Keys
) -> None:  # R3
    go_on = asyncio.Event()
    async with speaking(site, Speaker(["Let ", go_on, "me see.", PUBLISH], ["Done."])):
        stream = await said(app, keys["reviewer"]).begun()
        await stream.next()
        both = [await followed(app, keys[role], stream.thread_id).begun() for role in ("reviewer", "admin")]
        go_on.set()
        for each in both:
            card = (await each.until("approval_request"))[-1].data["approval"]
        await approve(parts, card["id"], ADA)
        for each in both:
            assert folded(await each.until("done")) == folded(await stream.ended())
            await each.leave()


async def test_a_model_that_cannot_be_reached_ends_with_an_error(
    app: RequestMiddleware, site: ServerState, keys: Keys
) -> None:
    async with speaking(site, Speaker([ModelFailed("No such model.", is_retryable=False)], ["Here I am."])):  # R4
        stream = await said(app, keys["reviewer"]).begun()
        last = (await stream.ended())[-1]
        assert (last.name, last.data["error"]) == ("error", "No such model.")
        again = await followed(app, keys["reviewer"], stream.thread_id, last.id).begun()
        await site.assistant.threads.retry(await site.accounts.authenticate_key(keys["reviewer"]), stream.thread_id)
        assert [name for name, _ in folded(await again.until("done"))] == ["delta", "done"]
        await again.leave()


async def test_another_persons_thread_is_as_unknown_as_none(  # R48
    app: RequestMiddleware, site: ServerState, parts: AppServices, keys: Keys, client: As
) -> None:
    thread_id, _ = await a_turn(app, site, parts, keys["reviewer"])
    await parts.accounts.add_user("default", "eve", "reviewer", "test")
    eve = (await parts.accounts.create_key("default", "eve-key", "reviewer", "test", "eve"))[1]
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
    app: RequestMiddleware, site: ServerState, parts: AppServices, keys: Keys, client: As
) -> None:
    thread_id, _ = await a_turn(app, site, parts, keys["reviewer"])
    for last in ("999.0", "x", "1.2.3", "-1"):
        headers = {"last-event-id": last}
        answer = await client(keys["reviewer"]).get(f"/api/threads/{thread_id}/events", headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), last


async def test_a_stream_shows_that_it_lives(
    app: RequestMiddleware, site: ServerState, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_stream, "TICK", 0.01)
    async with speaking(site, Speaker(["Hello."])):
        stream = await said(app, keys["reviewer"]).begun()
        await stream.ended()
    idle = await followed(app, keys["reviewer"], stream.thread_id).begun()
    await idle.beaten()
    await idle.leave()
    assert idle.status == 200


async def test_a_revoked_key_ends_its_streams(
    app: RequestMiddleware, site: ServerState, parts: AppServices, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:  # R48
    monkeypatch.setattr(thread_stream, "TICK", 0.01)
    async with speaking(site, Speaker(["Hello."])):
        stream = await said(app, keys["reviewer"]).begun()
        await stream.ended()
    idle = await followed(app, keys["reviewer"], stream.thread_id).begun()
    await idle.until("done")
    (key,) = [key for key in await parts.accounts.keys("default") if key.name == "bob-key"]
    await parts.accounts.revoke_key("default", key.id, "ada")
    await idle.ended()
    assert idle.text.endswith(": Sign in again.\n\n")


async def test_a_server_that_stops_sends_its_readers_away(
    app: RequestMiddleware, site: ServerState, keys: Keys, client: As
) -> None:
    never = asyncio.Event()
    async with speaking(site, Speaker(["Hello", never])):
        stream = await said(app, keys["reviewer"]).begun()
        last = await stream.next()
        site.stopping.set()
        await stream.ended()
        assert stream.text.endswith(": The server stops here. Connect again.\n\n")
        never.set()
    assert last.data["content"] == "Hello"
    assert (await client(keys["reviewer"]).get(f"/api/threads/{stream.thread_id}/events")).status_code == 503


async def test_a_reader_who_takes_nothing_is_dropped_and_holds_up_nobody(
    app: RequestMiddleware, site: ServerState, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "STALL_TIMEOUT", 0.05)
    go_on = asyncio.Event()
    async with speaking(site, Speaker(["Hello", go_on, " there."])):
        stream = await said(app, keys["reviewer"]).begun()
        other = await followed(app, keys["reviewer"], stream.thread_id).begun()
        await asyncio.gather(stream.next(), other.next())
        other.stall()
        go_on.set()
        assert (await stream.ended())[-1].name == "done"
        await other.dropped()
    assert [event.name for event in other.events] == ["delta"]


async def test_a_stream_outlives_the_time_that_an_answer_may_take(
    app: RequestMiddleware, site: ServerState, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_stream, "TICK", 0.01)
    loop, go_on = asyncio.get_running_loop(), asyncio.Event()  # the loop is of this test alone
    async with speaking(site, Speaker(["Hello", go_on, " there."])):
        stream = await said(app, keys["reviewer"]).begun()
        await stream.next()
        real_time, beats = loop.time, stream.beats
        loop.time = lambda: real_time() + middleware.RESPONSE_TIMEOUT  # type: ignore[method-assign]  # every deadline has passed
        await stream.until_true(lambda: stream.beats > beats + 1)
        go_on.set()
        assert (await stream.ended())[-1].name == "done"


async def test_as_many_streams_as_there_is_room_for(
    app: RequestMiddleware, site: ServerState, keys: Keys, client: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "MAX_STREAMS", 1)
    async with speaking(site, Speaker(["Hello."], ["Hello."])):
        stream = await said(app, keys["reviewer"]).begun()
        await stream.ended()
        idle = await followed(app, keys["reviewer"], stream.thread_id).begun()
        answer = await client(keys["reviewer"]).post("/api/chat", json={"message": "Hello"})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "15")
        assert len((await client(keys["reviewer"]).get("/api/threads")).json()["items"]) == 1  # nothing was said
        await idle.leave()
        assert (await (await said(app, keys["reviewer"]).begun()).ended())[-1].name == "done"
    assert site.counters.streams == 0


async def test_whoever_waits_costs_no_task_beside_their_connection(
    app: RequestMiddleware, site: ServerState, keys: Keys
) -> None:
    async with speaking(site, Speaker(["Hello."])):
        stream = await said(app, keys["reviewer"]).begun()
        last = (await stream.ended())[-1].id
    before = len(asyncio.all_tasks())
    idle = [await followed(app, keys["reviewer"], stream.thread_id, last).begun() for _ in range(50)]
    async with asyncio.timeout(PATIENCE):
        while len(asyncio.all_tasks()) > before + 50 + 1:  # noqa: ASYNC110  each looks once, as it begins
            await asyncio.sleep(0.01)
    more = len(asyncio.all_tasks()) - before
    assert more in (50, 51)  # the connections, and the one that gives all of them signs of life
    for each in idle:
        await each.leave()
