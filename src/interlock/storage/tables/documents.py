"""The Documents port: passages are written lot by lot, and shown once the row of their document names them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from itertools import accumulate

from interlock.core.ports import Excerpt, Passage
from interlock.storage.engine.database import Database
from interlock.storage.engine.transaction import Transaction
from interlock.storage.engine.writer import BatchItem

BATCH_SIZE = 20  # passages: a decision may have to wait until a lot is written
ABANDONED_AFTER = 3_600_000  # milliseconds after which whoever wrote passages that are not shown has certainly given up
MAX_STRAYS = 1_000
MAX_PASSAGE = 4_000  # characters that a passage may have; longer ones are cut in pieces


class SqlDocuments:
    def __init__(self, database: Database, workspace: str) -> None:
        self._database = database
        self._workspace = workspace

    async def search(self, words: Sequence[str], limit: int) -> Sequence[Passage]:
        if not words:
            return []
        statement, values = self._database.finder.passages(words, self._workspace, limit)
        return [Passage(*row) for row in await self._database.fetch_beside(statement, values)]

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
        """Another process may put the same file at the same time: the row that is written last counts."""
        pieces = [text[at : at + MAX_PASSAGE] for text in passages for at in range(0, len(text), MAX_PASSAGE)]
        starts = list(accumulate(map(len, pieces), initial=0))
        version = f"{self._database.clock():013d}-{secrets.token_hex(8)}"
        rows = [(path, version, start, words) for start, words in zip(starts, pieces, strict=False)]
        for at in range(0, len(rows), BATCH_SIZE):
            await self._write(rows[at : at + BATCH_SIZE])
        replaced = await self._database.write(self._shown(path, stamp, version, len(rows), starts[-1]))
        if replaced:
            await self._delete(path, replaced)

    async def drop(self, path: str) -> None:
        def run(tx: Transaction) -> str:
            found = tx.fetch("document", self._workspace, path)
            tx.write("delete_document", self._workspace, path)
            return str(found[0][1]) if found else ""

        version = await self._database.write(BatchItem(run, self._workspace, (("document", self._workspace, path),)))
        await self._delete(path, version)

    async def tidy(self) -> None:
        """Passages that were never shown, or whose deletion was cut short."""
        before = f"{self._database.clock() - ABANDONED_AFTER:013d}"
        for path, version in await self._database.fetch("unshown_passages", self._workspace, before, MAX_STRAYS):
            await self._delete(path, version)

    async def _write(self, rows: Sequence[tuple[str, str, int, str]]) -> None:
        def run(tx: Transaction) -> None:
            for row in rows:
                tx.write("insert_passage", self._workspace, *row)

        await self._database.write(BatchItem(run, "", brief=False))

    def _shown(self, path: str, stamp: str, version: str, count: int, length: int) -> BatchItem:
        """Gives the version that is shown no more. Under the lock of the workspace, so that of two one is the last."""

        def run(tx: Transaction) -> str:
            if tx.fetch("count_passages", self._workspace, path, version)[0][0] != count:
                return version  # somebody took them for stray; the file is put again at the next look
            found = tx.fetch("document", self._workspace, path)
            tx.write("write_document", self._workspace, path, stamp, version, length)
            return str(found[0][1]) if found else ""

        document = ("document", self._workspace, path)
        return BatchItem(run, self._workspace, (("count_passages", self._workspace, path, version), document))

    async def _delete(self, path: str, version: str) -> None:
        while found := await self._database.fetch("passages_of", self._workspace, path, version, BATCH_SIZE):
            docs = [row[0] for row in found]
            await self._database.write(BatchItem(lambda tx, docs=docs: _delete_passages(tx, docs), "", brief=False))  # type: ignore[misc]


def _delete_passages(tx: Transaction, docs: Sequence[int]) -> None:
    for doc in docs:
        tx.write("delete_passage", doc)
