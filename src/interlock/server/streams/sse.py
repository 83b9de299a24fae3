"""Server-sent events of the ledger: encoding (once for all streams), filters, event buffer, subscribers."""

from __future__ import annotations

import asyncio
import json
import socket
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import suppress
from json.encoder import encode_basestring as quoted
from typing import Any, NamedTuple, cast

from interlock.core.errors import InvalidRequest
from interlock.core.identity import ADMIN, Principal
from interlock.core.ledger.chain import Entry
from interlock.runtime.durations import rfc3339
from interlock.server.http import AsgiMessage, HttpRequest, HttpResponse, Send, encode_json, send_response

RETRY_MILLISECONDS = 2_000  # milliseconds that a client waits before it reconnects
MAX_BUFFER_EVENTS = 10_000
MAX_BUFFER_BYTES = 8 * 1024 * 1024
READ_BATCH = 500
EVENT_OVERHEAD = 250  # bytes of an event besides its text
CHUNK_BYTES = 64 * 1024  # bytes that are sent at once: a stalled reader holds little more
MAX_KINDS = 100
MAX_DIGITS = 18
ACCOUNT_KINDS = ("user_", "key_", "sign", "password_", "link_", "away_", "stated")  # only admins see these kinds
REVOKING_KINDS = frozenset({"user_changed", "user_removed", "key_revoked", "password_changed", "signed_out"})
NO_PEOPLE: frozenset[str] = frozenset()


class SseEvent(NamedTuple):
    """One ledger entry, encoded. `affected_people` are people who may have lost rights with it."""

    seq: int
    at: int
    kind: str
    approval_id: str
    private: bool
    affected_people: frozenset[str]
    body: bytes


class EventFilter(NamedTuple):
    """Which events a stream sends; empty means all. `private`: including those only for admins."""

    private: bool
    kinds: frozenset[str]
    approval_id: str

    def matches(self, event: SseEvent) -> bool:
        return (
            (self.private or not event.private)
            and (not self.kinds or event.kind in self.kinds)
            and (not self.approval_id or event.approval_id == self.approval_id)
        )


class SseChunk(NamedTuple):
    """What is sent at once; after it, a reader knows everything up to `last_seq`."""

    last_seq: int
    message: AsgiMessage


class EventBuffer:
    """The newest events, without a gap up to `last_seq`."""

    def __init__(self, at: int) -> None:
        self.last_seq = at
        self._lines: list[SseEvent] = []
        self._bytes = 0

    def add(self, event: SseEvent) -> None:
        self._lines.append(event)
        self._bytes += len(event.body) + EVENT_OVERHEAD
        self.last_seq = event.seq
        if len(self._lines) > MAX_BUFFER_EVENTS or (self._bytes > MAX_BUFFER_BYTES and len(self._lines) > 1):
            self._shorten()

    def events_after(self, after: int) -> list[SseEvent] | None:
        """The events after `after`, at most one batch; None if they are no longer here."""
        start = len(self._lines) - (self.last_seq - after)
        return None if start < 0 else self._lines[start : start + READ_BATCH]

    def clear(self) -> None:
        self._lines.clear()
        self._bytes = 0

    def _shorten(self) -> None:
        """Drop a quarter: removing one at a time would move all the others each time."""
        gone = self._lines[: max(1, len(self._lines) // 4)]
        del self._lines[: len(gone)]
        self._bytes -= sum(len(event.body) + EVENT_OVERHEAD for event in gone)


def parse_event_filter(request: HttpRequest) -> EventFilter:
    query = request.query
    kinds = frozenset(filter(None, query.get("kinds", "").split(",")))
    if len(kinds) > MAX_KINDS:
        raise InvalidRequest(f"kinds names at most {MAX_KINDS} kinds of events. Leave it out for all of them.")
    return EventFilter(request.current_principal.role == ADMIN, kinds, query.get("approval_id", ""))


def parse_last_event_id(request: HttpRequest) -> int | None:
    """The last event that the reader has; None for new events only. The header is newer than the URL."""
    text = request.headers.get(b"last-event-id", b"").decode("latin-1").strip() or request.query.get("after", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise InvalidRequest("Last-Event-ID and after are the number of an event. Leave them out to begin now.")
    return int(text)


def to_sse_event(entry: Entry) -> SseEvent:
    """As `entry_json`, but written directly from the stored JSON, because every event passes here."""
    text = (
        f'{{"seq":{entry.seq},"at":"{rfc3339(entry.at)}","kind":{quoted(entry.kind)},"actor":{quoted(entry.actor)},'
        f'"approval_id":{quoted(entry.approval_id)},"data":{entry.data},"content":'
    )
    body = b'%b%b,"digest":"%b"}' % (text.encode(), entry.content or b"null", entry.digest.encode())
    return SseEvent(
        seq=entry.seq,
        at=entry.at,
        kind=entry.kind,
        approval_id=entry.approval_id,
        private=entry.kind.startswith(ACCOUNT_KINDS),
        affected_people=_affected_people(entry) if entry.kind in REVOKING_KINDS else NO_PEOPLE,
        body=b"id: %d\nevent: %b\ndata: %b\n\n" % (entry.seq, entry.kind.encode(), _one_line(body)),
    )


def opening_frame(at: int) -> bytes:
    """The opening, with an id to resume from if the reader is disconnected before the first event."""
    return b"retry: %d\nid: %d\n\n" % (RETRY_MILLISECONDS, at)


def heartbeat_frame(at: int) -> bytes:
    """A heartbeat, which also moves readers with few events on: an id counts without an event."""
    return b":\nid: %d\n\n" % at


def reset_frame(at: int, reason: str) -> bytes:
    return b"id: %d\nevent: reset\ndata: %b\n\n" % (at, encode_json({"seq": at, "reason": reason}))


def make_chunks(events: Iterable[SseEvent], event_filter: EventFilter, last_seq: int) -> Iterator[SseChunk]:
    """The matching events, in chunks to send.

    After the last chunk, if any, the reader knows everything up to `last_seq`.
    """
    parts: list[bytes] = []
    size = last = 0
    for event in events:
        if not event_filter.matches(event):
            continue
        if size + len(event.body) > CHUNK_BYTES and parts:
            yield SseChunk(last, body_message(b"".join(parts)))
            parts, size = [], 0
        parts.append(event.body)
        size += len(event.body)
        last = event.seq
    if parts:
        yield SseChunk(last_seq, body_message(b"".join(parts)))


def body_message(body: bytes) -> AsgiMessage:
    return {"type": "http.response.body", "body": body, "more_body": True}


def _one_line(body: bytes) -> bytes:
    """JSON of ours has no line breaks; a row that another program wrote must not inject an event."""
    return body.replace(b"\n", b" ").replace(b"\r", b" ")


def _affected_people(entry: Entry) -> frozenset[str]:
    return frozenset({entry.actor, str(json.loads(entry.data).get("user", ""))})


MAX_TURN_BYTES = 256 * 1024  # bytes that one reader is sent before it is checked whether they leave
SEND_BUFFER_BYTES = 64 * 1024  # bytes in flight to one reader; by default, the kernel buffers megabytes for each
STALL_TIMEOUT = 30.0  # seconds after which a reader who takes nothing is dropped
AUTH_HEADERS = (b"authorization", b"cookie", b"host", b"origin")  # headers that the next authentication needs
KEPT_SCOPE_KEYS = ("type", "method", "client", "template", "interlock")  # what the server and its log need of a request


class LedgerSubscriber:
    """`last_seq` is the last event sent, or None before the first; in a group, the group's position counts."""

    __slots__ = (
        "_abort",
        "_ended",
        "_send",
        "_task",
        "event_filter",
        "has_started",
        "heartbeat_slot",
        "last_seq",
        "principal",
        "request",
    )

    def __init__(self, request: HttpRequest, send: Send, event_filter: EventFilter, last_seq: int | None) -> None:
        self.event_filter = event_filter
        self.last_seq = last_seq
        self.has_started = False
        self.heartbeat_slot = 0
        self.principal: Principal = request.current_principal
        self.request = request
        self._send = send
        self._task: asyncio.Task[None] | None = None
        self._ended = False
        self._abort = make_abort(request)
        release_request_data(request)

    def push(self, message: AsgiMessage) -> Awaitable[None] | None:
        """Send a message; if the reader does not keep up, return an awaitable for the rest."""
        return None if self._ended else run_eagerly(cast(Coroutine[Any, Any, None], self._send(message)))

    def push_all(self, chunks: Iterable[SseChunk]) -> Awaitable[None] | None:
        """Send as far as the reader keeps up; `last_seq` moves with it."""
        size = 0
        for chunk in chunks:
            if size > MAX_TURN_BYTES:
                return _completed_future()
            waiting = self.push(chunk.message)
            self.last_seq = chunk.last_seq
            if waiting is not None:
                return waiting
            size += len(chunk.message.get("body", b""))
        return None

    async def send(self, chunk: SseChunk) -> None:
        """Raises TimeoutError if the reader has stalled."""
        async with asyncio.timeout(STALL_TIMEOUT):
            await self._send(chunk.message)
        self.last_seq = chunk.last_seq
        await asyncio.sleep(0)  # lets the transport report whether there is room for more

    def respond(self, response: HttpResponse, extra_headers: tuple[tuple[bytes, bytes], ...]) -> None:
        """Send a response instead of a stream."""
        self._ended = True
        run_eagerly(send_response(self._send, response, extra_headers))

    def end(self, reason: str) -> None:
        """End the stream; the client reconnects, if it still may."""
        if self._ended:
            return
        if self._task is not None or not self.has_started:
            self.drop()
            return
        waiting = self.push({"type": "http.response.body", "body": f": {reason}\n\n".encode(), "more_body": False})
        self._ended = True
        if waiting is not None:
            self._abort()

    def drop(self) -> None:
        """Close at once, and discard unsent data."""
        self._ended = True
        if self._task is not None:
            self._task.cancel()
        self._abort()

    def start_catch_up(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task for this reader alone, until it keeps up again."""
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


def make_abort(request: HttpRequest) -> Callable[[], object]:
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


def release_request_data(request: HttpRequest) -> None:
    """Free the request's data: a stream may last for days, and there may be thousands."""
    request.headers = {name: value for name, value in request.headers.items() if name in AUTH_HEADERS}
    request.body = b""
    scope, kept = request.scope, {name: value for name, value in request.scope.items() if name in KEPT_SCOPE_KEYS}
    scope["headers"].clear()  # the connection holds the list too
    scope.clear()
    scope.update(kept)
