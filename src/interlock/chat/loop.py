"""Background loop of the chat: leases due threads and advances each. A suspended thread is only a database row."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial

from interlock.chat.agents import ChatServices
from interlock.chat.thread_lease import LeasedThread
from interlock.chat.turn import Turn, TurnContext
from interlock.core.chat import thread as threads
from interlock.core.chat.thread import NewThreadEntry
from interlock.core.errors import Conflict, Error, LeaseLost, NotFound, StoreUnavailable
from interlock.core.ledger.event import SYSTEM_ACTOR, Moment
from interlock.core.ports import IsRunnerDead, Watch
from interlock.storage.engine.transaction import DUE_THREADS_TOPIC

MAX_CONCURRENT = 100  # threads that one process advances concurrently
INTERNAL_ERROR_TEXT = "Something went wrong inside Interlock; it is in the server's log. Send a message to try again."

OpenServices = Callable[[str], Awaitable[ChatServices]]
OpenThreadWatch = Callable[[str, str], AbstractAsyncContextManager[Watch]]
ReportFailure = Callable[[str, Exception], None]


class ThreadLoop:
    def __init__(
        self,
        context: TurnContext,
        open_services: OpenServices,
        watch: OpenThreadWatch,
        is_dead: IsRunnerDead,
        failed: ReportFailure,
    ) -> None:
        self._context = context
        self._open_services = open_services
        self._watch = watch
        self._is_dead = is_dead
        self._failed = failed
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._capacity_freed = asyncio.Event()  # set when a thread finishes while the maximum is running

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set; then threads at work are given time to reach a point where they can be suspended."""
        async with self._watch("", DUE_THREADS_TOPIC) as watch:
            stopping = asyncio.create_task(stop.wait())
            try:
                while not stop.is_set():
                    pause = self._context.poll_seconds
                    with suppress(Error):  # a database error is retried; due threads stay due
                        await self.sweep()
                        pause = await self._pause()
                    hint, capacity_freed = (
                        asyncio.create_task(watch.wait(pause)),
                        asyncio.create_task(self._capacity_freed.wait()),
                    )
                    await asyncio.wait({hint, capacity_freed, stopping}, return_when=asyncio.FIRST_COMPLETED)
                    hint.cancel()
                    capacity_freed.cancel()
                    self._capacity_freed.clear()
            finally:
                stopping.cancel()
                await self._shut_down()

    async def sweep(self) -> int:
        """Start due threads up to the maximum; return how many."""
        store, taken = self._context.threads, 0
        orphaned = [(w, t) for w, t, runner in await store.running() if self._is_gone(runner)]
        capacity = MAX_CONCURRENT - len(self._running)
        due = await store.due(self._context.clock(), max(0, capacity)) if capacity > 0 else []
        for key in dict.fromkeys([*orphaned, *due]):
            if key not in self._running and len(self._running) < MAX_CONCURRENT:
                taken += 1
                self._running[key] = task = asyncio.create_task(self._run_thread(*key))
                task.add_done_callback(partial(self._on_done, key))  # also for one that was cancelled before it began
        return taken

    def _on_done(self, key: tuple[str, str], _: asyncio.Task[None]) -> None:
        if len(self._running) >= MAX_CONCURRENT:
            self._capacity_freed.set()
        self._running.pop(key, None)

    def _is_gone(self, runner: str) -> bool:
        """Return whether a runner is dead; this one counts, for threads it dropped after a database error."""
        return runner == self._context.runner or self._is_dead(runner)

    async def wait_idle(self) -> None:
        """Wait until no thread is running here; for tests, and for an orderly shutdown."""
        while self._running:
            await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _run_thread(self, workspace: str, thread_id: str) -> None:
        try:
            await self._advance(workspace, thread_id)
        except (LeaseLost, NotFound):
            pass  # it was taken over or stopped
        except Exception as error:  # noqa: BLE001  a failure in one thread must not affect the others
            self._failed("thread_failed", error)

    async def _advance(self, workspace: str, thread_id: str) -> None:
        store, runner, lease = self._context.threads, self._context.runner, self._context.lease

        def claim(thread: threads.Thread, moment: Moment) -> threads.ThreadTransition:
            dead = thread.status == "running" and self._is_gone(thread.runner)
            return threads.acquire(thread, runner, lease, moment, runner_is_dead=dead)

        try:
            leased_thread = LeasedThread(store, await store.step(workspace, thread_id, claim), lease)
        except Conflict:
            return  # another process was faster
        async with self._watch(workspace, thread_id) as watch:
            turn = Turn(
                leased_thread=leased_thread,
                services=await self._open_services(workspace),
                context=self._context,
                watch=watch,
            )
            keeping = asyncio.create_task(leased_thread.keep_renewed())
            try:
                await turn.advance()
            except (LeaseLost, StoreUnavailable):
                raise  # another process has it now, or will take it over
            except Exception:
                await leased_thread.end(
                    NewThreadEntry("ended", SYSTEM_ACTOR, {"status": "error", "reason": INTERNAL_ERROR_TEXT})
                )
                raise
            finally:
                leased_thread.lost.set()
                keeping.cancel()
                if turn.tool_tasks:
                    await asyncio.gather(*turn.tool_tasks.values(), return_exceptions=True)

    async def _pause(self) -> float:
        if len(self._running) >= MAX_CONCURRENT:
            return self._context.poll_seconds
        due = await self._context.threads.next_due()
        if due is None:
            return self._context.poll_seconds
        return min(self._context.poll_seconds, max(0.01, (due - self._context.clock()) / 1000))

    async def _shut_down(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(8.0):
                await self.wait_idle()
        for task in self._running.values():
            task.cancel()
        await self.wait_idle()
