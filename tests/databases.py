"""Databases for tests: a SQLite file, or a database on the PostgreSQL server that the tests started."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from psycopg import Connection

    from tests.postgres import Server


CLOCK_TABLE = "clock_for_tests"


class Database(Protocol):
    kind: str
    url: str

    def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement on a connection of the test's own, with `?` for values."""

    def sql_without_triggers(self, text: str, *values: object) -> None:
        """Run a statement past all triggers."""

    def tables(self) -> list[str]: ...

    def set_clock(self, now: int) -> None:
        """Set the database's own clock to this time."""

    def close(self) -> None:
        """Close the test's own connection."""

    def hold_lock(self) -> AbstractContextManager[None]:
        """Hold the lock that every batch takes first."""


class SqliteFile:
    kind = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"

    def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=10)) as connection:
            return connection.execute(text, values).fetchall()

    def sql_without_triggers(self, text: str, *values: object) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=10)) as connection:
            triggers = connection.execute(
                "select name, sql from sqlite_master where type = 'trigger' and tbl_name = 'approvals'"
            ).fetchall()
            connection.execute("begin immediate")
            for name, _ in triggers:
                connection.execute(f"drop trigger {name}")
            connection.execute(text, values)
            for _, made in triggers:
                connection.execute(made)
            connection.execute("commit")

    def tables(self) -> list[str]:
        own = ("", "_data", "_idx", "_docsize", "_config")  # SQLite's, about what `docs` and `passages` hold
        hidden = {f"{index}{part}" for index in ("found", "passages_found") for part in own}
        return [
            name for (name,) in self.sql("select name from sqlite_master where type = 'table'") if name not in hidden
        ]

    def set_clock(self, now: int) -> None:
        """SQLite has none; the store is given the test's."""

    def close(self) -> None:
        """Each statement has a connection of its own."""

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        with open(f"{self.path}.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


class ServerDatabase:
    kind = "postgres"

    def __init__(self, server: Server, name: str) -> None:
        self._server = server
        self._name = name
        self.url = server.url(name)
        self._has_clock = False
        self._exit_stack = ExitStack()
        self._connection: Connection[tuple[Any, ...]] | None = None

    def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        cursor = self._connect().execute(text.replace("?", "%s").encode(), values or None)
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        self._exit_stack.close()

    def _connect(self) -> Connection[tuple[Any, ...]]:
        """One connection for all statements: a new one costs more than the statement. Opened again where it was cut."""
        if self._connection is None or self._connection.closed:
            self._exit_stack.close()
            self._connection = self._exit_stack.enter_context(self._server.connect(self._name))
        return self._connection

    def sql_without_triggers(self, text: str, *values: object) -> None:
        with self._server.connect(self._name) as connection:
            connection.execute("set session_replication_role = replica")
            connection.execute(text.replace("?", "%s").encode(), values)

    def tables(self) -> list[str]:
        return [
            name
            for (name,) in self.sql("select tablename from pg_tables where schemaname = 'public'")
            if name != CLOCK_TABLE
        ]

    def set_clock(self, now: int) -> None:
        if not self._has_clock:
            self.sql(
                "create table if not exists clock_for_tests (now bigint);"
                "insert into clock_for_tests select 0 where not exists (select from clock_for_tests);"
                "create or replace function interlock_now() returns bigint language plpgsql as "
                "'begin return (select now from clock_for_tests); end'"
            )
            self._has_clock = True
        self.sql("update clock_for_tests set now = ?", now)

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        with self._server.connect(self._name) as connection, connection.transaction():
            connection.execute("select from heads for update")
            yield


def migrated_template(server: Server) -> str:
    """The name of a migrated database to clone."""
    return server.template("interlock_ready", _migrate)


def _migrate(url: str) -> None:
    import psycopg

    from interlock.storage.postgres.database import migrate

    with psycopg.connect(url, autocommit=True) as connection:
        migrate(connection)
