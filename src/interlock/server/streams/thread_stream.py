"""Event streams of chat threads (SSE). A waiting stream has no task: a wake-up starts one while there are events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Protocol

from interlock.chat.stream import Position, StreamEvent
from interlock.core.call import ToolSpec, redact
from interlock.core.canonical import canonical_args, parse_json
from interlock.core.chat.thread import Thread
from interlock.core.errors import Error, Forbidden, InvalidRequest, StoreUnavailable, TooManyRequests, Unauthenticated
from interlock.server.http import Header, HttpRequest, Receive, Send
from interlock.server.state import ServerState
from interlock.server.streams.ledger_stream import SSE_HEADERS
from interlock.server.streams.sse import (
    RETRY_MILLISECONDS,
    STALL_TIMEOUT,
    body_message,
    make_abort,
    release_request_data,
    run_eagerly,
)

MAX_STREAMS = 10_000  # in one process
TICK = 1.0  # seconds
HEARTBEAT_TICKS = 15  # ticks between two heartbeats of one stream, and two checks of its reader's access
POLL_TICKS = 60  # ticks between two polls of a thread without a wake-up, which is only a hint
RECHECK_SECONDS = 5.0  # seconds after which access is checked again before an event is sent
RECONNECT_MESSAGE = "The server stops here. Connect again."

EncodeEvent = Callable[[StreamEvent], Awaitable[bytes]]
MayRead = Callable[[HttpRequest], Awaitable[bool]]


class ThreadEventSource(Protocol):
    """Reads a thread for one reader: in our own protocol, or in another."""

    @property
    def poll_after(self) -> float | None:
        """Seconds until the next poll; None if a wake-up says when."""

    async def read_events(self) -> list[StreamEvent]: ...


class ThreadSubscribers:
    """All streams of this process, in as many slots as there are ticks, so that their turns are spread."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._slots: list[set[ThreadSubscriber]] = [set() for _ in range(POLL_TICKS)]
        self._open = 0
        self._ticking: asyncio.Task[None] | None = None

    def check_capacity(self) -> None:
        if self._state.stopping.is_set():
            raise StoreUnavailable("This server is about to stop. Connect again.")
        if self._open >= MAX_STREAMS:
            raise TooManyRequests(f"{MAX_STREAMS:,} chat streams are open. Try again later.", retry_after=15)

    async def serve(
        self,
        subscriber: ThreadSubscriber,
        thread: Thread,
        after: Position,
        receive: Receive,
        extra_headers: tuple[Header, ...] = (),
    ) -> None:
        """Serve until the reader disconnects, or there are no more events."""
        await subscriber.begin(after, ((b"x-thread-id", thread.id.encode()), *extra_headers))
        slot = min(self._slots, key=len)
        slot.add(subscriber)
        self._open += 1
        self._tick()
        try:
            with self._state.store.listen(thread.workspace, thread.id, subscriber.wake):
                subscriber.wake()
                while (await receive())["type"] != "http.disconnect":
                    pass
        finally:
            self._open -= 1
            slot.discard(subscriber)
            await subscriber.leave()

    def make_subscriber(
        self, request: HttpRequest, send: Send, follower: ThreadEventSource, frame: EncodeEvent, last: frozenset[str]
    ) -> ThreadSubscriber:
        return ThreadSubscriber(
            request,
            send,
            follower=follower,
            frame=frame,
            last=last,
            allowed=self._may_read,
            failed=self._state.log.write_exception,
        )

    async def _may_read(self, request: HttpRequest) -> bool:
        before = request.current_principal
        try:
            now = await self._state.auth.authenticate(request)
        except (Unauthenticated, Forbidden):
            return False
        except Error:  # unknown at the moment, and nothing can be read either
            return True
        return (now.workspace, now.name, now.role) == (before.workspace, before.name, before.role)

    def _tick(self) -> None:
        if self._ticking is None or self._ticking.done():
            self._ticking = asyncio.create_task(self._ticks())

    async def _ticks(self) -> None:
        """Send heartbeats while there are streams; on shutdown, end all, so that clients reconnect elsewhere."""
        tick = 0
        while self._open and not self._state.stopping.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK):
                    await self._state.stopping.wait()
            tick += 1
            for number in range(tick % HEARTBEAT_TICKS, POLL_TICKS, HEARTBEAT_TICKS):
                for subscriber in list(self._slots[number]):
                    await subscriber.send_heartbeat()
            for subscriber in list(self._slots[tick % POLL_TICKS]):
                subscriber.wake()
        for subscriber in [each for slot in self._slots for each in slot]:
            subscriber.end(RECONNECT_MESSAGE)


class ThreadSubscriber:
    """`last`: the events after which the stream ends."""

    __slots__ = (
        "_abort",
        "_access_checked_at",
        "_allowed",
        "_ended",
        "_failed",
        "_follower",
        "_frame",
        "_heartbeat_due",
        "_is_woken",
        "_last",
        "_request",
        "_send",
        "_task",
        "_timer",
    )

    def __init__(
        self,
        request: HttpRequest,
        send: Send,
        follower: ThreadEventSource,
        frame: EncodeEvent,
        last: frozenset[str],
        allowed: MayRead,
        failed: Callable[[str, BaseException], None],
    ) -> None:
        self._request = request
        self._send = send
        self._follower = follower
        self._frame = frame
        self._last = last
        self._allowed = allowed
        self._failed = failed
        self._is_woken = self._heartbeat_due = self._ended = False
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._access_checked_at = asyncio.get_running_loop().time()
        self._abort = make_abort(request)
        release_request_data(request)

    async def begin(self, after: Position, extra_headers: tuple[Header, ...]) -> None:
        """Start the response, with an id to resume from if the reader is disconnected before the first event."""
        await self._send({"type": "http.response.start", "status": 200, "headers": [*SSE_HEADERS, *extra_headers]})
        await self._send(body_message(b"retry: %d\nid: %b\n\n" % (RETRY_MILLISECONDS, str(after).encode())))

    def wake(self) -> None:
        """There may be new events."""
        self._is_woken = True
        self._start_task()

    async def send_heartbeat(self) -> None:
        if not self._ended and await self._check_access():
            self._heartbeat_due = True
            self._start_task()

    def end(self, reason: str) -> None:
        """End the stream; the client reconnects, if it still may."""
        if self._ended:
            return
        if self._task is not None:
            self._drop()
            return
        self._ended = True
        if run_eagerly(self._send(_closing_message(reason))) is not None:  # type: ignore[arg-type]  # it is a coroutine
            self._abort()

    async def leave(self) -> None:
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _start_task(self) -> None:
        if self._task is None and not self._ended:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while (self._is_woken or self._heartbeat_due) and not self._ended:
                if self._heartbeat_due:
                    self._heartbeat_due = False
                    await self._push(b":\n\n")
                if self._is_woken:
                    self._is_woken = False
                    await self._send_new_events()
        except Error:  # a database problem: a client that reconnects resumes where it was
            await self._close(RECONNECT_MESSAGE)
        except TimeoutError:
            self._drop()
        except OSError:
            self._ended = True  # the reader is gone, and the server will report it
        except Exception as error:  # noqa: BLE001  the reader must not wait forever
            self._failed("chat_stream_failed", error)
            await self._close(RECONNECT_MESSAGE)
        finally:
            self._task = None

    async def _send_new_events(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for stream_event in await self._follower.read_events():
            if self._needs_access_check and not await self._check_access():
                return
            await self._push(await self._frame(stream_event))
            if stream_event.name in self._last:
                await self._close("")
                return
        if self._follower.poll_after is not None:
            self._timer = asyncio.get_running_loop().call_later(self._follower.poll_after, self.wake)

    @property
    def _needs_access_check(self) -> bool:
        return asyncio.get_running_loop().time() - self._access_checked_at >= RECHECK_SECONDS

    async def _check_access(self) -> bool:
        self._access_checked_at = asyncio.get_running_loop().time()
        if await self._allowed(self._request):
            return True
        if self._task is asyncio.current_task():
            await self._close("Sign in again.")
        else:
            self.end("Sign in again.")
        return False

    async def _push(self, body: bytes) -> None:
        """Raises TimeoutError if the reader has stalled."""
        async with asyncio.timeout(STALL_TIMEOUT):
            await self._send(body_message(body))

    async def _close(self, reason: str) -> None:
        if self._ended:
            return
        self._ended = True
        try:
            async with asyncio.timeout(STALL_TIMEOUT):
                await self._send(_closing_message(reason))
        except (TimeoutError, OSError):
            self._abort()

    def _drop(self) -> None:
        """Close at once, and discard unsent data."""
        self._ended = True
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        self._abort()


def _closing_message(reason: str) -> dict[str, object]:
    return {"type": "http.response.body", "body": f": {reason}\n\n".encode() if reason else b"", "more_body": False}


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
