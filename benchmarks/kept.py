"""A table for the frameworks that bring none: what they leave to the application, done in the leanest way."""

from __future__ import annotations

import sqlite3
from typing import Any, Protocol

from psycopg_pool import AsyncConnectionPool

from benchmarks.durability import PRAGMAS, postgres_durability, sqlite_durability
from benchmarks.peers import Place


class Table(Protocol):
    async def insert(self, key: str, state: str) -> None: ...
    async def state(self, key: str) -> str: ...
    async def mark(self, key: str, status: str, result: str) -> None: ...
    async def durability(self) -> str: ...
    async def close(self) -> None: ...


async def table(place: Place) -> Table:
    return SqliteTable(place) if place.database == "sqlite" else await PostgresTable.opened(place.url)


class SqliteTable:
    def __init__(self, place: Place) -> None:
        self._connection = sqlite3.connect(place.folder / "kept.db", isolation_level=None)
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma synchronous = full")
        self._connection.execute("create table paused (key text primary key, state text, status text, result text)")

    async def insert(self, key: str, state: str) -> None:
        self._connection.execute("insert into paused values (?, ?, 'pending', null)", (key, state))

    async def state(self, key: str) -> str:
        return str(self._connection.execute("select state from paused where key = ?", (key,)).fetchone()[0])

    async def mark(self, key: str, status: str, result: str) -> None:
        self._connection.execute("update paused set status = ?, result = ? where key = ?", (status, result, key))

    async def durability(self) -> str:
        return sqlite_durability(*(self._connection.execute(f"pragma {name}").fetchone()[0] for name in PRAGMAS))

    async def close(self) -> None:
        self._connection.close()


class PostgresTable:
    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        self._pool = pool

    @classmethod
    async def opened(cls, url: str) -> PostgresTable:
        pool = AsyncConnectionPool(url, min_size=32, max_size=32, open=False, kwargs={"autocommit": True})
        await pool.open(wait=True)
        async with pool.connection() as connection:
            await connection.execute("create table paused (key text primary key, state text, status text, result text)")
        return cls(pool)

    async def insert(self, key: str, state: str) -> None:
        async with self._pool.connection() as connection:
            await connection.execute("insert into paused values (%s, %s, 'pending', null)", (key, state))

    async def state(self, key: str) -> str:
        async with self._pool.connection() as connection:
            found = await connection.execute("select state from paused where key = %s", (key,))
            row = await found.fetchone()
        assert row is not None
        return str(row[0])

    async def mark(self, key: str, status: str, result: str) -> None:
        async with self._pool.connection() as connection:
            statement = "update paused set status = %s, result = %s where key = %s"
            await connection.execute(statement, (status, result, key))

    async def durability(self) -> str:
        async with self._pool.connection() as connection:
            return await postgres_durability(connection)

    async def close(self) -> None:
        await self._pool.close()
