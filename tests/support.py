"""Shared helpers: a clock that tests set, services on a real database, and example calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.call import ToolCall, ToolSpec, propose
from interlock.core.decision import Acknowledgement, Approve, Reviewer
from interlock.core.ledger.chain import Verifier, Violation
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Waiting
from interlock.storage.migrate import migrate_sqlite
from interlock.storage.sqlite.database import connect
from tests.databases import Database, SqliteFile

START = 1_800_000_000_000
WRITE = ToolSpec("delete_file", "destructive", describe="Delete {path}")
READ = ToolSpec("read_file", "read")
BOB = Reviewer("bob", "reviewer", teams=frozenset({"finance"}), via="test")
EVE = Reviewer("eve", "reviewer", teams=frozenset({"finance"}), via="test")
ADA = Reviewer("ada", "admin", teams=frozenset(), via="test")
OK = Payload(result=b'"ok"')


class Clock:
    """A clock that moves only when a test moves it, with the clocks of its databases."""

    def __init__(self, now: int = START) -> None:
        self._now = now
        self._followers: dict[str, Database] = {}

    def __call__(self) -> int:
        return self._now

    @property
    def now(self) -> int:
        return self._now

    @now.setter
    def now(self, now: int) -> None:
        self._now = now
        for place in self._followers.values():
            place.set_clock(now)

    def advance(self, milliseconds: int) -> None:
        self.now += milliseconds

    def drive(self, database: Database) -> None:
        self._followers[database.url] = database
        database.set_clock(self._now)


@asynccontextmanager
async def open_services(where: Database | Path, clock: Clock, policy: str = "") -> AsyncIterator[AppServices]:
    database = SqliteFile(where) if isinstance(where, Path) else where
    if isinstance(database, SqliteFile) and not database.path.exists():
        database.path.touch(0o600)  # as the store makes it
        database.path.write_bytes(migrated_sqlite_file())
    clock.drive(database)
    services = build_services(database.url, clock)
    await services.store.open()
    try:
        await services.put_policy("default", policy or None, "ada", {})
        yield services
    finally:
        await services.store.close()


@cache
def migrated_sqlite_file() -> bytes:
    """The bytes of a migrated SQLite file: writing them takes a third of the time of a migration."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "interlock.db")
        path.touch()
        with closing(connect(path)) as connection:
            connection.execute("pragma journal_mode = wal")
            migrate_sqlite(connection, START)
        return path.read_bytes()


def call(number: int | str = 1, args: Mapping[str, object] | None = None, **more: object) -> ToolCall:
    tool = str(more.pop("tool", WRITE.name))
    run_id = str(more.pop("run_id", "run"))
    return propose(tool, {"path": "/tmp/x"} if args is None else args, run_id, f"call{number}", **more)


async def propose_pending(services: AppServices, number: int | str = 1, spec: ToolSpec = WRITE, **more: object) -> str:
    """Propose a call that needs a decision; returns the id of its approval."""
    outcome = await services.gate.check(call(number, tool=spec.name, **more), spec)
    assert isinstance(outcome, Waiting), outcome
    return outcome.approval_id


async def approve(services: AppServices, approval_id: str, reviewer: Reviewer = BOB, workspace: str = "default") -> str:
    stored = await services.store.get(workspace, approval_id)
    approval = await services.inbox.decide(
        workspace,
        approval_id,
        Approve(Acknowledgement(stored.approval.args_sha256, stored.approval.findings.alarms)),
        reviewer,
    )
    return approval.status


async def status(services: AppServices, approval_id: str, workspace: str = "default") -> str:
    return (await services.store.get(workspace, approval_id)).approval.status


async def event_kinds(services: AppServices, workspace: str = "default") -> list[str]:
    """Kinds of all ledger entries except those about keys, which remote programs add."""
    return [kind for kind in await all_event_kinds(services, workspace) if not kind.startswith("key_")]


async def all_event_kinds(services: AppServices, workspace: str = "default") -> list[str]:
    return [entry.kind async for chunk in services.store.entries(workspace) for entry in chunk]


async def ledger_violations(services: AppServices, workspace: str = "default") -> list[Violation]:
    verifier = Verifier(workspace)
    async for chunk in services.store.entries(workspace):
        verifier.feed(chunk)
    verifier.finish(await services.store.head(workspace))
    return verifier.violations
