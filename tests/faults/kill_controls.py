"""Red controls of the kill suites: copies of Interlock that are broken on purpose."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psycopg

from interlock.app import worker
from interlock.app.gate import Execution, Gate
from interlock.app.inbox import Inbox
from interlock.core.approval import execute as execution
from interlock.core.approval.approval import Approval
from interlock.core.ledger.event import Change, Moment, Payload, Stored
from interlock.core.outcome import Outcome, Proceed
from interlock.storage.postgres.batches import BatchRunner, BatchSession
from interlock.storage.postgres.pipeline import PipelineResult
from interlock.storage.sqlite.database import SqliteDatabase
from tests.faults import scenarios
from tests.faults.points import FaultyConnection


@dataclass(frozen=True)
class BrokenCopy:
    """What is wrong with it, how to break it, and where it is hit so that it shows: points with these words.

    `noticed` are parts of what `invariants` reports of it, of which one has to be there.
    """

    description: str
    apply: Callable[[], None]
    victims: tuple[str, ...]
    variant: str
    words: tuple[str, ...]
    noticed: tuple[str, ...]
    hits: int = 16

    def is_hit(self, name: str) -> bool:
        return not self.words or any(word in name for word in self.words)


def no_transaction() -> None:
    """Every statement commits by itself, as a store without BEGIN would."""
    connect, send = SqliteDatabase._connect, BatchSession.send

    class Autocommit:
        def __init__(self, connection: Any) -> None:
            self._connection = connection

        def execute(self, text: str, values: Any = ()) -> Any:
            if text in ("begin immediate", "commit", "rollback"):
                return None
            return self._connection.execute(text, values)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

    def sent(self: BatchSession, text: str, values: Any = ()) -> PipelineResult:
        if text.split(maxsplit=1)[0] in ("begin", "commit", "rollback"):
            return PipelineResult()
        answer = send(self, text, values)
        self._pipeline.sync()
        return answer

    @contextmanager
    def none(self: FaultyConnection) -> Iterator[None]:
        yield

    SqliteDatabase._connect = lambda self: Autocommit(connect(self))  # type: ignore[method-assign]
    BatchSession.send = sent  # type: ignore[method-assign]
    FaultyConnection.transaction = none  # type: ignore[method-assign]


def start_after_effect() -> None:
    """The claim is only written with the result, as frameworks do that record a step when it is done."""
    real_start, real_finish = Gate.start, Gate.finish
    claims: dict[str, tuple[str, int]] = {}

    async def start(
        self: Gate, workspace: str, approval_id: str, runner: str, lease: int = 0, spec_sha256: str = ""
    ) -> Execution:
        stored = await self._store.get(workspace, approval_id)
        claims[approval_id] = (runner, lease)
        return Execution(approval_id, stored.approval.lease.fence + 1, stored.payload.args or b"{}", approval_id, 0)

    async def finish(self: Gate, workspace: str, approval_id: str, fence: int, *, ok: bool, payload: Payload) -> Any:
        runner, lease = claims[approval_id]
        execution = await real_start(self, workspace, approval_id, runner, lease)
        return await real_finish(self, workspace, approval_id, execution.fence, ok=ok, payload=payload)

    Gate.start, Gate.finish = start, finish  # type: ignore[method-assign,assignment]


def silent_rerun() -> None:
    """A call of a dead runner is run again, idempotent or not; the triggers that would refuse it are removed."""
    settle, start, tick = Gate._resolve_outcome, Gate.start, worker.fire_next_timer

    async def settled(self: Gate, stored: Stored) -> Outcome:
        if is_left(self, stored):
            return Proceed(stored.payload.args or b"{}", stored.approval.id)
        return await settle(self, stored)

    async def started(self: Gate, workspace: str, approval_id: str, *args: Any) -> Execution:
        stored = await self._store.get(workspace, approval_id)
        if is_left(self, stored):
            return Execution(approval_id, stored.approval.lease.fence, stored.payload.args or b"{}", approval_id, 0)
        return await start(self, workspace, approval_id, *args)

    def ticked(approval: Approval, moment: Moment, *, runner_is_dead: bool = False) -> Change[Approval]:
        return tick(approval, moment)

    def is_left(self: Gate, stored: Stored) -> bool:
        return stored.approval.status == "running" and self._is_dead(stored.approval.lease.runner)

    Gate._resolve_outcome, Gate.start = settled, started  # type: ignore[method-assign,assignment]
    worker.fire_next_timer = ticked  # type: ignore[attr-defined]


def no_fence() -> None:
    """A finish counts under any fence, and however late."""
    execution._holds_lease = lambda approval, fence, moment: approval.status in ("running", "unknown")


def acknowledge_before_commit() -> None:
    """A decision is acknowledged before its commit."""
    decide, writing = Inbox.decide, set()  # type: ignore[var-annotated]

    async def decided(self: Inbox, workspace: str, approval_id: str, decision: Any, reviewer: Any) -> Any:
        async def write() -> None:
            with suppress(Exception):
                await decide(self, workspace, approval_id, decision, reviewer)

        writing.add(asyncio.create_task(write()))
        await asyncio.sleep(0)
        return (await self._store.get(workspace, approval_id)).approval

    Inbox.decide = decided  # type: ignore[method-assign]


def first_arguments() -> None:
    """What runs is what the agent proposed, not what a person made of it."""
    start = Gate.start

    async def started(self: Gate, *args: Any, **kwargs: Any) -> Execution:
        return (await start(self, *args, **kwargs))._replace(args=b'{"amount":10}')

    Gate.start = started  # type: ignore[method-assign]


def assume_commit() -> None:
    """An error while it commits is taken for a success."""
    finish, execute = BatchRunner._finish, FaultyConnection.execute

    def finished(self: BatchRunner, *args: Any) -> None:
        try:
            finish(self, *args)
        except psycopg.OperationalError as error:
            if "injected" not in str(error):  # a server that says no is still heard
                raise
            self._connection.close()

    def executed(self: FaultyConnection, statement: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return execute(self, statement, *args, **kwargs)
        except sqlite3.OperationalError:
            if statement != "commit":
                raise

    BatchRunner._finish = finished  # type: ignore[method-assign,assignment]
    BatchRunner._commit_in_one_trip = lambda *_: None  # type: ignore[method-assign,assignment]
    FaultyConnection.execute = executed  # type: ignore[method-assign]


def write_files_in_place() -> None:
    """Files are written under the name that they are to have."""

    @contextmanager
    def straight(path: Path) -> Iterator[IO[bytes]]:
        with path.open("wb", buffering=0) as file:
            yield file

    def copied(source: Path, target: Path, answers: Any) -> None:
        content = source.read_bytes()
        with target.open("wb", buffering=0) as file:
            for start in range(0, len(content), 4096):
                answers(0, 0)
                file.write(content[start : start + 4096])

    scenarios._atomic_file = straight
    scenarios.make_backup = copied  # type: ignore[assignment]


EFFECT = ("the tool",)
COMMIT = ("update_approval", "advance_approval", "commit", "all is sent")
TWICE = ("ran 2 times",)
LATE = ("a late finish was taken",)
LOST_DECISION = "a decision that was acknowledged is lost"
BROKEN_COPIES = {
    "no-transaction": BrokenCopy(
        "every statement commits by itself",
        no_transaction,
        ("program", "reviewer", "worker", "opener"),
        "kill",
        ("after insert", "after update", "after create", "after begin"),
        (" although nothing was done to it",),  # half a schema cannot be opened again
    ),
    "start-after-effect": BrokenCopy(
        "the claim is written with the result", start_after_effect, ("program", "desk"), "kill", EFFECT, TWICE
    ),
    "silent-rerun": BrokenCopy(
        "a call whose runner died runs again", silent_rerun, ("program", "desk"), "kill", EFFECT, TWICE
    ),
    "told-before-commit": BrokenCopy(
        "a person is told before the decision is written",
        acknowledge_before_commit,
        ("reviewer", "desk"),
        "kill",
        COMMIT,
        (LOST_DECISION,),
    ),
    "first-arguments": BrokenCopy(
        "what runs is what was proposed, not what was approved",
        first_arguments,
        ("desk",),
        "kill",
        EFFECT,
        ("ran with other arguments than were approved",),
    ),
    "half-files": BrokenCopy(
        "files are written under their final name",
        write_files_in_place,
        ("files",),
        "kill",
        (),
        ("ends without its head", "looks whole", "the backup is empty"),
    ),
    "no-fence": BrokenCopy("a late finish counts, after a stop", no_fence, ("program", "desk"), "stop", EFFECT, LATE),
    "no-fence-delayed": BrokenCopy("a late finish counts, after a delay", no_fence, ("desk",), "delay", EFFECT, LATE),
    "believes-commits": BrokenCopy(
        "an error in a commit passes for a success",
        assume_commit,
        ("reviewer", "desk"),
        "raise",
        ("commit",),
        (LOST_DECISION, "is not recorded as done"),
    ),
}
