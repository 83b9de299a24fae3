"""Server-sent events (SSE): one response to one reader, with events of the ledger or of a chat thread.

There is no queue for each reader. A source sends what its reader lacks, from where the reader is, and waits while the
reader does not keep up; one who takes nothing for `STALL_TIMEOUT` is dropped, reconnects, and resumes by Last-Event-ID.
"""

from __future__ import annotations

import asyncio
import socket
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, cast

from interlock.core.identity import Principal
from interlock.server.http import SECURITY_HEADERS, AsgiMessage, Header, HttpRequest, HttpResponse, Send, send_response

RETRY_MILLISECONDS = 2_000  # milliseconds that a client waits before it reconnects
STALL_TIMEOUT = 30.0  # seconds after which a reader who takes nothing is dropped
TICK = 1.0  # seconds
HEARTBEAT_TICKS = 15  # ticks between two heartbeats of one stream, and two checks of its reader's access
RECONNECT_REASON = "The server stops here. Connect again."
SIGN_IN_REASON = "Sign in again."
SEND_BUFFER_BYTES = 64 * 1024  # bytes in flight to one reader; by default, the kernel buffers megabytes for each
AUTH_HEADERS = (b"authorization", b"cookie", b"host", b"origin")  # headers that the next authentication needs
KEPT_SCOPE_KEYS = ("type", "method", "client", "template", "interlock")  # what the server and its log need of a request
SSE_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream"),
    (b"x-accel-buffering", b"no"),  # a proxy must not buffer events
    *SECURITY_HEADERS,
)


class SseConnection:
    """One response. It has a task only while something is sent to this reader alone."""

    __slots__ = ("_abort", "_send", "_task", "has_started", "is_ended", "principal", "request")

    def __init__(self, request: HttpRequest, send: Send) -> None:
        self.request = request
        self.principal: Principal = request.current_principal
        self.has_started = False
        self.is_ended = False
        self._send = send
        self._task: asyncio.Task[None] | None = None
        self._abort = _make_abort(request)
        _release_request_data(request)

    def opening(self, position: object, extra_headers: tuple[Header, ...] = ()) -> list[AsgiMessage]:
        """The first messages, with an id to resume from if the reader is disconnected before the first event."""
        self.has_started = True
        frame = f"retry: {RETRY_MILLISECONDS}\nid: {position}\n\n"
        start = {"type": "http.response.start", "status": 200, "headers": [*SSE_HEADERS, *extra_headers]}
        return [start, body_message(frame.encode())]

    async def start(self, position: object, extra_headers: tuple[Header, ...]) -> None:
        for message in self.opening(position, extra_headers):
            await self._send(message)

    def push(self, message: AsgiMessage) -> Awaitable[None] | None:
        """Send a message; if the reader does not keep up, return the rest of it, for `complete`."""
        return None if self.is_ended else _run_eagerly(cast(Coroutine[Any, Any, None], self._send(message)))

    async def complete(self, rest: Awaitable[None]) -> None:
        """Raises TimeoutError if the reader has stalled."""
        async with asyncio.timeout(STALL_TIMEOUT):
            await rest

    async def write(self, message: AsgiMessage) -> None:
        """Send a message, at the reader's pace. Raises TimeoutError if the reader has stalled."""
        async with asyncio.timeout(STALL_TIMEOUT):
            await self._send(message)

    def respond(self, response: HttpResponse, extra_headers: tuple[Header, ...]) -> None:
        """Send a response instead of a stream."""
        self.is_ended = True
        _run_eagerly(send_response(self._send, response, extra_headers))

    @property
    def is_busy(self) -> bool:
        return self._task is not None

    def start_task(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start the task that sends to this reader alone."""
        self._task = asyncio.create_task(self._run(work))

    def end(self, reason: str) -> None:
        """End the stream; the client reconnects, if it still may."""
        if self.is_ended:
            return
        if self.is_busy or not self.has_started:
            self.drop()
            return
        waiting = self.push(_closing_message(reason))
        self.is_ended = True
        if waiting is not None:
            self._abort()

    async def close(self, reason: str = "") -> None:
        """End the stream from its own task."""
        if self.is_ended:
            return
        self.is_ended = True
        try:
            await self.write(_closing_message(reason))
        except (TimeoutError, OSError):
            self._abort()

    def drop(self) -> None:
        """Close at once, and discard unsent data."""
        self.is_ended = True
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        self._abort()

    async def leave(self) -> None:
        """Stop sending: the reader is gone."""
        self.is_ended = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.current_task()
        try:
            await work()
        finally:
            if self._task is task:  # before anything else runs: a wake-up in between would start no other task
                self._task = None


def last_event_id(request: HttpRequest) -> str:
    """The id of the last event that the reader has; empty if there is none. The header is newer than the URL."""
    return request.headers.get(b"last-event-id", b"").decode("latin-1").strip() or request.query.get("after", "")


def body_message(body: bytes) -> AsgiMessage:
    return {"type": "http.response.body", "body": body, "more_body": True}


def _closing_message(reason: str) -> AsgiMessage:
    return {"type": "http.response.body", "body": f": {reason}\n\n".encode() if reason else b"", "more_body": False}


def _run_eagerly(work: Coroutine[Any, Any, None]) -> Awaitable[None] | None:
    """Run a coroutine up to its first wait; mostly that is its end, and no task is needed."""
    try:
        waits_for = work.send(None)
    except StopIteration:
        return None
    except OSError:  # the reader is gone, and the server will report it
        return None
    return _resume(work, waits_for)


@types.coroutine
def _resume(work: Coroutine[Any, Any, None], waits_for: object) -> Generator[Any, Any, None]:
    try:
        yield waits_for
    except BaseException as error:
        work.throw(error)
        raise
    yield from work  # it has begun, and continues like a generator


def _make_abort(request: HttpRequest) -> Callable[[], object]:
    """A function that cuts the connection, if the server supports it; else it cancels the current task."""
    transport = (request.scope.get("extensions") or {}).get("interlock.transport")
    if transport is None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  a request is answered in a task
        return task.cancel
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    abort: Callable[[], object] = transport.abort
    return abort


def _release_request_data(request: HttpRequest) -> None:
    """Free the request's data: a stream may last for days, and there may be thousands."""
    request.headers = {name: value for name, value in request.headers.items() if name in AUTH_HEADERS}
    request.body = b""
    scope, kept = request.scope, {name: value for name, value in request.scope.items() if name in KEPT_SCOPE_KEYS}
    scope["headers"].clear()  # the connection holds the list too
    scope.clear()
    scope.update(kept)
