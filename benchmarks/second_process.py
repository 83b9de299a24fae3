"""A second process next to a busy writer. `python -m benchmarks.second_process FILE` is the busy one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.cycles import SPEC, cycle
from interlock.app.bootstrap import AppServices, build_services, wall_clock
from interlock.core.call import propose
from interlock.core.outcome import Waiting

AGENTS = 64  # how many the busy process serves at once


def measure(writes: int = 300) -> list[float]:
    """Seconds for each durable write, while another process writes as fast as it can."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shared.db"
        command = [sys.executable, "-m", "benchmarks.second_process", str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE) as busy:
            assert busy.stdout is not None
            busy.stdout.readline()  # it is at work
            try:
                return asyncio.run(writes_beside(path, writes))
            finally:
                busy.kill()


async def writes_beside(path: Path, writes: int) -> list[float]:
    async with open_services(path) as app_services:
        spent = []
        for number in range(writes):
            start_time = time.perf_counter()
            outcome = await app_services.gate.check(propose("delete_file", {"path": "x"}, "beside", str(number)), SPEC)
            spent.append(time.perf_counter() - start_time)
            assert isinstance(outcome, Waiting)
    return spent


async def run_busy_writer(path: Path) -> None:
    async with open_services(path) as app_services:

        async def agent(name: int) -> None:
            number = 0
            while True:
                await cycle(app_services, f"{name}.{number}", [])
                number += 1

        agents = [asyncio.create_task(agent(name)) for name in range(AGENTS)]
        print("at work", flush=True)
        await asyncio.gather(*agents)


@asynccontextmanager
async def open_services(path: Path) -> AsyncIterator[AppServices]:
    app_services = build_services(f"sqlite:///{path}", wall_clock)
    await app_services.store.open()
    try:
        await app_services.store.secret_key("default")
        yield app_services
    finally:
        await app_services.store.close()


if __name__ == "__main__":
    asyncio.run(run_busy_writer(Path(sys.argv[1])))
