"""Connections to PostgreSQL: reconnecting, retries, the server's errors in words, its clock, and a pool of readers."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from interlock.core.errors import Error, InvalidRequest, Misconfigured, Stale, StoreUnavailable
from interlock.core.ports import Clock
from interlock.storage.engine.rows import Row
from interlock.storage.engine.writer import AnyFuture, call_soon, resolve_future
from interlock.storage.postgres.pipeline import Pipeline

RETRY_TIMEOUT = 15.0  # seconds that a caller waits for a lost server before it gets an error
CONNINFO_DEFAULTS: Mapping[str, str] = {
    "application_name": "interlock",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",  # milliseconds; a cut cable must not block a batch for minutes
}
CONNECTION_ERRORS = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.ReadOnlySqlTransaction,  # the driver does not class these three as operational errors
    errors.IdleInTransactionSessionTimeout,
    errors.TransactionTimeout,
)
MIN_TRANSACTION_TIMEOUT_VERSION = 170_000  # the first server version that has this setting
T = TypeVar("T")


class PostgresConnection:
    """For one thread at a time. `settings` hold for the connection; behind a pooler they go into each transaction."""

    def __init__(self, url: str, settings: Mapping[str, str]) -> None:
        self._conninfo = complete_conninfo(url)
        self.settings = settings
        self.is_pooled = False
        self._connection: psycopg.Connection[Any] | None = None
        self._pipeline: Pipeline | None = None

    def get_pipeline(self) -> Pipeline:
        """Return a pipeline on the connection, which is used for nothing else from then on."""
        if self._pipeline is None or self._connection is None or self._connection.closed:
            connection = self.get_connection()
            self._pipeline = Pipeline(connection, prepare=not self.is_pooled)
        return self._pipeline

    def send_settings(self, pipeline: Pipeline) -> None:
        """Send the settings inside a transaction, for which alone they hold."""
        for name, value in self.settings.items():
            pipeline.send("select set_config($1, $2, true)", (name, value))

    def get_connection(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = self._pipeline = None

    def _connect(self) -> psycopg.Connection[Any]:
        connection = psycopg.connect(self._conninfo, autocommit=True)
        row = connection.execute("select pg_backend_pid()").fetchone()
        # A pooler reports process ids of its own: prepared statements and settings would go to another client's
        # session.
        self.is_pooled = row is None or row[0] != connection.info.backend_pid
        if connection.info.server_version < MIN_TRANSACTION_TIMEOUT_VERSION:
            self.settings = {name: value for name, value in self.settings.items() if name != "transaction_timeout"}
        connection.prepare_threshold = None
        if not self.is_pooled:
            for name, value in self.settings.items():
                connection.execute("select set_config(%s, %s, false)", (name, value))
        return connection


def complete_conninfo(url: str) -> str:
    """Complete a connection string with defaults for what it leaves open."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise Misconfigured(f"The database address is not one that PostgreSQL understands: {error}") from None
    return make_conninfo(url, client_encoding="utf8", **{k: v for k, v in CONNINFO_DEFAULTS.items() if k not in given})


def retry_on_lost_connection(
    attempt: Callable[[], T], connection: PostgresConnection, stopping: threading.Event, timeout: float = RETRY_TIMEOUT
) -> T:
    """Retry with growing pauses when the connection was lost, for `timeout` seconds or until the program stops."""
    until, pause = time.monotonic() + timeout, 0.02
    while True:
        try:
            return attempt()
        except CONNECTION_ERRORS as error:
            if not is_connection_lost(error, connection):
                raise
            connection.close()
            if time.monotonic() + pause > until or stopping.wait(pause):
                raise
            pause = min(pause * 2, 1.0)


def is_connection_lost(error: psycopg.Error, connection: PostgresConnection) -> bool:
    """Return whether the connection was lost, as opposed to an error that the server returned."""
    if isinstance(error, errors.AdminShutdown | errors.CrashShutdown | errors.CannotConnectNow):
        return True
    if _REFUSAL.search(str(error)):
        return False
    if isinstance(error, errors.ReadOnlySqlTransaction | errors.IdleInTransactionSessionTimeout):
        return True  # the old primary after a fail-over; or this process was suspended for too long
    return (
        error.sqlstate is None
        or error.sqlstate.startswith("08")
        or connection._connection is None
        or bool(connection._connection.closed)
    )


def is_outage(error: psycopg.Error) -> bool:
    """Return whether an error has nothing to do with the query, so that every other query would fail as well."""
    return isinstance(error, CONNECTION_ERRORS) and (error.sqlstate is None or error.sqlstate.startswith(_OUTAGE_CODES))


# Connections; shutdown; no connection left; lock timeout; read-only; suspended for too long.
_OUTAGE_CODES = ("08", "57P", "53300", "55P03", "25006", "25P03")

# While connecting there is only the server's message to go by.
_REFUSAL = re.compile(
    "does not exist|authentication failed|no pg_hba.conf entry|no password supplied|permission denied"
)


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Translate driver errors into one clear sentence each."""
    try:
        yield
    except psycopg.Error as error:
        raise to_store_error(error, name) from error
    except UnicodeEncodeError:
        raise InvalidRequest("A text holds half a surrogate pair, which is not a character.") from None


_ERROR_MESSAGES: tuple[tuple[tuple[type[psycopg.Error], ...], str], ...] = (
    (
        (errors.LockNotAvailable, errors.QueryCanceled),
        "The database {name} is busy: another program held what was needed for too long. Try again.",
    ),
    (
        (errors.InsufficientPrivilege,),
        "This user may not do that in the database {name}: {reason}. Give it the rights, or use its owner.",
    ),
    ((errors.DiskFull,), "The disk of the database {name} is full. Free some space; nothing was lost."),
    ((errors.ReadOnlySqlTransaction,), "The database {name} is read-only: is it a standby? Name the primary."),
    ((errors.TooManyConnections,), "The database {name} has no connection left. Raise max_connections."),
    (
        (errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction),
        "The database {name} lacks a table, column or function. Run: interlock migrate",
    ),
)


def to_store_error(error: psycopg.Error, name: str) -> Error:
    reason = _error_reason(error)
    if isinstance(error, errors.SerializationFailure):
        return Stale("The approval changed in the meantime; nothing was written. Reload it and try again.")
    if isinstance(error, psycopg.DataError) and "NUL" in str(error):
        return InvalidRequest("A text holds the character NUL, which cannot be kept.")
    if "illegal transition" in reason:
        return StoreUnavailable(f"The database {name} refused an illegal transition. Nothing was changed.")
    for kinds, sentence in _ERROR_MESSAGES:
        if isinstance(error, kinds):
            return StoreUnavailable(sentence.format(name=name, reason=reason))
    if isinstance(error, CONNECTION_ERRORS) and _REFUSAL.search(str(error)):
        return StoreUnavailable(f"The database {name} does not let this program in: {reason}. Check the address.")
    if isinstance(error, CONNECTION_ERRORS):
        return StoreUnavailable(f"The database {name} cannot be reached: {reason}. Is the server running?")
    return StoreUnavailable(f"The database {name} reported: {reason}.")


def _error_reason(error: psycopg.Error) -> str:
    """Return the first line of the server's message; the rest is about positions in statements."""
    text = error.diag.message_primary or str(error).strip()
    return re.sub(r"\s+", " ", text.splitlines()[0] if text else type(error).__name__).rstrip(".")


class AdjustableClock(Protocol):
    def __call__(self) -> int: ...

    def lower_bound(self) -> int:
        """A time that the server has certainly reached."""

    def set(self, now: int) -> None: ...


class ServerClock:
    def __init__(self) -> None:
        self._ahead = 0.0  # ahead of this process's own monotonic clock, in milliseconds

    def __call__(self) -> int:
        return int(time.monotonic() * 1000 + self._ahead)

    def lower_bound(self) -> int:
        return self() - 1

    def set(self, now: int) -> None:
        self._ahead = now - time.monotonic() * 1000


class InjectedClock:
    """A clock for tests, which set the server's clock to their own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __call__(self) -> int:
        return self._clock()

    def lower_bound(self) -> int:
        return self._clock()

    def set(self, now: int) -> None:
        """Do nothing: the injected clock cannot be set."""


class Lookup(NamedTuple):
    text: str
    values: Sequence[object]
    future: AnyFuture
    loop: asyncio.AbstractEventLoop | None


class ReadPool:
    """Reader threads: each sends the queued look-ups on its connection in one round trip.

    `max_batch` are sent at once: many for fast ones, one for those that may be slow.
    """

    def __init__(self, name: str, connections: Sequence[PostgresConnection], database: str, max_batch: int) -> None:
        self._database = database
        self._max_batch = max_batch
        self._queue: SimpleQueue[Lookup | None] = SimpleQueue()
        self._stopping = threading.Event()
        self._connections = connections
        self._threads = [
            threading.Thread(target=self._loop, args=(connection,), name=f"interlock-{name}", daemon=True)
            for connection in connections
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        for connection in self._connections:
            connection.close()

    async def fetch(self, text: str, values: Sequence[object]) -> list[Row]:
        if self._stopping.is_set():
            raise StoreUnavailable("The store is closed.")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._queue.put(Lookup(text, values, future, loop))
        found: list[Row] = await future
        return found

    def send(self, text: str, values: Sequence[object]) -> Future[Any]:
        """Send a look-up from a thread without an event loop."""
        future: Future[Any] = Future()
        self._queue.put(Lookup(text, values, future, None))
        return future

    def _loop(self, connection: PostgresConnection) -> None:
        running = True
        while running:
            batch, running = self._next()
            if batch:
                _resolve_lookups(batch, self._fetch_results(batch, connection))

    def _next(self) -> tuple[list[Lookup], bool]:
        batch: list[Lookup] = []
        item = self._queue.get()
        while item is not None:
            batch.append(item)
            if len(batch) >= self._max_batch:
                return batch, True
            try:
                item = self._queue.get_nowait()
            except Empty:
                return batch, True
        return batch, False

    def _fetch_results(self, lookups: list[Lookup], connection: PostgresConnection) -> list[object]:
        try:
            answers: list[object] = retry_on_lost_connection(
                lambda: self._run_lookups(lookups, connection), connection, self._stopping
            )
            return answers
        except psycopg.Error as error:
            if len(lookups) == 1 or is_outage(error):
                return [to_store_error(error, self._database) for _ in lookups]
        except Exception as error:  # noqa: BLE001  every error is passed to the caller, and the thread must go on
            connection.close()  # a message may be half sent
            if len(lookups) == 1:
                return [error]
        return [answer for each in lookups for answer in self._fetch_results([each], connection)]  # which failed?

    def _run_lookups(self, lookups: list[Lookup], connection: PostgresConnection) -> list[object]:
        pipeline = connection.get_pipeline()
        if connection.is_pooled:  # settings hold for a transaction only
            pipeline.send("begin")
            connection.send_settings(pipeline)
        answers = [pipeline.send(each.text, each.values) for each in lookups]
        if connection.is_pooled:
            pipeline.send("commit")
        pipeline.sync()
        return [response.rows() for response in answers]


def _resolve_lookups(lookups: Sequence[Lookup], answers: Sequence[object]) -> None:
    """Resolve all futures of one event loop in one callback."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[AnyFuture, object]]] = defaultdict(list)
    for lookup, answer in zip(lookups, answers, strict=True):
        if lookup.loop is None:
            resolve_future(lookup.future, answer)
        else:
            by_loop[lookup.loop].append((lookup.future, answer))
    for loop, settled in by_loop.items():
        call_soon(loop, _resolve_futures, settled)


def _resolve_futures(settled: list[tuple[AnyFuture, object]]) -> None:
    for future, answer in settled:
        resolve_future(future, answer)
