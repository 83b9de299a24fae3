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
from interlock.server.http import Asked, Message, encoded

RETRY = 2_000  # milliseconds that a reader waits before it connects again
MOST_LINES = 10_000
MOST_BYTES = 8 * 1024 * 1024
AT_ONCE = 500
BESIDE = 250  # bytes that a line takes beside its text
PIECE = 64 * 1024  # bytes that are sent at once: a reader who stalls holds little more
MOST_KINDS = 100
MOST_DIGITS = 18
OF_ACCOUNTS = ("user_", "key_", "sign", "password_", "link_", "away_", "stated")  # only admins see these kinds
TAKING = frozenset({"user_changed", "user_removed", "key_revoked", "password_changed", "signed_out"})
NOBODY: frozenset[str] = frozenset()


class Line(NamedTuple):
    """One entry as it goes over the wire. `doubted` are people who may have lost rights with it."""

    seq: int
    at: int
    kind: str
    approval_id: str
    private: bool
    doubted: frozenset[str]
    body: bytes


class Wanted(NamedTuple):
    """What a stream is about; empty means all. `private`: also what is only for admins."""

    private: bool
    kinds: frozenset[str]
    approval_id: str

    def takes(self, line: Line) -> bool:
        return (
            (self.private or not line.private)
            and (not self.kinds or line.kind in self.kinds)
            and (not self.approval_id or line.approval_id == self.approval_id)
        )


class Piece(NamedTuple):
    """What is sent at once; whoever has it knows everything up to `at`."""

    at: int
    message: Message


class Ring:
    """The newest lines, without a gap up to `at`."""

    def __init__(self, at: int) -> None:
        self.at = at
        self._lines: list[Line] = []
        self._bytes = 0

    def add(self, line: Line) -> None:
        self._lines.append(line)
        self._bytes += len(line.body) + BESIDE
        self.at = line.seq
        if len(self._lines) > MOST_LINES or (self._bytes > MOST_BYTES and len(self._lines) > 1):
            self._shorten()

    def since(self, after: int) -> list[Line] | None:
        """The lines behind `after`, as many as are read at once; None if they are not here any more."""
        start = len(self._lines) - (self.at - after)
        return None if start < 0 else self._lines[start : start + AT_ONCE]

    def clear(self) -> None:
        self._lines.clear()
        self._bytes = 0

    def _shorten(self) -> None:
        """By a quarter: to take off one at a time would move all the others each time."""
        gone = self._lines[: max(1, len(self._lines) // 4)]
        del self._lines[: len(gone)]
        self._bytes -= sum(len(line.body) + BESIDE for line in gone)


def wanted_of(asked: Asked) -> Wanted:
    query = asked.query
    kinds = frozenset(filter(None, query.get("kinds", "").split(",")))
    if len(kinds) > MOST_KINDS:
        raise InvalidRequest(f"kinds names at most {MOST_KINDS} kinds of events. Leave it out for all of them.")
    return Wanted(asked.person.role == ADMIN, kinds, query.get("approval_id", ""))


def after_of(asked: Asked) -> int | None:
    """Where the reader stopped; None to get only what is new. The header is newer than the address."""
    text = asked.headers.get(b"last-event-id", b"").decode("latin-1").strip() or asked.query.get("after", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        raise InvalidRequest("Last-Event-ID and after are the number of an event. Leave them out to begin now.")
    return int(text)


def line_of(entry: Entry) -> Line:
    """As `shape.entry_json`, spelled out from the stored JSON, because every event passes here."""
    text = (
        f'{{"seq":{entry.seq},"at":"{rfc3339(entry.at)}","kind":{quoted(entry.kind)},"actor":{quoted(entry.actor)},'
        f'"approval_id":{quoted(entry.approval_id)},"data":{entry.data},"content":'
    )
    body = b'%b%b,"digest":"%b"}' % (text.encode(), entry.content or b"null", entry.digest.encode())
    return Line(
        entry.seq,
        entry.at,
        entry.kind,
        entry.approval_id,
        entry.kind.startswith(OF_ACCOUNTS),
        _doubted(entry) if entry.kind in TAKING else NOBODY,
        b"id: %d\nevent: %b\ndata: %b\n\n" % (entry.seq, entry.kind.encode(), _one_line(body)),
    )


def greeting(at: int) -> bytes:
    """With the place to go on from, for a reader who is cut off before the first event."""
    return b"retry: %d\nid: %d\n\n" % (RETRY, at)


def heartbeat(at: int) -> bytes:
    """A reader who gets few events moves on with it all the same: an id counts, also without an event."""
    return b":\nid: %d\n\n" % at


def reset(at: int, reason: str) -> bytes:
    return b"id: %d\nevent: reset\ndata: %b\n\n" % (at, encoded({"seq": at, "reason": reason}))


def pieces(lines: Iterable[Line], wanted: Wanted, at: int) -> Iterator[Piece]:
    """Of what is wanted, in pieces to send. After the last one the reader knows everything up to `at`, if any came."""
    parts: list[bytes] = []
    size = last = 0
    for line in lines:
        if not wanted.takes(line):
            continue
        if size + len(line.body) > PIECE and parts:
            yield Piece(last, part(b"".join(parts)))
            parts, size = [], 0
        parts.append(line.body)
        size += len(line.body)
        last = line.seq
    if parts:
        yield Piece(at, part(b"".join(parts)))


def part(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}


def _one_line(body: bytes) -> bytes:
    """What the program writes has no break; a row that somebody else wrote must not begin an event of its own."""
    return body.replace(b"\n", b" ").replace(b"\r", b" ")


def _doubted(entry: Entry) -> frozenset[str]:
    return frozenset({entry.actor, str(json.loads(entry.data).get("user", ""))})
