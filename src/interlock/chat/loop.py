"""Time's side of the chat: takes the threads that are due, and advances each. A parked thread is a row and no more."""

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

MAX_CONCURRENT = 100  # threads that one process advances at the same time
INTERNAL_ERROR_TEXT = "Something went wrong inside Interlock; it is in the server's log. Send a message to try again."

OpenServices = Callable[[str], Awaitable[ChatServices]]
OpenThreadWatch = Callable[[str, str], AbstractAsyncContextManager[Watch]]
ReportFailure = Callable[[str, Exception], None]


class ThreadLoop:
    def __init__(
        self,
        parts: TurnContext,
        desk: OpenServices,
        watch: OpenThreadWatch,
        is_dead: IsRunnerDead,
        failed: ReportFailure,
    ) -> None:
        self._parts = parts
        self._desk = desk
        self._watch = watch
        self._is_dead = is_dead
        self._failed = failed
        self._at_work: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._room = asyncio.Event()  # set when one is through while as many are at work as may be

    async def run(self, stop: asyncio.Event) -> None:
        """Until it is told to stop; then what was begun gets to its next resting place."""
        async with self._watch("", DUE_THREADS_TOPIC) as watch:
            stopping = asyncio.create_task(stop.wait())
            try:
                while not stop.is_set():
                    pause = self._parts.look_every
                    with suppress(Error):  # a database in trouble is tried again; what is due stays due
                        await self.sweep()
                        pause = await self._pause()
                    hint, room = asyncio.create_task(watch.changed(pause)), asyncio.create_task(self._room.wait())
                    await asyncio.wait({hint, room, stopping}, return_when=asyncio.FIRST_COMPLETED)
                    hint.cancel()
                    room.cancel()
                    self._room.clear()
            finally:
                stopping.cancel()
                await self._leave()

    async def sweep(self) -> int:
        """Takes what is due, as far as there is room; gives how many threads that were."""
        store, taken = self._parts.threads, 0
        gone = [(w, t) for w, t, runner in await store.running() if self._is_gone(runner)]
        room = MAX_CONCURRENT - len(self._at_work)
        due = await store.due(self._parts.clock(), max(0, room)) if room > 0 else []
        for key in dict.fromkeys([*gone, *due]):
            if key not in self._at_work and len(self._at_work) < MAX_CONCURRENT:
                taken += 1
                self._at_work[key] = task = asyncio.create_task(self._take(*key))
                task.add_done_callback(partial(self._through, key))  # also of one that was cancelled before it began
        return taken

    def _through(self, key: tuple[str, str], _: asyncio.Task[None]) -> None:
        if len(self._at_work) >= MAX_CONCURRENT:
            self._room.set()
        self._at_work.pop(key, None)

    def _is_gone(self, runner: str) -> bool:
        """Of a thread that is not at work here, also this process: the database failed it, and it let go."""
        return runner == self._parts.runner or self._is_dead(runner)

    async def settled(self) -> None:
        """Until nothing is at work here; for tests, and to stop in order."""
        while self._at_work:
            await asyncio.gather(*self._at_work.values(), return_exceptions=True)

    async def _take(self, workspace: str, thread_id: str) -> None:
        try:
            await self._advance(workspace, thread_id)
        except (LeaseLost, NotFound):
            pass  # it was taken over or stopped
        except Exception as error:  # noqa: BLE001  one thread's trouble is not that of all others
            self._failed("thread_failed", error)

    async def _advance(self, workspace: str, thread_id: str) -> None:
        store, runner, lease = self._parts.threads, self._parts.runner, self._parts.lease

        def claim(thread: threads.Thread, moment: Moment) -> threads.ThreadTransition:
            dead = thread.status == "running" and self._is_gone(thread.runner)
            return threads.acquire(thread, runner, lease, moment, runner_is_dead=dead)

        try:
            held = LeasedThread(store, await store.step(workspace, thread_id, claim), lease)
        except Conflict:
            return  # another process was quicker
        async with self._watch(workspace, thread_id) as watch:
            turn = Turn(held=held, desk=await self._desk(workspace), parts=self._parts, watch=watch)
            keeping = asyncio.create_task(held.keep())
            try:
                await turn.advance()
            except (LeaseLost, StoreUnavailable):
                raise  # it is somebody else's now, or whoever takes it next has it
            except Exception:
                await held.end(
                    NewThreadEntry("ended", SYSTEM_ACTOR, {"status": "error", "reason": INTERNAL_ERROR_TEXT})
                )
                raise
            finally:
                held.lost.set()
                keeping.cancel()
                if turn.working:
                    await asyncio.gather(*turn.working.values(), return_exceptions=True)

    async def _pause(self) -> float:
        if len(self._at_work) >= MAX_CONCURRENT:
            return self._parts.look_every
        due = await self._parts.threads.next_due()
        if due is None:
            return self._parts.look_every
        return min(self._parts.look_every, max(0.01, (due - self._parts.clock()) / 1000))

    async def _leave(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(8.0):
                await self.settled()
        for task in self._at_work.values():
            task.cancel()
        await self.settled()
