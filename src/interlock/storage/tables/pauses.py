"""Paused runs, in the same database as the approvals that they wait for: state, leases and resumption."""

from __future__ import annotations

from asyncio import CancelledError, ensure_future, get_running_loop, shield, sleep
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

from interlock.core.errors import Conflict, LeaseLost
from interlock.core.ports import IsRunnerDead
from interlock.core.run import Pause, next_fence, retry_delay
from interlock.storage.engine.database import Database
from interlock.storage.engine.rows import Row
from interlock.storage.engine.transaction import Transaction
from interlock.storage.engine.writer import BatchItem

PauseCursor = tuple[int, str]  # time and id of the last run on the page before
FROM_OLDEST: PauseCursor = (-1, "")
POLL_INTERVAL = 1.0  # seconds: a wake-up is only a hint, and timers make runs ready without one
MIN_POLL_DELAY = 0.02  # minimum seconds between two polls
MAX_PAGE = 1_000  # in one read
MAX_LISTED = 10_000
MAX_CLAIMED = 100  # in one claim
BATCH_SIZE = 100  # deleted in one batch
CLAIM_ATTEMPTS = 3  # attempts to claim, if other runners claim first


class PauseScope(NamedTuple):
    """The runs of an agent; with an `owner` only those that were paused with this key."""

    workspace: str
    agent: str
    owner: str = ""


class LeaseHolder(NamedTuple):
    """A runner that resumes runs, and its lease in milliseconds."""

    runner: str
    lease: int


class PausePage(NamedTuple):
    items: Sequence[Pause]
    next: PauseCursor | None


def _never_dead(_: str) -> bool:
    return False


class SqlPauses:
    """Paused runs, stored under the run id of their approvals, and returned with the id of their framework."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.poll_interval = POLL_INTERVAL

    async def pause(self, scope: PauseScope, run_id: str, framework_run_id: str, state: bytes) -> Pause:
        """Pause a run; replaces an older pause of the run, and revokes its lease."""
        workspace, agent, owner = scope

        def run(tx: Transaction) -> Pause:
            row = _read_row(tx, workspace, run_id)
            _check_owner(row, owner)
            now = tx.moment(workspace).now
            fence = next_fence(row.fence if row else 0, now)
            kept = owner if row is None else row.owner
            name = "" if framework_run_id == run_id else framework_run_id
            tx.write("write_pause", workspace, run_id, name, agent, kept, "", 0, 0, fence, now, state)
            tx.mark_thread_changed(workspace, run_id)
            return Pause(run_id=framework_run_id, agent=agent, state=state, paused_at=now, fence=fence, short_id=run_id)

        return cast(Pause, await self._write(workspace, run_id, run))

    async def list_paused(
        self, scope: PauseScope, after: PauseCursor = FROM_OLDEST, limit: int = MAX_PAGE
    ) -> PausePage:
        """Return paused runs, the longest pause first, without their state; of every agent, if none is named."""
        workspace, agent, owner = scope
        limit = min(max(limit, 1), MAX_PAGE)
        name, of = ("paused_runs_of", (agent,)) if agent else ("paused_runs", ())
        place = (after[0], *after)
        now = self._database.clock()
        found = await self._database.fetch(name, now, workspace, *of, owner, owner, *place, limit + 1)
        items = [_PauseRow(*row[:9]).to_pause(now, waiting=row[9]) for row in found[:limit]]
        return PausePage(items, None if len(found) <= limit else (found[limit - 1][8], found[limit - 1][0]))

    async def list_all_paused(self, scope: PauseScope) -> Sequence[Pause]:
        """Return at most 10,000 paused runs."""
        found: list[Pause] = []
        place: PauseCursor | None = FROM_OLDEST
        while place is not None and len(found) < MAX_LISTED:
            page = await self.list_paused(scope, place)
            found += page.items
            place = page.next
        return found

    async def wait_ready(
        self,
        scope: PauseScope,
        holder: LeaseHolder,
        timeout: float | None,
        limit: int = 10,
        is_dead: IsRunnerDead = _never_dead,
    ) -> Sequence[Pause]:
        """Claim runs that are ready; wait for the first one, up to `timeout` seconds or, with None, without limit."""
        now = get_running_loop().time
        end = None if timeout is None else now() + timeout
        async with self._database.watch_registry.watch(scope.workspace, "") as watch:
            while True:
                begun = now()
                await self.release_dead_runners(scope, is_dead)
                taken = await self.acquire(scope, holder, limit)
                left = self.poll_interval if end is None else end - now()
                if taken or left <= 0:
                    return taken
                rest = max(
                    MIN_POLL_DELAY, 4 * (now() - begun)
                )  # bounds the polling in a busy workspace with many waiters
                await watch.wait(min(left, self.poll_interval))
                await sleep(min(left, rest, self.poll_interval))

    async def acquire(self, scope: PauseScope, holder: LeaseHolder, limit: int = 10) -> Sequence[Pause]:
        """Claim runs that are ready to resume, the longest pause first."""
        claiming = ensure_future(self._try_acquire(scope, holder, min(max(limit, 1), MAX_CLAIMED)))
        try:
            taken = await shield(claiming)
        except CancelledError:
            for pause in await claiming:  # the caller was cancelled: release them for the next one
                await self.release_lease(scope, pause.short_id, pause.fence, failed=False)
            raise
        return await self._with_state(scope.workspace, taken)

    async def _try_acquire(self, scope: PauseScope, holder: LeaseHolder, limit: int) -> Sequence[Pause]:
        """Find ready runs outside of the transaction, since there may be thousands, and check them in it."""
        workspace = scope.workspace
        for _ in range(CLAIM_ATTEMPTS):
            found = await self._database.fetch("ready_pauses", *_ready_values(scope, self._database.clock(), limit))
            ids = [run_id for (run_id,) in found]
            reads = tuple(("pause", workspace, run_id) for run_id in ids)
            item = BatchItem(
                partial(_claim_rows, scope=scope, holder=holder, ids=ids), workspace, reads, is_short=False
            )
            taken = cast(Sequence[Pause], await self._database.write(item)) if ids else ()
            if taken or not ids:
                return taken
        return ()  # other runners were faster

    async def lease_holders(self, scope: PauseScope) -> Sequence[str]:
        """Return the runners with active leases, one name for each run."""
        return [runner for _, runner, _ in await self._active_leases(scope)]

    async def leased_by(self, scope: PauseScope, runner: str) -> Sequence[Pause]:
        """Return the runs that this runner has claimed: it may have missed the response to its claim."""
        rows = [
            (await self._database.fetch("pause", scope.workspace, run_id), fence)
            for run_id, by, fence in await self._active_leases(scope)
            if by == runner
        ]
        now = self._database.clock()
        return await self._with_state(
            scope.workspace, [_PauseRow(*row[0]).to_pause(now) for row, fence in rows if row and row[0][7] == fence]
        )

    async def _active_leases(self, scope: PauseScope) -> list[Row]:
        return await self._database.fetch("held_pauses", scope.workspace, scope.agent, self._database.clock())

    async def release_dead_runners(self, scope: PauseScope, is_dead: IsRunnerDead) -> None:
        """Release the leases of runners that have certainly died, at once."""
        for run_id, runner, fence in await self._active_leases(scope):
            if is_dead(runner):
                await self.release_lease(scope, run_id, fence, failed=False)

    async def renew(self, scope: PauseScope, run_id: str, fence: int, lease: int) -> None:
        """Renew a lease. Raises LeaseLost if another runner has the run, or it was paused again or has ended."""
        workspace = scope.workspace

        def run(tx: Transaction) -> None:
            row = _read_held_row(tx, scope, run_id, fence)
            if row is None:
                raise LeaseLost(
                    "This run was taken over by another process, paused again, or has ended.", run_id=run_id
                )
            until = tx.moment(workspace).now + lease
            tx.write("hold_pause", row.runner, until, row.attempts, fence, workspace, run_id)

        await self._write(workspace, run_id, run)

    async def release_lease(self, scope: PauseScope, run_id: str, fence: int, *, failed: bool) -> int:
        """Release a lease; return the retry delay in milliseconds, which grows with the number of failures."""
        workspace = scope.workspace

        def run(tx: Transaction) -> int:
            row = _read_held_row(tx, scope, run_id, fence)
            if row is None:
                return 0
            pause = retry_delay(row.attempts) if failed else 0
            until = tx.moment(workspace).now + pause
            tx.write("hold_pause", "", until, row.attempts, next_fence(fence, 0), workspace, run_id)
            tx.mark_thread_changed(workspace, run_id)
            return pause

        return cast(int, await self._write(workspace, run_id, run))

    async def complete(self, scope: PauseScope, run_id: str, fence: int) -> bool:
        """Delete a finished run, unless it was paused again or its lease was lost."""
        workspace = scope.workspace

        def run(tx: Transaction) -> bool:
            row = _read_held_row(tx, scope, run_id, fence)
            if row is not None:
                tx.write("drop_pause", workspace, run_id)
            return row is not None

        return cast(bool, await self._write(workspace, run_id, run))

    async def count(self, workspace: str) -> tuple[int, int | None]:
        """Count paused runs, up to 10,000, and return when the first of them was paused."""
        many, since = (await self._database.fetch("count_pauses", workspace))[0]
        return int(many), since

    async def stored_bytes(self, scope: PauseScope, run_id: str) -> int:
        """Return the bytes that all of an owner's other runs take, with some overhead for each row."""
        found = await self._database.fetch("paused_bytes", scope.workspace, scope.owner, run_id)
        return int(found[0][0])

    async def erase(self, workspace: str, name: str) -> None:
        """Delete a run by its run id, or by the id of its framework."""
        for (run_id,) in await self._database.fetch("pauses_called", workspace, name, name):
            await self._write(workspace, run_id, partial(drop_pause, workspace=workspace, run_id=run_id))

    async def delete_expired(self, before: int) -> None:
        """Delete unleased runs from before that time whose approvals have all been erased."""
        dropped = True
        while dropped and (found := await self._database.fetch("old_pauses", before, before, BATCH_SIZE)):
            dropped = any(
                [await self.complete(PauseScope(workspace, ""), run_id, fence) for workspace, run_id, fence in found]
            )

    async def _with_state(self, workspace: str, pauses: Sequence[Pause]) -> Sequence[Pause]:
        """Add the state, which is large and is read outside of the transaction; drop runs that were paused again."""
        whole = []
        for pause in pauses:
            found = await self._database.fetch("pause_state", workspace, pause.short_id)
            whole += [replace(pause, state=bytes(state)) for fence, state in found if fence == pause.fence]
        return whole

    async def _write(self, workspace: str, run_id: str, run: Any) -> Any:
        return await self._database.write(BatchItem(run, workspace, (("pause", workspace, run_id),)))


def drop_pause(tx: Transaction, workspace: str, run_id: str) -> None:
    """Delete a pause with its state: the run cannot be resumed."""
    if _read_row(tx, workspace, run_id) is not None:
        tx.write("drop_pause", workspace, run_id)


class _PauseRow(NamedTuple):
    run_id: str
    framework_run_id: str
    agent: str
    owner: str
    runner: str
    lease_until: int
    attempts: int
    fence: int
    paused_at: int

    def to_pause(self, now: int, waiting: int = 0) -> Pause:
        name, runner = self.framework_run_id or self.run_id, self.runner if self.lease_until > now else ""
        return Pause(
            run_id=name,
            agent=self.agent,
            state=b"",
            paused_at=self.paused_at,
            fence=self.fence,
            attempts=self.attempts,
            waiting=int(waiting),
            runner=runner,
            short_id=self.run_id,
        )


def _read_row(tx: Transaction, workspace: str, run_id: str) -> _PauseRow | None:
    """Read a row. Keeps two steps on one run out of one batch: the second could not see the first one's changes."""
    tx.require_own_batch(f"pause {workspace} {run_id}")
    found = tx.fetch("pause", workspace, run_id)
    return _PauseRow(*found[0]) if found else None


def _read_held_row(tx: Transaction, scope: PauseScope, run_id: str, fence: int) -> _PauseRow | None:
    row = _read_row(tx, scope.workspace, run_id)
    fits = row is not None and row.fence == fence and scope.owner in ("", row.owner)
    return row if fits else None


def _claim_rows(tx: Transaction, scope: PauseScope, holder: LeaseHolder, ids: Sequence[str]) -> list[Pause]:
    workspace, agent, owner = scope
    now, taken = tx.moment(workspace).now, list[Pause]()
    for run_id in ids:
        row = _read_row(tx, workspace, run_id)
        free = row is not None and row.lease_until <= now and row.agent == agent and owner in ("", row.owner)
        if row is None or not free or tx.fetch("waits_for", workspace, run_id, now, now):
            continue
        held = row._replace(attempts=row.attempts + 1, fence=next_fence(row.fence, 0))
        tx.write("hold_pause", holder.runner, now + holder.lease, held.attempts, held.fence, workspace, run_id)
        taken.append(held.to_pause(now))
    return taken


def _check_owner(row: _PauseRow | None, owner: str) -> None:
    if row is not None and owner not in ("", row.owner):
        raise Conflict("A run with this id was paused with another key. Use a different id.", run_id=row.run_id)


def _ready_values(scope: PauseScope, now: int, limit: int) -> tuple[object, ...]:
    workspace, agent, owner = scope
    return (workspace, agent, owner, owner, now, now, now, limit)
