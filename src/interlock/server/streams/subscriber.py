"""One reader of the live feed: what it wants, how far it is, and how it is sent something without waiting for it."""

from __future__ import annotations

import asyncio
import socket
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from contextlib import suppress
from typing import Any, cast

from interlock.core.identity import Principal
from interlock.server.http import AsgiMessage, HttpRequest, HttpResponse, Send, send_response
from interlock.server.streams.sse import EventFilter, SseChunk

MAX_TURN_BYTES = 256 * 1024  # bytes that one reader is sent before it is seen whether they leave
SEND_BUFFER_BYTES = 64 * 1024  # bytes on their way to one reader; left to itself, the kernel keeps megabytes for each
STALL_TIMEOUT = 30.0  # seconds after which a reader who takes nothing is dropped
AUTH_HEADERS = (b"authorization", b"cookie", b"host", b"origin")  # headers that the next look at who it is needs
KEPT_SCOPE_KEYS = ("type", "method", "client", "template", "interlock")  # what the server and its log need of a request


class LedgerSubscriber:
    """`at` is the last event it knows of, or None before it has begun; a member of a group is where the group is."""

    __slots__ = ("_abort", "_ended", "_send", "_task", "asked", "at", "begun", "principal", "slot", "wanted")

    def __init__(self, asked: HttpRequest, send: Send, wanted: EventFilter, at: int | None) -> None:
        self.wanted = wanted
        self.at = at
        self.begun = False
        self.slot = 0
        self.principal: Principal = asked.person
        self.asked = asked
        self._send = send
        self._task: asyncio.Task[None] | None = None
        self._ended = False
        self._abort = make_abort(asked)
        release_request_data(asked)

    def push(self, message: AsgiMessage) -> Awaitable[None] | None:
        """Sends it; if the reader does not keep up, gives what there is to wait for."""
        return None if self._ended else run_eagerly(cast(Coroutine[Any, Any, None], self._send(message)))

    def push_all(self, pieces: Iterable[SseChunk]) -> Awaitable[None] | None:
        """As far as the reader keeps up, which nobody knows before the loop's turn is over; `at` moves with it."""
        size = 0
        for piece in pieces:
            if size > MAX_TURN_BYTES:
                return _completed_future()
            waiting = self.push(piece.message)
            self.at = piece.at
            if waiting is not None:
                return waiting
            size += len(piece.message.get("body", b""))
        return None

    async def send(self, piece: SseChunk) -> None:
        """Raises TimeoutError if the reader has stalled."""
        async with asyncio.timeout(STALL_TIMEOUT):
            await self._send(piece.message)
        self.at = piece.at
        await asyncio.sleep(0)  # so that it is known whether there is room for more

    def answer(self, answer: HttpResponse, more: tuple[tuple[bytes, bytes], ...]) -> None:
        """Instead of a stream."""
        self._ended = True
        run_eagerly(send_response(self._send, answer, more))

    def end(self, why: str) -> None:
        """The reader connects again, if it still may."""
        if self._ended:
            return
        if self._task is not None or not self.begun:
            self.drop()
            return
        waiting = self.push({"type": "http.response.body", "body": f": {why}\n\n".encode(), "more_body": False})
        self._ended = True
        if waiting is not None:
            self._abort()

    def drop(self) -> None:
        """At once, whatever is still on its way."""
        self._ended = True
        if self._task is not None:
            self._task.cancel()
        self._abort()

    def behind(self, work: Coroutine[Any, Any, None]) -> None:
        """Something is done for this reader alone, until it keeps up again."""
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(self._caught_up)

    async def leave(self) -> None:
        self._ended = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def _caught_up(self, task: asyncio.Task[None]) -> None:
        if self._task is task:
            self._task = None


def _completed_future() -> asyncio.Future[None]:
    done = asyncio.get_running_loop().create_future()
    done.set_result(None)
    return done


def run_eagerly(work: Coroutine[Any, Any, None]) -> Awaitable[None] | None:
    """Runs it up to where it has to wait; most often that is its end, and no task was needed."""
    try:
        waits_for = work.send(None)
    except StopIteration:
        return None
    except OSError:  # the reader is gone, and the server will say so
        return None
    return _resume(work, waits_for)


@types.coroutine
def _resume(work: Coroutine[Any, Any, None], waits_for: object) -> Generator[Any, Any, None]:
    try:
        yield waits_for
    except BaseException as error:
        work.throw(error)
        raise
    yield from work  # it has begun, and is gone on with like a generator


def make_abort(asked: HttpRequest) -> Callable[[], object]:
    """Cuts the connection, where the server offers it; else the task that answers is given up."""
    transport = (asked.scope.get("extensions") or {}).get("interlock.transport")
    if transport is None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  a request is answered in a task
        return task.cancel
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    abort: Callable[[], object] = transport.abort
    return abort


def release_request_data(asked: HttpRequest) -> None:
    """A stream may last for days, and there may be thousands: what its request brought along is not needed any more."""
    asked.headers = {name: value for name, value in asked.headers.items() if name in AUTH_HEADERS}
    asked.body = b""
    scope, kept = asked.scope, {name: value for name, value in asked.scope.items() if name in KEPT_SCOPE_KEYS}
    scope["headers"].clear()  # the connection holds the list too
    scope.clear()
    scope.update(kept)
