"""The words of the live feed: entries of the ledger as server-sent events, each encoded once for everybody."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from json.encoder import encode_basestring as quoted
from typing import NamedTuple

from interlock.core.errors import InvalidRequest
from interlock.core.identity import ADMIN
from interlock.core.ledger.chain import Entry
from interlock.runtime.durations import rfc3339
from interlock.server.http import AsgiMessage, HttpRequest, encode_json

RETRY_MILLISECONDS = 2_000  # milliseconds that a reader waits before it connects again
MAX_BUFFER_EVENTS = 10_000
MAX_BUFFER_BYTES = 8 * 1024 * 1024
READ_BATCH = 500
EVENT_OVERHEAD = 250  # bytes that a line takes beside its text
CHUNK_BYTES = 64 * 1024  # bytes that are sent at once: a reader who stalls holds little more
MAX_KINDS = 100
MAX_DIGITS = 18
ACCOUNT_KINDS = ("user_", "key_", "sign", "password_", "link_", "away_", "stated")  # only admins see these kinds
REVOKING_KINDS = frozenset({"user_changed", "user_removed", "key_revoked", "password_changed", "signed_out"})
NO_PEOPLE: frozenset[str] = frozenset()


class SseEvent(NamedTuple):
    """One entry as it goes over the wire. `doubted` are people who may have lost rights with it."""

    seq: int
    at: int
    kind: str
    approval_id: str
    private: bool
    doubted: frozenset[str]
    body: bytes


class EventFilter(NamedTuple):
    """What a stream is about; empty means all. `private`: also what is only for admins."""

    private: bool
    kinds: frozenset[str]
    approval_id: str

    def takes(self, line: SseEvent) -> bool:
        return (
            (self.private or not line.private)
            and (not self.kinds or line.kind in self.kinds)
            and (not self.approval_id or line.approval_id == self.approval_id)
        )


class SseChunk(NamedTuple):
    """What is sent at once; whoever has it knows everything up to `at`."""

    at: int
    message: AsgiMessage


class EventBuffer:
    """The newest lines, without a gap up to `at`."""

    def __init__(self, at: int) -> None:
        self.at = at
        self._lines: list[SseEvent] = []
        self._bytes = 0

    def add(self, line: SseEvent) -> None:
        self._lines.append(line)
        self._bytes += len(line.body) + EVENT_OVERHEAD
        self.at = line.seq
        if len(self._lines) > MAX_BUFFER_EVENTS or (self._bytes > MAX_BUFFER_BYTES and len(self._lines) > 1):
            self._shorten()

    def since(self, after: int) -> list[SseEvent] | None:
        """The lines behind `after`, as many as are read at once; None if they are not here any more."""
        start = len(self._lines) - (self.at - after)
        return None if start < 0 else self._lines[start : start + READ_BATCH]

    def clear(self) -> None:
        self._lines.clear()
        self._bytes = 0

    def _shorten(self) -> None:
        """By a quarter: to take off one at a time would move all the others each time."""
        gone = self._lines[: max(1, len(self._lines) // 4)]
        del self._lines[: len(gone)]
        self._bytes -= sum(len(line.body) + EVENT_OVERHEAD for line in gone)


def parse_event_filter(asked: HttpRequest) -> EventFilter:
    query = asked.query
    kinds = frozenset(filter(None, query.get("kinds", "").split(",")))
    if len(kinds) > MAX_KINDS:
        raise InvalidRequest(f"kinds names at most {MAX_KINDS} kinds of events. Leave it out for all of them.")
    return EventFilter(asked.person.role == ADMIN, kinds, query.get("approval_id", ""))


def parse_last_event_id(asked: HttpRequest) -> int | None:
    """Where the reader stopped; None to get only what is new. The header is newer than the address."""
    text = asked.headers.get(b"last-event-id", b"").decode("latin-1").strip() or asked.query.get("after", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise InvalidRequest("Last-Event-ID and after are the number of an event. Leave them out to begin now.")
    return int(text)


def to_sse_event(entry: Entry) -> SseEvent:
    """As `shape.entry_json`, spelled out from the stored JSON, because every event passes here."""
    text = (
        f'{{"seq":{entry.seq},"at":"{rfc3339(entry.at)}","kind":{quoted(entry.kind)},"actor":{quoted(entry.actor)},'
        f'"approval_id":{quoted(entry.approval_id)},"data":{entry.data},"content":'
    )
    body = b'%b%b,"digest":"%b"}' % (text.encode(), entry.content or b"null", entry.digest.encode())
    return SseEvent(
        entry.seq,
        entry.at,
        entry.kind,
        entry.approval_id,
        entry.kind.startswith(ACCOUNT_KINDS),
        _affected_people(entry) if entry.kind in REVOKING_KINDS else NO_PEOPLE,
        b"id: %d\nevent: %b\ndata: %b\n\n" % (entry.seq, entry.kind.encode(), _one_line(body)),
    )


def opening_frame(at: int) -> bytes:
    """With the place to go on from, for a reader who is cut off before the first event."""
    return b"retry: %d\nid: %d\n\n" % (RETRY_MILLISECONDS, at)


def heartbeat_frame(at: int) -> bytes:
    """A reader who gets few events moves on with it all the same: an id counts, also without an event."""
    return b":\nid: %d\n\n" % at


def reset_frame(at: int, reason: str) -> bytes:
    return b"id: %d\nevent: reset\ndata: %b\n\n" % (at, encode_json({"seq": at, "reason": reason}))


def make_chunks(lines: Iterable[SseEvent], wanted: EventFilter, at: int) -> Iterator[SseChunk]:
    """Of what is wanted, in pieces to send. After the last one the reader knows everything up to `at`, if any came."""
    parts: list[bytes] = []
    size = last = 0
    for line in lines:
        if not wanted.takes(line):
            continue
        if size + len(line.body) > CHUNK_BYTES and parts:
            yield SseChunk(last, body_message(b"".join(parts)))
            parts, size = [], 0
        parts.append(line.body)
        size += len(line.body)
        last = line.seq
    if parts:
        yield SseChunk(at, body_message(b"".join(parts)))


def body_message(body: bytes) -> AsgiMessage:
    return {"type": "http.response.body", "body": body, "more_body": True}


def _one_line(body: bytes) -> bytes:
    """What the program writes has no break; a row that somebody else wrote must not begin an event of its own."""
    return body.replace(b"\n", b" ").replace(b"\r", b" ")


def _affected_people(entry: Entry) -> frozenset[str]:
    return frozenset({entry.actor, str(json.loads(entry.data).get("user", ""))})
