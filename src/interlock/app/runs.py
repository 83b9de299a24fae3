"""Runs of agents' programs: each is leased by one program, and resumed by the next one when that is gone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import NamedTuple

from interlock.app.gate import uuid7
from interlock.core.errors import Conflict, NotFound
from interlock.core.ledger.event import Change, Moment
from interlock.core.ports import Clock, IsRunnerDead, RunStore
from interlock.core.run import Run, close_run, open_run, release_run, renew_run, resume_run


class RunHolder(NamedTuple):
    """A program, and the lease after which its run counts as abandoned without a heartbeat.

    `runner_prefix` begins the names of the programs whose runs this one may resume; other runs do not exist for it.
    """

    workspace: str
    agent: str
    runner: str
    lease: int
    runner_prefix: str = ""

    def require_own(self, run: Run) -> Run:
        if not run.runner.startswith(self.runner_prefix):
            raise NotFound("There is no run with this id.", run_id=run.id)
        return run


class ClaimedRun(NamedTuple):
    run_id: str
    resumed: bool


class RunService:
    """Service for runs; `open_guard` is held while a run is opened, and may refuse it."""

    def __init__(
        self,
        store: RunStore,
        clock: Clock,
        is_runner_dead: IsRunnerDead,
        open_guard: AbstractAsyncContextManager[None] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._is_runner_dead = is_runner_dead
        self._open_guard = open_guard or nullcontext()

    async def acquire(self, holder: RunHolder) -> ClaimedRun:
        """Resume the newest run of this agent whose program is gone; else begin one."""
        for run in await self.open_runs(holder.workspace, holder.agent):
            if not run.runner.startswith(holder.runner_prefix):
                continue
            if run.runner == holder.runner:  # a retry, since the first response got lost
                return ClaimedRun(run.id, resumed=True)
            if not self._is_runner_dead(run.runner) and self._clock() < run.lease_until:
                continue
            with suppress(Conflict, NotFound):  # another start of the same program was faster
                await self._store.update_run(
                    holder.workspace, run.id, lambda run, moment: self._resume(run, holder, moment)
                )
                return ClaimedRun(run.id, resumed=True)
        return await self._open_new(holder)

    async def open_runs(self, workspace: str, agent: str) -> Sequence[Run]:
        """The open runs, newest first."""
        return await self._store.runs(workspace, agent)

    async def renew(self, holder: RunHolder, run_id: str) -> None:
        await self._store.update_run(
            holder.workspace,
            run_id,
            lambda run, moment: renew_run(holder.require_own(run), holder.runner, holder.lease, moment),
        )

    async def close(self, holder: RunHolder, run_id: str) -> None:
        await self._store.update_run(
            holder.workspace, run_id, lambda run, _: close_run(holder.require_own(run), holder.runner)
        )

    async def release(self, holder: RunHolder, run_id: str) -> None:
        """Release a run, so that the next start of the program resumes it at once."""
        await self._store.update_run(
            holder.workspace, run_id, lambda run, _: release_run(holder.require_own(run), holder.runner)
        )

    def _resume(self, run: Run, holder: RunHolder, moment: Moment) -> Change[Run]:
        return resume_run(run, holder.runner, holder.lease, moment, runner_is_dead=self._is_runner_dead(run.runner))

    async def _open_new(self, holder: RunHolder) -> ClaimedRun:
        workspace, agent, runner, lease, _ = holder
        run_id = uuid7(self._clock())
        async with self._open_guard:
            await self._store.add_run(
                workspace, lambda moment: open_run(run_id, workspace, agent, runner, lease, moment)
            )
        return ClaimedRun(run_id, resumed=False)
