"""A person who approves at once whatever waits: for tests of what is around the question, not of the question."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.errors import Error
from interlock.core.ports import ApprovalQuery
from tests.support import approve

LOOK = 0.02  # seconds between two looks


@contextmanager
def approving(database: str) -> Iterator[list[str]]:
    """Gives the tools that were approved, in order."""
    approved: list[str] = []
    stop = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_approve(database, approved, stop)), name="person")
    thread.start()
    try:
        yield approved
    finally:
        stop.set()
        thread.join()


async def _approve(database: str, approved: list[str], stop: threading.Event) -> None:
    parts = build_services(database)
    await parts.store.open()
    try:
        while not stop.is_set():
            await _look(parts, approved)
            await asyncio.sleep(LOOK)
    finally:
        await parts.store.close()


async def _look(parts: AppServices, approved: list[str]) -> None:
    for stored in (await parts.inbox.list("default", ApprovalQuery(statuses=("pending",)))).items:
        with suppress(Error):  # whoever called may have gone meanwhile
            await approve(parts, stored.approval.id)
            approved.append(stored.approval.subject.tool)
