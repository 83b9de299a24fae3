"""Interlock: rules, ledger and events on; a call that waits is a row."""

from __future__ import annotations

from typing import Any

from benchmarks.durability import PRAGMAS, SETTINGS, sqlite_durability
from benchmarks.peers import TOOL, PeerDatabase, Tool, arguments
from interlock.app.bootstrap import build_services_from_store, make_database
from interlock.core.call import ToolSpec, propose
from interlock.core.canonical import digest
from interlock.core.decision import Acknowledgement, Approve, Reviewer
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Waiting
from interlock.core.ports import ApprovalQuery
from interlock.storage.postgres.connection import PostgresConnection
from interlock.storage.postgres.database import WRITER_SETTINGS
from interlock.storage.sqlite.database import SqliteDatabase
from interlock.storage.store import SqlStore

TITLE = "Interlock"
DATABASES = ("sqlite", "postgresql")
PACKAGES = ("interlock-gate",)
SPEC = ToolSpec(TOOL, "destructive", describe="Delete {path!r}")
BOB = Reviewer("bob")


class Peer:
    async def open(self, place: PeerDatabase, tool: Tool) -> str:
        url = f"sqlite:///{place.folder / 'interlock.db'}" if place.database == "sqlite" else place.url
        database = make_database(url)
        self._parts = build_services_from_store(SqlStore(database))
        self._tool = tool
        await self._parts.store.open()
        await self._parts.store.secret_key("default")
        return sqlite_settings(database) if isinstance(database, SqliteDatabase) else postgres_settings(url)

    async def propose(self, key: str) -> tuple[str, Acknowledgement]:
        call = propose(TOOL, arguments(key), "bench", key)
        outcome = await self._parts.gate.check(call, SPEC)
        assert isinstance(outcome, Waiting)
        return outcome.approval_id, Acknowledgement(digest(call.args))  # what the card of this call shows

    async def decide(self, key: str, paused: tuple[str, Acknowledgement]) -> None:
        approval_id, seen = paused
        await self._parts.inbox.decide("default", approval_id, Approve(seen), BOB)
        execution = await self._parts.gate.start("default", approval_id, "bench")
        result = f'"{self._tool.run(key)}"'.encode()
        payload = Payload(result=result)
        await self._parts.gate.finish("default", approval_id, execution.fence, ok=True, payload=payload)

    async def listed(self) -> int:
        """All that wait, page by page."""
        found, cursor = 0, ""
        while True:
            page = await self._parts.store.list("default", ApprovalQuery(("pending",), limit=50, cursor=cursor))
            found += len(page.items)
            if not page.next:
                return found
            cursor = page.next

    async def close(self) -> None:
        await self._parts.store.close()


def sqlite_settings(database: SqliteDatabase) -> str:
    """Asked of the connection that writes."""
    found: list[str] = []

    def look(connection: Any) -> Any:
        found.append(sqlite_durability(*(connection.execute(f"pragma {name}").fetchone()[0] for name in PRAGMAS)))
        return connection

    database.wrap_connection(look)
    return found[0]


def postgres_settings(url: str) -> str:
    """Asked of a connection that is made as those that write are."""
    connection = PostgresConnection(url, WRITER_SETTINGS)
    values = [connection.get_connection().execute(f"show {name}".encode()).fetchall()[0][0] for name in SETTINGS]
    connection.close()
    return ", ".join(f"{name}={value}" for name, value in zip(SETTINGS, values, strict=True))
