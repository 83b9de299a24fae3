"""Event streams of chat threads (SSE). A waiting stream has no task: a wake-up starts one while there are events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import NamedTuple, Protocol

from interlock.chat.stream import Position, StreamEvent
from interlock.core.call import ToolSpec, redact
from interlock.core.canonical import canonical_args, parse_json
from interlock.core.chat.thread import Thread
from interlock.core.errors import Error, InvalidRequest
from interlock.server.auth import Auth
from interlock.server.http import Header, HttpRequest, Receive, Send
from interlock.server.logs import JsonLogger
from interlock.server.streams.sse import (
    HEARTBEAT_TICKS,
    RECONNECT_REASON,
    SIGN_IN_REASON,
    TICK,
    SseConnection,
    body_message,
)
from interlock.storage.store import SqlStore

POLL_TICKS = 60  # ticks between two polls of a thread without a wake-up, which is only a hint
RECHECK_SECONDS = 5.0  # seconds after which access is checked again before an event is sent

EncodeEvent = Callable[[StreamEvent], Awaitable[bytes]]


class ThreadEventSource(Protocol):
    """Reads a thread for one reader: in our own protocol, or in another."""

    @property
    def poll_after(self) -> float | None:
        """Seconds until the next poll; None if a wake-up says when."""

    async def read_events(self) -> list[StreamEvent]: ...


class ThreadStream(NamedTuple):
    """What one reader is sent of a thread: from `position` on, until one of `final_events`."""

    source: ThreadEventSource
    encode: EncodeEvent
    position: Position
    final_events: frozenset[str] = frozenset()
    extra_headers: tuple[Header, ...] = ()


class ThreadStreams:
    """All streams of this process, in as many slots as there are ticks, so that their turns are spread."""

    def __init__(self, store: SqlStore, auth: Auth, log: JsonLogger, stopping: asyncio.Event) -> None:
        self._store = store
        self._auth = auth
        self._log = log
        self._stopping = stopping
        self._slots: list[set[ThreadSubscriber]] = [set() for _ in range(POLL_TICKS)]
        self._ticking: asyncio.Task[None] | None = None

    async def serve(
        self, request: HttpRequest, receive: Receive, send: Send, thread: Thread, stream: ThreadStream
    ) -> None:
        """Serve until the reader disconnects, or there are no more events."""
        connection = SseConnection(request, send)
        await connection.start(stream.position, ((b"x-thread-id", thread.id.encode()), *stream.extra_headers))
        subscriber = ThreadSubscriber(connection, stream, self._auth, self._log)
        slot = min(self._slots, key=len)
        slot.add(subscriber)
        self._tick()
        try:
            with self._store.listen(thread.workspace, thread.id, subscriber.wake):
                subscriber.wake()
                while (await receive())["type"] != "http.disconnect":
                    pass
        finally:
            slot.discard(subscriber)
            await subscriber.leave()

    def _tick(self) -> None:
        if self._ticking is None or self._ticking.done():
            self._ticking = asyncio.create_task(self._ticks())

    async def _ticks(self) -> None:
        """Send heartbeats while there are streams; on shutdown, end all, so that clients reconnect elsewhere."""
        tick = 0
        while any(self._slots) and not self._stopping.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK):
                    await self._stopping.wait()
            tick += 1
            for number in range(tick % HEARTBEAT_TICKS, POLL_TICKS, HEARTBEAT_TICKS):
                for subscriber in list(self._slots[number]):
                    await subscriber.send_heartbeat()
            for subscriber in list(self._slots[tick % POLL_TICKS]):
                subscriber.wake()
        for subscriber in [each for slot in self._slots for each in slot]:
            subscriber.connection.end(RECONNECT_REASON)


class ThreadSubscriber:
    __slots__ = ("_auth", "_checked_at", "_heartbeat_due", "_is_woken", "_log", "_stream", "_timer", "connection")

    def __init__(self, connection: SseConnection, stream: ThreadStream, auth: Auth, log: JsonLogger) -> None:
        self.connection = connection
        self._stream = stream
        self._auth = auth
        self._log = log
        self._is_woken = self._heartbeat_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._checked_at = asyncio.get_running_loop().time()

    def wake(self) -> None:
        """There may be new events."""
        self._is_woken = True
        self._start_task()

    async def send_heartbeat(self) -> None:
        if self.connection.is_ended:
            return
        if await self._may_read():
            self._heartbeat_due = True
            self._start_task()
        else:
            self.connection.end(SIGN_IN_REASON)

    async def leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self.connection.leave()

    def _start_task(self) -> None:
        if not self.connection.is_busy and not self.connection.is_ended:
            self.connection.start_task(self._run)

    async def _run(self) -> None:
        try:
            while (self._is_woken or self._heartbeat_due) and not self.connection.is_ended:
                if self._heartbeat_due:
                    self._heartbeat_due = False
                    await self.connection.write(body_message(b":\n\n"))
                if self._is_woken:
                    self._is_woken = False
                    await self._send_new_events()
        except Error:  # a database problem: a client that reconnects resumes where it was
            await self.connection.close(RECONNECT_REASON)
        except TimeoutError:
            self.connection.drop()
        except OSError:
            self.connection.is_ended = True  # the reader is gone, and the server will report it
        except Exception as error:  # noqa: BLE001  the reader must not wait forever
            self._log.write_exception("chat_stream_failed", error)
            await self.connection.close(RECONNECT_REASON)

    async def _send_new_events(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for stream_event in await self._stream.source.read_events():
            if self._needs_access_check and not await self._may_read():
                await self.connection.close(SIGN_IN_REASON)
                return
            await self.connection.write(body_message(await self._stream.encode(stream_event)))
            if stream_event.name in self._stream.final_events:
                await self.connection.close()
                return
        if self._stream.source.poll_after is not None:
            self._timer = asyncio.get_running_loop().call_later(self._stream.source.poll_after, self.wake)

    @property
    def _needs_access_check(self) -> bool:
        return asyncio.get_running_loop().time() - self._checked_at >= RECHECK_SECONDS

    async def _may_read(self) -> bool:
        self._checked_at = asyncio.get_running_loop().time()
        return await self._auth.is_unchanged(self.connection.request)


class ToolRequestRedactor:
    """Tool calls as the model wrote them, with secrets hidden as on a card."""

    def __init__(self, specs: Mapping[str, ToolSpec], key: bytes) -> None:
        self._specs = specs
        self._key = key

    def redact(self, tool_request: tuple[str, str, str]) -> dict[str, object]:
        call_id, tool, text = tool_request
        spec = self._specs.get(tool) or ToolSpec("unknown")
        return {"id": call_id, "name": tool, "args": self._args(text, spec)}

    def _args(self, text: str, spec: ToolSpec) -> object:
        """Redact the arguments; if they are no object, which never ran, hide all of it if the tool has secrets."""
        with suppress(InvalidRequest):
            value = parse_json(text or "{}")
            if isinstance(value, dict):
                return redact(canonical_args(value), spec, self._key).value
        return None if spec.secret else text
