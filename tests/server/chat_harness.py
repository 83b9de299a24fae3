"""A chat in this process: a scripted model, the chat loop, and readers of its streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from interlock.chat.threads import ThreadLoop
from interlock.chat.turn import TurnContext
from interlock.core.chat.transcript import Delta, ModelReply, Prompt, ToolRequest
from interlock.core.errors import ModelFailed
from interlock.core.ports import ToolItemTransaction
from interlock.runtime.process_identity import is_dead, make_runner_id
from interlock.server.http import AsgiApp, AsgiMessage
from interlock.server.state import ServerState
from tests.server.asgi_request import make_scope

TIMEOUT = 100.0  # seconds for what certainly comes, on a loaded machine
TurnItem = str | ToolRequest | asyncio.Event | ModelFailed | ModelReply


class ScriptedModel:
    """Each turn is a list of texts, tool requests, events to wait for, and failures, or a whole reply."""

    name = "test:speaker"

    def __init__(self, *turns: Sequence[TurnItem]) -> None:
        self._turns = list(turns)
        self.prompts: list[Prompt] = []

    async def turn(self, prompt: Prompt) -> AsyncIterator[Delta | ModelReply]:
        self.prompts.append(prompt)
        words, wishes = "", list[ToolRequest]()
        for item in self._turns.pop(0):
            match item:
                case str():
                    words += item
                    yield Delta(item)
                    await asyncio.sleep(0)
                case ToolRequest():
                    wishes.append(item)
                case asyncio.Event():
                    await item.wait()
                case ModelFailed():
                    raise item
                case ModelReply():
                    yield item
                    return
        yield ModelReply(words, tuple(wishes), tokens=1)


async def put_cms_items(state: ServerState, slug: str) -> None:
    """Store a post and a page: nobody is asked about those that do not exist."""
    post = {"title": "Hello", "status": "draft", "body": "Hello."}
    page = {"title": "Hello", "sections": []}

    def put(transaction: ToolItemTransaction) -> None:
        transaction.put("post", slug, post)
        transaction.put("page", slug, page)

    await state.store.tool_items("default").change("", put)


async def delete_cms_item(state: ServerState, kind: str, slug: str) -> None:
    await state.store.tool_items("default").change("", lambda transaction: transaction.delete(kind, slug))


@asynccontextmanager
async def run_chat_loop(state: ServerState, model: ScriptedModel) -> AsyncIterator[None]:
    """Run the chat loop with this model, and with a post `hello` for its calls."""
    assistant, store = state.assistant, state.store
    await put_cms_items(state, "hello")
    context = TurnContext(
        threads=store.threads,
        agents=assistant.agents,
        tool_registry=assistant.tool_registry,
        open_model=lambda _: model,
        drafts=assistant.drafts,
        clock=store.clock,
        runner=make_runner_id(),
    )
    stop = asyncio.Event()
    loop = ThreadLoop(context, state.workspaces.services, store.watch, is_dead, state.log.write_exception)
    running = asyncio.create_task(loop.run(stop))
    try:
        yield
    finally:
        stop.set()
        await running


class Event(NamedTuple):
    id: str
    name: str
    data: Mapping[str, Any]


class StreamReader:
    """A client of an event stream that reads as a browser does."""

    def __init__(self, app: AsgiApp, key: str, method: str, path: str, last: str = "", **body: object) -> None:
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        headers |= {"last-event-id": last} if last else {}
        headers |= {"idempotency-key": str(body.pop("once"))} if "once" in body else {}
        self._body = json.dumps(body).encode() if body else b""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.text = ""
        self.is_over = asyncio.Event()
        self._is_body_sent = False
        self._disconnected = asyncio.Event()
        self._changed = asyncio.Event()
        self._events_read = 0
        self._accepts = asyncio.Event()
        self._accepts.set()
        scope = make_scope(method, path, headers, self._body)
        self._task = asyncio.create_task(app(scope, self._receive, self._send))

    @property
    def events(self) -> list[Event]:
        found = []
        for block in self.text.split("\n\n")[:-1]:
            fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
            if "event" in fields:
                found.append(Event(fields["id"], fields["event"], json.loads(fields["data"])))
        return found

    @property
    def heartbeats(self) -> int:
        """Number of heartbeats so far."""
        return self.text.count("\n:\n\n")

    @property
    def thread_id(self) -> str:
        return self.headers["x-thread-id"]

    async def wait_started(self) -> StreamReader:
        await self.wait_until(lambda: self.status != 0)
        return self

    async def next_event(self) -> Event:
        """The next event that was not returned before."""
        await self.wait_until(lambda: len(self.events) > self._events_read)
        self._events_read += 1
        return self.events[self._events_read - 1]

    async def read_until(self, name: str) -> list[Event]:
        """All events until one has this name."""
        await self.wait_until(lambda: any(event.name == name for event in self.events))
        return self.events

    async def wait_heartbeat(self) -> None:
        """Wait for a heartbeat after the last event."""
        await self.wait_until(lambda: self.text.endswith("\n:\n\n"))

    async def read_all(self) -> list[Event]:
        async with asyncio.timeout(TIMEOUT):
            await self.is_over.wait()
        await self._task
        return self.events

    def stall(self) -> None:
        """Stop reading, as a connection with full buffers does."""
        self._accepts.clear()

    async def wait_dropped(self) -> None:
        """Wait until the server has closed the stream."""
        async with asyncio.timeout(TIMEOUT):
            await asyncio.gather(self._task, return_exceptions=True)

    async def leave(self) -> None:
        self._disconnected.set()
        async with asyncio.timeout(TIMEOUT):
            await asyncio.gather(self._task, return_exceptions=True)

    async def wait_until(self, true: Any) -> None:
        async with asyncio.timeout(TIMEOUT):
            while not true():
                self._changed.clear()
                await self._changed.wait()

    async def _receive(self) -> AsgiMessage:
        if not self._is_body_sent:
            self._is_body_sent = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._disconnected.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: AsgiMessage) -> None:
        await self._accepts.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        self.text += message.get("body", b"").decode()
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.is_over.set()
            self._disconnected.set()
        self._changed.set()


def fold_events(events: Sequence[Event]) -> list[tuple[str, Any]]:
    """The final state of a reader: deltas joined, withdrawn text removed."""
    found: list[tuple[str, Any]] = []
    for event in events:
        match event.name:
            case "delta" if event.data.get("reset"):
                found = found[:-1] if found and found[-1][0] == "delta" else found
            case "delta":
                before = found.pop()[1] if found and found[-1][0] == "delta" else ""
                found.append(("delta", before + event.data["content"]))
            case "approval_request":
                found.append((event.name, event.data["approval"]["id"]))
            case _:
                found.append((event.name, {k: v for k, v in event.data.items() if k != "type"}))
    return found
