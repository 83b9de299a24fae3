"""Of a long thread other protocols read the end: what a request costs grows with what changed."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from interlock.core.chat.thread import NewThreadEntry, ThreadOrigin, ThreadTransition, open_thread
from interlock.core.chat.transcript import ToolRequest
from interlock.core.ledger.event import Moment
from interlock.server.middleware import RequestMiddleware
from interlock.server.state import ServerState
from interlock.storage.tables.threads import SqlThreads
from tests.server.chat_harness import ScriptedModel, StreamReader, run_chat_loop
from tests.server.test_ai_sdk_streams import post_message, read_parts

Keys = dict[str, str]
TURNS = 500
LINES = 5  # of each turn
PUBLISH = ToolRequest("c1", "cms_publish_post", '{"slug": "hello"}')


class ReadCounter:
    """How many lines were read of all threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._read, real = 0, SqlThreads.entries

        async def lines(store: SqlThreads, *where: Any, **more: Any) -> Any:
            found = await real(store, *where, **more)
            self._read += len(found)
            return found

        monkeypatch.setattr(SqlThreads, "entries", lines)

    def take(self) -> int:
        self._read, read = 0, self._read
        return read


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> ReadCounter:
    return ReadCounter(monkeypatch)


async def make_long_thread(state: ServerState, key: str, name: str) -> None:
    """With many turns that are over, in front of what comes."""
    who = await state.accounts.authenticate_key(key)
    thread_id = state.assistant.threads.named_thread_id(who, name)
    lines = [line for number in range(TURNS) for line in turn(who.name, number)]
    await state.store.threads.step(
        "default", thread_id, lambda thread, _: ThreadTransition(replace(thread, status="idle"), tuple(lines))
    )


def turn(person: str, number: int) -> list[NewThreadEntry]:
    call = f"old-{number}"
    reply = {"wishes": [[call, "cms_list_posts", "{}"]], "seen": 0, "tokens": 1}
    return [
        NewThreadEntry("said", person, {"text": f"list {number}"}),
        NewThreadEntry("replied", "agent", {"text": "I look.", **reply}),
        NewThreadEntry(
            "resulted", "agent", {"call": call, "tool": "cms_list_posts", "status": "done", "result": [number]}
        ),
        NewThreadEntry("replied", "agent", {**reply, "text": "Done.", "wishes": []}),
        NewThreadEntry("ended", "agent", {"status": "done", "reason": "", "message": ""}),
    ]


async def count_done(stream: StreamReader) -> StreamReader:
    await (await stream.wait_started()).read_all()
    return stream


async def test_of_a_long_chat_the_ai_sdk_reads_the_end(
    app: RequestMiddleware, state: ServerState, keys: Keys, read: ReadCounter
) -> None:
    key = keys["reviewer"]
    async with run_chat_loop(state, ScriptedModel(["Hello."])):
        await count_done(post_message(app, key, "hello"))
    await make_long_thread(state, key, "chat")
    read.take()
    loaded = await count_done(StreamReader(app, key, "GET", "/ai-sdk/chat/chat"))
    assert (loaded.text.count('"role":"user"'), read.take() < 600) == (20, True)
    assert f"list {TURNS - 20}" in loaded.text
    again = await count_done(StreamReader(app, key, "GET", "/ai-sdk/chat/chat/stream"))
    assert ("Done." in again.text, read.take() < 500) == (True, True)
    waiting = await post_message(app, key, "publish").wait_started()  # nobody is at work yet
    assert (waiting.status, read.take() < 500) == (200, True)
    async with run_chat_loop(state, ScriptedModel([PUBLISH], ["Published."])):
        asked = await count_done(waiting)
        [request] = [each for each in read_parts(asked)[:-1] if each["type"] == "tool-approval-request"]
        approval = {"id": request["approvalId"], "approved": True, "descriptor": request["approvalDescriptor"]}
        part = {"type": "dynamic-tool", "toolCallId": request["toolCallId"], "state": "approval-responded"}
        message = {"id": "a", "role": "assistant", "parts": [{**part, "approval": approval}]}
        read.take()
        told = await count_done(StreamReader(app, key, "POST", "/ai-sdk/chat", id="chat", messages=[message]))
    assert "Published." in told.text
    assert read.take() < TURNS * LINES + 500  # the model is shown all of it, once


def run_turn(app: RequestMiddleware, key: str, say: str = "", **more: object) -> StreamReader:
    messages = [{"id": say, "role": "user", "content": say}] if say else []
    return StreamReader(app, key, "POST", "/ag-ui", threadId="chat", runId="run", messages=messages, **more)


@pytest.mark.postgres_smoke
async def test_of_a_long_thread_ag_ui_reads_what_a_snapshot_can_hold(
    app: RequestMiddleware, state: ServerState, keys: Keys, read: ReadCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.server.protocols.ag_ui.codec.MAX_HISTORY", 2_000)
    key = keys["reviewer"]
    async with run_chat_loop(state, ScriptedModel(["Hello."])):
        await count_done(run_turn(app, key, "hello"))
    await make_long_thread(state, key, "ag-ui\nassistant\nchat")
    read.take()
    looked = await count_done(run_turn(app, key))
    assert (f"list {TURNS - 1}" in looked.text, 'list 1"' in looked.text, read.take() < 600) == (True, False, True)
    waiting = await run_turn(app, key, "publish").wait_started()  # nobody is at work yet
    assert (waiting.status, read.take() < 600) == (200, True)
    async with run_chat_loop(state, ScriptedModel([PUBLISH], ["Published."])):
        asked = await count_done(waiting)
        [name] = [each["id"] for each in json.loads(asked.text.split("data: ")[-1])["outcome"]["interrupts"]]
        answers = [{"interruptId": name, "status": "resolved", "payload": {"approved": True}}]
        read.take()
        told = await count_done(run_turn(app, key, resume=answers))
        assert ("Published." in told.text, 'list 1"' in told.text) == (True, False)
        assert read.take() < TURNS * LINES + 1_000  # the model is shown all of it, once
        again = await count_done(run_turn(app, key, resume=answers))
    assert ("Published." in again.text, read.take() < 1_000) == (True, True)


async def test_sub_agents_that_are_done_are_not_asked_what_is_below_them(
    app: RequestMiddleware, state: ServerState, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, asked, real = keys["reviewer"], list[str](), SqlThreads.children
    async with run_chat_loop(state, ScriptedModel(["Hello."])):
        thread_id = (await count_done(run_turn(app, key, "hello"))).thread_id
    who = await state.accounts.authenticate_key(key)
    below = ThreadOrigin("default", "assistant", who.name, ("assistant", "assistant"), thread_id, "c0")

    def idle(child: str, moment: Moment) -> ThreadTransition:
        move = open_thread(child, below, "look", moment)
        return move._replace(thread=replace(move.thread, status="idle", due_at=None))

    for number in range(30):
        child = f"thread-00000000-0000-7000-8000-{number:012}"
        await state.store.threads.add("default", child, partial(idle, child))

    async def children(store: SqlThreads, workspace: str, thread: str) -> Any:
        asked.append(thread)
        return await real(store, workspace, thread)

    async with run_chat_loop(state, ScriptedModel([PUBLISH], ["Published."])):
        monkeypatch.setattr(SqlThreads, "children", children)
        told = await count_done(run_turn(app, key, "publish"))
    assert ('"type":"interrupt"' in told.text, set(asked)) == (True, {thread_id})
