"""PostgreSQL: connections, threads and reads; one writer thread for each process runs the batches of `batches.py`.

It is long because LISTEN and NOTIFY between processes stand below: a coalesced hint that something changed, with slow
polling as a fallback.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import select
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import psycopg
from psycopg import Connection

from interlock.core.errors import Error, Misconfigured, StoreUnavailable
from interlock.core.ledger.invariants import Violation
from interlock.core.ports import Clock
from interlock.core.search import SearchTerms
from interlock.storage.engine.cache import Interned
from interlock.storage.engine.database import ChangeReader, WatchRegistry
from interlock.storage.engine.metrics import CheckResult, WriterStats
from interlock.storage.engine.queries import Sql, load_queries
from interlock.storage.engine.read_counts import FLUSH_INTERVAL, ReadCounter
from interlock.storage.engine.rows import Row
from interlock.storage.engine.writer import EMPTY_ITEM, BatchItem, ChangedIds, Outage, Writer
from interlock.storage.migrate import Migration, find_postgres_violations, load_migrations, missing_migrations
from interlock.storage.postgres.batches import BatchRunner, Statements
from interlock.storage.postgres.connection import (
    AdjustableClock,
    InjectedClock,
    PostgresConnection,
    ReadPool,
    ServerClock,
    complete_conninfo,
    is_outage,
    retry_on_lost_connection,
    to_store_error,
    translate_errors,
)
from interlock.storage.postgres.pipeline import ColumnTypes, array_literal, placeholders
from interlock.storage.tables.search import CONSUMER, DocumentRange, FullTextIndex, IndexBatch, SearchDatabase

WRITER_SETTINGS = {
    "lock_timeout": "10s",
    "statement_timeout": "20s",
    "idle_in_transaction_session_timeout": "5s",  # a suspended process loses the head's lock before others time out
    "transaction_timeout": "15s",  # also one suspended while it sent a batch, which is not idle for the server
    "synchronous_commit": "on",  # what was acknowledged is on disk
    "plan_cache_mode": "force_generic_plan",  # every statement is a look-up by key; statistics change nothing
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}
READER_SETTINGS = {
    "statement_timeout": "5s",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "jit": "off",
}
SLOW_READER_SETTINGS = {
    "statement_timeout": "60s",
    "synchronous_commit": "off",  # hints and claims may be lost; nothing else is written there
    "plan_cache_mode": "force_custom_plan",  # the best plan depends on the values
    "jit": "off",
}
FAST_QUERIES = frozenset(  # look-ups by key; other queries may be slow, and must not delay these
    {"approval", "approval_by_call", "head", "changed_since", "grant", "link", "next_due", "open_runs", "payload"}
    | {"pending_of_owner", "policy", "run", "spec", "stored", "status_counts", "terms", "users", "workspace_key"}
    | {
        "key",
        "link_by_digest",
        "password",
        "session",
        "thread",
        "thread_entries",
        "draft",
        "due_threads",
        "next_due_thread",
    }
)
MAX_FAST_BATCH = 64
SLOW_CONNECTIONS = 3
CLAIM_LEASE = 2_000  # milliseconds that a worker has for a claimed approval; then it is due again

# The clock is read once, in a subquery: compared row by row, no index could be used, and all rows would be read.
_CLAIM = placeholders(
    "with due as (select workspace, id from approvals where due_at <= (select interlock_now()) order by due_at limit ? "
    "for update skip locked) update approvals a set due_at = interlock_now() + ? from due d "
    "where a.workspace = d.workspace and a.id = d.id returning a.workspace, a.id"
)


class PostgresDatabase:
    def __init__(self, url: str, clock: Clock | None = None) -> None:
        info = psycopg.conninfo.conninfo_to_dict(complete_conninfo(url))
        self.name = f"{info.get('dbname') or info.get('user') or 'postgres'} on {info.get('host') or 'localhost'}"
        self.interned = Interned()
        self.full_text_index: FullTextIndex = TsvectorIndex()
        self.watch_registry = WatchRegistry()
        self._server_clock: AdjustableClock = InjectedClock(clock) if clock else ServerClock()
        self.clock: Clock = self._server_clock
        self._url = url
        self._queries = load_queries()
        self._texts = {name: placeholders(text) for name, text in self._queries.items()}
        self._read_counter = ReadCounter(self.clock)
        self.count_read = self._read_counter.count
        self.note_tool = self._read_counter.note
        self._writer_connection = PostgresConnection(url, WRITER_SETTINGS)
        self._batches = BatchRunner(self._writer_connection, self.interned, self._read_counter, self._server_clock)
        self.writer_stats = WriterStats()
        self._stopping = threading.Event()
        self._opened = False

    # Opening and closing

    async def open(self) -> None:
        if not self._opened:
            try:
                await asyncio.to_thread(self._open)
            except BaseException:
                self._writer_connection.close()
                raise

    def _open(self) -> None:
        with translate_errors(self.name):
            self._read_schema(self._writer_connection.get_connection())
            self._writer_connection.get_pipeline()
        self._fast_pool = self._make_pool("reader", READER_SETTINGS, max_batch=MAX_FAST_BATCH)
        self._slow_pool = self._make_pool("slow-reader", SLOW_READER_SETTINGS, connections=SLOW_CONNECTIONS)
        self._notify_pool = self._make_pool("notifier", SLOW_READER_SETTINGS)
        self._notifier = Notifier(self._notify_pool)
        self._writer = Writer(self._commit, self._announce, stats=self.writer_stats)
        self._listener = Listener(
            PostgresConnection(self._url, SLOW_READER_SETTINGS),
            self._fetch_in_listener,
            self.watch_registry,
            self._notifier.origin,
        )
        self._flusher = threading.Thread(target=self._flush_counts, name="interlock-counts", daemon=True)
        for part in (self._fast_pool, self._slow_pool, self._notify_pool, self._writer, self._listener, self._flusher):
            part.start()
        self._opened = True

    def _read_schema(self, connection: Connection[Any]) -> None:
        """Read the column types and the clock; create the tables of an empty database first."""
        left = pending_migrations(connection)
        if left == "all":
            migrate(connection)
        elif left:
            raise Misconfigured(
                f"The database {self.name} lacks {left}. Run interlock migrate, or start the server with --migrate."
            )
        self._batches.statements = Statements(self._queries, column_types(connection))
        self._server_clock.set(connection.execute("select interlock_now()").fetchall()[0][0])

    def _make_pool(
        self, name: str, settings: Mapping[str, str], *, connections: int = 1, max_batch: int = 1
    ) -> ReadPool:
        made = [PostgresConnection(self._url, settings) for _ in range(connections)]
        return ReadPool(name, made, self.name, max_batch)

    async def close(self) -> None:
        if self._opened:
            self._opened = False
            await asyncio.to_thread(self._close)
        else:
            self._writer_connection.close()

    def _close(self) -> None:
        self._stopping.set()
        self._flusher.join()
        if self._read_counter:
            self._writer.submit_sync(EMPTY_ITEM)
        self._writer.stop()
        self._listener.stop()
        self._notifier.stop()
        for pool in (self._fast_pool, self._slow_pool, self._notify_pool):
            pool.stop()
        self._writer_connection.close()

    async def migrate(self) -> list[str]:
        """Apply missing migrations under a lock on the database, and return their names."""
        return await asyncio.to_thread(self._migrate)

    def _migrate(self) -> list[str]:
        connection = PostgresConnection(self._url, {})
        try:
            with translate_errors(self.name):
                return migrate(connection.get_connection())
        finally:
            connection.close()

    def wrap_connection(self, recorder: Callable[[Any], Any]) -> None:
        """Wrap the writer's connection, so that benchmarks can record its statements."""
        self._batches.wrap_pipeline = recorder

    def check_same_database(self) -> None:
        """Do nothing: a replaced server is noticed by its ledger, not by its address."""

    # Reading

    async def fetch(self, name: str, *values: object) -> list[Row]:
        pool = self._fast_pool if name in FAST_QUERIES else self._slow_pool
        return await pool.fetch(self._texts[name], values)

    async def fetch_text(self, statement: str, values: Any) -> list[Row]:
        return await self._slow_pool.fetch(placeholders(statement), values)

    async def fetch_in_thread(self, statement: str, values: Any) -> list[Row]:
        return await self.fetch_text(statement, values)

    async def due(self, now: int, limit: int) -> list[Row]:
        """Claim due approvals for a moment, by the server's clock, so that several workers share them."""
        return await self._slow_pool.fetch(_CLAIM, (limit, CLAIM_LEASE))

    async def find_schema_violations(self) -> Sequence[Violation]:
        return await find_postgres_violations(self.fetch_text)

    async def check_health(self) -> list[CheckResult]:
        version = (await self.fetch_text("select current_setting('server_version')", ()))[0][0]
        durable = (await self.fetch_text("select current_setting('fsync')", ()))[0][0]
        checks = [CheckResult("ok", "postgresql", str(version))]
        if durable != "on":
            checks.append(CheckResult("fail", "fsync", "off", "Set fsync = on; a power cut would lose decisions."))
        if self._writer_connection.is_pooled:
            told = "between this program and the server: no notifications, so changes are polled for 40 times a second"
            checks.append(CheckResult("warn", "pooler", told, "Give Interlock a direct address if that matters."))
        return checks

    # Writing

    async def write(self, item: BatchItem) -> Any:
        return await self._writer.submit(item)

    def _announce(self, changed: ChangedIds) -> None:
        self.watch_registry.announce(changed)
        self._notifier.notify(changed)

    def _commit(self, batch: list[BatchItem]) -> tuple[list[object], ChangedIds]:
        with translate_errors(self.name):
            try:
                return self._batches.commit(batch, self._stopping)
            except psycopg.Error as error:
                if is_outage(error):
                    raise Outage(to_store_error(error, self.name).message) from error
                raise

    def _fetch_in_listener(self, name: str, *values: object) -> list[Row]:
        """Read in the listener's thread."""
        found: list[Row] = self._fast_pool.send(self._texts[name], values).result()
        return found

    def _flush_counts(self) -> None:
        while not self._stopping.wait(FLUSH_INTERVAL):
            if self._read_counter:
                try:
                    self._writer.submit_sync(EMPTY_ITEM)
                except StoreUnavailable:
                    continue  # the counts were restored and go with the next batch


SCAN_LIMITS = (1_000, 32_768)


class TsvectorIndex:
    """Full-text index of PostgreSQL. It is unordered: a scan of the newest documents finds frequent words faster."""

    def scan_limits(self, terms: SearchTerms) -> tuple[int, int]:
        return SCAN_LIMITS

    def match_condition(self, terms: SearchTerms) -> Sql:
        return "d.found @@ ?::tsquery", [self._expression(terms)]

    def newest(self, terms: SearchTerms, span: DocumentRange, limit: int) -> Sql:
        """Query the index; `offset 0` keeps the planner from scanning a million documents for the sake of the order."""
        text = (
            "select d.doc, d.id from ("  # noqa: S608  a whole number
            "select doc, id from docs where workspace = ? and found @@ ?::tsquery offset 0"
            f") d where d.doc > ? and d.doc < ? order by d.doc desc limit {limit:d}"
        )
        return text, [span.workspace, self._expression(terms), span.above, span.below]

    def any_matching(self, terms: SearchTerms, workspace: str, limit: int) -> Sql:
        text = f"select id from docs where workspace = ? and found @@ ?::tsquery limit {limit:d}"  # noqa: S608  a number
        return text, [workspace, self._expression(terms)]

    async def write_batch(self, database: SearchDatabase, batch: IndexBatch) -> bool:
        """Write outside of the writer: indexing is slow, and the ledger's head must not be locked that long.

        The mark's row is the lock. An erasure moves the mark too, so words that were read before it are not written
        after it.
        """
        values = [batch.workspace, CONSUMER, batch.new, batch.old, batch.workspace, *_columns(batch.added)]
        return bool(await database.fetch_text(_WRITE_DOCS, [*values, *_columns(batch.changed), batch.workspace]))

    def passages(self, words: Sequence[str], workspace: str, limit: int) -> Sql:
        """Query passages, those with the most of the words first: the rank does not know which words are rare."""
        queries = [f"'{word}'" for word in words]
        has = " + ".join(["(p.found @@ to_tsquery('english', ?))::int"] * len(queries))
        text = (
            "select p.path, p.start, p.words from passages p "  # noqa: S608  our own words, and a whole number
            "join documents d on d.workspace = p.workspace and d.path = p.path and d.version = p.version "
            "where p.workspace = ? and p.found @@ to_tsquery('english', ?) "
            f"order by {has} desc, ts_rank_cd(p.found, to_tsquery('english', ?)) desc, p.doc limit {limit:d}"
        )
        either = " | ".join(queries)
        return text, [workspace, either, *queries, either]

    async def purge(self, database: SearchDatabase) -> None:
        """Do nothing: the server does it when it vacuums."""

    def _expression(self, terms: SearchTerms) -> str:
        """Build a tsquery. No word contains an apostrophe or a backslash, so no input is taken for an operator."""
        parts = [f"'{word}'" for word in terms.words]
        parts += ["(" + " | ".join([f"'{word}'" for word in group]) + ")" for group in terms.any_of]
        if terms.prefix:
            parts.append(f"'{terms.prefix}':*")
        return " & ".join(parts)


def _columns(pairs: Sequence[tuple[str, str]]) -> list[str]:
    return [array_literal([pair[place] for pair in pairs]) for place in (0, 1)]


_WRITE_DOCS = """
with moved as (
    insert into marks (workspace, name, seq) values (?, ?, ?)
    on conflict (workspace, name) do update set seq = excluded.seq where marks.seq = ?
    returning 1
), added as (
    insert into docs (workspace, id, words)
    select ?, v.id, v.words
    from moved cross join unnest(?::text[], ?::text[]) with ordinality as v(id, words, n) order by v.n
    on conflict do nothing
), changed as (
    update docs d set words = v.words
    from moved cross join unnest(?::text[], ?::text[]) as v(id, words) where d.workspace = ? and d.id = v.id
)
select 1 from moved
"""


ADVISORY_LOCK = 0x494C4F4B  # "ILOK"
_CREATE_TABLE = (
    "create table if not exists migrations (number integer primary key, name text not null, "
    "sha256 text not null, applied_at bigint not null, since integer not null)"
)
# One statement, one snapshot: a migration that commits meanwhile is seen as a whole or not at all.
_COUNT_TABLES = (
    "select coalesce(bool_or(tablename = 'migrations'), false), count(*) "
    "from pg_catalog.pg_tables where schemaname = current_schema()"
)


def migrate(connection: Connection[Any]) -> list[str]:
    """Apply migrations in one transaction, all or none. A concurrent run waits, and then has nothing to do."""
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (ADVISORY_LOCK,))
        connection.execute("set local lock_timeout = '10s'")  # waiting for a long reader must not block all others
        connection.execute("set local statement_timeout = 0")  # an index on a large table takes long
        _is_ours(connection)
        connection.execute(_CREATE_TABLE)
        applied = connection.execute("select number, sha256, since from migrations").fetchall()
        return [_apply(connection, migration) for migration in missing_migrations(applied, load_migrations("postgres"))]


def pending_migrations(connection: Connection[Any]) -> str:
    """Return the names of missing migrations, `all` for an empty database, or an empty string."""
    if not _is_ours(connection):
        return "all"
    applied = connection.execute("select number, sha256, since from migrations").fetchall()
    return ", ".join(each.name for each in missing_migrations(applied, load_migrations("postgres")))


def column_types(connection: Connection[Any]) -> ColumnTypes:
    found = connection.execute(
        "select table_name, column_name, data_type from information_schema.columns "
        "where table_schema = current_schema()"
    ).fetchall()
    return {(table, column): kind for table, column, kind in found}


def _is_ours(connection: Connection[Any]) -> bool:
    """Return False for an empty database. Raises if it holds another program's tables, whose names could collide."""
    ours, tables = connection.execute(_COUNT_TABLES).fetchall()[0]
    if tables and not ours:
        raise Misconfigured(
            "This database holds the tables of another program. Give Interlock a database of its own, or a schema: "
            "postgresql://…/database?options=-csearch_path%3Dinterlock"
        )
    return bool(ours)


def _apply(connection: Connection[Any], migration: Migration) -> str:
    connection.execute(migration.text.encode(), prepare=False)  # several statements at once
    now = connection.execute("select interlock_now()").fetchall()[0][0]
    connection.execute("insert into migrations values (%s, %s, %s, %s, %s)", migration.row_values(now))
    return migration.name


Fetch = Callable[..., list[Row]]
CHANNEL = "interlock"
FALLBACK_INTERVAL = 1.0  # seconds between polls if no notification arrives
COALESCE_DELAY = 0.003  # seconds between notifications
POOLER_POLL_INTERVAL = 0.025  # seconds between polls behind a pooler, where LISTEN does not work
_NOTIFY = "select pg_notify($1, $2)"


class Notifier:
    """Sends notifications: the first change at once, changes in the next moment coalesced into one more."""

    def __init__(self, pool: ReadPool) -> None:
        self.origin = secrets.token_hex(8)
        self._pool = pool
        self._lock = threading.Lock()
        self._waiting = False
        self._busy = False
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def notify(self, changed: ChangedIds) -> None:
        if not changed:
            return
        with self._lock:
            self._waiting = True
            if self._busy:
                return
            self._busy, self._waiting = True, False
        self._send()

    def _send(self) -> None:
        self._pool.send(_NOTIFY, (CHANNEL, self.origin)).add_done_callback(self._sent)

    def _sent(self, done: Future[Any]) -> None:
        lost = done.exception() is not None  # only a hint: other processes also poll
        self._stopping.wait(COALESCE_DELAY)  # in the pool's own thread
        with self._lock:
            again = self._waiting and not lost
            self._busy, self._waiting = again, False
        if again:
            self._send()


class Listener:
    """Receives notifications of other processes' commits and wakes the waiters in this process."""

    def __init__(self, connection: PostgresConnection, fetch: Fetch, registry: WatchRegistry, origin: str) -> None:
        self._connection = connection
        self._registry = registry
        self._origin = origin
        self._change_reader = ChangeReader(fetch, registry)
        self._stopping = threading.Event()
        self._wake = os.pipe()  # interrupts a wait when the listener stops
        self._thread = threading.Thread(target=self._loop, name="interlock-listener", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._registry.has_waiters.set()
        os.write(self._wake[1], b"stop")
        self._thread.join()
        self._connection.close()
        for end in self._wake:
            os.close(end)

    def _loop(self) -> None:
        while not self._stopping.is_set():
            try:
                retry_on_lost_connection(self._listen, self._connection, self._stopping)
            except (psycopg.Error, Error):
                self._stopping.wait(FALLBACK_INTERVAL)  # the server has trouble: waiters also poll

    def _listen(self) -> None:
        connection = self._connection.get_connection()
        if not self._connection.is_pooled:
            connection.execute(f"listen {CHANNEL}")
        while not self._stopping.is_set():
            self._poll_changes()  # at once after a reconnect: notifications were missed meanwhile
            self._wait(connection)

    def _poll_changes(self) -> None:
        while self._registry.has_waiters.is_set() and self._change_reader.poll():
            pass

    def _wait(self, connection: psycopg.Connection[Any]) -> None:
        """Wait until another process sends a notification, or for the polling interval."""
        if self._connection.is_pooled:
            if self._registry.has_waiters.wait(FALLBACK_INTERVAL):
                self._stopping.wait(POOLER_POLL_INTERVAL)
            return
        ready, _, _ = select.select([connection.fileno(), self._wake[0]], [], [], FALLBACK_INTERVAL)
        while ready and not self._stopping.is_set():
            heard = list(connection.notifies(timeout=0))
            if any(message.payload != self._origin for message in heard):
                return
            ready, _, _ = select.select([connection.fileno(), self._wake[0]], [], [], FALLBACK_INTERVAL)
