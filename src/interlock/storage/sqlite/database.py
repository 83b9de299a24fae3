"""SQLite: one writer thread with group commit, reader connections of their own, a file lock between processes.

It is long because opening, writing, reading and backing up share the connections and the lock.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import quote

from interlock.core.errors import Error, InvalidRequest, Misconfigured, Stale, StoreUnavailable
from interlock.core.ledger.chain import Head
from interlock.core.ledger.invariants import Violation
from interlock.core.ports import Clock
from interlock.storage.engine.cache import MAX_CACHED_APPROVALS, BatchCache, Interned
from interlock.storage.engine.database import ChangeReader, WatchRegistry
from interlock.storage.engine.metrics import CheckResult, WriterStats
from interlock.storage.engine.queries import load_queries
from interlock.storage.engine.read_counts import FLUSH_INTERVAL, ReadCounter, write_counts
from interlock.storage.engine.rows import Row
from interlock.storage.engine.transaction import LostRace, Transaction
from interlock.storage.engine.writer import EMPTY_ITEM, BatchItem, BatchResult, Writer, run_item
from interlock.storage.migrate import APPLICATION_ID, find_sqlite_violations, migrate_sqlite
from interlock.storage.tables.search import Fts5Index, FullTextIndex

POLL_INTERVAL = 0.004  # seconds between checks for other processes' commits, while anything waits
MIN_SQLITE_VERSION = (3, 24)  # "on conflict do update"
BUSY_TIMEOUT = 10_000  # milliseconds to wait for a program that writes to the file without its lock
MAX_INLINE_COMMIT = 0.005  # seconds that an event loop may be blocked now and then, but not twice in a row

NewConnection = Callable[[], sqlite3.Connection]


def _register_adapters() -> None:
    """Keep the driver from searching for a way to adapt bytes and None: it formats two errors for each value.

    Both stay as they are, by functions in C, since they run for each value. Adapters hold for the whole process, so
    those of the program around are not replaced.
    """
    adapters: dict[type, Callable[[Any], Any]] = {bytes: bytes, type(None): {None: None}.__getitem__}
    for kind, adapt in adapters.items():
        if (kind, sqlite3.PrepareProtocol) not in sqlite3.adapters:
            sqlite3.register_adapter(kind, adapt)


_register_adapters()


class SqliteDatabase:
    """Connections, locks and batches; the queries are in `store.py`."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self.name = str(path)
        self.clock = clock
        self.applied: list[str] = []
        self.interned = Interned()
        self.full_text_index: FullTextIndex = Fts5Index()
        self.watch_registry = WatchRegistry()
        self._queries = load_sqlite_queries()
        self._new_connection: NewConnection = partial(connect, path)
        self._readers = ReaderPool(self._new_connection)
        self._read_counter = ReadCounter(clock)
        self.count_read = self._read_counter.count
        self.note_tool = self._read_counter.note
        self._cache = BatchCache()
        self._version = -1
        self._seconds_per_item = 0.0  # seconds that the last batch took for each item
        self._busy_timeout = BUSY_TIMEOUT
        self.writer_stats = WriterStats()
        self._stopping = threading.Event()
        self._opened = False

    # Opening and closing

    async def open(self) -> None:
        if self._opened:
            return
        if not self.path.parent.is_dir():
            raise Misconfigured(f"The folder of the database does not exist: {self.path.parent}. Create it first.")
        self._create_file()
        self._lock = self._open_lock()
        self._connection = self._open_connection()
        self._inode = os.stat(self.path).st_ino
        self._writer = Writer(self._commit, self.watch_registry.announce, self._try_commit, self.writer_stats)
        self._writer.start()
        self._change_poller = ChangePoller(self.path, self._queries, self.watch_registry)
        self._helper = threading.Thread(target=self._run_helper, name="interlock-helper", daemon=True)
        self._helper.start()
        self._opened = True

    async def close(self) -> None:
        if not self._opened:
            return
        self._opened = False
        self._stopping.set()
        self.watch_registry.has_waiters.set()
        self._helper.join()
        if self._read_counter:
            self._writer.submit_sync(EMPTY_ITEM)
        self._writer.stop()
        self._readers.close()
        self._connection.close()
        os.close(self._lock)

    async def migrate(self) -> list[str]:
        """Open the file, which applies missing migrations, and return their names."""
        await self.open()
        return self.applied

    def _open_connection(self) -> Any:
        """Open the file under the lock from the first statement on: two concurrent switches to WAL would collide."""
        self._flock(fcntl.LOCK_EX)
        try:
            connection = self._connect()
            with translate_errors(self.path):
                self.applied = migrate_sqlite(connection, self.clock())
        except BaseException:
            os.close(self._lock)
            raise
        self._flock(fcntl.LOCK_UN)
        return connection

    def _connect(self) -> Any:
        with translate_errors(self.path):
            connection = self._new_connection()
            connection.execute("pragma journal_mode = wal")
            connection.execute("pragma synchronous = full")
            connection.execute("pragma wal_autocheckpoint = 4000")
            connection.execute("pragma secure_delete = on")  # erased content is overwritten, not only unlinked
        return connection

    def _create_file(self) -> None:
        """Create a database that only its owner can read: it holds agents' actions and their secrets.

        An existing file is never opened here. Closing any descriptor of it drops every lock that this process has on
        the file, including SQLite's; another process would then take the log in use for an abandoned one.
        """
        with suppress(OSError):  # the file exists, or SQLite gives a better error
            os.close(os.open(self.path.resolve(), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    def _open_lock(self) -> int:
        """Open the lock file, with the same write permissions as the database."""
        lock = self.path.with_name(self.path.name + ".lock")
        try:
            return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, os.stat(self.path).st_mode & 0o666)
        except OSError as error:
            raise StoreUnavailable(f"The lock file {lock.name} cannot be opened: {error.strerror}.") from None

    def _flock(self, operation: int) -> None:
        fcntl.flock(self._lock, operation)

    def wrap_connection(self, recorder: Callable[[Any], Any]) -> None:
        """Wrap the writer's connection, so that benchmarks can record its statements."""
        self._connection = recorder(self._connection)

    # Reading

    async def fetch(self, name: str, *values: object) -> list[Row]:
        """Read in the caller's thread: a look-up takes less time than a thread switch."""
        return self._fetch(self._queries[name], values)

    async def fetch_text(self, statement: str, values: Any) -> list[Row]:
        return self._fetch(statement, values)

    async def fetch_in_thread(self, statement: str, values: Any) -> list[Row]:
        """Read in another thread: for queries that could block an event loop for too long."""
        return await asyncio.to_thread(self._fetch, statement, values)

    def _fetch(self, statement: str, values: Any) -> list[Row]:
        try:
            found: list[Row] = self._readers.fetch(statement, values)
        except sqlite3.Error as error:
            raise to_store_error(error, self.path.name) from error
        return found

    async def find_schema_violations(self) -> Sequence[Violation]:
        return await find_sqlite_violations(self.fetch_text)

    async def check_health(self) -> list[CheckResult]:
        version = str((await self.fetch_text("select sqlite_version()", ()))[0][0])
        mode = str((await self.fetch_text("pragma journal_mode", ()))[0][0])
        old = tuple(map(int, version.split(".")[:2])) < MIN_SQLITE_VERSION
        wal = mode == "wal"
        return [
            CheckResult(
                "fail",
                "sqlite",
                version,
                f"Install a Python with SQLite {MIN_SQLITE_VERSION[0]}.{MIN_SQLITE_VERSION[1]} or newer.",
            )
            if old
            else CheckResult("ok", "sqlite", version),
            CheckResult("ok", "journal", "write-ahead log")
            if wal
            else CheckResult("fail", "journal", f"mode {mode}", "Put it on a local disk; network folders lose writes."),
        ]

    # Writing

    def write(self, item: BatchItem) -> Coroutine[Any, Any, Any]:
        return self._writer.submit(item)

    async def due(self, now: int, limit: int) -> list[Row]:
        return await self.fetch("due", now, limit)

    def _commit(self, batch: list[BatchItem]) -> BatchResult:
        """Commit a batch. The only lock order: file lock, then BEGIN IMMEDIATE, then the clock, then rows."""
        with translate_errors(self.path):
            self._flock(fcntl.LOCK_EX)
            try:
                self._set_busy_timeout(BUSY_TIMEOUT)
                return self._transact(batch)
            finally:
                self._flock(fcntl.LOCK_UN)

    def _try_commit(self, batch: list[BatchItem]) -> BatchResult | None:
        """Commit in the event loop, only while the disk is fast and no other program writes; else None."""
        if self._seconds_per_item > MAX_INLINE_COMMIT:
            return None
        with translate_errors(self.path):
            try:
                self._flock(fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return None
            try:
                self._set_busy_timeout(0)
                return self._transact(batch)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:  # a program that ignores the file lock
                    return None
                raise
            finally:
                self._flock(fcntl.LOCK_UN)

    def _set_busy_timeout(self, milliseconds: int) -> None:
        if milliseconds != self._busy_timeout:
            self._connection.execute(f"pragma busy_timeout = {milliseconds}")
            self._busy_timeout = milliseconds

    def _transact(self, batch: list[BatchItem]) -> BatchResult:
        self.check_same_database()
        connection = self._connection
        begun = perf_counter()
        counts = self._read_counter.drain()
        try:
            connection.execute("begin immediate")
            cache = self._valid_cache(connection)
            statements = _CachedStatements(connection, self._queries, cache)
            transaction = Transaction(statements, self.clock(), self.interned, cache)
            results = [run_item(item, transaction) for item in batch]
            write_counts(counts, transaction)
            transaction.flush()
            connection.execute("commit")
            self._seconds_per_item = (perf_counter() - begun) / len(batch)
        except BaseException as error:
            self._read_counter.restore(counts)
            self._roll_back()
            if isinstance(error, LostRace):
                raise Stale(
                    "The approval changed in the meantime; nothing was written. Reload it and try again."
                ) from None
            raise
        return results, transaction.after_commit()

    def _valid_cache(self, connection: Any) -> BatchCache:
        """Return the cache, cleared if another connection has committed since."""
        version = connection.execute("pragma data_version").fetchall()[0][0]
        if version != self._version or len(self._cache.approvals) > MAX_CACHED_APPROVALS:
            self._cache.clear()
        self._version = version
        return self._cache

    def _roll_back(self) -> None:
        self._cache.clear()
        with suppress(sqlite3.Error):  # the failed statement may have ended the transaction already
            self._connection.execute("rollback")

    def check_same_database(self) -> None:
        """Raise if the file was deleted or replaced: SQLite would go on writing rows that are lost."""
        try:
            same = os.stat(self.path).st_ino == self._inode
        except FileNotFoundError:
            same = False
        if not same:
            raise StoreUnavailable(
                f"The database file {self.path.name} is gone or was replaced. Put it back and restart."
            )

    # Detecting commits of other processes

    def _run_helper(self) -> None:
        """Poll `data_version` while anything waits, and flush counts of reads in time."""
        look = self._change_poller
        since_flush = 0.0
        while not self._stopping.is_set():
            waiting = self.watch_registry.has_waiters.wait(FLUSH_INTERVAL)
            if waiting:
                look.poll()
                self._stopping.wait(POLL_INTERVAL)
            since_flush += POLL_INTERVAL if waiting else FLUSH_INTERVAL
            if since_flush >= FLUSH_INTERVAL:
                since_flush = 0.0
                self._flush_reads()
        look.close()

    def _flush_reads(self) -> None:
        if self._read_counter:
            with suppress(Error):  # the counts were restored and go with the next batch
                self._writer.submit_sync(EMPTY_ITEM)


class ChangePoller:
    """Polls `data_version` (3 µs each) for commits of other connections, and wakes their waiters."""

    def __init__(self, path: Path, queries: dict[str, str], registry: WatchRegistry) -> None:
        self._connection = connect(path)
        self._queries = queries
        self._change_reader = ChangeReader(self._fetch, registry)
        self._version = self._connection.execute("pragma data_version").fetchall()[0][0]

    def poll(self) -> None:
        try:
            version = self._connection.execute("pragma data_version").fetchall()[0][0]
            if version != self._version:
                more = self._change_reader.poll()
                self._version = -1 if more else version
        except sqlite3.Error:
            self._version = -1  # a failed poll is repeated; waiters also poll

    def _fetch(self, name: str, *values: object) -> list[Row]:
        return self._connection.execute(self._queries[name], values).fetchall()

    def close(self) -> None:
        self._connection.close()


class ReaderPool:
    """One read-only connection for each reader thread.

    `close` waits for running reads: SQLite crashes if a connection is closed during one.
    """

    def __init__(self, new_connection: NewConnection) -> None:
        self._new_connection = new_connection
        self._local = threading.local()
        self._all: list[tuple[Any, threading.Lock]] = []

    def fetch(self, statement: str, values: Any) -> list[Row]:
        connection, reading = getattr(self._local, "reader", None) or self._reader()
        with reading:
            found: list[Row] = connection.execute(statement, values).fetchall()
        return found

    def close(self) -> None:
        for connection, reading in self._all:
            with reading:
                connection.close()
        self._all.clear()
        self._local = threading.local()

    def _reader(self) -> tuple[Any, threading.Lock]:
        connection = self._new_connection()
        connection.execute("pragma query_only = on")
        self._local.reader = reader = (connection, threading.Lock())
        self._all.append(reader)
        return reader


# Writes of a table whose triggers may refuse them.
GUARDED_WRITES = ("insert_approval", "update_approval", "advance_approval", "erase_approval", "snooze_approval")


def load_sqlite_queries() -> dict[str, str]:
    """Return the queries; a guarded write that fails rolls back the transaction, as the triggers do.

    Every error of a batch rolls it back anyway. To take back one statement alone, SQLite would copy each page before
    the statement changes it, and write the copies of a large batch to a temporary file.
    """
    queries = load_queries()
    return queries | {name: _or_rollback(queries[name]) for name in GUARDED_WRITES}


def _or_rollback(write: str) -> str:
    verb, rest = write.lstrip().split(maxsplit=1)
    return f"{verb} or rollback {rest}"


class _CachedStatements:
    """Runs named statements; a payload in the valid `cache` is not read again."""

    def __init__(self, connection: Any, queries: dict[str, str], cache: BatchCache) -> None:
        self._connection = connection
        self._queries = queries
        self._payloads = cache.payloads

    def fetch(self, name: str, *values: object) -> list[Row]:
        if name == "payload" and values in self._payloads:
            return [self._payloads[values]]
        rows: list[Row] = self._connection.execute(self._queries[name], values).fetchall()
        return rows

    def write(self, name: str, values: Any) -> int:
        if len(values) == 1:
            count: int = self._connection.execute(self._queries[name], values[0]).rowcount
        else:
            count = self._connection.executemany(self._queries[name], values).rowcount
        return count


def connect(path: Path) -> sqlite3.Connection:
    """Open an existing file, never create one: a missing file must cause an error, not be replaced by an empty one."""
    address = f"file:{quote(str(path))}?mode=rw"
    return sqlite3.connect(
        address, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_TIMEOUT / 1000
    )


class translate_errors:
    """Translate driver errors into one clear sentence each."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.Error):
            raise to_store_error(error, self._path.name) from error
        if isinstance(error, UnicodeEncodeError):
            raise InvalidRequest("A text holds half a surrogate pair, which is not a character.") from None


_ERROR_MESSAGES: tuple[tuple[str, str], ...] = (
    ("readonly", "The database {name} is read-only. Make the file and its folder writable for this user."),
    ("full", "The disk of the database {name} is full. Free some space; nothing was lost."),
    ("disk i/o", "The disk of the database {name} failed, or files there may not grow. Check it; nothing was lost."),
    ("unable to open", "The database {name} cannot be opened. Check that its folder exists and may be read."),
    ("locked", "The database {name} is locked by another program. Close it and try again."),
    ("not a database", "The file {name} is not a database. Give Interlock a file of its own."),
    ("malformed", "The database {name} is damaged. Restore a backup, then run `interlock audit verify`."),
    ("illegal transition", "The database {name} refused an illegal transition. Nothing was changed."),
)


def to_store_error(error: sqlite3.Error, name: str) -> StoreUnavailable:
    text = str(error).lower()
    for mark, sentence in _ERROR_MESSAGES:
        if mark in text:
            return StoreUnavailable(sentence.format(name=name))
    return StoreUnavailable(f"The database {name} reported: {error}.")


PAGES_PER_STEP = 2_000  # pages copied between two calls of the progress callback
BackupProgress = Callable[[int, int], object]  # pages done and in total; an exception from it ends the copy


@dataclass(frozen=True, slots=True)
class BackupFile:
    """A finished backup; `heads` are the heads of its ledgers."""

    path: Path
    size: int
    heads: tuple[Head, ...]


def make_backup(source: Path, target: Path, report_progress: BackupProgress) -> BackupFile:
    """Copy a database. The target appears complete, checked and on disk, or not at all."""
    target = target.absolute()
    if target.exists():
        raise InvalidRequest(f"{target} is there already, and a backup is never overwritten. Choose another name.")
    if not target.parent.is_dir():
        raise InvalidRequest(f"The folder {target.parent} does not exist. Create it first.")
    handle, name = tempfile.mkstemp(prefix=f"{target.name}.", suffix=".part", dir=target.parent)  # mode 0600
    os.close(handle)
    part = Path(name)
    try:
        heads = _copy_pages(source, part, report_progress)
        _sync(part)
        part.rename(target)
        _sync(target.parent)
    finally:
        for leftover in (part, Path(f"{part}-journal")):
            leftover.unlink(missing_ok=True)
    return BackupFile(target, target.stat().st_size, heads)


def _copy_pages(source: Path, part: Path, report_progress: BackupProgress) -> tuple[Head, ...]:
    with translate_errors(source), closing(connect(source)) as origin:
        origin.execute("begin")  # one snapshot; else every write of others would restart the copy
        if origin.execute("pragma application_id").fetchall()[0][0] != APPLICATION_ID:
            raise Misconfigured(f"{source} is not a database of Interlock. Give the right one with --database.")
        origin.execute("select count(*) from heads").fetchall()
        with translate_errors(part), closing(sqlite3.connect(part, isolation_level=None)) as copy:
            origin.backup(
                copy, pages=PAGES_PER_STEP, progress=lambda _, left, total: report_progress(total - left, total)
            )
            copy.execute("pragma journal_mode = delete")  # a single file; the store enables WAL when it opens it
            found = copy.execute("pragma quick_check").fetchall()
            if found != [("ok",)]:
                raise StoreUnavailable(
                    f"{source} is damaged: {found[0][0]}. No backup was made; keep the last good one."
                )
            rows = copy.execute("select workspace, seq, link, at from heads order by workspace").fetchall()
    return tuple(Head(*row) for row in rows)


def _sync(path: Path) -> None:
    """Sync a file's content and name to disk, before the backup is reported."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
