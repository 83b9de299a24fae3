"""Numbered SQL files, applied in order, each in a transaction of its own: safe to kill and to run again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

from interlock.core.errors import Misconfigured

APPLICATION_ID = 0x494C4F4B  # "ILOK": marks a database file as ours


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    text: str

    @property
    def sha256(self) -> str:
        return sha256(self.text.encode()).hexdigest()


def load_migrations(database: str) -> list[Migration]:
    folder = files(__package__) / "migrations" / database
    found = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    return sorted((_migration(file) for file in found), key=lambda migration: migration.number)


def migrate_sqlite(connection: Any, now: int) -> list[str]:
    """Runs what is missing and gives the names; the caller holds the lock between processes."""
    _check_owner(connection)
    connection.execute(
        "create table if not exists migrations "
        "(number integer primary key, name text not null, sha256 text not null, applied_at integer not null)"
    )
    applied = {row[0]: row[1] for row in connection.execute("select number, sha256 from migrations").fetchall()}
    known = load_migrations("sqlite")
    _check_history(applied, known)
    return [_apply(connection, migration, now) for migration in known if migration.number not in applied]


def _migration(file: Any) -> Migration:
    number, _, name = file.name.removesuffix(".sql").partition("_")
    return Migration(int(number), name, file.read_text())


def _check_owner(connection: Any) -> None:
    owner = connection.execute("pragma application_id").fetchall()[0][0]
    tables = connection.execute("select count(*) from sqlite_master").fetchall()[0][0]
    if owner == APPLICATION_ID:
        return
    if owner != 0 or tables != 0:
        raise Misconfigured("This database file belongs to another program. Give Interlock a file of its own.")
    connection.execute(f"pragma application_id = {APPLICATION_ID}")


def _check_history(applied: dict[int, str], known: list[Migration]) -> None:
    by_number = {migration.number: migration for migration in known}
    for number, digest in applied.items():
        migration = by_number.get(number)
        if migration is None:
            raise Misconfigured(f"A newer Interlock made this database (migration {number}). Upgrade this program.")
        if migration.sha256 != digest:
            raise Misconfigured(f"Migration {number} is not the one that made this database. Reinstall Interlock.")


def _apply(connection: Any, migration: Migration, now: int) -> str:
    connection.execute("begin immediate")
    try:
        for statement in _statements(migration.text):
            connection.execute(statement)
        record = (migration.number, migration.name, migration.sha256, now)
        connection.execute("insert into migrations values (?, ?, ?, ?)", record)
        connection.execute("commit")
    except BaseException:
        connection.execute("rollback")
        raise
    return migration.name


def _statements(text: str) -> Iterator[str]:
    """A trigger holds semicolons, so the database's own parser says where a statement ends."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if line.strip() and sqlite3.complete_statement(statement):
            yield statement
            statement = ""
