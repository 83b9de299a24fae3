"""A table for frameworks without storage: the application's part, done in the leanest way."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from psycopg import AsyncConnection

from benchmarks.durability import PRAGMAS, postgres_durability, sqlite_durability
from benchmarks.peers import PeerDatabase

Connection = AsyncConnection[tuple[Any, ...]]


class Table(Protocol):
    async def insert(self, key: str, state: str) -> None: ...
    async def state(self, key: str) -> str: ...
    async def mark(self, key: str, status: str, result: str) -> None: ...
    async def durability(self) -> str: ...
    async def close(self) -> None: ...


async def open_table(place: PeerDatabase) -> Table:
    return SqliteTable(place) if place.database == "sqlite" else await PostgresTable.open(place.url)


class SqliteTable:
    def __init__(self, place: PeerDatabase) -> None:
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
    """With so many connections, each of which serves one statement at a time."""

    CONNECTIONS = 32

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._connections = connections
        self._free: asyncio.Queue[Connection] = asyncio.Queue()
        for connection in connections:
            self._free.put_nowait(connection)

    @classmethod
    async def open(cls, url: str) -> PostgresTable:
        connections = [await Connection.connect(url, autocommit=True) for _ in range(cls.CONNECTIONS)]
        await connections[0].execute("create table paused (key text primary key, state text, status text, result text)")
        return cls(connections)

    async def insert(self, key: str, state: str) -> None:
        async with self._connection() as connection:
            await connection.execute("insert into paused values (%s, %s, 'pending', null)", (key, state))

    async def state(self, key: str) -> str:
        async with self._connection() as connection:
            found = await connection.execute("select state from paused where key = %s", (key,))
            row = await found.fetchone()
        assert row is not None
        return str(row[0])

    async def mark(self, key: str, status: str, result: str) -> None:
        async with self._connection() as connection:
            statement = "update paused set status = %s, result = %s where key = %s"
            await connection.execute(statement, (status, result, key))

    async def durability(self) -> str:
        async with self._connection() as connection:
            return await postgres_durability(connection)

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        """One that is free, and free again afterwards."""
        connection = await self._free.get()
        try:
            yield connection
        finally:
            self._free.put_nowait(connection)
