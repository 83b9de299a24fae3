"""Fault injection: named points before and after every statement and effect, wrapped around Interlock from outside.

    python -m tests.faults.points PLAN PROGRAM [ARGUMENT …]

runs a program that uses the library with a plan; `http_server` does so with commands. A plan is one line: `record:FILE`
writes the name of every point that is passed; `kill:N`, `raise:N`, `stop:N` and `delay:N:MILLISECONDS` act at the N-th
point, counted from 1. Instead of N, `NAME#K` is the K-th time that this name comes: the order of threads varies, so
that number N in one run may be another point in the next.
"""

from __future__ import annotations

import inspect
import itertools
import os
import runpy
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

from interlock.app import bootstrap
from interlock.app.bootstrap import AppServices, build_services
from interlock.core.ports import Clock
from interlock.notify.channel_queue import ChannelQueue
from interlock.runtime.functions import FunctionTool
from interlock.sdk.interlock import Interlock
from interlock.sdk.transport import Transport
from interlock.storage.engine.database import Database
from interlock.storage.sqlite.database import SqliteDatabase
from interlock.storage.tables.deliveries import SqlDeliveries

if TYPE_CHECKING:  # a program on SQLite needs no psycopg
    from psycopg import Connection

    from interlock.storage.postgres.batches import Statements
    from interlock.storage.postgres.connection import ReadPool
    from interlock.storage.postgres.database import PostgresDatabase
    from interlock.storage.postgres.pipeline import Pipeline

FaultPoint = Callable[[str], None]


def main() -> None:
    _, plan, program, *arguments = sys.argv
    if point := parse_fault_plan(plan):
        add_library_points(point)
    sys.argv = [program, *arguments]
    runpy.run_path(program, run_name="__main__")


# Plans


class InjectedFault(Exception):
    """The exception of a `raise` plan."""


def parse_fault_plan(text: str) -> FaultPoint | None:
    """The hook for a plan; None without one, so that nothing is wrapped."""
    if not text:
        return None
    action, _, rest = text.partition(":")
    if action == "record":
        log = os.open(rest, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return lambda name: _record(log, name)
    where, _, extra = rest.rpartition(":") if action == "delay" else (rest, "", "0")
    act = {"kill": _kill, "raise": _raise, "stop": _stop, "delay": lambda _: time.sleep(int(extra) / 1000)}.get(action)
    name, _, number = where.rpartition("#")
    if act is None or not number.isdigit() or not extra.isdigit():
        raise ValueError(
            f"The fault plan {text!r} is not record:FILE, kill:N, raise:N, stop:N or delay:N:MS, with N or NAME#K."
        )
    return _nth_pass(name, int(number), act)


def _nth_pass(name: str, number: int, act: FaultPoint) -> FaultPoint:
    passed = itertools.count(1)

    def point(here: str) -> None:
        if name in ("", here) and next(passed) == number:
            act(here)

    return point


def _record(log: int, name: str) -> None:
    os.write(log, f"{name}\n".encode())


def _kill(_: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop(_: str) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _raise(name: str) -> None:
    raise InjectedFault(name)


# Programs and workers: all that they open and send from now on


def add_library_points(point: FaultPoint) -> None:
    """Add points to a program that uses the library: its databases, its requests to a server, and its tools."""
    make, gate = bootstrap.make_database, Interlock._gate_function

    def make_database(url: str, clock: Clock | None = None) -> Database:
        database = make(url, clock)
        add_database_points(database, point)
        return database

    def gate_function(self: Interlock, function: FunctionTool) -> Callable[..., Any]:
        return gate(self, replace(function, body=with_fault_points(point, "the tool", function.body)))

    bootstrap.make_database = make_database
    Interlock._gate_function = gate_function  # type: ignore[method-assign]
    _wrap(point, "the server", Transport, "_send_once")


def add_delivery_points(point: FaultPoint) -> None:
    """Add points to a program that sends messages: `interlock worker` and `serve`."""
    _wrap_after(point, "claim", SqlDeliveries, "lease")
    _wrap(point, "send", ChannelQueue, "_send_or_update")
    _wrap_after(point, "record", ChannelQueue, "_record_sent")


# Databases


def build_services_with_points(url: str, point: FaultPoint | None, clock: Clock | None = None) -> AppServices:
    services = build_services(url, clock)
    if point is not None:
        add_database_points(services.store._database, point)
    return services


def add_database_points(database: Database, point: FaultPoint) -> None:
    """Add points to a database that is not open yet; others in the same process stay as they are.

    There are none in the polling for other programs' commits, which changes nothing, and in PostgreSQL's own
    notifications, which are hints.
    """
    if isinstance(database, SqliteDatabase):
        _add_sqlite_points(database, raise_faults_as(point, _disk_error))
    else:
        import psycopg

        _add_postgres_points(database, raise_faults_as(point, psycopg.OperationalError))  # type: ignore[arg-type]


def _add_sqlite_points(database: SqliteDatabase, point: FaultPoint) -> None:
    names = {text: name for name, text in database._queries.items()}
    connect = database._new_connection

    def new_connection() -> Any:
        return FaultyConnection(connect(), point, names)

    database._new_connection = database._readers._new_connection = new_connection
    _wrap(point, "create", database, "_create_file")
    _wrap(point, "open lock", database, "_open_lock")
    _wrap(point, "flock", database, "_flock")


def _add_postgres_points(database: PostgresDatabase, point: FaultPoint) -> None:
    read, make = database._read_schema, database._make_pool
    names: dict[str, str] = {}

    def read_schema(connection: Connection[Any]) -> None:
        read(FaultyConnection(connection, point, {}))  # type: ignore[arg-type]
        names.update(_query_names(database._batches.statements))

    def make_pool(name: str, settings: Mapping[str, str], **sizes: int) -> ReadPool:
        pool = make(name, settings, **sizes)
        _wrap(point, f"{name} look-up", pool, "_run_lookups")
        for connection in pool._connections:
            _wrap(point, "connect", connection, "_connect")
        return pool

    _wrap(point, "connect", database._writer_connection, "_connect")
    database._read_schema = read_schema  # type: ignore[method-assign]
    database._make_pool = make_pool  # type: ignore[method-assign]
    database._batches.wrap_pipeline = lambda pipeline: FaultyPipeline(pipeline, point, names)


def raise_faults_as(point: FaultPoint, error: Callable[[str], Exception]) -> FaultPoint:
    """The same point, but a fault is raised as an error of the database."""

    def failed(name: str) -> None:
        try:
            point(name)
        except InjectedFault as fault:
            raise error(f"injected {fault}") from fault

    return failed


class FaultyConnection:
    """A database connection with two points for every statement, named after the statement."""

    def __init__(self, connection: Any, point: FaultPoint, names: Mapping[str, str]) -> None:
        self._connection = connection
        self._point = point
        self._names = names

    def execute(self, statement: Any, *args: Any, **kwargs: Any) -> Any:
        return with_fault_points(self._point, self._name(statement), self._connection.execute)(
            statement, *args, **kwargs
        )

    def executemany(self, statement: str, values: Any) -> Any:
        return with_fault_points(self._point, self._name(statement), self._connection.executemany)(statement, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._point("before begin")
        with self._connection.transaction():
            self._point("after begin")
            yield
            self._point("before commit")
        self._point("after commit")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def _name(self, statement: str | bytes) -> str:
        text = statement.decode() if isinstance(statement, bytes) else statement
        words = " ".join(line for line in text.splitlines() if not line.startswith("--")).split()
        return self._names.get(text) or " ".join(words[:4]).lower()


class FaultyPipeline:
    """A pipeline of PostgreSQL with two points for every statement, and around the two halves of a round trip."""

    def __init__(self, pipeline: Pipeline, point: FaultPoint, names: Mapping[str, str]) -> None:
        self._pipeline = pipeline
        self._point = point
        self._names = names

    def send(self, text: str, values: Any = ()) -> Any:
        name = self._names.get(text) or " ".join(text.split()[:4])
        return with_fault_points(self._point, name, self._pipeline.send)(text, values)

    def sync(self) -> None:
        with_fault_points(self._point, "all is sent", self._pipeline.send_all)()
        with_fault_points(self._point, "all is answered", self._pipeline.receive_all)()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipeline, name)


def _query_names(statements: Statements) -> dict[str, str]:
    """The name of each statement by its text, in all of its forms."""
    names = {text: name for shape in (statements.single, statements.bulk_reads) for name, text in shape.items()}
    names |= {statement.text: name for name, statement in statements.bulk_writes.items()}
    return names | {statement.single: name for name, statement in statements.bulk_writes.items()}


def _disk_error(text: str) -> sqlite3.Error:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    return error


# Wrappers


def with_fault_points(point: FaultPoint | None, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function with two points; the function itself without a plan."""
    if point is None:
        return function
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def faulty_async(*args: Any, **kwargs: Any) -> Any:
            point(f"before {name}")
            result = await function(*args, **kwargs)
            point(f"after {name}")
            return result

        return faulty_async

    @wraps(function)
    def faulty(*args: Any, **kwargs: Any) -> Any:
        point(f"before {name}")
        result = function(*args, **kwargs)
        point(f"after {name}")
        return result

    return faulty


def _wrap(point: FaultPoint, name: str, owner: Any, method: str) -> None:
    """Wrap a method of a class, or of one object."""
    setattr(owner, method, with_fault_points(point, name, getattr(owner, method)))


def _wrap_after(point: FaultPoint, name: str, owner: type, method: str) -> None:
    """Wrap an async method with the second of the points alone."""
    function = getattr(owner, method)

    @wraps(function)
    async def faulty(*args: Any, **kwargs: Any) -> Any:
        result = await function(*args, **kwargs)
        point(f"after {name}")
        return result

    setattr(owner, method, faulty)


if __name__ == "__main__":
    main()
