"""A process that pauses and resumes a run: `python -m tests.faults.pause_program URL RUN [PLAN]`.

Says what it has done: paused, went on, over. A plan of `points` counts from where the database is open.
"""

from __future__ import annotations

import asyncio
import sys
import threading

from interlock.runtime.process_identity import is_dead, make_runner_id
from interlock.storage.tables.pauses import LeaseHolder, PauseScope
from tests.faults.points import build_services_with_points, parse_fault_plan

SCOPE = PauseScope("default", "mailer")


async def main(url: str, run_id: str, fault: str = "") -> None:
    begun, act = threading.Event(), parse_fault_plan(fault)
    services = build_services_with_points(url, lambda name: act(name) if act and begun.is_set() else None)
    await services.store.open()
    try:
        begun.set()
        await services.store.pauses.pause(SCOPE, run_id, run_id, run_id.encode())
        print("paused", flush=True)
        (pause,) = await services.store.pauses.wait_ready(SCOPE, LeaseHolder(make_runner_id(), 60_000), 0, 10, is_dead)
        print("went on", flush=True)
        await services.store.pauses.complete(SCOPE, pause.short_id, pause.fence)
        print("over", flush=True)
        begun.clear()
    finally:
        await services.store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
