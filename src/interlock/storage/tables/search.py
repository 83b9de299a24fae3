"""Full-text search of approvals: search documents are built from the ledger, and found by their words.

Documents are built outside of the transactions that change approvals, so indexing adds nothing to the cost of a change.
A mark is the number of the last event of a workspace that is indexed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from interlock.core.errors import Error, StoreUnavailable
from interlock.core.ledger.event import Payload, Stored
from interlock.core.policy.policy import Ask
from interlock.core.ports import ApprovalPage, ApprovalQuery
from interlock.core.search import SearchTerms, make_search_terms, matches_query, search_document
from interlock.storage.engine import rows
from interlock.storage.engine.queries import (
    Sql,
    clamp_limit,
    make_cursor,
    page_query,
    read_search_cursor,
    scan_end_query,
    scan_pending_query,
    sort_pending_query,
)
from interlock.storage.engine.rows import Row
from interlock.storage.engine.transaction import Transaction
from interlock.storage.engine.writer import BatchItem

EVENTS_PER_BATCH = 500  # read for one batch
BATCH_SIZE = 100  # approvals: a decision may have to wait for a batch
YIELD_EVERY = 10  # approvals, about a millisecond
BATCHES_PER_SWEEP = 10  # batches, so a thousand approvals a second: more would slow down decisions
BATCHES_PER_SEARCH = 10  # batches
MAX_SCANNED_PENDING = 500  # pending approvals scanned one by one, in the order of time left
MAX_SORTED_MATCHES = 1_000  # matches that can be sorted in another order than that of the index

ReadStored = Callable[[Sequence[Row]], Awaitable[Sequence[Stored]]]


class ApprovalSearch:
    """Search over a full-text index; `read` converts rows to approvals."""

    def __init__(self, database: SearchDatabase, full_text_index: FullTextIndex, read: ReadStored) -> None:
        self._database = database
        self._full_text_index = full_text_index
        self._read = read

    async def index(self, before: int | None = None) -> bool:
        """Index some batches of each workspace that is behind, the furthest first; return True if there is more."""
        behind = [row[0] for row in await self._database.fetch("unindexed", BATCHES_PER_SWEEP)]
        for _ in range(BATCHES_PER_SWEEP // max(len(behind), 1)):
            behind = [workspace for workspace in behind if await self._index_next_batch(workspace, before)]
        return bool(behind)

    async def catch_up(self, workspace: str, max_batches: int | None = None) -> bool:
        """Index up to `max_batches`, or all; return True if the index is still behind the ledger."""
        while max_batches is None or max_batches > 0:
            if not await self._index_next_batch(workspace):
                return False
            max_batches = None if max_batches is None else max_batches - 1
        return True

    async def purge(self) -> None:
        """Purge erased words from the index's own storage."""
        await self._full_text_index.purge(self._database)

    async def page(self, workspace: str, query: ApprovalQuery) -> ApprovalPage:
        terms = make_search_terms(workspace, query)
        behind = await self._is_behind(workspace)
        if query.statuses == ("pending",) and not query.owners:  # a cursor must not hold the id of another owner's call
            page = await self._most_urgent(workspace, query, terms)
        else:
            page = await self._newest(workspace, query, terms)
        kept = tuple(_drop_arguments(stored, query) for stored in page.items if matches_query(stored, query))
        return ApprovalPage(kept, page.next, behind)

    async def _is_behind(self, workspace: str) -> bool:
        try:
            return await self.catch_up(workspace, BATCHES_PER_SEARCH)
        except Error:  # if nothing can be written, the index still finds older documents
            return True

    # Search

    async def _newest(self, workspace: str, query: ApprovalQuery, terms: SearchTerms) -> ApprovalPage:
        span, limit = await self._span(workspace, query), clamp_limit(query)
        scan_limit, max_scan_limit = self._full_text_index.scan_limits(terms)
        found: list[Row] = []
        for _ in range(2):
            if 0 < scan_limit <= max_scan_limit:
                source = self._scan_query(terms, span, scan_limit, limit)
                found = await self._fetch(page_query(source, workspace, _payload_columns(query)))
                scan_limit = _next_scan_limit(scan_limit, len(found), limit)
        if len(found) <= limit:
            source = self._full_text_index.newest(terms, span, limit + 1)
            found = await self._fetch(page_query(source, workspace, _payload_columns(query)))
        items = await self._read([row[:-1] for row in found[:limit]])
        return ApprovalPage(tuple(items), make_cursor(found[limit - 1][-1]) if len(found) > limit else None)

    async def _most_urgent(self, workspace: str, query: ApprovalQuery, terms: SearchTerms) -> ApprovalPage:
        """Scan those with the least time left; if they do not fill the page, search all matches."""
        condition = self._full_text_index.match_condition(terms)
        found = await self._fetch(
            scan_pending_query(condition, workspace, query, MAX_SCANNED_PENDING, _payload_columns(query))
        )
        if len(found) > clamp_limit(query):
            return await self._urgent_page(found, query)
        end = await self._fetch(scan_end_query(workspace, query, MAX_SCANNED_PENDING))
        if not end:
            return await self._urgent_page(found, query)
        text, values = self._full_text_index.any_matching(terms, workspace, MAX_SORTED_MATCHES + 1)
        count = (await self._fetch((f"select count(*) from ({text}) found", values)))[0][0]  # noqa: S608  ours
        if count > MAX_SORTED_MATCHES:
            return replace(await self._urgent_page(found, query), next=make_cursor(*end[0]))
        source = self._full_text_index.any_matching(terms, workspace, MAX_SORTED_MATCHES)
        return await self._urgent_page(
            await self._fetch(sort_pending_query(source, workspace, query, _payload_columns(query))), query
        )

    async def _urgent_page(self, found: list[Row], query: ApprovalQuery) -> ApprovalPage:
        limit = clamp_limit(query)
        items = tuple(await self._read(found[:limit]))
        last = items[-1].approval if len(found) > limit else None
        return ApprovalPage(items, None if last is None else make_cursor(last.deadlines.expires_at, last.id))

    def _scan_query(self, terms: SearchTerms, span: DocumentRange, scan_limit: int, limit: int) -> Sql:
        has, values = self._full_text_index.match_condition(terms)
        text = (
            "select d.doc, d.id from ("  # noqa: S608  our own words, and whole numbers
            f"select * from docs where doc > ? and doc < ? order by doc desc limit {scan_limit:d}"
            f") d where d.workspace = ? and {has} order by d.doc desc limit {limit + 1:d}"
        )
        return text, [span.above, span.below, span.workspace, *values]

    async def _span(self, workspace: str, query: ApprovalQuery) -> DocumentRange:
        """Return the range of document numbers: they follow the order of creation, so times map to numbers."""
        span = DocumentRange(workspace)
        if query.since:
            found = await self._database.fetch("last_search_document_before", workspace, query.since)
            span = replace(span, above=found[0][0]) if found else span
        if query.until is not None:
            found = await self._database.fetch("first_search_document_from", workspace, query.until)
            span = replace(span, below=found[0][0]) if found else span
        if query.cursor:
            span = replace(span, below=min(span.below, read_search_cursor(query.cursor)))
        return span

    async def _fetch(self, sql: Sql) -> list[Row]:
        return await self._database.fetch_text(*sql)

    # Indexing from the ledger

    async def _index_next_batch(self, workspace: str, before: int | None = None) -> bool:
        """Index the next batch; return True if there may be more. Another process may write it first."""
        found = await self._database.fetch("search_offset", workspace)
        head, mark = found[0] if found else (0, 0)
        if mark >= head:
            return False
        order: dict[str, None] = {}
        end = mark
        for seq, approval_id, at in await self._database.fetch("events_behind", workspace, mark, EVENTS_PER_BATCH):
            if (len(order) == BATCH_SIZE and approval_id not in order) or (before is not None and at > before):
                break
            order.update({approval_id: None} if approval_id else {})
            end = seq
        if end == mark:
            return False
        made = await self._make_documents(await self._database.fetch("to_index", workspace, mark, end))
        known = [(approval_id, *made[approval_id]) for approval_id in order if approval_id in made]
        added = [(approval_id, words) for approval_id, old, words in known if old is None]
        changed = [(approval_id, words) for approval_id, old, words in known if old not in (None, words)]
        await self._full_text_index.write_batch(self._database, IndexBatch(workspace, mark, end, added, changed))
        return True

    async def _make_documents(self, found: Sequence[Row]) -> dict[str, tuple[str | None, str]]:
        """Return the words of each document, as stored and as they should be; yields to the event loop."""
        made = {}
        for number, row in enumerate(found, 1):
            made[row[1]] = (row[-1], await self._document_text(row[:-1]))
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        return made

    async def _document_text(self, row: Row) -> str:
        try:
            return search_document(await self._read_one(row))
        except ValueError:  # its row is damaged, which `audit verify` reports; the others can still be searched
            return ""

    async def _read_one(self, row: Row) -> Stored:
        """Read an approval; if its terms are missing or altered, without them."""
        try:
            return (await self._read([row]))[0]
        except StoreUnavailable:
            return Stored(
                rows.read_approval(row, lambda _: Ask()), rows.read_payload(row[rows.APPROVAL_COLUMN_COUNT :])
            )


def _next_scan_limit(walked: int, found: int, limit: int) -> int:
    """Estimate how far to scan for a full page; 0 if the page is full, or too few were found to estimate."""
    if not 1 < found <= limit:
        return 0
    needed = walked * (limit + 1) * 5 // (found * 4)
    return int(1 << needed.bit_length())  # few different numbers, so that databases have the statement prepared


def _payload_columns(query: ApprovalQuery) -> str:
    return "whole" if query.arguments else query.payload


def _drop_arguments(stored: Stored, query: ApprovalQuery) -> Stored:
    """Drop arguments that were only read for the comparison."""
    if _payload_columns(query) == query.payload:
        return stored
    return stored._replace(payload=Payload(sentence=stored.payload.sentence))


CONSUMER = "search"
SCAN_LIMITS = (500, 16_384)
PURGE_PAGES = 256  # index pages merged when the mark `purge` moves


@dataclass(frozen=True, slots=True)
class DocumentRange:
    """The documents of a workspace between two numbers, both excluded."""

    workspace: str
    above: int = -1
    below: int = 2**62


@dataclass(frozen=True, slots=True)
class IndexBatch:
    """Documents to write, as pairs of id and words; the mark moves from `old` to `new`, or nothing is written."""

    workspace: str
    old: int
    new: int
    added: Sequence[tuple[str, str]] = ()
    changed: Sequence[tuple[str, str]] = ()


class SearchDatabase(Protocol):
    """The part of a database that search needs."""

    async def fetch(self, name: str, *values: object) -> list[Row]: ...
    async def fetch_text(self, statement: str, values: Any) -> list[Row]: ...
    async def write(self, item: BatchItem) -> Any: ...


class FullTextIndex(Protocol):
    def scan_limits(self, terms: SearchTerms) -> tuple[int, int]:
        """Return how many of the newest documents to scan before using the index: at first, and at most."""

    def match_condition(self, terms: SearchTerms) -> Sql:
        """Return a condition on a row `d` of docs."""

    def newest(self, terms: SearchTerms, span: DocumentRange, limit: int) -> Sql:
        """Query the index for the numbers and ids of documents, the newest first."""

    def any_matching(self, terms: SearchTerms, workspace: str, limit: int) -> Sql:
        """Query the index for the ids of documents, in any order."""

    async def write_batch(self, database: SearchDatabase, batch: IndexBatch) -> bool:
        """Write a batch; return False, with nothing written, if the mark has moved."""

    def passages(self, words: Sequence[str], workspace: str, limit: int) -> Sql:
        """Query path, start and text of document passages that contain any of the words, the best first."""

    async def purge(self, database: SearchDatabase) -> None:
        """Purge words from the index that documents no longer have."""


class Fts5Index:
    """Full-text index of SQLite. Whole words come newest first, at any number; a prefix reads all its words."""

    def scan_limits(self, terms: SearchTerms) -> tuple[int, int]:
        return SCAN_LIMITS if terms.prefix else (0, 0)

    def match_condition(self, terms: SearchTerms) -> Sql:
        patterns = [f"% {word} %" for word in terms.words]
        patterns += [f"% {terms.prefix}%"] if terms.prefix else []
        conditions = [_LIKE] * len(patterns)
        conditions += [f"({' or '.join([_LIKE] * len(group))})" for group in terms.any_of]
        return " and ".join(conditions), [*patterns, *(f"% {word} %" for group in terms.any_of for word in group)]

    def newest(self, terms: SearchTerms, span: DocumentRange, limit: int) -> Sql:
        text = (
            "select d.doc, d.id from found cross join docs d "  # noqa: S608  a whole number
            "where found match ? and found.rowid > ? and found.rowid < ? and d.doc = found.rowid and d.workspace = ? "
            f"order by found.rowid desc limit {limit:d}"
        )
        return text, [self._expression(terms), span.above, span.below, span.workspace]

    def any_matching(self, terms: SearchTerms, workspace: str, limit: int) -> Sql:
        text = (
            "select d.id from found cross join docs d "  # noqa: S608  a whole number
            f"where found match ? and d.doc = found.rowid and d.workspace = ? limit {limit:d}"
        )
        return text, [self._expression(terms), workspace]

    async def write_batch(self, database: SearchDatabase, batch: IndexBatch) -> bool:
        """Write a batch through the writer, like every change."""

        def run(tx: Transaction) -> bool:
            found = tx.fetch("consumer_offset", batch.workspace, CONSUMER)
            if (found[0][0] if found else 0) != batch.old:
                return False
            for approval_id, words in batch.added:
                tx.write("insert_search_document", batch.workspace, approval_id, words)
            for approval_id, words in batch.changed:
                tx.write("update_search_document", words, batch.workspace, approval_id)
            tx.write("write_consumer_offset", batch.workspace, CONSUMER, batch.new)
            return True

        return bool(await database.write(BatchItem(run, batch.workspace, is_short=False)))

    def passages(self, words: Sequence[str], workspace: str, limit: int) -> Sql:
        """Query passages; a word in the path counts double."""
        text = (
            "select p.path, p.start, p.words from passages_found f "  # noqa: S608  a whole number
            "join passages p on p.doc = f.rowid "
            "join documents d on d.workspace = p.workspace and d.path = p.path and d.version = p.version "
            "where passages_found match ? and p.workspace = ? "
            f"order by bm25(passages_found, 2.0, 1.0), p.doc limit {limit:d}"
        )
        return text, [" OR ".join([f'"{word}"' for word in words]), workspace]

    async def purge(self, database: SearchDatabase) -> None:
        """Purge one part of the index after the other, so that a decision waits for only one of them."""
        pages = (await database.fetch_text("select count(*) from found_data", ()))[0][0]
        for number in range(pages // PURGE_PAGES + 3):
            await database.write(BatchItem(partial(_purge_step, number), "", is_short=False))

    def _expression(self, terms: SearchTerms) -> str:
        """Build an FTS5 query. No word contains a quotation mark, so no input is taken for an operator."""
        parts = [f'"{word}"' for word in terms.words]
        parts += ["(" + " OR ".join([f'"{word}"' for word in group]) + ")" for group in terms.any_of]
        if terms.prefix:
            parts.append(f'"{terms.prefix}" *')
        return " AND ".join(parts)


def _purge_step(number: int, tx: Transaction) -> None:
    tx.write("write_consumer_offset", "", "purge", number)  # a trigger does the rest


_LIKE = "' ' || d.words || ' ' like ?"
