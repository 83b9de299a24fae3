"""One thread that writes: concurrent transitions share a transaction and one fsync."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, NamedTuple, TypeVar

from interlock.core.errors import Error, StoreUnavailable
from interlock.stores.transaction import Transaction

MOST = 512  # items in a batch: beyond that a commit takes longer than the wait that it saves
FEW = 2  # items that an event loop writes by itself

Read = tuple[str, ...]  # a named query and its values


class Work(NamedTuple):
    """`run` is done inside a transaction that has locked the workspace's ledger head.

    `reads` are the look-ups that it is going to make, told beforehand so that a batch can make them all at once.
    `brief` is what takes well under a millisecond.
    """

    run: Callable[[Transaction], object]
    workspace: str
    reads: tuple[Read, ...] = ()
    brief: bool = True


Changed = dict[str, set[str]]
Done = tuple[list[object], Changed]
Commit = Callable[[list[Work]], Done]  # one transaction; an item's error is its result, what breaks the batch is raised
CommitNow = Callable[[list[Work]], Done | None]  # None: not without waiting, and then nothing was done


W = TypeVar("W")


class Item(NamedTuple, Generic[W]):
    work: W
    future: asyncio.Future[object] | Future[object]
    loop: asyncio.AbstractEventLoop | None


class Writer:
    """What the tasks of an event loop submit in one turn is one batch, or a part of one.

    With `commit_now` a batch of one or two is written by the loop itself, if that takes no waiting for anybody: two
    switches between threads cost about as much as all that Interlock does for a decision.
    """

    def __init__(
        self, commit: Commit, announce: Callable[[Changed], None], commit_now: CommitNow | None = None
    ) -> None:
        self._commit = commit
        self._commit_now = commit_now
        self._announce = announce
        self._turn = threading.Lock()  # held by whoever writes
        self._gathering = threading.Lock()
        self._gathered: dict[asyncio.AbstractEventLoop, list[Item[Work]]] = {}
        self._queue: SimpleQueue[list[Item[Work]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="interlock-writer", daemon=True)
        self._queued = 0  # items that the thread has yet to write
        self._closed = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Everything that was submitted before is written."""
        with self._gathering:
            self._closed = True
            for batch in self._gathered.values():
                self._enqueue(batch)
            self._gathered.clear()
            self._queue.put(None)
        self._thread.join()
        self._turn.acquire()  # for ever: an event loop that is about to write finds it taken

    async def submit(self, work: Work) -> object:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[object] = loop.create_future()
        item = Item(work, future, loop)
        with self._gathering:
            self._refuse_if_closed()
            gathered = self._gathered.get(loop)
            if gathered is None:
                self._gathered[loop] = [item]
                loop.call_soon(self._hand_over, loop)
            else:
                gathered.append(item)
        return await future

    def submit_sync(self, work: Work) -> object:
        """For threads without an event loop."""
        future: Future[object] = Future()
        with self._gathering:
            self._refuse_if_closed()
            self._enqueue([Item(work, future, None)])
        return future.result()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreUnavailable("The store is closed.")

    def _enqueue(self, batch: list[Item[Work]]) -> None:
        self._queued += len(batch)
        self._queue.put(batch)

    # In the event loop

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._gathering:
            batch = self._gathered.pop(loop, None)
        if batch is None or self._written_now(batch):
            return
        with self._gathering:
            if not self._closed:
                self._enqueue(batch)
                return
        closed = StoreUnavailable("The store is closed.")
        _settle_all([(item.future, closed) for item in batch])

    def _written_now(self, batch: list[Item[Work]]) -> bool:
        now = self._commit_now
        if now is None or len(batch) > FEW or not all(item.work.brief for item in batch):
            return False
        if self._queued or not self._turn.acquire(blocking=False):  # whoever came before goes first
            return False
        try:
            done = now([item.work for item in batch])
        except Exception as error:  # noqa: BLE001  whatever it was, the caller hears of it
            done = ([error], {}) if len(batch) == 1 else None  # which one was it? The thread finds out
        finally:
            self._turn.release()
        if done is None:
            return False
        _settle_all([(item.future, result) for item, result in zip(batch, done[0], strict=True)])
        self._announce(done[1])
        return True

    # In the writer's thread

    def _loop(self) -> None:
        running = True
        while running:
            batch, running = self._next_batch()
            if batch:
                with self._turn:
                    results, changed = self._done([item.work for item in batch])
                with self._gathering:
                    self._queued -= len(batch)
                deliver(batch, results)
                self._announce(changed)

    def _next_batch(self) -> tuple[list[Item[Work]], bool]:
        batch: list[Item[Work]] = []
        items = self._queue.get()
        while items is not None:
            batch += items
            if len(batch) >= MOST:
                return batch, True
            try:
                items = self._queue.get_nowait()
            except Empty:
                return batch, True
        return batch, False

    def _done(self, batch: list[Work]) -> Done:
        try:
            return self._commit(batch)
        except Exception as error:  # noqa: BLE001  whatever it was, every caller hears of it and the thread lives on
            if len(batch) == 1:
                return [error], {}
        results: list[object] = []
        changed: Changed = defaultdict(set)
        for work in batch:  # one bad item must not fail its neighbours: replay one by one
            (result,), what = self._done([work])
            results.append(result)
            for workspace, approval_ids in what.items():
                changed[workspace] |= approval_ids
        return results, changed


def attempt(work: Work, transaction: Transaction) -> object:
    """An item's own error is its result: it is no reason to fail the others of its batch."""
    try:
        return work.run(transaction)
    except Error as error:
        return error


NOTHING = Work(lambda _: None, "")  # a batch of its own for what waits beside the queue


def deliver(batch: Sequence[Item[Any]], results: list[object]) -> None:
    """Resolves all futures of one event loop in one callback."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[object], object]]] = defaultdict(list)
    for item, result in zip(batch, results, strict=True):
        if isinstance(item.future, Future):
            _settle(item.future, result)
        elif item.loop is not None:
            by_loop[item.loop].append((item.future, result))
    for loop, settled in by_loop.items():
        call_soon(loop, _settle_all, settled)


def call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *args: object) -> None:
    with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits there any more
        loop.call_soon_threadsafe(callback, *args)


def _settle_all(settled: Sequence[tuple[asyncio.Future[object] | Future[object], object]]) -> None:
    for future, result in settled:
        if not future.done():
            _settle(future, result)


def _settle(future: asyncio.Future[object] | Future[object], result: object) -> None:
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
