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
from tests.server.chat_harness import Following, Speaker, speaking
from tests.server.test_ai_sdk_streams import parts, posted

Keys = dict[str, str]
TURNS = 500
LINES = 5  # of each turn
PUBLISH = ToolRequest("c1", "cms_publish_post", '{"slug": "hello"}')


class Counted:
    """How many lines were read of all threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._read, real = 0, SqlThreads.entries

        async def lines(store: SqlThreads, *where: Any, **more: Any) -> Any:
            found = await real(store, *where, **more)
            self._read += len(found)
            return found

        monkeypatch.setattr(SqlThreads, "entries", lines)

    def taken(self) -> int:
        self._read, read = 0, self._read
        return read


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


async def lengthened(site: ServerState, key: str, name: str) -> None:
    """With many turns that are over, in front of what comes."""
    who = await site.accounts.authenticate_key(key)
    thread_id = site.assistant.threads.named_thread_id(who, name)
    lines = [line for number in range(TURNS) for line in turn(who.name, number)]
    await site.store.threads.step(
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


async def done(stream: Following) -> Following:
    await (await stream.begun()).ended()
    return stream


async def test_of_a_long_chat_the_ai_sdk_reads_the_end(
    app: RequestMiddleware, site: ServerState, keys: Keys, read: Counted
) -> None:
    key = keys["reviewer"]
    async with speaking(site, Speaker(["Hello."])):
        await done(posted(app, key, "hello"))
    await lengthened(site, key, "chat")
    read.taken()
    loaded = await done(Following(app, key, "GET", "/ai-sdk/chat/chat"))
    assert (loaded.text.count('"role":"user"'), read.taken() < 600) == (20, True)
    assert f"list {TURNS - 20}" in loaded.text
    again = await done(Following(app, key, "GET", "/ai-sdk/chat/chat/stream"))
    assert ("Done." in again.text, read.taken() < 500) == (True, True)
    waiting = await posted(app, key, "publish").begun()  # nobody is at work yet
    assert (waiting.status, read.taken() < 500) == (200, True)
    async with speaking(site, Speaker([PUBLISH], ["Published."])):
        asked = await done(waiting)
        [request] = [each for each in parts(asked)[:-1] if each["type"] == "tool-approval-request"]
        approval = {"id": request["approvalId"], "approved": True, "descriptor": request["approvalDescriptor"]}
        part = {"type": "dynamic-tool", "toolCallId": request["toolCallId"], "state": "approval-responded"}
        message = {"id": "a", "role": "assistant", "parts": [{**part, "approval": approval}]}
        read.taken()
        told = await done(Following(app, key, "POST", "/ai-sdk/chat", id="chat", messages=[message]))
    assert "Published." in told.text
    assert read.taken() < TURNS * LINES + 500  # the model is shown all of it, once


def ran(app: RequestMiddleware, key: str, say: str = "", **more: object) -> Following:
    messages = [{"id": say, "role": "user", "content": say}] if say else []
    return Following(app, key, "POST", "/ag-ui", threadId="chat", runId="run", messages=messages, **more)


@pytest.mark.postgres_smoke
async def test_of_a_long_thread_ag_ui_reads_what_a_snapshot_can_hold(
    app: RequestMiddleware, site: ServerState, keys: Keys, read: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.server.protocols.ag_ui.codec.MAX_HISTORY", 2_000)
    key = keys["reviewer"]
    async with speaking(site, Speaker(["Hello."])):
        await done(ran(app, key, "hello"))
    await lengthened(site, key, "ag-ui\nassistant\nchat")
    read.taken()
    looked = await done(ran(app, key))
    assert (f"list {TURNS - 1}" in looked.text, 'list 1"' in looked.text, read.taken() < 600) == (True, False, True)
    waiting = await ran(app, key, "publish").begun()  # nobody is at work yet
    assert (waiting.status, read.taken() < 600) == (200, True)
    async with speaking(site, Speaker([PUBLISH], ["Published."])):
        asked = await done(waiting)
        [name] = [each["id"] for each in json.loads(asked.text.split("data: ")[-1])["outcome"]["interrupts"]]
        answers = [{"interruptId": name, "status": "resolved", "payload": {"approved": True}}]
        read.taken()
        told = await done(ran(app, key, resume=answers))
        assert ("Published." in told.text, 'list 1"' in told.text) == (True, False)
        assert read.taken() < TURNS * LINES + 1_000  # the model is shown all of it, once
        again = await done(ran(app, key, resume=answers))
    assert ("Published." in again.text, read.taken() < 1_000) == (True, True)


async def test_sub_agents_that_are_done_are_not_asked_what_is_below_them(
    app: RequestMiddleware, site: ServerState, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, asked, real = keys["reviewer"], list[str](), SqlThreads.children
    async with speaking(site, Speaker(["Hello."])):
        thread_id = (await done(ran(app, key, "hello"))).thread_id
    who = await site.accounts.authenticate_key(key)
    below = ThreadOrigin("default", "assistant", who.name, ("assistant", "assistant"), thread_id, "c0")

    def idle(child: str, moment: Moment) -> ThreadTransition:
        move = open_thread(child, below, "look", moment)
        return move._replace(thread=replace(move.thread, status="idle", due_at=None))

    for number in range(30):
        child = f"thread-00000000-0000-7000-8000-{number:012}"
        await site.store.threads.add("default", child, partial(idle, child))

    async def children(store: SqlThreads, workspace: str, thread: str) -> Any:
        asked.append(thread)
        return await real(store, workspace, thread)

    async with speaking(site, Speaker([PUBLISH], ["Published."])):
        monkeypatch.setattr(SqlThreads, "children", children)
        told = await done(ran(app, key, "publish"))
    assert ('"type":"interrupt"' in told.text, set(asked)) == (True, {thread_id})
