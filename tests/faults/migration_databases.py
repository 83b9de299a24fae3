"""Databases for migration faults: copied, migrated with a fault, and compared row by row."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import psycopg

from interlock.storage.postgres import database as postgres
from interlock.storage.sqlite.database import SqliteDatabase
from tests.faults import points
from tests.faults.points import FaultPoint
from tests.postgres import Server
from tests.support import START

Plans = list[tuple[str, str]]  # a fault, and what it is called


class MigrationDatabase(Protocol):
    broken: str

    def copy(self, template: str) -> str:
        """The address of a new database; an empty one without a template."""

    def migrate(self, url: str, plan: str) -> None:
        """In a process of its own."""

    def plans(self, url: str, clean: Callable[[Callable[[], None]], None]) -> Plans:
        """All faults there are, found by an undisturbed migration of this database."""

    def arm(self, url: str, plan: str) -> None: ...
    def disarm(self, url: str) -> None: ...
    def transfer(self, source: str, target: str) -> None:
        """Fills the tables of an older version with the rows of a newer one."""

    def dump(self, url: str) -> list[str]:
        """All that the database is made of, and all that it holds."""

    def drop(self, url: str) -> None: ...


def find_kill_points(
    folder: Path, migrate: Callable[[str], None], clean: Callable[[Callable[[], None]], None]
) -> Plans:
    log = folder / "points.txt"
    log.unlink(missing_ok=True)
    clean(lambda: migrate(f"record:{log}"))
    return [(f"kill:{n}", name) for n, name in enumerate(log.read_text().splitlines(), 1)]


class SqliteFiles:
    """Migrated as by a program that opens the file."""

    def __init__(self, folder: Path) -> None:
        self.broken = ""
        self._folder = folder
        self._numbers = itertools.count()

    def copy(self, template: str) -> str:
        path = self._folder / f"{next(self._numbers)}.db"
        if template:
            shutil.copy(path_from_url(template), path)
        return f"sqlite:///{path}"

    def migrate(self, url: str, plan: str) -> None:
        database = SqliteDatabase(path_from_url(url), lambda: START)
        if point := points.parse_fault_plan(plan):
            points.add_database_points(database, point)
        if self.broken:
            connect = database._connect
            database._connect = lambda: UnguardedConnection(connect())  # type: ignore[method-assign]

        async def once() -> None:
            await database.open()
            await database.close()

        asyncio.run(once())

    def plans(self, url: str, clean: Callable[[Callable[[], None]], None]) -> Plans:
        return find_kill_points(self._folder, lambda plan: self.migrate(url, plan), clean)

    def arm(self, url: str, plan: str) -> None: ...
    def disarm(self, url: str) -> None: ...

    def transfer(self, source: str, target: str) -> None:
        with closing(sqlite3.connect(path_from_url(target), isolation_level=None)) as connection:
            connection.execute("attach ? as newer", (str(path_from_url(source)),))
            triggers = connection.execute("select name, sql from main.sqlite_master where type = 'trigger'").fetchall()
            for name, _ in triggers:
                connection.execute(f"drop trigger main.{name}")
            for (table,) in connection.execute("select name from main.sqlite_master where type = 'table'").fetchall():
                if table not in ("migrations", "transitions"):
                    columns = ", ".join(row[1] for row in connection.execute(f"pragma main.table_info({table})"))
                    connection.execute(f"insert into main.{table} ({columns}) select {columns} from newer.{table}")
            for _, text in triggers:
                connection.execute(text)
            connection.execute("alter table main.migrations drop column since")  # as the first program made it

    def dump(self, url: str) -> list[str]:
        with closing(sqlite3.connect(path_from_url(url))) as connection:
            made = connection.execute("select type, name, sql from sqlite_master order by type, name").fetchall()
            tables = [name for kind, name, _ in made if kind == "table" and not name.startswith("found_")]
            held = [(table, row) for table in tables for row in connection.execute(f"select * from {table}")]
            sound = connection.execute("pragma integrity_check").fetchall()
        return [*map(repr, made), *map(repr, sorted(held, key=repr)), repr(sound)]

    def drop(self, url: str) -> None:
        for path in self._folder.glob(f"{path_from_url(url).name}*"):
            path.unlink()


class UnguardedConnection:
    """A connection on which every statement commits by itself."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, text: str, *values: Any) -> Any:
        return None if text in ("begin immediate", "commit", "rollback") else self._connection.execute(text, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class PostgresDatabases:
    """Migrated as by `interlock migrate`."""

    def __init__(self, server: Server) -> None:
        self.broken = ""
        self._server = server
        self._numbers = itertools.count()

    def copy(self, template: str) -> str:
        return self._server.create_database(
            f"ground{next(self._numbers)}", name_from_url(template) if template else None
        )

    def migrate(self, url: str, plan: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            point = None if plan.startswith("end") else points.parse_fault_plan(plan)
            postgres.migrate(ObservedConnection(connection, point, self.broken))  # type: ignore[arg-type]

    def plans(self, url: str, clean: Callable[[Callable[[], None]], None]) -> Plans:
        self.arm(url, "end:0")
        found = find_kill_points(self._server.folder, lambda plan: self.migrate(url, plan), clean)
        with self._sql(url) as connection:
            defined = connection.execute("select last_value from chaos.passed").fetchall()[0][0]
        self.disarm(url)
        return found + [(f"end:{n}", f"inside, behind definition {n}") for n in range(1, defined + 1)]

    def arm(self, url: str, plan: str) -> None:
        """The server counts what is defined, and ends the connection behind the n-th; a sequence is never undone."""
        action, _, number = plan.partition(":")
        if action != "end":
            return
        with self._sql(url) as connection:
            connection.execute(
                "create schema chaos; create sequence chaos.passed; create function chaos.pass() returns event_trigger "
                "language plpgsql as $$ begin if nextval('chaos.passed') = " + str(int(number)) + " "
                "then perform pg_terminate_backend(pg_backend_pid()); end if; end $$"
            )
            connection.execute("create event trigger chaos on ddl_command_end execute function chaos.pass()")

    def disarm(self, url: str) -> None:
        with self._sql(url) as connection:
            connection.execute("drop event trigger if exists chaos")
            connection.execute("drop schema if exists chaos cascade")

    def transfer(self, source: str, target: str) -> None:
        with self._sql(source) as newer, self._sql(target) as older:
            older.execute("set session_replication_role = replica")
            for table in tables(older):
                if table == "migrations":
                    continue
                found = older.execute(f'select * from "{table}" limit 0')  # type: ignore[call-overload]
                columns = ", ".join(column.name for column in found.description or ())
                with (
                    newer.cursor().copy(f"copy (select {columns} from {table}) to stdout") as out,  # type: ignore[call-overload]
                    older.cursor().copy(f"copy {table} ({columns}) from stdin") as into,  # type: ignore[call-overload]
                ):
                    for block in out:
                        into.write(block)

    def dump(self, url: str) -> list[str]:
        with self._sql(url) as connection:
            made = [connection.execute(text).fetchall() for text in SCHEMA_QUERIES]
            held = [
                (table, *connection.execute(f"select to_jsonb(t) - 'applied_at' from {table} t").fetchall())  # type: ignore[call-overload]
                for table in tables(connection)
            ]
        rows = [(table[0], row) for table in held for row in sorted(table[1:], key=repr)]
        return [repr(each) for part in (*made, rows) for each in part]

    def drop(self, url: str) -> None:
        self._server.drop_database(name_from_url(url))

    @contextmanager
    def _sql(self, url: str) -> Iterator[psycopg.Connection[Any]]:
        with self._server.connect(name_from_url(url)) as connection:
            yield connection


SCHEMA_QUERIES = (
    "select table_name, column_name, data_type, is_nullable, column_default, collation_name "
    "from information_schema.columns where table_schema = 'public' order by 1, 2",
    "select indexdef from pg_indexes where schemaname = 'public' order by 1",
    "select conrelid::regclass::text, pg_get_constraintdef(oid) from pg_constraint "
    "where connamespace = 'public'::regnamespace order by 1, 2",
    "select pg_get_triggerdef(oid) from pg_trigger where not tgisinternal order by 1",
    "select pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace order by 1",
)


def tables(connection: psycopg.Connection[Any]) -> list[str]:
    found = connection.execute("select tablename from pg_tables where schemaname = 'public' order by 1").fetchall()
    return [name for (name,) in found]


class ObservedConnection:
    """A connection whose every statement is two points; broken, it has no transactions."""

    def __init__(self, connection: psycopg.Connection[Any], point: FaultPoint | None, broken: str) -> None:
        self._connection = connection
        self._point = point
        self._broken = broken

    def execute(self, text: str | bytes, *values: Any, **more: Any) -> Any:
        shown = text.decode() if isinstance(text, bytes) else text
        name = " ".join(shown.split()[:4]).lower()
        return points.with_fault_points(self._point, name, self._connection.execute)(text, *values, **more)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with nullcontext() if self._broken else self._connection.transaction():
            yield
        points.with_fault_points(self._point, "commit", lambda: None)()


def path_from_url(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def name_from_url(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]
