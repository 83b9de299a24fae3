"""A chat in this process: a model that says what a test tells it to, the loop behind it, and readers of its streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from interlock.chat.loop import ThreadLoop
from interlock.chat.turn import TurnContext
from interlock.core.chat.transcript import Delta, ModelReply, Prompt, ToolRequest
from interlock.core.errors import ModelFailed
from interlock.runtime.process_identity import is_dead, make_runner_id
from interlock.server.http import AsgiApp, AsgiMessage
from interlock.server.state import ServerState
from tests.server.asgi_request import scope_of

PATIENCE = 100.0  # seconds for what certainly comes, on a busy machine
Item = str | ToolRequest | asyncio.Event | ModelFailed


class Speaker:
    """Each turn is a list: words to say, calls to make, events to wait for, and how it fails."""

    name = "test:speaker"

    def __init__(self, *turns: Sequence[Item]) -> None:
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
        yield ModelReply(words, tuple(wishes), tokens=1)


@asynccontextmanager
async def speaking(site: ServerState, speaker: Speaker) -> AsyncIterator[None]:
    """The loop at work with this model."""
    assistant, store = site.assistant, site.store
    parts = TurnContext(
        threads=store.threads,
        agents=assistant.agents,
        tool_registry=assistant.tool_registry,
        open_model=lambda _: speaker,
        drafts=assistant.drafts,
        clock=store.clock,
        runner=make_runner_id(),
    )
    stop = asyncio.Event()
    loop = ThreadLoop(parts, site.workspaces.services, store.watch, is_dead, site.log.write_exception)
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


class Following:
    """Whoever opened a stream, as a browser reads it."""

    def __init__(self, app: AsgiApp, key: str, method: str, path: str, last: str = "", **body: object) -> None:
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        headers |= {"last-event-id": last} if last else {}
        headers |= {"idempotency-key": str(body.pop("once"))} if "once" in body else {}
        self._body = json.dumps(body).encode() if body else b""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.text = ""
        self.over = asyncio.Event()
        self._given = False
        self._gone = asyncio.Event()
        self._came = asyncio.Event()
        self._told = 0
        self._takes = asyncio.Event()
        self._takes.set()
        scope = scope_of(method, path, headers, self._body)
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
    def beats(self) -> int:
        """Signs of life so far."""
        return self.text.count("\n:\n\n")

    @property
    def thread_id(self) -> str:
        return self.headers["x-thread-id"]

    async def begun(self) -> Following:
        await self.until_true(lambda: self.status != 0)
        return self

    async def next(self) -> Event:
        """The next one that was not asked for yet."""
        await self.until_true(lambda: len(self.events) > self._told)
        self._told += 1
        return self.events[self._told - 1]

    async def until(self, name: str) -> list[Event]:
        """All events, of which the last has this name."""
        await self.until_true(lambda: any(event.name == name for event in self.events))
        return self.events

    async def beaten(self) -> None:
        """Until there was a sign of life behind all that was told."""
        await self.until_true(lambda: self.text.endswith("\n:\n\n"))

    async def ended(self) -> list[Event]:
        async with asyncio.timeout(PATIENCE):
            await self.over.wait()
        await self._task
        return self.events

    def stall(self) -> None:
        """Takes nothing any more, as a connection whose buffers are full."""
        self._takes.clear()

    async def dropped(self) -> None:
        """Until the server has given up."""
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(self._task, return_exceptions=True)

    async def leave(self) -> None:
        self._gone.set()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(self._task, return_exceptions=True)

    async def until_true(self, true: Any) -> None:
        async with asyncio.timeout(PATIENCE):
            while not true():
                self._came.clear()
                await self._came.wait()

    async def _receive(self) -> AsgiMessage:
        if not self._given:
            self._given = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: AsgiMessage) -> None:
        await self._takes.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        self.text += message.get("body", b"").decode()
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.over.set()
            self._gone.set()
        self._came.set()


def folded(events: Sequence[Event]) -> list[tuple[str, Any]]:
    """What a reader has in the end: the words in one piece, without those that were taken back."""
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
