"""Migrations of a PostgreSQL database: all that are missing in one transaction, under a lock of the database."""

from __future__ import annotations

from typing import Any

from psycopg import Connection

from interlock.core.errors import Misconfigured
from interlock.storage.migrate import Migration, load_migrations, missing_migrations
from interlock.storage.postgres.bulk import ColumnTypes

ADVISORY_LOCK = 0x494C4F4B  # "ILOK"
_CREATE_TABLE = (
    "create table if not exists migrations (number integer primary key, name text not null, "
    "sha256 text not null, applied_at bigint not null, since integer not null)"
)
# One statement, one snapshot: a migration that commits meanwhile is seen whole or not at all.
_COUNT_TABLES = (
    "select coalesce(bool_or(tablename = 'migrations'), false), count(*) "
    "from pg_catalog.pg_tables where schemaname = current_schema()"
)


def migrate(connection: Connection[Any]) -> list[str]:
    """Whole or not at all: killed half-way, it has changed nothing. A second one waits, and finds nothing to do."""
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (ADVISORY_LOCK,))
        connection.execute("set local lock_timeout = '10s'")  # waiting for a long reader must not hold up everybody
        connection.execute("set local statement_timeout = 0")  # an index on a large table takes its time
        _is_ours(connection)
        connection.execute(_CREATE_TABLE)
        applied = connection.execute("select number, sha256, since from migrations").fetchall()
        return [_apply(connection, migration) for migration in missing_migrations(applied, load_migrations("postgres"))]


def pending_migrations(connection: Connection[Any]) -> str:
    """Empty when there is nothing to do, `all` for a database that is empty, else the names of what is missing."""
    if not _is_ours(connection):
        return "all"
    applied = connection.execute("select number, sha256, since from migrations").fetchall()
    return ", ".join(each.name for each in missing_migrations(applied, load_migrations("postgres")))


def column_types(connection: Connection[Any]) -> ColumnTypes:
    found = connection.execute(
        "select table_name, column_name, data_type from information_schema.columns "
        "where table_schema = current_schema()"
    ).fetchall()
    return {(table, column): kind for table, column, kind in found}


def _is_ours(connection: Connection[Any]) -> bool:
    """False when it is empty. Tables of others would be hidden, or worse, met under the same names."""
    ours, tables = connection.execute(_COUNT_TABLES).fetchall()[0]
    if tables and not ours:
        raise Misconfigured(
            "This database holds the tables of another program. Give Interlock a database of its own, or a schema: "
            "postgresql://…/database?options=-csearch_path%3Dinterlock"
        )
    return bool(ours)


def _apply(connection: Connection[Any], migration: Migration) -> str:
    connection.execute(migration.text.encode(), prepare=False)  # several statements at once
    now = connection.execute("select interlock_now()").fetchall()[0][0]
    connection.execute("insert into migrations values (%s, %s, %s, %s, %s)", migration.record(now))
    return migration.name
