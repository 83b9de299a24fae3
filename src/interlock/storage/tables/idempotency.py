"""Answers to requests that may be sent again: claimed first, then kept, and given again for a day."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from interlock.storage.engine.database import Database
from interlock.storage.engine.rows import Row
from interlock.storage.engine.writer import Work

PATIENCE = 100_000  # milliseconds, longer than any request may take: whoever works on it still is gone
WORKING = 0  # the status of an answer that is being worked out; its body is then the mark of whoever does
GONE = 409
HIDDEN = b'{"error":"conflict","message":"This was done already; what was answered then has been erased."}'


class Place(NamedTuple):
    """Where an answer is kept: nobody else's key leads to it."""

    workspace: str
    asker: str
    key: str


class Kept(NamedTuple):
    """What is there for a key. With `mark` it is the caller's to work out; else status 0 says that somebody does."""

    digest: str
    status: int
    body: bytes
    mark: bytes = b""


class SqlAnswers:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, place: Place, digest: str) -> Kept:
        """Of many who come at once, one has the mark that lies there afterwards."""
        mark, now = secrets.token_bytes(16), self._database.clock()
        found = await self._database.fetch("answer", *place)
        if not found:
            await self._write(place, "claim_answer", *place, digest, WORKING, mark, now)
        elif found[0][1] == WORKING and found[0][0] == digest and now - found[0][3] >= PATIENCE:
            await self._write(place, "take_answer", mark, now, *place, found[0][3])
        else:
            return _kept(found[0], b"")
        return _kept((await self._database.fetch("answer", *place))[0], mark)

    async def look(self, place: Place) -> Kept | None:
        """What is there, without a claim to it."""
        found = await self._database.fetch("answer", *place)
        return _kept(found[0], b"") if found else None

    async def keep(self, place: Place, mark: bytes, status: int, body: bytes) -> None:
        """Nothing happens if somebody else took it over meanwhile."""
        await self._write(place, "keep_answer", status, body, *place, mark)

    async def drop(self, place: Place, mark: bytes) -> None:
        """Whoever comes next works it out anew."""
        await self._write(place, "drop_answer", *place, mark)

    async def hide(self, workspace: str) -> None:
        """After an erasure: what was answered may hold what was erased, and is done once all the same."""
        work = Work(lambda tx: tx.write("hide_answers", GONE, HIDDEN, workspace), workspace)
        await self._database.write(work)

    async def _write(self, place: Place, name: str, *values: object) -> None:
        await self._database.write(Work(lambda tx: tx.write(name, *values), place.workspace))


def _kept(row: Row, mark: bytes) -> Kept:
    digest, status, body, _ = row
    mine = status == WORKING and bytes(body) == mark
    return Kept(digest, status, bytes(body), mark if mine else b"")
