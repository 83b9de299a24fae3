"""Comparison of the database's own guards with those that the migrations make: triggers and legal transitions.

Whoever can write to the database can also drop what makes it refuse illegal transitions, and nothing would fail.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from interlock.core.approval.approval import TRANSITIONS
from interlock.core.ledger.invariants import Violation
from interlock.storage.engine.rows import Row
from interlock.storage.migrate import load_migrations, migrate_sqlite

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
