"""The worker for timers and background tasks.

It expires, reminds, escalates, recovers calls whose runner died, applies retention, and updates the search index.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from interlock.core.approval.approval import Approval
from interlock.core.approval.timers import fire_next_timer
from interlock.core.errors import Conflict, Error, NotFound
from interlock.core.ledger.event import Change, Moment
from interlock.core.ports import Clock, IsRunnerDead, Store

BATCH_SIZE = 100
POLL_INTERVAL = 1.0  # seconds between checks for dead runners and for rows of other processes
INDEX_DELAY = 3_000  # milliseconds: a call changes a few times in its first seconds, and is indexed once after that
MAX_RETENTION_BATCHES = 20  # transactions of one sweep; the rest waits for the next
CLEANUP_INTERVAL = 60_000  # milliseconds between deletions of expired sessions, links and idempotency records
RETENTION_SLACK = 300_000  # milliseconds that content may be kept too long, so that much is erased in one go

Cleanup = Callable[[], Awaitable[int]]  # deletes a batch of expired rows, and returns their number


class Worker:
    """The worker. Any number may run at once: each task is idempotent in its transaction."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        is_dead: IsRunnerDead,
        retention: int | None = None,
        cleanup: Cleanup | None = None,
    ) -> None:
        """Make a worker; content of ended calls is erased after `retention` milliseconds, None keeps it."""
        self._store = store
        self._clock = clock
        self._is_dead = is_dead
        self._retention = retention
        self._cleanup = cleanup
        self._last_cleanup = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Sleep until something is due, but at most a second."""
        while not stop.is_set():
            pause = POLL_INTERVAL
            with suppress(Error):  # retried after a database error; what is due stays due
                await self.sweep()
                pause = await self._pause()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await stop.wait()

    async def sweep(self) -> int:
        """Do everything that is due now; returns how many approvals changed."""
        done = 0
        while due := await self._store.due(self._clock(), BATCH_SIZE):
            results = await asyncio.gather(*(self._tick(workspace, approval_id) for workspace, approval_id in due))
            done += sum(results)
            if not any(results):
                break  # the clock is behind the ledger, or another worker did it all
        done += await self._recover() + await self._apply_retention()
        with suppress(Error):  # deadlines stay paused until they are moved
            await self._settle_freezes()
        with suppress(Error):  # indexed by another sweep
            await self._store.update_search_index(INDEX_DELAY)
        with suppress(Error):  # expired credentials are invalid even if not deleted
            await self._delete_ended()
        return done

    async def _settle_freezes(self) -> None:
        """Settle freezes whose release was interrupted."""
        for workspace, freeze_id in await self._store.unsettled_freezes():
            await self._store.settle_freeze(workspace, freeze_id)

    async def _recover(self) -> int:
        lost = [(w, a) for w, a, runner in await self._store.running() if self._is_dead(runner)]
        return sum([await self._tick(workspace, approval_id) for workspace, approval_id in lost])

    async def _apply_retention(self) -> int:
        forgotten = 0
        for _ in range(MAX_RETENTION_BATCHES if self._retention is not None else 0):
            retention = self._retention or 0
            done = await self._store.apply_retention(retention, min(RETENTION_SLACK, retention // 10))
            if done is None:
                break
            forgotten += done.approvals
        return forgotten

    async def _delete_ended(self) -> None:
        now = self._clock()
        if self._cleanup is not None and not 0 <= now - self._last_cleanup < CLEANUP_INTERVAL:
            self._last_cleanup = now
            batches = 0
            while batches < MAX_RETENTION_BATCHES and await self._cleanup():
                batches += 1

    async def _tick(self, workspace: str, approval_id: str) -> int:
        changed: list[bool] = []

        def step(approval: Approval, moment: Moment) -> Change[Approval]:
            dead = approval.status == "running" and self._is_dead(approval.lease.runner)
            change = fire_next_timer(approval, moment, runner_is_dead=dead)
            changed.append(bool(change.events))
            return change

        try:
            await self._store.transition(workspace, approval_id, step)
        except (Conflict, NotFound):
            return 0
        return int(changed[-1])

    async def _pause(self) -> float:
        due = await self._store.next_due()
        if due is None:
            return POLL_INTERVAL
        return min(POLL_INTERVAL, max(0.01, (due - self._clock()) / 1000))
