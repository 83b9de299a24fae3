"""PostgreSQL: one writer thread with group commit for each process; the head of a ledger is locked first, by everybody.

A batch takes two round trips: one to lock, to read the clock and to look up what its items need, one to write and to
commit. Lost connections come back by themselves, and a commit whose answer got lost is looked for in the ledger.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg

from interlock.core.errors import Misconfigured, StoreUnavailable
from interlock.core.ledger import Head
from interlock.core.ports import Clock
from interlock.faults import Point
from interlock.stores.counting import Counts, write_counts
from interlock.stores.finding import Finder
from interlock.stores.health import Check
from interlock.stores.postgres.clock import ServerClock
from interlock.stores.postgres.finding import Tsvector
from interlock.stores.postgres.lanes import Lane
from interlock.stores.postgres.link import LOST, Link, conninfo_of, is_lost, persist, translated
from interlock.stores.postgres.listening import Listener, Notifier
from interlock.stores.postgres.migrate import column_types, migrate, outstanding
from interlock.stores.postgres.pipe import Pipe
from interlock.stores.postgres.session import Session, Statements
from interlock.stores.postgres.sets import array, placeholders
from interlock.stores.queries import load_queries
from interlock.stores.remembering import Interned, Memory
from interlock.stores.rows import Row
from interlock.stores.transaction import Transaction
from interlock.stores.watching import Watchers
from interlock.stores.writer import NOTHING, Changed, Read, Work, Writer, attempt

WRITING = {
    "lock_timeout": "10s",
    "statement_timeout": "20s",
    "idle_in_transaction_session_timeout": "5s",  # one that was stopped gives up the head before others give up
    "synchronous_commit": "on",  # what was acknowledged is on disk
    "plan_cache_mode": "force_generic_plan",  # every statement is a look-up by key; statistics change nothing
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}
READING = {"statement_timeout": "5s", "plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "jit": "off"}
SLOWLY = {"statement_timeout": "60s", "synchronous_commit": "off", "jit": "off"}
QUICK = frozenset(  # look-ups by key; whatever else may take long, and must not hold these up
    {"approval", "approval_by_call", "head", "changed_since", "grant", "link", "next_due", "open_runs", "payload"}
    | {"policy", "run", "spec", "stored", "stored_by_call", "tallies", "terms", "users", "workspace_key"}
)
QUICK_MOST = 64
SLOW_LINKS = 3
REMEMBERED = 4096  # approvals kept between batches
CLAIM = 2_000  # milliseconds that a worker has for what it took; then it is due again
FLUSH_EVERY = 1.0  # seconds that a count of allowed reads may be late

# The clock is read when a row is locked, so the newest reading comes after all locks.
_LOCK = placeholders(
    "with locked as materialized (select workspace, seq, link, at from heads where workspace = any(?::text[]) "
    "order by workspace for update) select workspace, seq, link, at, interlock_now() from locked"
)
_MAKE_HEADS = placeholders(
    "insert into heads (workspace, seq, link, at) select w, 0, ?, 0 from unnest(?::text[]) w on conflict do nothing"
)
_CLAIM = placeholders(
    "with due as (select workspace, id from approvals where due_at <= interlock_now() order by due_at limit ? "
    "for update skip locked) update approvals a set due_at = interlock_now() + ? from due d "
    "where a.workspace = d.workspace and a.id = d.id returning a.workspace, a.id"
)


@dataclass
class InDoubt:
    """A batch whose commit was sent and not answered: perhaps it stands, and the ledger says so."""

    results: list[object]
    transaction: Transaction


class PostgresDatabase:
    def __init__(self, url: str, clock: Clock | None = None, point: Point | None = None) -> None:
        info = psycopg.conninfo.conninfo_to_dict(conninfo_of(url))
        self.name = f"{info.get('dbname') or info.get('user') or 'postgres'} on {info.get('host') or 'localhost'}"
        self.interned = Interned()
        self.finder: Finder = Tsvector()
        self.watchers = Watchers()
        self.server_clock = ServerClock()
        self.clock: Clock = clock or self.server_clock
        self._point = point
        self._url = url
        self._queries = load_queries()
        self._texts = {name: placeholders(text) for name, text in self._queries.items()}
        self._counts = Counts(self.clock)
        self.count_read = self._counts.count
        self._link = Link(url, WRITING)
        self._wrap: Callable[[Any], Any] = lambda connection: connection
        self._stopping = threading.Event()
        self._memory = Memory()
        self._pipe: Pipe | None = None
        self._doubt: InDoubt | None = None
        self._opened = False

    # Opening and closing

    async def open(self) -> None:
        if not self._opened:
            try:
                await asyncio.to_thread(self._open)
            except BaseException:
                self._link.drop()
                raise

    def _open(self) -> None:
        with translated(self.name):
            connection = self._link.get()
            left = outstanding(connection)
            if left == "all":
                migrate(connection)
            elif left:
                raise Misconfigured(f"The database {self.name} lacks {left}. Run: interlock migrate")
            self._statements = Statements(self._queries, column_types(connection))
            self.server_clock.set(connection.execute("select interlock_now()").fetchall()[0][0])
            self._link.pipe()
        quick, slow = Link(self._url, READING), [Link(self._url, SLOWLY) for _ in range(SLOW_LINKS)]
        self._quick = Lane("reader", [quick], self.name, QUICK_MOST)
        self._slow = Lane("slow-reader", slow, self.name, 1)
        self._notices = Lane("notifier", [Link(self._url, SLOWLY)], self.name, 1)
        self._notifier = Notifier(self._notices)
        self._writer = Writer(self._commit, self._announce)
        self._listener = Listener(Link(self._url, SLOWLY), self._look, self.watchers, self._notifier.origin)
        self._flusher = threading.Thread(target=self._flush_counts, name="interlock-counts", daemon=True)
        for part in (self._quick, self._slow, self._notices, self._writer, self._listener, self._flusher):
            part.start()
        self._opened = True

    async def close(self) -> None:
        if self._opened:
            self._opened = False
            await asyncio.to_thread(self._close)
        else:
            self._link.drop()

    def _close(self) -> None:
        self._stopping.set()
        self._flusher.join()
        if self._counts:
            self._writer.submit_sync(NOTHING)
        self._writer.stop()
        self._listener.stop()
        self._notifier.stop()
        for lane in (self._quick, self._slow, self._notices):
            lane.stop()
        self._link.drop()

    async def migrate(self) -> list[str]:
        """Applies what is missing, under a lock of the database; gives the names."""
        return await asyncio.to_thread(self._migrate)

    def _migrate(self) -> list[str]:
        link = Link(self._url, {})
        try:
            with translated(self.name):
                return migrate(link.get())
        finally:
            link.drop()

    def record(self, recorder: Callable[[Any], Any]) -> None:
        """Puts something between the writer and its connection: benchmarks write down the statements."""
        self._wrap = recorder

    def check(self) -> None:
        """A server that was replaced by another is noticed by its ledger, not by its address."""

    # Reading

    async def fetch(self, name: str, *values: object) -> list[Row]:
        lane = self._quick if name in QUICK else self._slow
        return await lane.fetch(self._texts[name], values)

    async def fetch_text(self, statement: str, values: Any) -> list[Row]:
        return await self._slow.fetch(placeholders(statement), values)

    async def due(self, now: int, limit: int) -> list[Row]:
        """Claimed for a moment, by the server's clock: several workers share what is due instead of all doing it."""
        return await self._slow.fetch(_CLAIM, (limit, CLAIM))

    async def examine(self) -> list[Check]:
        version = (await self.fetch_text("select current_setting('server_version')", ()))[0][0]
        durable = (await self.fetch_text("select current_setting('fsync')", ()))[0][0]
        checks = [Check("ok", "postgresql", str(version))]
        if durable != "on":
            checks.append(Check("fail", "fsync", "off", "Set fsync = on; a power cut would lose decisions."))
        if self._link.pooled:
            told = "between this program and the server: no notifications, so changes are looked for 40 times a second"
            checks.append(Check("warn", "pooler", told, "Give Interlock a direct address if that matters."))
        return checks

    # Writing

    async def write(self, work: Work) -> Any:
        return await self._writer.submit(work)

    def _announce(self, changed: Changed) -> None:
        self.watchers.announce(changed)
        self._notifier.tell(changed)

    def _commit(self, batch: list[Work]) -> tuple[list[object], Changed]:
        self._doubt = None
        once = partial(persist, partial(self._transact, batch), self._link, self._stopping)
        with translated(self.name):
            try:
                return once()
            except psycopg.errors.SerializationFailure:
                return once()  # what was remembered was old, and is forgotten: once more, from the rows

    def _transact(self, batch: list[Work]) -> tuple[list[object], Changed]:
        """The only lock order: heads, by name; then the clock; then rows, in the order of the sets."""
        pipe = self._link.pipe()
        if pipe is not self._pipe:  # a server that took over may lack what the old one had
            self._pipe = pipe
            self.interned.clear()
            self._memory.forget()
        session = Session(self._wrap(pipe), self._statements, self._point)
        workspaces = sorted({work.workspace for work in batch if work.workspace})
        counted = self._counts.take()
        try:
            now = self._lock(session, workspaces, [read for work in batch for read in work.reads])
            if self._doubt is not None and self._stands(session, self._doubt):
                session.end()
                return self._doubt.results, self._doubt.transaction.committed()
            transaction = Transaction(session, now, self.interned, self._memory)
            results = [attempt(work, transaction) for work in batch]
            write_counts(counted, transaction)
            transaction.flush()
            session.send("commit")
            self._doubt = InDoubt(results, transaction)
            session.sync()
            self._doubt = None
        except BaseException as error:
            self._counts.give_back(counted)
            self._roll_back(session, error)
            raise
        return results, transaction.committed()

    def _lock(self, session: Session, workspaces: list[str], reads: list[Read]) -> int:
        """Gives the time at which the last lock was there; from then on nobody else changes these workspaces."""
        while True:
            session.begin(self._link)
            answer = session.send(_LOCK, (array(workspaces),))
            lookups = session.look_up(self._unknown(reads))
            session.sync()
            locked = answer.rows()
            if len(locked) == len(workspaces):
                break
            session.end()  # a ledger's first entry: there has to be a row to lock, made before anything is locked
            session.ask(_MAKE_HEADS, (Head("").link, array(workspaces)))
        session.remember(lookups)
        self._agree(session, [Head(*row[:4]) for row in locked], reads)
        now = max((int(row[4]) for row in locked), default=self.server_clock())
        self.server_clock.set(now)
        return now

    def _unknown(self, reads: list[Read]) -> list[Read]:
        """What need not be read again if nobody else wrote meanwhile. Payloads are always read: they are what runs."""
        known = self._memory.approvals
        wanted = []
        for read in reads:
            if read[0] not in ("approval", "stored") or read[1:] not in known:
                wanted.append(read)
            elif read[0] == "stored":
                wanted.append(("payload", *read[1:]))
        return wanted

    def _agree(self, session: Session, heads: list[Head], reads: list[Read]) -> None:
        """A ledger that moved since this process wrote to it: others were here, and what is remembered may be old."""
        memory = self._memory
        if any(memory.heads.get(head.workspace, head) != head for head in heads):
            missing = [read for read in reads if read[1:] in memory.approvals]
            memory.forget()
            lookups = session.look_up(missing)
            session.sync()
            session.remember(lookups)
        elif len(memory.approvals) > REMEMBERED:
            memory.approvals.clear()
        memory.heads.update((head.workspace, head) for head in heads)

    def _stands(self, session: Session, doubt: InDoubt) -> bool:
        """Asked under the lock of the heads, so the commit in doubt is over, one way or the other."""
        for head in doubt.transaction.moved():
            found = session.fetch("link", head.workspace, head.seq)
            return bool(found) and found[0][0] == head.link
        return False  # it moved no ledger: to do it again is to do it once

    def _roll_back(self, session: Session, error: BaseException) -> None:
        self._memory.forget()
        if not (isinstance(error, LOST) and is_lost(error, self._link)):
            self._doubt = None  # the server said no: nothing was committed
            try:
                session.end()
            except psycopg.Error:
                self._link.drop()

    def _look(self, name: str, *values: object) -> list[Row]:
        """For the listener's thread."""
        found: list[Row] = self._quick.send(self._texts[name], values).result()
        return found

    def _flush_counts(self) -> None:
        while not self._stopping.wait(FLUSH_EVERY):
            if self._counts:
                try:
                    self._writer.submit_sync(NOTHING)
                except StoreUnavailable:
                    continue  # the counts were given back and go with the next batch
