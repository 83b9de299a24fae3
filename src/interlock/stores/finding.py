"""What a database is asked for documents by their words, and SQLite's way; what all are asked is in `searching.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from interlock.core.search import Wanted
from interlock.stores.rows import Row
from interlock.stores.transaction import Transaction
from interlock.stores.writer import Work

Sql = tuple[str, list[object]]
MARK = "search"
WALK = (500, 16_384)
PURGED = 256  # pages of the index that are merged when the mark `purge` moves


@dataclass(frozen=True, slots=True)
class Span:
    """The documents of a workspace between two numbers, both excluded."""

    workspace: str
    above: int = -1
    below: int = 2**62


@dataclass(frozen=True, slots=True)
class Lot:
    """Pairs of id and words, and the mark that says so: it moves from `old` to `new`, or nothing is written."""

    workspace: str
    old: int
    new: int
    added: Sequence[tuple[str, str]] = ()
    changed: Sequence[tuple[str, str]] = ()


class Place(Protocol):
    """As much of a database as searching takes."""

    async def fetch(self, name: str, *values: object) -> list[Row]: ...
    async def fetch_text(self, statement: str, values: Any) -> list[Row]: ...
    async def write(self, work: Work) -> Any: ...


class Finder(Protocol):
    def walk(self, wanted: Wanted) -> tuple[int, int]:
        """How many of the newest documents are looked at one by one before the index is asked: first, and at most."""

    def has(self, wanted: Wanted) -> Sql:
        """A condition on a row `d` of docs."""

    def newest(self, wanted: Wanted, span: Span, limit: int) -> Sql:
        """The numbers and ids of documents by the index, the newest first."""

    def some(self, wanted: Wanted, workspace: str, limit: int) -> Sql:
        """The ids of documents by the index, in any order."""

    async def keep(self, place: Place, lot: Lot) -> bool:
        """False if the mark stands elsewhere: then nothing was written."""

    def passages(self, words: Sequence[str], workspace: str, limit: int) -> Sql:
        """Path, start and text of passages of documents that have one of the words, the best first."""

    async def purge(self, place: Place) -> None:
        """Makes the index give up the words that documents no longer have."""


class Fts5:
    """SQLite. Whole words come newest first, however many there are; the beginning of a word takes all of its words."""

    def walk(self, wanted: Wanted) -> tuple[int, int]:
        return WALK if wanted.beginning else (0, 0)

    def has(self, wanted: Wanted) -> Sql:
        patterns = [f"% {word} %" for word in wanted.words]
        patterns += [f"% {wanted.beginning}%"] if wanted.beginning else []
        conditions = [_LIKE] * len(patterns)
        if wanted.either:
            conditions.append(f"({' or '.join([_LIKE] * len(wanted.either))})")
        return " and ".join(conditions), [*patterns, *(f"% {word} %" for word in wanted.either)]

    def newest(self, wanted: Wanted, span: Span, limit: int) -> Sql:
        text = (
            "select d.doc, d.id from found cross join docs d "  # noqa: S608  a whole number
            "where found match ? and found.rowid > ? and found.rowid < ? and d.doc = found.rowid and d.workspace = ? "
            f"order by found.rowid desc limit {limit:d}"
        )
        return text, [self._expression(wanted), span.above, span.below, span.workspace]

    def some(self, wanted: Wanted, workspace: str, limit: int) -> Sql:
        text = (
            "select d.id from found cross join docs d "  # noqa: S608  a whole number
            f"where found match ? and d.doc = found.rowid and d.workspace = ? limit {limit:d}"
        )
        return text, [self._expression(wanted), workspace]

    async def keep(self, place: Place, lot: Lot) -> bool:
        """By the writer, as every change."""

        def run(tx: Transaction) -> bool:
            found = tx.fetch("mark", lot.workspace, MARK)
            if (found[0][0] if found else 0) != lot.old:
                return False
            for approval_id, words in lot.added:
                tx.write("insert_doc", lot.workspace, approval_id, words)
            for approval_id, words in lot.changed:
                tx.write("change_doc", words, lot.workspace, approval_id)
            tx.write("write_mark", lot.workspace, MARK, lot.new)
            return True

        return bool(await place.write(Work(run, lot.workspace, brief=False)))

    def passages(self, words: Sequence[str], workspace: str, limit: int) -> Sql:
        """A word in the path counts double."""
        text = (
            "select p.path, p.start, p.words from passages_found f "  # noqa: S608  a whole number
            "join passages p on p.doc = f.rowid "
            "join documents d on d.workspace = p.workspace and d.path = p.path and d.version = p.version "
            "where passages_found match ? and p.workspace = ? "
            f"order by bm25(passages_found, 2.0, 1.0), p.doc limit {limit:d}"
        )
        return text, [" OR ".join([f'"{word}"' for word in words]), workspace]

    async def purge(self, place: Place) -> None:
        """A part of the index after the other, so that a decision waits for one of them only."""
        pages = (await place.fetch_text("select count(*) from found_data", ()))[0][0]
        for number in range(pages // PURGED + 3):
            await place.write(Work(partial(_purge, number), "", brief=False))

    def _expression(self, wanted: Wanted) -> str:
        """No word holds a quotation mark, so nothing that people type is taken for an operator."""
        parts = [f'"{word}"' for word in wanted.words]
        if wanted.either:
            parts.append("(" + " OR ".join([f'"{word}"' for word in wanted.either]) + ")")
        if wanted.beginning:
            parts.append(f'"{wanted.beginning}" *')
        return " AND ".join(parts)


def _purge(number: int, tx: Transaction) -> None:
    tx.write("write_mark", "", "purge", number)  # a trigger does the rest


_LIKE = "' ' || d.words || ' ' like ?"
