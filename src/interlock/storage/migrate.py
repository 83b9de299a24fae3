"""Schema migrations: numbered SQL files, each applied atomically and in order, safe to kill and to rerun.

A file's first line says `-- since: N`: programs that know migration N can work on the resulting database, so old and
new programs run side by side during an upgrade. Additions keep N low; removing what old programs use raises it, and
comes a release later.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

from interlock.core.errors import Misconfigured
from interlock.storage.engine.rows import Row

APPLICATION_ID = 0x494C4F4B  # "ILOK": marks a database file as ours


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    text: str
    since: int

    @property
    def sha256(self) -> str:
        return sha256(self.text.encode()).hexdigest()

    def row_values(self, now: int) -> tuple[object, ...]:
        return (self.number, self.name, self.sha256, now, self.since)


def load_migrations(database: str) -> list[Migration]:
    folder = files(__package__) / "migrations" / database
    found = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    return sorted((_read_migration(file) for file in found), key=lambda migration: migration.number)


def missing_migrations(applied: Iterable[Row], known: list[Migration]) -> list[Migration]:
    """Return the migrations left to apply. `applied` are rows of number, sha256 and since.

    Raises Misconfigured for a database that a newer or another version made.
    """
    by_number, seen = {migration.number: migration for migration in known}, set()
    newest = max(by_number, default=0)
    for number, digest, since in applied:
        migration = by_number.get(number)
        if migration is None and since > newest:
            raise Misconfigured(f"A newer Interlock made this database (migration {number}). Upgrade this program.")
        if migration is not None and migration.sha256 != digest:
            raise Misconfigured(f"Migration {number} is not the one that made this database. Reinstall Interlock.")
        seen.add(number)
    return [migration for migration in known if migration.number not in seen]


def migrate_sqlite(connection: Any, now: int) -> list[str]:
    """Apply missing migrations and return their names; the caller holds the lock between processes."""
    _check_owner(connection)
    connection.execute(
        "create table if not exists migrations (number integer primary key, name text not null, "
        "sha256 text not null, applied_at integer not null, since integer not null default 0)"
    )
    if "since" not in {row[1] for row in connection.execute("pragma table_info(migrations)").fetchall()}:
        connection.execute("alter table migrations add column since integer not null default 0")
    applied = connection.execute("select number, sha256, since from migrations").fetchall()
    return [_apply(connection, migration, now) for migration in missing_migrations(applied, load_migrations("sqlite"))]


def _read_migration(file: Any) -> Migration:
    number, _, name = file.name.removesuffix(".sql").partition("_")
    text = file.read_text()
    first = text.partition("\n")[0]
    since = first.removeprefix("-- since: ") if first.startswith("-- since: ") else number
    return Migration(int(number), name, text, int(since))


def _check_owner(connection: Any) -> None:
    owner = connection.execute("pragma application_id").fetchall()[0][0]
    tables = connection.execute("select count(*) from sqlite_master").fetchall()[0][0]
    if owner == APPLICATION_ID:
        return
    if owner != 0 or tables != 0:
        raise Misconfigured("This database file belongs to another program. Give Interlock a file of its own.")
    connection.execute(f"pragma application_id = {APPLICATION_ID}")


def _apply(connection: Any, migration: Migration, now: int) -> str:
    connection.execute("begin immediate")
    try:
        for statement in _statements(migration.text):
            connection.execute(statement)
        connection.execute("insert into migrations values (?, ?, ?, ?, ?)", migration.row_values(now))
        connection.execute("commit")
    except BaseException:
        connection.execute("rollback")
        raise
    return migration.name


def _statements(text: str) -> Iterator[str]:
    """Split a script into statements with SQLite's own parser, since triggers contain semicolons."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if line.strip() and sqlite3.complete_statement(statement):
            yield statement
            statement = ""
