"""Red controls of the race suites: copies of Interlock that are broken on purpose."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from interlock.app.gate import Execution, Gate
from interlock.app.inbox import Inbox
from interlock.core.approval import approval as approvals
from interlock.core.approval import execute
from interlock.storage.sqlite.database import SqliteDatabase

PENDING_TASKS: set[asyncio.Task[Any]] = set()  # a task that nobody holds may be collected before it ran


def no_version() -> None:
    """What this process saw last is taken for true, and the compare-and-set compares nothing."""

    def unchanged(self: Any, connection: Any) -> Any:
        self._cache.heads.clear()
        return self._cache

    def prepared(self: Any) -> Any:
        for name in ("update_approval", "advance_approval"):
            self._queries[name] = self._queries[name].replace("and version = ?", "and version <> -?")
        return real(self)

    no_triggers()
    real = SqliteDatabase._open_connection
    SqliteDatabase._open_connection = prepared  # type: ignore[method-assign]
    SqliteDatabase._valid_cache = unchanged  # type: ignore[method-assign]


def start_without_check() -> None:
    """A running call may be started again."""
    no_triggers()
    execute.is_startable = lambda approval, now, **_: approval.status in ("approved", "running")  # type: ignore[assignment]


def no_triggers() -> None:
    """The database's own refusals would hide what the code does wrong."""
    real = SqliteDatabase._open_connection

    def prepared(self: Any) -> Any:
        connection = real(self)
        for trigger in ("approvals_move", "approvals_restart"):
            connection.execute(f"drop trigger if exists {trigger}")
        return connection

    SqliteDatabase._open_connection = prepared  # type: ignore[method-assign]


def answer_before_commit() -> None:
    """A decision is acknowledged before it is committed."""
    real = Inbox.decide

    async def decide(self: Inbox, workspace: str, approval_id: str, decision: Any, reviewer: Any) -> Any:
        stored = await self._store.get(workspace, approval_id)
        prepared = await self._prepare(stored, decision) if decision.kind in ("edit", "respond") else None
        moment = approvals.Moment(stored.approval.created_at + 1)
        change = approvals.decide(stored.approval, decision, reviewer, moment, prepared)
        task = asyncio.create_task(
            asyncio.wait([asyncio.ensure_future(real(self, workspace, approval_id, decision, reviewer))])
        )
        PENDING_TASKS.add(task)
        task.add_done_callback(PENDING_TASKS.discard)
        if change.error is not None:
            raise change.error
        return change.state

    Inbox.decide = decide  # type: ignore[method-assign]


def keep_old_votes() -> None:
    """An edit leaves the votes for the old arguments standing."""
    real = approvals.fast_replace

    def kept_votes(approval: Any, **changes: Any) -> Any:
        if changes.get("votes") == ():
            del changes["votes"]
        return real(approval, **changes)

    approvals.fast_replace = kept_votes


def run_first_arguments() -> None:
    """The call runs with the proposed arguments, not with the approved ones."""
    real = Gate.start

    async def start(self: Gate, workspace: str, approval_id: str, *rest: Any) -> Execution:
        started = await real(self, workspace, approval_id, *rest)
        args: Mapping[str, Any] = json.loads(started.args)
        return started._replace(args=json.dumps({"n": args["n"]}, separators=(",", ":")).encode())

    Gate.start = start  # type: ignore[method-assign,assignment]


def swap_one_answer() -> None:
    """Only the recorded history is broken: see `swap_recorded_answers`."""


def swap_recorded_answers(folder: Path) -> None:
    """One answer of a whole storm becomes that of another operation on the same approval."""
    path = folder / "history-0"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    places = [n for n, line in enumerate(lines) if line[4] is None and line[5][:2] == ["ok", "succeeded"]]
    number = lines[places[0]][0]
    lines[places[0]][5] = next(line[5] for line in lines if line[0] == number and line[4] is None)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


NOTICED = {  # part of what the checkers report of each
    "no-version": "ran 2 times",
    "start-unchecked": "ran 2 times",
    "early-answer": "no order explains",
    "old-votes": "Approved by 1 of 2 people.",
    "first-arguments": "ran with other arguments than were approved",
    "swapped-answer": "no order explains",
}
CONTROLS: dict[str, Callable[[], None]] = {
    "no-version": no_version,
    "start-unchecked": start_without_check,
    "early-answer": answer_before_commit,
    "old-votes": keep_old_votes,
    "first-arguments": run_first_arguments,
    "swapped-answer": swap_one_answer,
}
