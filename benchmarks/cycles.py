"""One cycle: propose, pending durable, decide, start, run the tool, finished durable."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from benchmarks.floors import Bench, Postgres
from interlock.app.bootstrap import AppServices, build_services_from_store
from interlock.core.call import ToolSpec, propose
from interlock.core.canonical import digest
from interlock.core.decision import Acknowledgement, Approve, Reviewer
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Proceed, Waiting
from interlock.storage.store import SqlStore

SPEC = ToolSpec("delete_file", "destructive", describe="Delete {path!r}")
BOB = Reviewer("bob")


@asynccontextmanager
async def open_services(bench: Bench, folder: Path, *, recorded: bool = False) -> AsyncIterator[AppServices]:
    """Warmed up; with `recorded`, the bench writes down what is sent from here on."""
    with bench.database(folder) as database:
        app_services = build_services_from_store(SqlStore(database))
        await app_services.store.open()
        try:
            if recorded and isinstance(bench, Postgres):
                bench.record(database, folder)
            await app_services.store.secret_key("default")
            await cycle(app_services, "warm", [])
            if recorded and isinstance(bench, Postgres):
                bench.warmed_up()
            elif recorded:
                bench.record(database, folder)
            yield app_services
        finally:
            await app_services.store.close()


async def cycle(app_services: AppServices, key: str, latencies: list[float]) -> None:
    call = propose("delete_file", {"path": "/srv/x/" + "a" * 120, "key": key}, "bench", key)
    outcome = await app_services.gate.check(call, SPEC)
    assert isinstance(outcome, Waiting)
    seen = Acknowledgement(digest(call.args))  # what the card of this call shows
    start_time = time.perf_counter()
    await app_services.inbox.decide("default", outcome.approval_id, Approve(seen), BOB)
    execution = await app_services.gate.start("default", outcome.approval_id, "bench")
    latencies.append(time.perf_counter() - start_time)  # the tool would run here
    payload = Payload(result=b'"ok"')
    await app_services.gate.finish("default", outcome.approval_id, execution.fence, ok=True, payload=payload)


async def run_cycles(app_services: AppServices, total: int, at_once: int, tag: str) -> tuple[float, list[float]]:
    """Cycles per second and the times from decision to tool."""
    latencies: list[float] = []
    numbers = iter(range(total))

    async def agent() -> None:
        for number in numbers:
            await cycle(app_services, f"{tag}{number}", latencies)

    start_time = time.perf_counter()
    await asyncio.gather(*(agent() for _ in range(at_once)))
    return total / (time.perf_counter() - start_time), latencies


async def cycles_for(app_services: AppServices, seconds: float, at_once: int, tag: str) -> int:
    """How many were done in the time."""
    numbers, start_time = count(), time.perf_counter()

    async def agent() -> None:
        while time.perf_counter() - start_time < seconds:
            await cycle(app_services, f"{tag}{next(numbers)}", [])

    await asyncio.gather(*(agent() for _ in range(at_once)))
    return next(numbers)


async def allowed_reads(app_services: AppServices, reads: int) -> tuple[float, float]:
    """Seconds for one allowed read, all in, and those of the processor."""
    spec = ToolSpec("read_file", "read")
    start_time, processor = time.perf_counter(), time.process_time()
    for number in range(reads):
        call = propose("read_file", {"path": "/srv/x/" + "a" * 120, "key": "k"}, "bench", f"read{number}")
        assert isinstance(await app_services.gate.check(call, spec), Proceed)
    return (time.perf_counter() - start_time) / reads, (time.process_time() - processor) / reads
