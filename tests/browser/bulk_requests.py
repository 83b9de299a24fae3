"""Thousands of requests at once, made through the doors rather than over HTTP, and events at a given pace."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.call import ToolSpec, propose
from interlock.core.decision import Reviewer
from interlock.core.outcome import Waiting

SPEC = ToolSpec("send_mail", "write", describe="Send {subject!r} to {to!r}")
BOB = Reviewer("bob")
AT_ONCE = 200


def fill(database: str, count: int) -> list[str]:
    """The ids of so many pending requests, in no order: those of one second stand in the list as they like."""
    made: list[str] = []

    async def work(parts: AppServices) -> None:
        numbers = iter(range(count))

        async def agent() -> None:
            for number in numbers:
                made.append(await _propose(parts, number))

        await asyncio.gather(*(agent() for _ in range(AT_ONCE)))

    _beside(database, work)
    return made


@contextmanager
def claiming(database: str, ids: list[str], rate: int) -> Iterator[list[float]]:
    """Somebody claims one after the other, so many times in a second; gives when each of them was done."""
    done: list[float] = []
    stop = threading.Event()

    async def work(parts: AppServices) -> None:
        begun = time.monotonic()
        while not stop.is_set():
            await parts.inbox.claim("default", ids[len(done) % len(ids)], BOB)
            done.append(time.monotonic())
            await asyncio.sleep(max(0.0, begun + len(done) / rate - time.monotonic()))

    thread = threading.Thread(target=lambda: _beside(database, work))
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()


async def _propose(parts: AppServices, number: int) -> str:
    args = {"to": f"user{number}@example.com", "subject": f"Invoice {number}"}
    outcome = await parts.gate.check(propose("send_mail", args, "filled", f"call{number}"), SPEC)
    assert isinstance(outcome, Waiting)
    return outcome.approval_id


def _beside(database: str, work: Callable[[AppServices], Awaitable[None]]) -> None:
    """In a thread of its own: the one of the test has a loop already, which the browser is driven by."""

    async def run() -> None:
        parts = build_services(database)
        await parts.store.open()
        try:
            await work(parts)
        finally:
            await parts.store.close()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    thread.join()
