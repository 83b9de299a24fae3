"""The writer: group commit for all tasks and threads of a process, with one transaction and one fsync for each batch.

Theory of operation. `submit` adds an item to the open batch of its event loop and waits for a future. The loop's next
turn dispatches the batch, so everything that was submitted in one turn is written together. There are two ways:

- Inline: a batch of one or two short items is written by the event loop itself, if no batch is queued, the write lock
  is free and the adapter can commit without waiting. This avoids two thread switches.
- Queued: otherwise the batch goes to the writer's thread, which joins all queued batches up to `MAX_BATCH` items into
  one transaction.

`_write_lock` serialises the two. Batches are written in the order in which they were dispatched.

Errors: an item's own `Error` is its result. `Outage` means that the database failed, and a commit that was sent may
stand: every caller gets `StoreUnavailable`, and nothing is replayed. After any other error the batch was rolled back,
and its items are replayed one by one, so that a bad item does not fail its neighbours.

Futures are resolved after the commit, each in the thread of its own loop; waiters are woken after that. `stop` writes
what was submitted before it and refuses everything later.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import NamedTuple

from interlock.core.errors import Error, StoreUnavailable
from interlock.storage.engine.metrics import WriterStats
from interlock.storage.engine.transaction import Transaction

MAX_BATCH = 512  # items in a batch: beyond that a commit takes longer than the wait that it saves
MAX_INLINE_BATCH = 2  # items that an event loop commits itself

NamedRead = tuple[str, ...]  # a named query and its values


class BatchItem(NamedTuple):
    """A unit of work; `run` is called in a transaction that has locked the workspace's ledger head.

    `prefetch` are its look-ups, declared up front so that a batch can send them all at once. `is_short`: it takes well
    under a millisecond.
    """

    run: Callable[[Transaction], object]
    workspace: str
    prefetch: tuple[NamedRead, ...] = ()
    is_short: bool = True


AnyFuture = asyncio.Future[object] | Future[object]
ChangedIds = dict[str, set[str]]
BatchResult = tuple[list[object], ChangedIds]
CommitBatch = Callable[
    [list[BatchItem]], BatchResult
]  # one transaction; an item's error is its result, an error of the whole batch is raised
TryCommitBatch = Callable[[list[BatchItem]], BatchResult | None]  # None: it would have to wait, and nothing was done


class Outage(Exception):
    """The database failed, not an item of the batch. The commit may have succeeded, so nothing is retried."""


class Batch:
    """Items submitted in one iteration of an event loop, or by a thread without one."""

    __slots__ = ("futures", "items", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.loop = loop
        self.items: list[BatchItem] = []
        self.futures: list[AnyFuture] = []

    def add(self, item: BatchItem, future: AnyFuture) -> None:
        self.futures.append(future)
        self.items.append(item)

    def snapshot(self) -> Batch:
        """Copy the batch for use in another thread, while its event loop may be adding to it."""
        batch = Batch(self.loop)
        batch.items = self.items[:]
        batch.futures = self.futures[: len(batch.items)]
        return batch

    def resolve(self, results: Sequence[object]) -> None:
        """Resolve the futures, in the thread of the batch's event loop."""
        for future, result in zip(self.futures, results, strict=True):
            resolve_future(future, result)


class Writer:
    """Commits batches; what the tasks of an event loop submit in one iteration goes into the same batch.

    With `try_commit`, the event loop commits a batch of one or two items itself if it does not have to wait: two thread
    switches cost about as much as the rest of a decision.
    """

    def __init__(
        self,
        commit: CommitBatch,
        announce: Callable[[ChangedIds], None],
        try_commit: TryCommitBatch | None = None,
        stats: WriterStats | None = None,
    ) -> None:
        self.stats = stats or WriterStats()
        self._commit = commit
        self._try_commit = try_commit
        self._announce = announce
        self._write_lock = threading.Lock()  # held while writing
        self._lock = threading.Lock()  # guards the attributes below
        self._open_batches: dict[asyncio.AbstractEventLoop, Batch] = {}
        self._queued = 0  # batches that the thread has yet to write
        self._is_closed = False  # not an Event: it is read twice for every write
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="interlock-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, after everything that was submitted is written."""
        with self._lock:
            self._is_closed = True
            for batch in self._open_batches.values():
                self._enqueue(batch.snapshot())
            self._open_batches.clear()
            self._queue.put(None)
        self._thread.join()
        self._write_lock.acquire()  # never released: an event loop that is about to write must find it taken

    async def submit(self, item: BatchItem) -> object:
        if self._is_closed:
            raise store_closed_error()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[object] = loop.create_future()
        batch = self._open_batches.get(loop)
        if batch is None:
            batch = self._open_batches[loop] = Batch(loop)
            loop.call_soon(self._dispatch_batch, loop)
        batch.add(item, future)
        if self._is_closed:  # by another thread at this very moment: this batch may never be dispatched
            resolve_future(future, store_closed_error())  # type: ignore[unreachable]  # another thread's write
        return await future

    def submit_sync(self, item: BatchItem) -> object:
        """Submit from a thread without an event loop, and wait for the result."""
        future: Future[object] = Future()
        batch = Batch(None)
        batch.add(item, future)
        with self._lock:
            if self._is_closed:
                raise store_closed_error()
            self._enqueue(batch)
        return future.result()

    def _enqueue(self, batch: Batch) -> None:
        self._queued += 1
        self._queue.put(batch)

    # In the event loop

    def _dispatch_batch(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = self._open_batches.pop(loop, None)
        if batch is None or self._try_inline(batch):
            return
        with self._lock:
            if not self._is_closed:
                self._enqueue(batch)
                return
        batch.resolve([store_closed_error()] * len(batch.items))

    def _try_inline(self, batch: Batch) -> bool:
        try_commit, items = self._try_commit, batch.items
        if try_commit is None or len(items) > MAX_INLINE_BATCH or not all(item.is_short for item in items):
            return False
        if self._queued or not self._write_lock.acquire(blocking=False):  # earlier batches go first
            return False
        try:
            done = try_commit(items)
            self.stats.add(len(items) if done else 0)
        except Exception as error:  # noqa: BLE001  every error is passed to the caller
            done = ([error], {}) if len(items) == 1 else None  # which of them failed? The thread replays them
        finally:
            self._write_lock.release()
        if done is None:
            return False
        batch.resolve(done[0])
        self._announce(done[1])
        return True

    # In the writer's thread

    def _loop(self) -> None:
        running = True
        while running:
            batches, running = self._next()
            if not batches:
                continue
            items = batches[0].items if len(batches) == 1 else [item for batch in batches for item in batch.items]
            with self._write_lock:
                results, changed = self._commit_or_replay(items)
                self.stats.add(len(items))
            with self._lock:
                self._queued -= len(batches)
            resolve_batches(batches, results)
            self._announce(changed)

    def _next(self) -> tuple[list[Batch], bool]:
        batches: list[Batch] = []
        size = 0
        batch = self._queue.get()
        while batch is not None:
            batches.append(batch)
            size += len(batch.items)
            if size >= MAX_BATCH:
                return batches, True
            try:
                batch = self._queue.get_nowait()
            except Empty:
                return batches, True
        return batches, False

    def _commit_or_replay(self, items: list[BatchItem]) -> BatchResult:
        try:
            return self._commit(items)
        except Outage as outage:
            self.stats.failed += 1
            return [StoreUnavailable(str(outage)) for _ in items], {}
        except Exception as error:  # noqa: BLE001  every error is passed to the callers, and the thread must go on
            if len(items) == 1:
                return [error], {}
        results: list[object] = []
        changed: ChangedIds = defaultdict(set)
        for item in items:  # one bad item must not fail the others: replay one by one
            (result,), what = self._commit_or_replay([item])
            results.append(result)
            for workspace, approval_ids in what.items():
                changed[workspace] |= approval_ids
        return results, changed


def run_item(item: BatchItem, transaction: Transaction) -> object:
    """Run an item; an error of its own is its result, so that the others of the batch are not affected."""
    try:
        return item.run(transaction)
    except Error as error:
        return error


EMPTY_ITEM = BatchItem(lambda _: None, "")  # makes a batch, with which data outside of the queue is written


def resolve_batches(batches: Sequence[Batch], results: Sequence[object]) -> None:
    """Resolve all futures of a batch in one callback of its loop."""
    begin = 0
    for batch in batches:
        own = results[begin : begin + len(batch.items)]
        begin += len(batch.items)
        if batch.loop is None:
            batch.resolve(own)
        else:
            call_soon(batch.loop, batch.resolve, own)


def call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *args: object) -> None:
    with suppress(RuntimeError):  # the loop was closed meanwhile: nothing waits there any more
        loop.call_soon_threadsafe(callback, *args)


def resolve_future(future: AnyFuture, result: object) -> None:
    if future.done():  # the waiter was cancelled
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


def store_closed_error() -> StoreUnavailable:
    return StoreUnavailable("The store is closed.")
