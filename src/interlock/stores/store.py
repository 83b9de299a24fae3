"""The Store port over a database that can read, and run a piece of work inside a transaction."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Protocol, cast

from interlock.core.approval import Approval
from interlock.core.call import ToolSpec, spec_of
from interlock.core.errors import NotFound
from interlock.core.event import Change, Event, Moment, Payload, Stored
from interlock.core.grant import Grant
from interlock.core.ledger import Entry, Head
from interlock.core.ports import Begin, GrantStep, Page, PolicyVersion, Query, RunStep, Stats, Step, StoredStep, User
from interlock.core.ports import Watch as WatchPort
from interlock.core.request import same_call
from interlock.core.run import Run
from interlock.stores import rows
from interlock.stores.queries import MAX_LIMIT, list_query, make_cursor
from interlock.stores.rows import Row
from interlock.stores.transaction import Interned, Transaction, read_terms
from interlock.stores.watching import Watchers
from interlock.stores.writer import Work

ENTRIES = 5_000  # rows of the ledger in one read


class Database(Protocol):
    interned: Interned
    watchers: Watchers
    clock: Callable[[], int]

    def open(self) -> None: ...
    def close(self) -> None: ...
    def fetch(self, name: str, *values: object) -> list[Row]: ...
    def fetch_text(self, statement: str, values: Any) -> list[Row]: ...
    def count_read(self, workspace: str, tool: str) -> None: ...
    async def write(self, work: Work) -> Any: ...


class SqlStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._keys: dict[str, bytes] = {}
        self.count_read = database.count_read

    async def open(self) -> None:
        self._database.open()

    async def close(self) -> None:
        self._database.close()

    # Approvals

    async def find(self, workspace: str, run_id: str, call_id: str) -> Stored | None:
        found = self._database.fetch("approval_by_call", workspace, run_id, call_id)
        return await self.get(workspace, found[0][0]) if found else None

    async def get(self, workspace: str, approval_id: str) -> Stored:
        found = self._database.fetch("approval", workspace, approval_id)
        if not found:
            raise NotFound("There is no approval with this id.", approval_id=approval_id)
        payload = self._database.fetch("payload", workspace, approval_id)
        return Stored(self._approval(found[0]), rows.payload_of(payload[0]) if payload else Payload())

    async def list(self, workspace: str, query: Query) -> Page:
        statement, values = list_query(workspace, query)
        found = self._database.fetch_text(statement, values)
        limit = min(max(query.limit, 1), MAX_LIMIT)
        items = tuple(Stored(self._approval(row), rows.payload_of(row[rows.APPROVAL :])) for row in found[:limit])
        if len(found) <= limit:
            return Page(items, None)
        last = items[-1].approval
        return Page(items, make_cursor(last.expires_at if query.statuses == ("pending",) else last.created_at, last.id))

    async def stats(self, workspace: str) -> Stats:
        tallies = {str(status): int(n) for status, n in self._database.fetch("tallies", workspace)}
        reads = self._database.fetch("allowed_reads", workspace)[0][0]
        waiting = self._database.fetch("waiting_runs", workspace)[0][0]
        return Stats(tallies, int(reads), int(waiting))

    async def ids_like(self, workspace: str, part: str, limit: int) -> Sequence[str]:
        """The ids that begin or end with what a person typed, the newest first."""
        if not part.replace("-", "").isalnum():  # no id has anything else, and LIKE would take it for a pattern
            return []
        return [row[0] for row in self._database.fetch("ids_like", workspace, f"{part}%", f"%{part}", limit)]

    async def timeline(self, workspace: str, approval_id: str) -> Sequence[Entry]:
        return [_entry(row) for row in self._database.fetch("timeline", workspace, approval_id)]

    async def due(self, now: int, limit: int) -> Sequence[tuple[str, str]]:
        return [(row[0], row[1]) for row in self._database.fetch("due", now, limit)]

    async def next_due(self) -> int | None:
        return cast(int | None, self._database.fetch("next_due")[0][0])

    async def running(self) -> Sequence[tuple[str, str, str]]:
        return [(row[0], row[1], row[2]) for row in self._database.fetch("running")]

    async def begin(self, begin: Begin) -> Stored:
        return cast(Stored, await self._database.write(lambda tx: _begin(tx, begin)))

    async def deny(self, workspace: str, events: Sequence[Event]) -> None:
        await self._database.write(lambda tx: tx.tell(workspace, events))

    async def transition(self, workspace: str, approval_id: str, step: Step) -> Approval:
        return cast(Approval, await self._database.write(lambda tx: _transition(tx, workspace, approval_id, step)))

    async def transition_stored(self, workspace: str, approval_id: str, step: StoredStep) -> Stored:
        work: Work = lambda tx: _transition_stored(tx, workspace, approval_id, step)  # noqa: E731  as the others
        return cast(Stored, await self._database.write(work))

    def _approval(self, row: Row) -> Approval:
        return rows.approval_of(row, lambda sha256: read_terms(sha256, self._database.interned, self._database.fetch))

    # What belongs to a workspace

    async def spec(self, sha256: str) -> ToolSpec | None:
        found = self._database.fetch("spec", sha256)
        return spec_of(found[0][0]) if found else None

    async def secret_key(self, workspace: str) -> bytes:
        """Made on first use; the same for every process."""
        if workspace not in self._keys:
            if not self._database.fetch("workspace_key", workspace):
                values = (workspace, secrets.token_bytes(32), self._database.clock())
                await self._database.write(lambda tx: tx.write("insert_workspace", *values))
            self._keys[workspace] = self._database.fetch("workspace_key", workspace)[0][0]
        return self._keys[workspace]

    async def runs(self, workspace: str, agent: str) -> Sequence[Run]:
        return [rows.run_of(row) for row in self._database.fetch("open_runs", workspace, agent)]

    async def add_run(self, workspace: str, new: Callable[[Moment], Change[Run]]) -> Run:
        return cast(Run, await self._database.write(lambda tx: _save_run(tx, workspace, new(tx.moment(workspace)))))

    async def step_run(self, workspace: str, run_id: str, step: RunStep) -> Run:
        return cast(Run, await self._database.write(lambda tx: _step_run(tx, workspace, run_id, step)))

    async def grants(self, workspace: str) -> Sequence[Grant]:
        return [rows.grant_of(row) for row in self._database.fetch("grants", workspace)]

    async def add_grant(self, workspace: str, new: Callable[[Moment], Change[Grant]]) -> Grant:
        return cast(Grant, await self._database.write(lambda tx: _save_grant(tx, workspace, new(tx.moment(workspace)))))

    async def step_grant(self, workspace: str, grant_id: str, step: GrantStep) -> Grant:
        return cast(Grant, await self._database.write(lambda tx: _step_grant(tx, workspace, grant_id, step)))

    async def policy(self, workspace: str) -> PolicyVersion | None:
        found = self._database.fetch("policy", workspace)
        return rows.policy_of(found[0]) if found else None

    async def put_policy(self, workspace: str, sha256: str, body: str, author: str) -> PolicyVersion:
        """The last one wins; putting the one in force again changes nothing."""
        work: Work = lambda tx: _put_policy(tx, workspace, sha256, body, author)  # noqa: E731  as the others
        return cast(PolicyVersion, await self._database.write(work))

    async def users(self, workspace: str) -> Sequence[User]:
        return [rows.user_of(row) for row in self._database.fetch("users", workspace)]

    async def put_user(self, workspace: str, user: User, author: str) -> User:
        return cast(User, await self._database.write(lambda tx: _put_user(tx, workspace, user, author)))

    # The ledger

    async def head(self, workspace: str) -> Head:
        found = self._database.fetch("head", workspace)
        return Head(*found[0]) if found else Head(workspace)

    async def entries(self, workspace: str, after: int = 0) -> AsyncIterator[Sequence[Entry]]:
        while found := self._database.fetch("entries", workspace, after, ENTRIES):
            yield [_entry(row) for row in found]
            after = found[-1][1]

    def watch(self, workspace: str, approval_id: str = "") -> AbstractAsyncContextManager[WatchPort]:
        return self._database.watchers.watch(workspace, approval_id)


def _begin(tx: Transaction, begin: Begin) -> Stored:
    call = begin.proposal.call
    known = tx.by_call(call.workspace, call.run_id, call.call_id)
    if known is not None:
        same_call(known.approval, call)
        return known
    change = begin.step(tx.moment(call.workspace), lambda: tx.grants(call.workspace))
    tx.insert(change, begin.proposal.spec)
    return Stored(change.state, change.payload or Payload())


def _transition(tx: Transaction, workspace: str, approval_id: str, step: Step) -> object:
    approval = tx.approval(workspace, approval_id)
    change = step(approval, tx.moment(workspace))
    tx.update(approval, change)
    return change.error or change.state


def _transition_stored(tx: Transaction, workspace: str, approval_id: str, step: StoredStep) -> object:
    stored = tx.stored(workspace, approval_id)
    change = step(stored, tx.moment(workspace))
    tx.update(stored.approval, change)
    return change.error or replace(stored, approval=change.state)


def _save_run(tx: Transaction, workspace: str, change: Change[Run]) -> Run:
    tx.save_run(workspace, change)
    return change.state


def _step_run(tx: Transaction, workspace: str, run_id: str, step: RunStep) -> Run:
    return _save_run(tx, workspace, step(tx.run(workspace, run_id), tx.moment(workspace)))


def _save_grant(tx: Transaction, workspace: str, change: Change[Grant]) -> Grant:
    tx.save_grant(workspace, change)
    return change.state


def _step_grant(tx: Transaction, workspace: str, grant_id: str, step: GrantStep) -> Grant:
    return _save_grant(tx, workspace, step(tx.grant(workspace, grant_id), tx.moment(workspace)))


def _put_policy(tx: Transaction, workspace: str, sha256: str, body: str, author: str) -> PolicyVersion:
    found = tx.fetch("policy", workspace)
    last = rows.policy_of(found[0]) if found else None
    if last is not None and last.sha256 == sha256:
        return last
    version = PolicyVersion(last.version + 1 if last else 1, sha256, body, author, tx.moment(workspace).now)
    tx.write("insert_policy", workspace, version.version, sha256, body, author, version.at)
    tx.tell(workspace, [Event("policy_changed", author, {"version": version.version, "policy": sha256})])
    return version


def _put_user(tx: Transaction, workspace: str, user: User, author: str) -> User:
    tx.write("write_user", workspace, user.name, user.role, rows.teams_text(user.teams))
    tx.tell(
        workspace,
        [Event("user_changed", author, {"user": user.name, "role": user.role}, "", {"teams": sorted(user.teams)})],
    )
    return user


def _entry(row: Row) -> Entry:
    return Entry(*row)
