"""One thread that writes: concurrent transitions share a transaction and one fsync."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from interlock.core.errors import Error, StoreUnavailable
from interlock.stores.transaction import Transaction

MOST = 512  # items in a batch: beyond that a commit takes longer than the wait that it saves

Read = tuple[str, ...]  # a named query and its values


class Work(NamedTuple):
    """`run` is done inside a transaction that has locked the workspace's ledger head.

    `reads` are the look-ups that it is going to make, told beforehand so that a batch can make them all at once.
    """

    run: Callable[[Transaction], object]
    workspace: str
    reads: tuple[Read, ...] = ()


Changed = dict[str, set[str]]


class Committer(Protocol):
    """Runs a batch in one transaction. An item's own error is its result; what breaks the batch is raised."""

    def __call__(self, batch: list[Work]) -> tuple[list[object], Changed]: ...


W = TypeVar("W")


@dataclass(slots=True)
class Item(Generic[W]):
    work: W
    future: asyncio.Future[object] | Future[object]
    loop: asyncio.AbstractEventLoop | None


class Writer:
    def __init__(self, commit: Committer, announce: Callable[[Changed], None]) -> None:
        self._commit = commit
        self._announce = announce
        self._queue: SimpleQueue[Item[Work] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="interlock-writer", daemon=True)
        self._closed = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Everything that was submitted before is written."""
        self._closed = True
        self._queue.put(None)
        self._thread.join()

    async def submit(self, work: Work) -> object:
        if self._closed:
            raise StoreUnavailable("The store is closed.")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[object] = loop.create_future()
        self._queue.put(Item(work, future, loop))
        return await future

    def submit_sync(self, work: Work) -> object:
        """For threads without an event loop."""
        if self._closed:
            raise StoreUnavailable("The store is closed.")
        future: Future[object] = Future()
        self._queue.put(Item(work, future, None))
        return future.result()

    def _loop(self) -> None:
        running = True
        while running:
            batch, running = self._next_batch()
            if batch:
                self._run(batch)

    def _next_batch(self) -> tuple[list[Item[Work]], bool]:
        batch: list[Item[Work]] = []
        item = self._queue.get()
        while item is not None:
            batch.append(item)
            if len(batch) == MOST:
                return batch, True
            try:
                item = self._queue.get_nowait()
            except Empty:
                return batch, True
        return batch, False

    def _run(self, batch: list[Item[Work]]) -> None:
        try:
            results, changed = self._commit([item.work for item in batch])
        except Exception as error:  # noqa: BLE001  whatever it was, every caller hears of it and the thread lives on
            if len(batch) == 1:
                results, changed = [error], {}
            else:
                for item in batch:  # one bad item must not fail its neighbours: replay one by one
                    self._run([item])
                return
        deliver(batch, results)
        self._announce(changed)


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


def _settle_all(settled: list[tuple[asyncio.Future[object], object]]) -> None:
    for future, result in settled:
        if not future.done():
            _settle(future, result)


def _settle(future: asyncio.Future[object] | Future[object], result: object) -> None:
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
