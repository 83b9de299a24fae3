"""Schema migrations: numbered SQL files, each applied atomically and in order, safe to kill and to rerun.

A file's first line says `-- since: N`: programs that know migration N can work on the resulting database, so old and
new programs run side by side during an upgrade. Additions keep N low; removing what old programs use raises it, and
comes a release later.

Below it: the comparison of the database's own guards, triggers and legal transitions, with those that the migrations
make. Whoever can write to the database can also drop them, and nothing would fail.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

from interlock.core.approval.approval import TRANSITIONS
from interlock.core.errors import Misconfigured
from interlock.core.ledger.invariants import Violation
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
        with suppress(sqlite3.Error):  # the failed statement may have ended the transaction already
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


FetchText = Callable[[str, Any], Coroutine[Any, Any, list[Row]]]
MAX_ROWS = 1_000  # of the tables read here, which are small unless somebody fills them
DROPPED = "It is missing, so that the database no longer refuses illegal changes."
ALTERED = "It is not the one that Interlock made."


async def find_sqlite_violations(fetch: FetchText) -> Sequence[Violation]:
    if not await _is_known_schema("sqlite", fetch):
        return ()
    found = {str(name): str(sql) for name, sql in await fetch(_SQLITE_TRIGGERS, (MAX_ROWS,))}
    violations = list(_compare(await asyncio.to_thread(_sqlite_triggers), found))
    pairs = {(str(old), str(new)) for old, new in await fetch(_SQLITE_TRANSITIONS, (MAX_ROWS,))}
    legal = {(old, new) for old, allowed in TRANSITIONS.items() for new in allowed if old}
    for old, new in sorted(pairs ^ legal):
        told = "It is not legal, but the database accepts it." if (old, new) in pairs else "It is legal, but is gone."
        violations.append(Violation(0, f"transition {old} → {new}: {told}", "transitions", f"{old} {new}"))
    return violations


def _sqlite_triggers() -> Mapping[str, str]:
    """The definitions in a new database."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate_sqlite(connection, 0)
        return dict(connection.execute("select name, sql from sqlite_master where type = 'trigger'").fetchall())


async def find_postgres_violations(fetch: FetchText) -> Sequence[Violation]:
    """Compare triggers with their functions; of conditions, which PostgreSQL prints in its own way, the tokens."""
    if not await _is_known_schema("postgres", fetch):
        return ()
    rows = await fetch(_POSTGRES_TRIGGERS, (MAX_ROWS,))
    found = {name: (_tokens(made), body.strip(), enabled in ("O", "A")) for name, made, body, enabled in rows}
    return list(_compare(_postgres_triggers(), found))


def _postgres_triggers() -> Mapping[str, object]:
    text = "\n".join(migration.text for migration in load_migrations("postgres"))
    bodies = dict(_FUNCTION.findall(text))
    made: dict[str, object] = {}
    for dropped, name, definition, function in _TRIGGER.findall(text):
        if dropped:
            del made[dropped]
        else:
            made[name] = (_tokens(re.sub("--.*", "", definition)), bodies[function].strip(), True)
    return made


async def _is_known_schema(database: str, fetch: FetchText) -> bool:
    """A database that a newer version migrated has guards that are not known here."""
    newest = (await fetch("select max(number) from migrations", ()))[0][0]
    return bool(newest == load_migrations(database)[-1].number)


def _tokens(definition: str) -> tuple[str, ...]:
    """Columns, values and operators in any order; PostgreSQL writes `in` as `= any`, and rows column by column."""
    text = re.sub(r"\bin \(", "= (", definition.lower().replace("not in (", "<> ("))
    return tuple(sorted(_TOKEN.findall(text)))


def _compare(expected: Mapping[str, object], found: Mapping[str, object]) -> Iterator[Violation]:
    for name, made in sorted(expected.items()):
        if found.get(name) != made:
            told = ALTERED if name in found else DROPPED
            yield Violation(0, f"trigger {name}: {told}", "triggers", name)


_SQLITE_TRIGGERS = "select name, sql from sqlite_master where type = 'trigger' order by name limit ?"
_SQLITE_TRANSITIONS = "select old, new from transitions limit ?"
_POSTGRES_TRIGGERS = """
select t.tgname, pg_get_triggerdef(t.oid), p.prosrc, t.tgenabled::text
from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
where not t.tgisinternal and c.relnamespace = current_schema()::regnamespace and c.relname = 'approvals'
order by t.tgname limit ?
"""
_FUNCTION = re.compile(r"create (?:or replace )?function (\w+)\(\) returns trigger .*?\$\$(.*?)\$\$", re.DOTALL)
_TRIGGER = re.compile(
    r"^drop trigger (\w+)|^create trigger (\w+)(.*?)execute function (\w+)\(\);", re.DOTALL | re.MULTILINE
)
_TOKEN = re.compile(
    r"'[^']*'|\b(?:new|old)\.\w+|\b(?:and|true|false|null|before|after|insert|update|delete)\b|\b\d+\b|[<>=!]+"
)
