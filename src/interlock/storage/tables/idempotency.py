"""Idempotency keys: the response to a request is reserved, stored, and returned to retries for a day."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from interlock.storage.engine.database import Database
from interlock.storage.engine.rows import Row
from interlock.storage.engine.writer import BatchItem

TAKEOVER_AFTER = 100_000  # milliseconds, longer than any request may take: its worker is gone
IN_PROGRESS = 0  # status of a response in progress; its body is then the reservation token
ERASED_STATUS = 409
ERASED_BODY = b'{"error":"conflict","message":"This was done already; what was answered then has been erased."}'


class IdempotencyKey(NamedTuple):
    """Idempotency key within its owner's scope: no other owner's key finds the same record."""

    workspace: str
    principal: str
    key: str


class IdempotencyRecord(NamedTuple):
    """The record of a key. With a `reservation_token` the caller has to make the response.

    Without one, status 0 means that another request is in progress.
    """

    digest: str
    status: int
    body: bytes
    reservation_token: bytes = b""


class IdempotencyStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def reserve(self, idempotency_key: IdempotencyKey, digest: str) -> IdempotencyRecord:
        """Reserve a key; of several concurrent requests, the one whose token is stored wins."""
        token, now = secrets.token_bytes(16), self._database.clock()
        found = await self._database.fetch("idempotency_key", *idempotency_key)
        if not found:
            await self._write(
                idempotency_key, "reserve_idempotency_key", *idempotency_key, digest, IN_PROGRESS, token, now
            )
        elif found[0][1] == IN_PROGRESS and found[0][0] == digest and now - found[0][3] >= TAKEOVER_AFTER:
            await self._write(idempotency_key, "take_over_idempotency_key", token, now, *idempotency_key, found[0][3])
        else:
            return _read_record(found[0], b"")
        return _read_record((await self._database.fetch("idempotency_key", *idempotency_key))[0], token)

    async def find(self, idempotency_key: IdempotencyKey) -> IdempotencyRecord | None:
        """Return the record without reserving it."""
        found = await self._database.fetch("idempotency_key", *idempotency_key)
        return _read_record(found[0], b"") if found else None

    async def save(self, idempotency_key: IdempotencyKey, token: bytes, status: int, body: bytes) -> None:
        """Store the response, unless the reservation was taken over meanwhile."""
        await self._write(idempotency_key, "save_idempotency_key", status, body, *idempotency_key, token)

    async def release(self, idempotency_key: IdempotencyKey, token: bytes) -> None:
        """Release the reservation, so that the next retry makes the response."""
        await self._write(idempotency_key, "release_idempotency_key", *idempotency_key, token)

    async def erase_bodies(self, workspace: str) -> None:
        """Replace stored responses after an erasure, since they may hold erased content; retries are still detected."""
        item = BatchItem(
            lambda tx: tx.write("erase_idempotency_keys", ERASED_STATUS, ERASED_BODY, workspace), workspace
        )
        await self._database.write(item)

    async def _write(self, idempotency_key: IdempotencyKey, name: str, *values: object) -> None:
        await self._database.write(BatchItem(lambda tx: tx.write(name, *values), idempotency_key.workspace))


def _read_record(row: Row, token: bytes) -> IdempotencyRecord:
    digest, status, body, _ = row
    mine = status == IN_PROGRESS and bytes(body) == token
    return IdempotencyRecord(digest, status, bytes(body), token if mine else b"")
