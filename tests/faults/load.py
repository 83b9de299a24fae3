"""A program that works on a database while something goes wrong with it. Run as a program of its own:

    python -m tests.faults.load URL FILE [--agents N] [--bytes N] [--patience SECONDS] [--broken NAME]

Its agents propose, decide, start, run and finish calls until its input ends. What they were told and what they did
stands in FILE, one line each, which is all that counts afterwards: see `load_runner.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, TypeVar

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.canonical import canonical
from interlock.core.errors import Conflict, Error, StoreUnavailable
from tests.faults import database_controls
from tests.support import OK, approve, propose_pending, status

PAUSE = 0.02  # seconds before an agent tries again
MAX_PAUSE_BEFORE_STEP = (
    0.01  # seconds before a step, at most, so that agents are not all at the same one when something happens
)
T = TypeVar("T")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("file", type=Path)
    parser.add_argument("--agents", type=int, default=8)
    parser.add_argument("--bytes", type=int, default=0, help="of chance in every call, so that the database grows")
    parser.add_argument("--patience", type=float, help="for a server that is gone")
    parser.add_argument("--broken", default="")
    options = parser.parse_args()
    if options.patience is not None:
        database_controls.set_retry_time(options.patience)
    if options.broken:
        database_controls.apply_control(options.broken)
    asyncio.run(work(options))


async def work(options: argparse.Namespace) -> None:
    services = build_services(options.url)
    await services.store.open()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, stop.set)
    with options.file.open("a", buffering=1) as answers:
        agents = [
            LoadAgent(services, f"{os.getpid()}.{n}", answers, stop, options.bytes) for n in range(options.agents)
        ]
        await asyncio.gather(*(agent.run() for agent in agents))
    await services.store.close()


@dataclass
class LoadAgent:
    parts: AppServices
    name: str
    log: TextIO
    stop: asyncio.Event
    bulk: int
    doubt: bool = False  # an answer of this call was lost, so it may turn out to be decided or started already

    async def run(self) -> None:
        number = 0
        while not self.stop.is_set():
            number += 1
            self.doubt = False
            try:
                await self.cycle(number)
            except Conflict as error:
                if not self.doubt:
                    self.write_line(f"error {error.code} {error.message}")
            except Exception as error:  # noqa: BLE001  any error is checked afterwards
                self.write_line(f"error {error.code if isinstance(error, Error) else 'crash'} {str(error)[:200]!r}")
                await asyncio.sleep(PAUSE)

    async def cycle(self, number: int) -> None:
        services, args = self.parts, {"path": f"/{number}/{random.randbytes(self.bulk // 2).hex()}"}
        made = await self.retry_until(
            "propose", lambda: propose_pending(services, f"{self.name}.{number}", args=args), ""
        )
        self.write_line(f"{made} pending")
        await self.retry_until("decide", lambda: approve(services, made), made)
        self.write_line(f"{made} approved")
        execution = await self.retry_until("start", lambda: services.gate.start("default", made, self.name), made)
        self.write_line(f"{made} running")
        self.write_line(f"{made} ran {'as approved' if execution.args == canonical(args) else 'something else'}")
        fence = execution.fence
        await self.retry_until(
            "finish", lambda: services.gate.finish("default", made, fence, ok=True, payload=OK), made
        )
        self.write_line(f"{made} succeeded")

    async def retry_until(self, step: str, attempt: Callable[[], Awaitable[T]], approval_id: str) -> T:
        """Retries while the database is unavailable, and reads in between."""
        await asyncio.sleep(random.uniform(0, MAX_PAUSE_BEFORE_STEP))
        while True:
            try:
                return await attempt()
            except StoreUnavailable as error:
                self.doubt = True
                self.write_line(f"error {error.code} at {step}: {error.message}")
                if self.stop.is_set():
                    raise
            if approval_id:
                await self.read_status(approval_id)
            await asyncio.sleep(PAUSE)

    async def read_status(self, approval_id: str) -> None:
        try:
            self.write_line(f"read {await status(self.parts, approval_id)}")
        except StoreUnavailable as error:
            self.write_line(f"error unread {error.message}")

    def write_line(self, line: str) -> None:
        self.log.write(f"{line}\n")


if __name__ == "__main__":
    main()
