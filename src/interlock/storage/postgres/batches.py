"""Batches on PostgreSQL: locking, set-based writes in one or two round trips, and commits whose answer was lost.

Theory of operation. The lock order is the same everywhere: ledger heads by workspace, then the clock, then rows in the
order of `WRITE_ORDER`. The holder of the heads is the only writer of those ledgers.

- Two round trips: lock the heads, read the clock and the prefetched rows; run the items; write and commit. If a head
  has moved since this process last wrote it, another process was there: the cache is dropped and the rows are read.
- One round trip: while no other process writes, the cache holds all that most batches read. The items run first,
  against the cache; then the lock, the writes and the commit are sent together. The server compares the heads with
  where this process left them, the payloads with what was cached, and its clock with the bounds that the steps
  assumed, the nearest deadline among them. If anything differs it raises, nothing is written, and the batch takes two
  round trips.

A lost connection before the commit is retried. If the commit was sent and not answered, the outcome is in doubt: the
next try locks the heads and looks for the entry that the batch would have written (`_is_committed`), so that the batch
counts exactly once. A batch that moved no ledger is safe to repeat.

What would break it: rows locked before heads (deadlocks), or a cache that survives a rollback or a new connection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, cast

import psycopg

from interlock.core.ledger.chain import Head
from interlock.core.ledger.event import Payload
from interlock.storage.engine.cache import MAX_CACHED_APPROVALS, BatchCache, Interned
from interlock.storage.engine.read_counts import ReadCounter, UnwrittenCounts, write_counts
from interlock.storage.engine.rows import Row
from interlock.storage.engine.transaction import WRITE_NAMES, Transaction
from interlock.storage.engine.writer import BatchItem, ChangedIds, NamedRead, run_item
from interlock.storage.postgres.connection import (
    CONNECTION_ERRORS,
    AdjustableClock,
    PostgresConnection,
    is_connection_lost,
    retry_on_lost_connection,
)
from interlock.storage.postgres.pipeline import (
    BulkWrite,
    ColumnTypes,
    Pipeline,
    PipelineResult,
    array_literal,
    bulk_read,
    bulk_write,
    placeholders,
)

BUSY_ERRORS = (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled)
MAX_CLOCK_LAG = 200  # milliseconds that the clock of this process may be behind: a large batch takes as long

# The clock is read when a row is locked, so the newest reading comes after all locks.
_LOCK = placeholders(
    "with locked as materialized (select workspace, seq, link, at from heads where workspace = any(?::text[]) "
    "order by workspace for update) select workspace, seq, link, at, interlock_now() from locked"
)
_LOCK_IF_UNCHANGED = placeholders(
    "with locked as materialized (select workspace, seq, link from heads where workspace = any(?::text[]) "
    "order by workspace for update), left_at as (select * from unnest(?::text[], ?::bigint[], ?::text[]) "
    "as l(workspace, seq, link)) select case when count(*) = cardinality(?::text[]) "
    "and interlock_now() >= ?::bigint and interlock_now() < ?::bigint then interlock_now() else interlock_stale() end "
    "from locked join left_at using (workspace, seq, link)"
)
_MAKE_HEADS = placeholders(
    "insert into heads (workspace, seq, link, at) select w, 0, ?, 0 from unnest(?::text[]) w on conflict do nothing"
)


@dataclass
class InDoubtCommit:
    """A batch whose commit was sent and not answered; the ledger shows whether it was committed."""

    results: list[object]
    transaction: Transaction


class BatchRunner:
    """Commits batches; used by the writer's thread alone."""

    def __init__(
        self, connection: PostgresConnection, interned: Interned, counts: ReadCounter, clock: AdjustableClock
    ) -> None:
        self.statements: Statements
        self.wrap_pipeline: Callable[[Any], Any] = lambda pipe: pipe
        self._connection = connection
        self._interned = interned
        self._read_counter = counts
        self._clock = clock
        self._cache = BatchCache()
        self._is_sole_writer = False  # no other process wrote to the ledgers of the last batch
        self._pipeline: Pipeline | None = None
        self._in_doubt: InDoubtCommit | None = None

    def commit(self, batch: list[BatchItem], stopping: threading.Event) -> tuple[list[object], ChangedIds]:
        self._in_doubt = None
        once = partial(retry_on_lost_connection, partial(self._transact, batch), self._connection, stopping)
        try:
            return once()
        except psycopg.errors.SerializationFailure:
            return once()  # the cache was stale and is cleared: retry once, from the rows

    def _transact(self, batch: list[BatchItem]) -> tuple[list[object], ChangedIds]:
        """Run a batch. The only lock order: heads, by name; then the clock; then rows, in the order of the writes."""
        pipeline = self._connection.get_pipeline()
        if pipeline is not self._pipeline:  # a server after a fail-over may lack rows that the old one had
            self._pipeline = pipeline
            self._interned.clear()
            self._clear_cache()
        session = BatchSession(self.wrap_pipeline(pipeline), self.statements)
        counts = self._read_counter.drain()
        try:
            done = self._commit_in_one_trip(session, batch, counts) if self._in_doubt is None else None
            return done or self._commit_in_two_trips(session, batch, counts)
        except BaseException as error:
            self._read_counter.restore(counts)
            self._roll_back(session, error)
            raise

    # One round trip

    def _commit_in_one_trip(
        self, session: BatchSession, batch: list[BatchItem], counts: UnwrittenCounts
    ) -> tuple[list[object], ChangedIds] | None:
        """Commit in one round trip, or return None: then nothing was sent, or the server rolled it back."""
        heads = self._cached_heads(batch)
        now = max([self._clock.lower_bound(), *(head.at for head in heads)]) if heads else 0
        if not heads or now > self._clock():  # an entry from the future: left to the two round trips
            return None
        try:
            results, transaction, locked = self._write_optimistically(session, batch, counts, heads, now)
        except Exception as error:
            if isinstance(error, BUSY_ERRORS) or (
                isinstance(error, CONNECTION_ERRORS) and is_connection_lost(error, self._connection)
            ):
                raise
            self._clear_cache()
            session.rollback()
            return None
        self._clock.set(int(locked.rows()[0][0]))
        return results, transaction.after_commit()

    def _write_optimistically(
        self, session: BatchSession, batch: list[BatchItem], counts: UnwrittenCounts, heads: list[Head], now: int
    ) -> tuple[list[object], Transaction, PipelineResult]:
        cached_session = CachedSession(self._cache)
        transaction = Transaction(cached_session, now, self._interned, self._cache)
        results = [run_item(item, transaction) for item in batch]
        write_counts(counts, transaction)
        before = self._next_deadline(batch, now, now + MAX_CLOCK_LAG)
        session.begin(self._connection)
        names, seqs, links = (array_literal(column) for column in zip(*(head[:3] for head in heads), strict=True))
        locked = session.send(_LOCK_IF_UNCHANGED, (names, names, seqs, links, names, now, before))
        cached_session.check(session)
        cached_session.session = session
        transaction.flush()
        self._finish(session, results, transaction)
        return results, transaction, locked

    def _cached_heads(self, batch: list[BatchItem]) -> list[Head]:
        """Return the cached heads of a batch's ledgers, if everything that the batch looks up is cached."""
        cache = self._cache
        if not self._is_sole_writer or not all(map(self._is_cached, _distinct_reads(batch))):
            return []
        workspaces = sorted({item.workspace for item in batch if item.workspace})
        heads = [cache.heads[workspace] for workspace in workspaces if workspace in cache.heads]
        return heads if len(heads) == len(workspaces) else []

    def _is_cached(self, read: NamedRead) -> bool:
        name, key = read[0], read[1:]
        if name == "approval":
            return key in self._cache.approvals
        if name == "freezes":
            return key[0] in self._cache.freezes
        if name == "policy_revision":
            return key[0] in self._cache.policy_revisions
        if name == "user":
            return key in self._cache.users
        return name == "stored" and key in self._cache.approvals and key in self._cache.payloads

    def _next_deadline(self, batch: list[BatchItem], now: int, latest: int) -> int:
        """Return the time after `now` from which on a step would have had another result, at most `latest`."""
        for read in _distinct_reads(batch):
            if read[0] in ("freezes", "policy_revision", "user"):
                continue
            approval = self._cache.approvals[read[1], read[2]]
            expires_at, release_at, start_by, *_ = approval.deadlines
            for deadline in (expires_at, start_by, approval.lease.until, release_at):
                if deadline is not None and now < deadline < latest:
                    latest = deadline
        return latest

    # Two round trips

    def _commit_in_two_trips(
        self, session: BatchSession, batch: list[BatchItem], counts: UnwrittenCounts
    ) -> tuple[list[object], ChangedIds]:
        workspaces = sorted({item.workspace for item in batch if item.workspace})
        now = self._lock(session, workspaces, _distinct_reads(batch))
        if self._in_doubt is not None and self._is_committed(session, self._in_doubt):
            session.rollback()
            return self._in_doubt.results, self._in_doubt.transaction.after_commit()
        transaction = Transaction(session, now, self._interned, self._cache)
        results = [run_item(item, transaction) for item in batch]
        write_counts(counts, transaction)
        transaction.flush()
        self._finish(session, results, transaction)
        return results, transaction.after_commit()

    def _lock(self, session: BatchSession, workspaces: list[str], reads: list[NamedRead]) -> int:
        """Lock the workspaces and return the time of the last lock; from then on no other process changes them."""
        while True:
            session.begin(self._connection)
            response = session.send(_LOCK, (array_literal(workspaces),))
            lookups = session.send_lookups(self._uncached_reads(reads))
            session.sync()
            locked = response.rows()
            if len(locked) == len(workspaces):
                break
            session.rollback()  # a new ledger has no row to lock: make one, before anything is locked
            session.query(_MAKE_HEADS, (Head("").link, array_literal(workspaces)))
        session.keep_results(lookups)
        self._check_heads(session, [Head(*row[:4]) for row in locked], reads)
        now = max((int(row[4]) for row in locked), default=self._clock())
        self._clock.set(now)
        return now

    def _uncached_reads(self, reads: list[NamedRead]) -> list[NamedRead]:
        """Return the reads that the cache cannot answer. Payloads are always read: they are what is executed."""
        known = self._cache.approvals
        wanted = []
        for read in reads:
            if read[0] == "freezes" and read[1] in self._cache.freezes:
                continue
            if read[0] == "policy_revision" and read[1] in self._cache.policy_revisions:
                continue
            if read[0] == "user" and read[1:] in self._cache.users:
                continue
            if read[0] not in ("approval", "stored") or read[1:] not in known:
                wanted.append(read)
            elif read[0] == "stored":
                wanted.append(("payload", *read[1:]))
        return wanted

    def _check_heads(self, session: BatchSession, heads: list[Head], reads: list[NamedRead]) -> None:
        """Compare the heads with the cache: if another process wrote to a ledger, the cache may be stale."""
        cache = self._cache
        self._is_sole_writer = all(cache.heads.get(head.workspace, head) == head for head in heads)
        if not self._is_sole_writer:
            unkeyed = ("freezes", "policy_revision")
            missing = [read for read in reads if read[0] in unkeyed or read[1:] in cache.approvals]
            missing += [read for read in reads if read[0] == "user" and read[1:] in cache.users]
            cache.clear()
            lookups = session.send_lookups(missing)
            session.sync()
            session.keep_results(lookups)
        elif len(cache.approvals) > MAX_CACHED_APPROVALS:
            cache.clear()
        cache.heads.update((head.workspace, head) for head in heads)

    # The end of a batch

    def _finish(self, session: BatchSession, results: list[object], transaction: Transaction) -> None:
        session.send("commit")
        self._in_doubt = InDoubtCommit(results, transaction)
        session.sync()
        self._in_doubt = None

    def _is_committed(self, session: BatchSession, in_doubt: InDoubtCommit) -> bool:
        """Return whether an in-doubt commit succeeded; it has ended, since the heads are locked."""
        for head in in_doubt.transaction.changed_heads():
            found = session.fetch("link", head.workspace, head.seq)
            return bool(found) and found[0][0] == head.link
        return False  # it changed no ledger, so it can be repeated safely

    def _roll_back(self, session: BatchSession, error: BaseException) -> None:
        self._clear_cache()
        if not (isinstance(error, CONNECTION_ERRORS) and is_connection_lost(error, self._connection)):
            self._in_doubt = None  # the server refused: nothing was committed
            try:
                session.rollback()
            except psycopg.Error:
                self._connection.close()

    def _clear_cache(self) -> None:
        self._cache.clear()
        self._is_sole_writer = False


def _distinct_reads(batch: list[BatchItem]) -> list[NamedRead]:
    """Return the look-ups of a batch without duplicates; most items look up the freezes."""
    return list(dict.fromkeys(chain.from_iterable([item.prefetch for item in batch])))


_CHECK_PAYLOADS = placeholders(
    "with found as (select from unnest(?::text[], ?::text[], ?::bytea[], ?::bytea[], ?::text[]) "
    "as k(workspace, id, args, shown, preview_version) "
    "join payloads p on p.workspace = k.workspace and p.id = k.id "
    "and p.args is not distinct from k.args and p.shown is not distinct from k.shown "
    "and p.preview_version is not distinct from k.preview_version) "
    "select case when count(*) = ?::bigint then 0 else interlock_stale() end from found"
)
_BEGIN = "begin isolation level read committed"


class Statements:
    """The named statements in all forms that a batch needs, prepared once."""

    def __init__(self, queries: Mapping[str, str], types: ColumnTypes) -> None:
        self.queries = queries
        self.single = {name: placeholders(text) for name, text in queries.items()}
        self.bulk_reads = {
            name: bulk_read(text) for name, text in queries.items() if "?" in text and "values" not in text
        }
        self.bulk_writes: dict[str, BulkWrite] = {name: bulk_write(queries[name], types) for name in WRITE_NAMES}


SentLookups = tuple[str, list[tuple[str, ...]], PipelineResult]


class BatchSession:
    """One batch on a connection. `sync` waits for what was sent; `fetch` uses a prefetched result, or queries."""

    def __init__(self, pipeline: Pipeline, statements: Statements) -> None:
        self._pipeline = pipeline
        self._statements = statements
        self._results: dict[tuple[object, ...], list[Row]] = {}

    def begin(self, connection: PostgresConnection) -> None:
        self._results.clear()
        self.send(_BEGIN)
        if connection.is_pooled:
            connection.send_settings(self._pipeline)

    def rollback(self) -> None:
        self._pipeline.discard()
        self.query("rollback")

    def send(self, text: str, values: Sequence[object] = ()) -> PipelineResult:
        return self._pipeline.send(text, values)

    def sync(self) -> None:
        self._pipeline.sync()

    def query(self, text: str, values: Sequence[object] = ()) -> list[Row]:
        response = self.send(text, values)
        self.sync()
        return response.rows()

    def send_lookups(self, reads: Sequence[tuple[str, ...]]) -> list[SentLookups]:
        """Send the look-ups of a whole batch, one statement for each query."""
        by_name: dict[str, dict[tuple[str, ...], None]] = {}
        for name, *values in reads:
            by_name.setdefault(name, {})[tuple(values)] = None
        return [self._send_lookup(name, list(keys)) for name, keys in by_name.items()]

    def keep_results(self, lookups: Sequence[SentLookups]) -> None:
        """Keep the results of `send_lookups`, after `sync`."""
        for name, keys, response in lookups:
            found = response.rows()
            if len(keys) == 1:
                self._results[name, *keys[0]] = found
                continue
            for key in keys:
                self._results[name, *key] = []
            for number, *row in found:
                self._results[name, *keys[number - 1]].append(row)

    def fetch(self, name: str, *values: object) -> list[Row]:
        found = self._results.get((name, *values))
        return self.query(self._statements.single[name], values) if found is None else found

    def write(self, name: str, values: Sequence[tuple[object, ...]]) -> int:
        """Send writes. The database itself rejects a lost compare-and-set, so the row count is not waited for."""
        statement = self._statements.bulk_writes[name]
        sent = [row[:-1] for row in values] if statement.is_compare_and_set else values
        for rows in statement.rounds(sent):
            if len(rows) == 1:
                self.send(statement.single, rows[0])
            else:
                self.send(statement.text, [array_literal(column) for column in zip(*rows, strict=True)])
        return len(values)

    def _send_lookup(self, name: str, keys: list[tuple[str, ...]]) -> SentLookups:
        if len(keys) == 1:
            return name, keys, self.send(self._statements.single[name], keys[0])
        columns = [array_literal(column) for column in zip(*keys, strict=True)]
        return name, keys, self.send(self._statements.bulk_reads[name], columns)


class CacheMiss(Exception):
    """A step looked up something that is not cached."""


class CachedSession:
    """A session that answers from the cache before anything is sent, and has the server check that later."""

    def __init__(self, cache: BatchCache) -> None:
        self._cache = cache
        self._assumed: dict[tuple[str, str], Payload] = {}
        self.session: BatchSession

    def fetch(self, name: str, *values: object) -> list[Row]:
        key = cast(tuple[str, str], values)
        if name != "payload" or key not in self._cache.payloads:
            raise CacheMiss(name)
        payload = self._assumed[key] = self._cache.payloads[key]
        return [payload]

    def check(self, session: BatchSession) -> None:
        """Have the server check that the cached payloads are the stored ones: only what is stored may be executed."""
        if self._assumed:
            kept = self._assumed.items()
            rows = ((*key, each.args, each.shown, each.preview_version) for key, each in kept)
            columns = zip(*rows, strict=True)
            session.send(_CHECK_PAYLOADS, (*map(array_literal, columns), len(self._assumed)))

    def write(self, name: str, values: Sequence[tuple[object, ...]]) -> int:
        return self.session.write(name, values)
