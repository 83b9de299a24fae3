"""Offloading of work on large values from the event loop to threads, and an event loop on a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")
OFFLOAD_THRESHOLD = 64 * 1024  # bytes, a few milliseconds


async def offload(size: int, work: Callable[[], T]) -> T:
    return work() if size < OFFLOAD_THRESHOLD else await asyncio.to_thread(work)


class TooManyThreads(RuntimeError):
    """All threads of a kind are in use."""


async def run_in_own_thread(work: Callable[[], T], slots: threading.Semaphore | None = None) -> T:
    """Run foreign code in a thread of its own: one that hangs takes no thread from others, and delays no exit.

    If the caller gives up, the code runs on, and its result is dropped. Raises SystemExit if the code does: handle it.
    Each thread takes one of the `slots` until it ends. Raises TooManyThreads if none is free.
    """
    slots = slots or threading.Semaphore()
    if not slots.acquire(blocking=False):
        raise TooManyThreads
    future: Future[T] = Future()
    context = copy_context()

    def run() -> None:
        try:
            _settle(future, lambda: context.run(work))
        finally:
            slots.release()

    try:
        threading.Thread(target=run, name="interlock-own-thread", daemon=True).start()
    except RuntimeError:  # the system has no thread left
        slots.release()
        raise
    return await asyncio.wrap_future(future)


def _settle(future: Future[T], work: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except (StopIteration, KeyboardInterrupt) as error:  # they would end the event loop
        future.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
    except BaseException as error:  # noqa: BLE001  raised where it is awaited
        future.set_exception(error)


class LoopThread:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="interlock-bridge", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Block the calling thread until the work is done; an interrupt cancels the work."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
