"""Events of the ledger, encoded as server-sent events (once for all streams); filters, and a buffer of the newest."""

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
from interlock.server.streams.sse import body_message, last_event_id

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
    """The last event that the reader has; None for new events only."""
    text = last_event_id(request)
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


def _one_line(body: bytes) -> bytes:
    """JSON of ours has no line breaks; a row that another program wrote must not inject an event."""
    return body.replace(b"\n", b" ").replace(b"\r", b" ")


def _affected_people(entry: Entry) -> frozenset[str]:
    return frozenset({entry.actor, str(json.loads(entry.data).get("user", ""))})
