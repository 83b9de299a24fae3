"""What tests share: a clock that they move by hand, and doors over a real database in a temporary folder."""

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
from tests.databases import File, Place

START = 1_800_000_000_000
WRITE = ToolSpec("delete_file", "destructive", describe="Delete {path}")
READ = ToolSpec("read_file", "read")
BOB = Reviewer("bob", "reviewer", teams=frozenset({"finance"}), via="test")
EVE = Reviewer("eve", "reviewer", teams=frozenset({"finance"}), via="test")
ADA = Reviewer("ada", "admin", teams=frozenset(), via="test")
OK = Payload(result=b'"ok"')


class Clock:
    """Time stands still until a test moves it, also on the servers that follow it."""

    def __init__(self, now: int = START) -> None:
        self._now = now
        self._followers: dict[str, Place] = {}

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

    def forward(self, milliseconds: int) -> None:
        self.now += milliseconds

    def lead(self, place: Place) -> None:
        self._followers[place.url] = place
        place.set_clock(self._now)


@asynccontextmanager
async def opened(where: Place | Path, clock: Clock, policy: str = "") -> AsyncIterator[AppServices]:
    place = File(where) if isinstance(where, Path) else where
    if isinstance(place, File) and not place.path.exists():
        place.path.touch(0o600)  # as the store makes it
        place.path.write_bytes(ready_file())
    clock.lead(place)
    parts = build_services(place.url, clock)
    await parts.store.open()
    try:
        await parts.put_policy("default", policy or None, "ada", {})
        yield parts
    finally:
        await parts.store.close()


@cache
def ready_file() -> bytes:
    """A database of SQLite that is ready: to write it takes a third of the time that it takes to make one."""
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


async def pending(parts: AppServices, number: int | str = 1, spec: ToolSpec = WRITE, **more: object) -> str:
    """The id of a new approval that waits for people."""
    outcome = await parts.gate.check(call(number, tool=spec.name, **more), spec)
    assert isinstance(outcome, Waiting), outcome
    return outcome.approval_id


async def approve(parts: AppServices, approval_id: str, reviewer: Reviewer = BOB, workspace: str = "default") -> str:
    stored = await parts.store.get(workspace, approval_id)
    approval = await parts.inbox.decide(
        workspace,
        approval_id,
        Approve(Acknowledgement(stored.approval.args_sha256, stored.approval.findings.alarms)),
        reviewer,
    )
    return approval.status


async def status(parts: AppServices, approval_id: str, workspace: str = "default") -> str:
    return (await parts.store.get(workspace, approval_id)).approval.status


async def kinds(parts: AppServices, workspace: str = "default") -> list[str]:
    """Without those about keys: programs from afar need one before anything happens."""
    return [kind for kind in await every_kind(parts, workspace) if not kind.startswith("key_")]


async def every_kind(parts: AppServices, workspace: str = "default") -> list[str]:
    return [entry.kind async for chunk in parts.store.entries(workspace) for entry in chunk]


async def faults(parts: AppServices, workspace: str = "default") -> list[Violation]:
    verifier = Verifier(workspace)
    async for chunk in parts.store.entries(workspace):
        verifier.feed(chunk)
    verifier.finish(await parts.store.head(workspace))
    return verifier.violations
