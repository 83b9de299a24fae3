"""Where a test keeps its approvals: a file of SQLite, or a database on the PostgreSQL that the tests started."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tests.postgres import Server

Changed = Callable[[int], None]


class Place(Protocol):
    kind: str
    url: str

    def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Runs a statement as an outsider would, with `?` for values."""

    def tables(self) -> list[str]: ...

    def set_clock(self, now: int) -> None:
        """From now on the database's own clock stands at this time."""


class File:
    kind = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"

    def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=10)) as connection:
            return connection.execute(text, values).fetchall()

    def tables(self) -> list[str]:
        hidden = {"found", "found_data", "found_idx", "found_docsize", "found_config"}  # SQLite's own, about `docs`
        return [
            name for (name,) in self.sql("select name from sqlite_master where type = 'table'") if name not in hidden
        ]

    def set_clock(self, now: int) -> None:
        """SQLite has none; the store is given the test's."""


class Base:
    kind = "postgres"

    def __init__(self, server: Server, name: str) -> None:
        self._server = server
        self._name = name
        self.url = server.url(name)

    def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        with self._server.connect(self._name) as connection:
            cursor = connection.execute(text.replace("?", "%s").encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def tables(self) -> list[str]:
        return [name for (name,) in self.sql("select tablename from pg_tables where schemaname = 'public'")]

    def set_clock(self, now: int) -> None:
        self.sql(f"create or replace function interlock_now() returns bigint language sql as 'select {now}::bigint'")


def migrated(server: Server) -> str:
    """The name of a database to clone, ready to be used."""
    return server.template("interlock_ready", _migrate)


def _migrate(url: str) -> None:
    import psycopg

    from interlock.stores.postgres.migrate import migrate

    with psycopg.connect(url, autocommit=True) as connection:
        migrate(connection)
