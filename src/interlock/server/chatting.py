"""The chat's streams: POST /api/chat and GET /api/threads/{id}/events, as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated

from pydantic import Field

from interlock.chat.stream import Position, Told, position_of
from interlock.core.call import MAX_NAME
from interlock.core.errors import Error, StoreUnavailable, TooManyRequests
from interlock.core.thread import MAX_TEXT, Thread
from interlock.server.desk import shown
from interlock.web.asgi import Asked, Body, Receive, Send, encoded
from interlock.web.auth import Auth, check_allowed
from interlock.web.site import Site
from interlock.web.sse import RETRY, part
from interlock.web.tail import HEADERS

MOST_STREAMS = 10_000  # in one process
HEARTBEAT = 15.0  # seconds between signs of life
DOUBT = 5.0  # seconds between looks at whether the reader may still read
STALLED = 30.0  # seconds after which a reader who takes nothing is dropped
LAST = frozenset({"done", "error"})


class NewMessage(Body):
    """Without a `thread_id` a thread begins, with `agent` or the built-in assistant."""

    message: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    thread_id: Annotated[str, Field(max_length=MAX_NAME)] = ""
    agent: Annotated[str, Field(max_length=MAX_NAME)] = ""


class Chatting:
    def __init__(self, site: Site, auth: Auth) -> None:
        self._site = site
        self._auth = auth
        self._open = 0

    async def send(self, asked: Asked, receive: Receive, send: Send) -> None:
        """Takes the message, then tells what comes of it until the turn is over."""
        self._check_room()
        body, who = await asked.json(NewMessage), asked.person
        doors = await self._site.workspaces.doors(who.workspace)
        thread = await self._site.assistant.threads.say(doors, who, body.message, body.thread_id, body.agent)
        begin = Position(thread.lines, 0)
        await self._stream(asked, thread, begin, receive, send, last=LAST)

    async def follow(self, asked: Asked, receive: Receive, send: Send) -> None:
        """All that happened since `Last-Event-ID`, then all that happens, without an end."""
        self._check_room()
        (thread_id,), who = asked.values, asked.person
        thread = await self._site.assistant.threads.see(who, thread_id)
        text = asked.headers.get(b"last-event-id", b"").decode("latin-1").strip() or asked.query.get("after", "")
        await self._stream(asked, thread, position_of(text or "0"), receive, send, last=frozenset())

    async def _stream(
        self, asked: Asked, thread: Thread, after: Position, receive: Receive, send: Send, *, last: frozenset[str]
    ) -> None:
        self._open += 1
        named = (b"x-thread-id", thread.id.encode())
        await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, named]})
        telling = asyncio.create_task(self._tell(asked, thread, after, send, last))
        leaving = asyncio.create_task(_left(receive))
        stopping = asyncio.create_task(self._site.stopping.wait())
        try:
            await asyncio.wait({telling, leaving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if telling.done():
                telling.result()
        finally:
            self._open -= 1
            for task in (telling, leaving, stopping):
                task.cancel()
            await asyncio.gather(telling, leaving, stopping, return_exceptions=True)
            with suppress(Exception):  # whoever left does not hear it
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, asked: Asked, thread: Thread, after: Position, send: Send, last: frozenset[str]) -> None:
        await _sent(send, b"retry: %d\nid: %b\n\n" % (RETRY, str(after).encode()))
        looked = beat = asyncio.get_running_loop().time()
        async for told in _lively(self._site.assistant.follower(thread).follow(after)):
            now = asyncio.get_running_loop().time()
            if now - looked >= DOUBT:
                looked = now
                check_allowed(await self._auth.principal(asked), frozenset({asked.person.role}))
            if told is not None:
                await _sent(send, await self._frame(asked, thread, told))
                beat = now
                if told.name in last:
                    return
            elif now - beat >= HEARTBEAT:
                beat = now
                await _sent(send, b":\n\n")

    async def _frame(self, asked: Asked, thread: Thread, told: Told) -> bytes:
        data = {"type": told.name, "thread_id": thread.id, **told.data}
        body = encoded(data)
        if told.approval:
            approval = await self._approval(asked, told.approval)
            body = body[:-1] + b',"approval":' + approval + b"}"
        return b"id: %b\nevent: %b\ndata: %b\n\n" % (str(told.position).encode(), told.name.encode(), body)

    async def _approval(self, asked: Asked, approval_id: str) -> bytes:
        """As GET /api/approvals/{id} gives it, as it is now."""
        doors = await self._site.workspaces.doors(asked.person.workspace)
        reviewer = doors.reviewer(asked.person, self._site.clock())
        return (await shown(self._site, doors, approval_id, reviewer)).body

    def _check_room(self) -> None:
        if self._site.stopping.is_set():
            raise StoreUnavailable("This server is about to stop. Connect again.")
        if self._open >= MOST_STREAMS:
            raise TooManyRequests(f"{MOST_STREAMS:,} chat streams are open. Try again later.", retry_after=15)


async def _lively(told: AsyncIterator[Told | None]) -> AsyncIterator[Told | None]:
    """A database in trouble ends the stream; the reader connects again and goes on where it was."""
    with suppress(Error):
        async for each in told:
            yield each


async def _sent(send: Send, body: bytes) -> None:
    async with asyncio.timeout(STALLED):
        await send(part(body))


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
