"""Time's door: expire, remind, escalate, lapse, recover calls whose runner died, forget, and index."""

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
POLL_INTERVAL = 1.0  # seconds between looks for dead runners and for rows that other processes made
INDEX_DELAY = (
    3_000  # milliseconds: a call changes a few times in its first seconds, and is made searchable once after that
)
MAX_FORGET_BATCHES = 20  # transactions of one sweep; what is left waits for the next
CLEANUP_INTERVAL = 60_000  # milliseconds between looks for sessions, links and answers that have ended
FORGET_SLACK = 300_000  # milliseconds that something may be kept too long, so that much is forgotten in one go

Cleanup = Callable[[], Awaitable[int]]  # deletes a lot of what has ended, and gives how much that was


class Worker:
    """Any number may run at once: each thing is done in a transaction that finds it done already."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        is_dead: IsRunnerDead,
        retention: int | None = None,
        cleanup: Cleanup | None = None,
    ) -> None:
        """`retention`: for how many milliseconds the content of what has ended is kept; None keeps it."""
        self._store = store
        self._clock = clock
        self._is_dead = is_dead
        self._retention = retention
        self._cleanup = cleanup
        self._tidied = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Sleeps until something is due, and never longer than a second."""
        while not stop.is_set():
            pause = POLL_INTERVAL
            with suppress(Error):  # a database in trouble is tried again; what is due stays due
                await self.sweep()
                pause = await self._pause()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await stop.wait()

    async def sweep(self) -> int:
        """Does everything that is due now; gives how many approvals changed."""
        done = 0
        while due := await self._store.due(self._clock(), BATCH_SIZE):
            results = await asyncio.gather(*(self._tick(workspace, approval_id) for workspace, approval_id in due))
            done += sum(results)
            if not any(results):
                break  # the clock stands before the ledger, or somebody else did it all
        done += await self._recover() + await self._apply_retention()
        with suppress(Error):  # what a freeze held up stays held up until it is moved
            await self._settle_freezes()
        with suppress(Error):  # what is not searchable yet is so after another sweep
            await self._store.update_search_index(INDEX_DELAY)
        with suppress(Error):  # what has ended lets nobody in, deleted or not
            await self._delete_ended()
        return done

    async def _settle_freezes(self) -> None:
        """Those whose release was interrupted."""
        for workspace, freeze_id in await self._store.unsettled_freezes():
            await self._store.settle_freeze(workspace, freeze_id)

    async def _recover(self) -> int:
        lost = [(w, a) for w, a, runner in await self._store.running() if self._is_dead(runner)]
        return sum([await self._tick(workspace, approval_id) for workspace, approval_id in lost])

    async def _apply_retention(self) -> int:
        forgotten = 0
        for _ in range(MAX_FORGET_BATCHES if self._retention is not None else 0):
            retention = self._retention or 0
            done = await self._store.apply_retention(retention, min(FORGET_SLACK, retention // 10))
            if done is None:
                break
            forgotten += done.approvals
        return forgotten

    async def _delete_ended(self) -> None:
        now = self._clock()
        if self._cleanup is not None and not 0 <= now - self._tidied < CLEANUP_INTERVAL:
            self._tidied = now
            lots = 0
            while lots < MAX_FORGET_BATCHES and await self._cleanup():
                lots += 1

    async def _tick(self, workspace: str, approval_id: str) -> int:
        changed: list[bool] = []

        def step(approval: Approval, moment: Moment) -> Change[Approval]:
            dead = approval.status == "running" and self._is_dead(approval.runner)
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
