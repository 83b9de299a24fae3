"""The tool items port: items and documents of tool packs; each change is applied once for its idempotency key."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import cast

from interlock.core.canonical import canonical, digest, read_canonical
from interlock.core.ledger.event import Event
from interlock.core.ports import Excerpt, Passage, ToolItem, ToolItemTransaction, Trace
from interlock.core.preview import ShownItems
from interlock.runtime.offload import offload
from interlock.storage.engine.database import Database
from interlock.storage.engine.rows import Row
from interlock.storage.engine.transaction import Transaction
from interlock.storage.engine.writer import BatchItem, NamedRead

MAX_LISTED = 10_000  # items of a kind in a list
APPLIED_RETENTION = 30 * 24 * 60 * 60 * 1000  # milliseconds that the idempotency key of a change is kept


class SqlToolItemStore:
    def __init__(self, database: Database, workspace: str) -> None:
        self._database = database
        self._workspace = workspace

    async def get(self, kind: str, item_id: str) -> ToolItem | None:
        found = await self._database.fetch("tool_item", self._workspace, kind, item_id)
        return await offload(len(found[0][1]), lambda: _read_item(found[0])) if found else None

    async def list(self, kind: str) -> Sequence[ToolItem]:
        rows = await self._database.fetch("tool_items", self._workspace, kind, MAX_LISTED)
        return await offload(sum(len(row[1]) for row in rows), lambda: [_read_item(row) for row in rows])

    async def change(
        self, key: str, step: Callable[[ToolItemTransaction], object], preview_version: str = ""
    ) -> object:
        """Apply a change once for its key. The step may be retried, so it must only read and write the items.

        What people saw is compared only if the change is not made yet: afterwards the items are different.
        """
        workspace = self._workspace

        def run(tx: Transaction) -> object:
            tx.require_own_batch(f"items of {workspace}")
            kept = tx.fetch("applied_change", workspace, key) if key else []
            if kept:
                return read_canonical(bytes(kept[0][0]))
            shown = ShownItems(preview_version) if preview_version else None
            return _apply_change(tx, key, SqlToolItemTransaction(tx, workspace, shown), step)

        reads: tuple[NamedRead, ...] = (("applied_change", workspace, key),) if key else ()
        return await self._database.write(BatchItem(run, workspace, reads, is_short=False))

    async def change_by(
        self, person: str, trace: Trace, kinds: Collection[str], step: Callable[[ToolItemTransaction], object]
    ) -> object:
        """Apply a change that a person makes without a tool; each changed item of `kinds` has an entry in the ledger.

        `trace` says how the person was authenticated.
        """
        workspace = self._workspace

        def run(tx: Transaction) -> object:
            tx.require_own_batch(f"items of {workspace}")
            item_tx = SqlToolItemTransaction(tx, workspace)
            result = canonical(step(item_tx))
            tx.append_events(workspace, list(item_tx.change_events(person, trace, kinds)))
            item_tx.write()
            return read_canonical(result)

        return await self._database.write(BatchItem(run, workspace, is_short=False))


def _apply_change(
    tx: Transaction, key: str, item_tx: SqlToolItemTransaction, step: Callable[[ToolItemTransaction], object]
) -> object:
    item_tx.check_unchanged()
    result = canonical(step(item_tx))
    item_tx.write()
    if key:
        tx.write("insert_applied_change", item_tx.workspace, key, result, item_tx.now)
    return read_canonical(result)  # exactly as a retry gets it


class SqlToolItemTransaction:
    """Reads rows including this step's changes, and buffers writes until it has finished.

    `shown` are the items that people saw before they approved the change.
    """

    def __init__(self, tx: Transaction, workspace: str, shown: ShownItems | None = None) -> None:
        self.now = tx.moment(workspace).now
        self.workspace = workspace
        self._tx = tx
        self._shown = shown
        self._stored: dict[tuple[str, str], Row | None] = {}  # as read: a row can be large
        self._changed: dict[tuple[str, str], bytes | None] = {}  # None: deleted

    def change_events(self, person: str, trace: Trace, kinds: Collection[str]) -> Iterator[Event]:
        """State the changed items of these kinds for the ledger, with a digest of what each became."""
        for (kind, item_id), body in self._changed.items():
            if kind in kinds:
                is_known = self._read(kind, item_id) is not None
                action = "deleted" if body is None else "updated" if is_known else "created"
                content = trace if body is None else {**trace, "sha256": digest(body)}
                data = {"item": kind, "id": item_id, "action": action}
                yield Event("content_changed", person, data, "", content or None)

    def write(self) -> None:
        for (kind, item_id), body in self._changed.items():
            if body is None:
                self._tx.write("delete_tool_item", self.workspace, kind, item_id)
            else:
                self._tx.write("write_tool_item", self.workspace, kind, item_id, body, self.now)

    def get(self, kind: str, item_id: str) -> ToolItem | None:
        if (kind, item_id) in self._changed:
            body = self._changed[kind, item_id]
            return None if body is None else _read_item((item_id, body, self.now))
        row = self._read(kind, item_id)
        return None if row is None else _read_item(row)

    def list(self, kind: str) -> Sequence[ToolItem]:
        known = {row[0]: row for row in self._tx.fetch("tool_items", self.workspace, kind, MAX_LISTED)}
        for (changed, item_id), body in self._changed.items():
            if changed == kind:
                known.pop(item_id, None)
                known |= {} if body is None else {item_id: (item_id, body, self.now)}
        return [_read_item(known[item_id]) for item_id in sorted(known)][:MAX_LISTED]

    def put(self, kind: str, item_id: str, body: Mapping[str, object]) -> None:
        canonical([kind, item_id])  # names that no database can store are refused here, where only this step fails
        self._check_shown(kind, item_id)
        self._changed[kind, item_id] = canonical(body)

    def delete(self, kind: str, item_id: str) -> None:
        self._check_shown(kind, item_id)
        self._changed[kind, item_id] = None

    def check_unchanged(self) -> None:
        """Raise ToolFailed if an item is not as people saw it. Call it before the step changes any."""
        if self._shown is not None:
            self._shown.check_unchanged(self._digest)

    def _check_shown(self, kind: str, item_id: str) -> None:
        if self._shown is not None and (kind, item_id) not in self._changed:
            self._shown.check_shown(kind, item_id, self._digest)

    def _digest(self, kind: str, item_id: str) -> str | None:
        """The digest of an item as it is stored: the bytes are canonical, and can be large."""
        row = self._read(kind, item_id)
        return None if row is None else digest(bytes(row[1]))

    def _read(self, kind: str, item_id: str) -> Row | None:
        """Return the row of an item as it was before this step."""
        key = (kind, item_id)
        if key not in self._stored:
            found = self._tx.fetch("tool_item", self.workspace, kind, item_id)
            self._stored[key] = found[0] if found else None
        return self._stored[key]


def _read_item(row: Row) -> ToolItem:
    item_id, body, at = row
    return ToolItem(item_id, cast(Mapping[str, object], read_canonical(bytes(body))), at)


BATCH_SIZE = 20  # passages: a decision may have to wait for a batch
ABANDONED_AFTER = 3_600_000  # milliseconds after which the writer of unpublished passages has certainly given up
MAX_STRAYS = 1_000
MAX_PASSAGE = 4_000  # characters of a passage; longer ones are split


class SqlDocuments:
    def __init__(self, database: Database, workspace: str) -> None:
        self._database = database
        self._workspace = workspace

    async def search(self, words: Sequence[str], limit: int) -> Sequence[Passage]:
        if not words:
            return []
        statement, values = self._database.full_text_index.passages(words, self._workspace, limit)
        return [Passage(*row) for row in await self._database.fetch_in_thread(statement, values)]

    async def read(self, path: str, start: int, length: int) -> Excerpt | None:
        found = await self._database.fetch("document", self._workspace, path)
        if not found:
            return None
        rows = await self._database.fetch("passages", self._workspace, path, start - MAX_PASSAGE - 1, start + length)
        text = "".join(words for _, words in rows)
        begin = start - (rows[0][0] if rows else start)
        return Excerpt(text[begin : begin + length], found[0][2])

    async def stamps(self) -> Mapping[str, str]:
        return {row[0]: row[1] for row in await self._database.fetch("documents", self._workspace)}

    async def put(self, path: str, stamp: str, passages: Sequence[str]) -> None:
        """Store a file's passages. If another process stores the same file concurrently, the last row written wins."""
        pieces = [text[at : at + MAX_PASSAGE] for text in passages for at in range(0, len(text), MAX_PASSAGE)]
        starts = list(accumulate(map(len, pieces), initial=0))
        version = f"{self._database.clock():013d}-{secrets.token_hex(8)}"
        rows = [(path, version, start, words) for start, words in zip(starts, pieces, strict=False)]
        for at in range(0, len(rows), BATCH_SIZE):
            await self._write(rows[at : at + BATCH_SIZE])
        replaced = await self._database.write(self._publish_version(path, stamp, version, len(rows), starts[-1]))
        if replaced:
            await self._delete(path, replaced)

    async def drop(self, path: str) -> None:
        def run(tx: Transaction) -> str:
            found = tx.fetch("document", self._workspace, path)
            tx.write("delete_document", self._workspace, path)
            return str(found[0][1]) if found else ""

        version = await self._database.write(BatchItem(run, self._workspace, (("document", self._workspace, path),)))
        await self._delete(path, version)

    async def delete_orphans(self) -> None:
        """Delete passages that were never published, or whose deletion was interrupted."""
        before = f"{self._database.clock() - ABANDONED_AFTER:013d}"
        for path, version in await self._database.fetch("unshown_passages", self._workspace, before, MAX_STRAYS):
            await self._delete(path, version)

    async def _write(self, rows: Sequence[tuple[str, str, int, str]]) -> None:
        def run(tx: Transaction) -> None:
            for row in rows:
                tx.write("insert_passage", self._workspace, *row)

        await self._database.write(BatchItem(run, "", is_short=False))

    def _publish_version(self, path: str, stamp: str, version: str, count: int, length: int) -> BatchItem:
        """Publish a version and return the one replaced; under the workspace's lock, so that the last writer wins."""

        def run(tx: Transaction) -> str:
            if tx.fetch("count_passages", self._workspace, path, version)[0][0] != count:
                return version  # they were deleted as orphans; the next scan stores the file again
            found = tx.fetch("document", self._workspace, path)
            tx.write("write_document", self._workspace, path, stamp, version, length)
            return str(found[0][1]) if found else ""

        document = ("document", self._workspace, path)
        return BatchItem(run, self._workspace, (("count_passages", self._workspace, path, version), document))

    async def _delete(self, path: str, version: str) -> None:
        while found := await self._database.fetch("passages_of", self._workspace, path, version, BATCH_SIZE):
            docs = [row[0] for row in found]
            await self._database.write(BatchItem(lambda tx, docs=docs: _delete_passages(tx, docs), "", is_short=False))  # type: ignore[misc]


def _delete_passages(tx: Transaction, docs: Sequence[int]) -> None:
    for doc in docs:
        tx.write("delete_passage", doc)
