"""Thousands of requests created through the services, and events at a given rate."""

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


def create_requests(database: str, count: int) -> list[str]:
    """The ids of so many pending requests, in no order: those of one second stand in the list as they like."""
    made: list[str] = []

    async def work(services: AppServices) -> None:
        numbers = iter(range(count))

        async def agent() -> None:
            for number in numbers:
                made.append(await _propose(services, number))

        await asyncio.gather(*(agent() for _ in range(AT_ONCE)))

    _run_in_thread(database, work)
    return made


@contextmanager
def assign_at_rate(database: str, ids: list[str], rate: int) -> Iterator[list[float]]:
    """Assign approvals one after the other at this rate; yields the time of each."""
    done: list[float] = []
    stop = threading.Event()

    async def work(services: AppServices) -> None:
        begun = time.monotonic()
        while not stop.is_set():
            await services.inbox.claim("default", ids[len(done) % len(ids)], BOB)
            done.append(time.monotonic())
            await asyncio.sleep(max(0.0, begun + len(done) / rate - time.monotonic()))

    thread = threading.Thread(target=lambda: _run_in_thread(database, work))
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()


async def _propose(services: AppServices, number: int) -> str:
    args = {"to": f"user{number}@example.com", "subject": f"Invoice {number}"}
    outcome = await services.gate.check(propose("send_mail", args, "filled", f"call{number}"), SPEC)
    assert isinstance(outcome, Waiting)
    return outcome.approval_id


def _run_in_thread(database: str, work: Callable[[AppServices], Awaitable[None]]) -> None:
    """In a thread of its own: the one of the test has a loop already, which the browser is driven by."""

    async def run() -> None:
        services = build_services(database)
        await services.store.open()
        try:
            await work(services)
        finally:
            await services.store.close()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    thread.join()
