"""Answers to requests that may be sent again: claimed first, then kept, and given again for a day."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from interlock.storage.engine.database import Database
from interlock.storage.engine.rows import Row
from interlock.storage.engine.writer import BatchItem

TAKEOVER_AFTER = 100_000  # milliseconds, longer than any request may take: whoever works on it still is gone
IN_PROGRESS = 0  # the status of an answer that is being worked out; its body is then the mark of whoever does
ERASED_STATUS = 409
ERASED_BODY = b'{"error":"conflict","message":"This was done already; what was answered then has been erased."}'


class IdempotencyKey(NamedTuple):
    """Where an answer is kept: nobody else's key leads to it."""

    workspace: str
    asker: str
    key: str


class IdempotencyRecord(NamedTuple):
    """What is there for a key. With `mark` it is the caller's to work out; else status 0 says that somebody does."""

    digest: str
    status: int
    body: bytes
    mark: bytes = b""


class IdempotencyStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, place: IdempotencyKey, digest: str) -> IdempotencyRecord:
        """Of many who come at once, one has the mark that lies there afterwards."""
        mark, now = secrets.token_bytes(16), self._database.clock()
        found = await self._database.fetch("answer", *place)
        if not found:
            await self._write(place, "claim_answer", *place, digest, IN_PROGRESS, mark, now)
        elif found[0][1] == IN_PROGRESS and found[0][0] == digest and now - found[0][3] >= TAKEOVER_AFTER:
            await self._write(place, "take_answer", mark, now, *place, found[0][3])
        else:
            return _read_record(found[0], b"")
        return _read_record((await self._database.fetch("answer", *place))[0], mark)

    async def look(self, place: IdempotencyKey) -> IdempotencyRecord | None:
        """What is there, without a claim to it."""
        found = await self._database.fetch("answer", *place)
        return _read_record(found[0], b"") if found else None

    async def keep(self, place: IdempotencyKey, mark: bytes, status: int, body: bytes) -> None:
        """Nothing happens if somebody else took it over meanwhile."""
        await self._write(place, "keep_answer", status, body, *place, mark)

    async def drop(self, place: IdempotencyKey, mark: bytes) -> None:
        """Whoever comes next works it out anew."""
        await self._write(place, "drop_answer", *place, mark)

    async def hide(self, workspace: str) -> None:
        """After an erasure: what was answered may hold what was erased, and is done once all the same."""
        work = BatchItem(lambda tx: tx.write("hide_answers", ERASED_STATUS, ERASED_BODY, workspace), workspace)
        await self._database.write(work)

    async def _write(self, place: IdempotencyKey, name: str, *values: object) -> None:
        await self._database.write(BatchItem(lambda tx: tx.write(name, *values), place.workspace))


def _read_record(row: Row, mark: bytes) -> IdempotencyRecord:
    digest, status, body, _ = row
    mine = status == IN_PROGRESS and bytes(body) == mark
    return IdempotencyRecord(digest, status, bytes(body), mark if mine else b"")
