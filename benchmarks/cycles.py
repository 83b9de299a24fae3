"""One cycle = propose, pending is durable, decided, started, tool has run, finished is durable."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlock.core.call import ToolSpec, propose
from interlock.core.canonical import digest
from interlock.core.decision import Approve, Reviewer, Seen
from interlock.core.event import Payload
from interlock.core.outcome import Proceed, Waiting
from interlock.stores.sqlite import SqliteDatabase
from interlock.stores.store import SqlStore
from interlock.wiring import Parts, wall_clock, wire_store

SPEC = ToolSpec("delete_file", "destructive", describe="Delete {path!r}")
BOB = Reviewer("bob")


@dataclass
class Statements:
    """Every statement that a run of Interlock sent to the database, to be sent again without Interlock."""

    before: Path
    sent: list[tuple[str, str, Sequence[Any]]] = field(default_factory=list)


class Recorder:
    """A connection that writes down what it is asked."""

    def __init__(self, connection: Any, statements: Statements) -> None:
        self._connection = connection
        self._sent = statements.sent

    def execute(self, text: str, values: Sequence[Any] = ()) -> Any:
        self._sent.append(("one", text, values))
        return self._connection.execute(text, values)

    def executemany(self, text: str, values: Sequence[Any]) -> Any:
        self._sent.append(("many", text, values))
        return self._connection.executemany(text, values)

    def close(self) -> None:
        self._connection.close()


@asynccontextmanager
async def opened(folder: Path, statements: Statements | None = None) -> AsyncIterator[Parts]:
    database = SqliteDatabase(folder / "bench.db", wall_clock)
    parts = wire_store(SqlStore(database))
    await parts.store.open()
    try:
        await parts.store.secret_key("default")
        await cycle(parts, "warm", [])
        if statements is not None:
            copy_database(folder / "bench.db", statements.before)
            database.record(lambda connection: Recorder(connection, statements))
        yield parts
    finally:
        await parts.store.close()


async def cycle(parts: Parts, key: str, latencies: list[float]) -> None:
    call = propose("delete_file", {"path": "/srv/x/" + "a" * 120, "key": key}, "bench", key)
    outcome = await parts.gate.check(call, SPEC)
    assert isinstance(outcome, Waiting)
    seen = Seen(digest(call.args))  # what the card of this call shows
    begun = time.perf_counter()
    await parts.inbox.decide("default", outcome.approval_id, Approve(seen), BOB)
    execution = await parts.gate.start("default", outcome.approval_id, "bench")
    latencies.append(time.perf_counter() - begun)  # the tool would run here
    payload = Payload(result=b'"ok"')
    await parts.gate.finish("default", outcome.approval_id, execution.fence, ok=True, payload=payload)


async def run_cycles(parts: Parts, count: int, at_once: int, tag: str) -> tuple[float, list[float]]:
    """Cycles per second and the times from decision to tool."""
    latencies: list[float] = []
    numbers = iter(range(count))

    async def agent() -> None:
        for number in numbers:
            await cycle(parts, f"{tag}{number}", latencies)

    begun = time.perf_counter()
    await asyncio.gather(*(agent() for _ in range(at_once)))
    return count / (time.perf_counter() - begun), latencies


def replay(statements: Statements, count: int) -> float:
    """The same-statement floor: cycles per second with nothing but the database."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "floor.db"
        copy_database(statements.before, path)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.execute("pragma wal_autocheckpoint = 4000")
        begun = time.perf_counter()
        for kind, text, values in statements.sent:
            if kind == "one":
                connection.execute(text, values).fetchall()
            else:
                connection.executemany(text, values)
        spent = time.perf_counter() - begun
        connection.close()
    return count / spent


def copy_database(source: Path, target: Path) -> None:
    with sqlite3.connect(source) as old, sqlite3.connect(target) as new:
        old.backup(new)
    old.close()
    new.close()


async def allowed_reads(parts: Parts, count: int) -> float:
    """Seconds for one allowed read, all in."""
    spec = ToolSpec("read_file", "read")
    begun = time.perf_counter()
    for number in range(count):
        call = propose("read_file", {"path": "/srv/x/" + "a" * 120, "key": "k"}, "bench", f"read{number}")
        assert isinstance(await parts.gate.check(call, spec), Proceed)
    return (time.perf_counter() - begun) / count
