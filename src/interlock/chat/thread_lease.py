"""A thread leased by this process: its entries so far, and the lease without which nothing is written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from interlock.core.chat import thread as threads
from interlock.core.chat.thread import Confirmation, NewThreadEntry, Thread, ThreadEntry, ThreadTransition
from interlock.core.errors import Error, LeaseLost
from interlock.core.ledger.event import Moment
from interlock.storage.tables.threads import OtherThreadStep, SqlThreads, ThreadStep

LEASE = 30_000  # milliseconds
T = TypeVar("T")


class LeasedThread:
    """Writes to a leased thread; refused, with `lost` set, once another process has it or it was stopped."""

    def __init__(self, store: SqlThreads, thread: Thread, lease: int = LEASE) -> None:
        self.thread = thread
        self.root_id = thread.id
        self.entries: list[ThreadEntry] = []
        self.lost = asyncio.Event()
        self._store = store
        self.fence = thread.fence
        self._lease = lease

    async def find_root(self) -> None:
        """Find the thread that a person reads; for a sub-agent, the topmost ancestor."""
        parent = self.thread
        while parent.parent:
            parent = await self._store.get(parent.workspace, parent.parent)
        self.root_id = parent.id

    async def read(self) -> Sequence[ThreadEntry]:
        """Return all entries, of which only new ones are fetched. Raises LeaseLost."""
        last = self.entries[-1].number if self.entries else 0
        self.entries += await self._store.entries(self.thread.workspace, self.thread.id, last)
        await self.check_lease()
        if self.lost.is_set():
            raise LeaseLost("This thread was taken over or stopped.", thread_id=self.thread.id)
        return self.entries

    async def append(self, *entries: NewThreadEntry) -> None:
        await self._step(lambda thread, moment: threads.append(thread, self.fence, entries, moment))

    async def append_and_mirror(self, entry: NewThreadEntry) -> None:
        """Append an entry here, and for a sub-agent also to its person's thread, in one transaction."""
        body = {**entry.body, "child": self.thread.id, "path": list(self.thread.path)}
        mirrored_entry = entry._replace(body=body)

        def mirrored(thread: Thread | None, moment: Moment) -> ThreadTransition | None:
            return None if thread is None else threads.mirror(thread, (mirrored_entry,), moment)

        other_steps = {self.root_id: mirrored} if self.thread.parent else None
        await self._step(lambda thread, moment: threads.append(thread, self.fence, (entry,), moment), other_steps)

    async def open_child(self, child: str, opened: Callable[[Moment], ThreadTransition]) -> None:
        """Open a child thread, unless it exists. Raises LeaseLost if this thread was stopped or taken over."""

        def added(thread: Thread | None, moment: Moment) -> ThreadTransition | None:
            return opened(moment) if thread is None else None

        await self._step(lambda thread, moment: threads.append(thread, self.fence, (), moment), {child: added})

    async def request_confirmation(self, confirmation: Confirmation, *entries: NewThreadEntry) -> None:
        await self._step(
            lambda thread, moment: threads.request_confirmation(thread, self.fence, confirmation, entries, moment)
        )

    async def use_confirmation(self, call: str, tool: str, args_sha256: str) -> None:
        await self._step(lambda thread, _: threads.use_confirmation(thread, self.fence, call, tool, args_sha256))

    async def suspend(self, due_at: int | None) -> None:
        await self._step(lambda thread, moment: threads.suspend(thread, self.fence, due_at, moment))

    async def end(self, *entries: NewThreadEntry) -> None:
        seen = self.entries[-1].number if self.entries else 0
        await self._step(lambda thread, moment: threads.end(thread, self.fence, seen, entries, moment))

    async def keep_renewed(self) -> None:
        """Renew the lease until it is lost."""
        while not self.lost.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._lease / 3000):
                    await self.lost.wait()
            with suppress(Error):  # a database error: the lease may expire, and then the next write fails
                await self._step(lambda thread, moment: threads.renew(thread, self.fence, self._lease, moment))

    async def check_lease(self) -> None:
        """Set `lost` if the thread was stopped or taken over."""
        thread = await self._store.get(self.thread.workspace, self.thread.id)
        if thread.fence != self.fence or thread.status != "running":
            self.lost.set()

    async def run_unless_lost(self, work: Coroutine[None, None, T]) -> T:
        """Run work without effects; it is cancelled when the lease is lost."""
        working, lost = asyncio.create_task(work), asyncio.create_task(self.lost.wait())
        try:
            await asyncio.wait({working, lost}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise LeaseLost("This thread was taken over or stopped.", thread_id=self.thread.id)
            return working.result()
        finally:
            for task in (working, lost):
                task.cancel()
            await asyncio.gather(working, lost, return_exceptions=True)

    async def _step(self, step: ThreadStep, other_steps: Mapping[str, OtherThreadStep] | None = None) -> None:
        try:
            self.thread = await self._store.step(self.thread.workspace, self.thread.id, step, other_steps)
        except LeaseLost:
            self.lost.set()
            raise
