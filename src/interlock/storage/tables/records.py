"""The Records port: what tool packs keep, each change once for its key, in the same transactions as all else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from interlock.core.canonical import canonical, read_canonical
from interlock.core.ports import ToolItem, ToolItemTransaction
from interlock.storage.engine.database import Database
from interlock.storage.engine.rows import Row
from interlock.storage.engine.transaction import Transaction
from interlock.storage.engine.writer import BatchItem, NamedRead

MAX_LISTED = 10_000  # records of a kind that are listed
APPLIED_RETENTION = 30 * 24 * 60 * 60 * 1000  # milliseconds that a change is remembered by its key


class SqlToolItemStore:
    def __init__(self, database: Database, workspace: str) -> None:
        self._database = database
        self._workspace = workspace

    async def get(self, kind: str, record_id: str) -> ToolItem | None:
        found = await self._database.fetch("record", self._workspace, kind, record_id)
        return _read_item(found[0]) if found else None

    async def list(self, kind: str) -> Sequence[ToolItem]:
        return [_read_item(row) for row in await self._database.fetch("records", self._workspace, kind, MAX_LISTED)]

    async def change(self, key: str, step: Callable[[ToolItemTransaction], object]) -> object:
        """The step may be run again from its start, so it does nothing but read the shelf and write to it."""
        workspace = self._workspace

        def run(tx: Transaction) -> object:
            tx.alone(f"records of {workspace}")
            kept = tx.fetch("applied", workspace, key) if key else []
            return read_canonical(bytes(kept[0][0])) if kept else _apply_change(tx, workspace, key, step)

        reads: tuple[NamedRead, ...] = (("applied", workspace, key),) if key else ()
        return await self._database.write(BatchItem(run, workspace, reads, brief=False))


def _apply_change(tx: Transaction, workspace: str, key: str, step: Callable[[ToolItemTransaction], object]) -> object:
    shelf = SqlToolItemTransaction(tx, workspace)
    result = canonical(step(shelf))
    shelf.write()
    if key:
        tx.write("insert_applied", workspace, key, result, shelf.now)
    return read_canonical(result)  # as whoever comes again gets it


class SqlToolItemTransaction:
    """Reads rows as this step has left them, and keeps what is to be written until it is through."""

    def __init__(self, tx: Transaction, workspace: str) -> None:
        self.now = tx.moment(workspace).now
        self._tx = tx
        self._workspace = workspace
        self._changed: dict[tuple[str, str], bytes | None] = {}  # None: deleted

    def write(self) -> None:
        for (kind, record_id), body in self._changed.items():
            if body is None:
                self._tx.write("delete_record", self._workspace, kind, record_id)
            else:
                self._tx.write("write_record", self._workspace, kind, record_id, body, self.now)

    def get(self, kind: str, record_id: str) -> ToolItem | None:
        if (kind, record_id) in self._changed:
            body = self._changed[kind, record_id]
            return None if body is None else _read_item((record_id, body, self.now))
        found = self._tx.fetch("record", self._workspace, kind, record_id)
        return _read_item(found[0]) if found else None

    def list(self, kind: str) -> Sequence[ToolItem]:
        known = {row[0]: row for row in self._tx.fetch("records", self._workspace, kind, MAX_LISTED)}
        for (changed, record_id), body in self._changed.items():
            if changed == kind:
                known.pop(record_id, None)
                known |= {} if body is None else {record_id: (record_id, body, self.now)}
        return [_read_item(known[record_id]) for record_id in sorted(known)][:MAX_LISTED]

    def put(self, kind: str, record_id: str, body: Mapping[str, object]) -> None:
        canonical([kind, record_id])  # names that no database keeps are refused here, where only this step fails
        self._changed[kind, record_id] = canonical(body)

    def delete(self, kind: str, record_id: str) -> None:
        self._changed[kind, record_id] = None


def _read_item(row: Row) -> ToolItem:
    record_id, body, at = row
    return ToolItem(record_id, cast(Mapping[str, object], read_canonical(bytes(body))), at)
