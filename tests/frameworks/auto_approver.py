"""A reviewer who approves every pending call at once, for tests about something else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.errors import Error
from interlock.core.ports import ApprovalQuery
from tests.support import approve

POLL_SECONDS = 0.02  # seconds between two looks


@contextmanager
def auto_approve(database: str) -> Iterator[list[str]]:
    """Approve in a thread; yields the approved tools, in order."""
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
    services = build_services(database)
    await services.store.open()
    try:
        while not stop.is_set():
            await _approve_pending(services, approved)
            await asyncio.sleep(POLL_SECONDS)
    finally:
        await services.store.close()


async def _approve_pending(services: AppServices, approved: list[str]) -> None:
    for stored in (await services.inbox.list("default", ApprovalQuery(statuses=("pending",)))).items:
        with suppress(Error):  # whoever called may have gone meanwhile
            await approve(services, stored.approval.id)
            approved.append(stored.approval.subject.tool)
