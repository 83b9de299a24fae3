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
from tests.support import OK, approve, pending, status

PAUSE = 0.02  # seconds before an agent tries again
THINKING = 0.01  # seconds before a step, at most, so that agents are not all at the same one when something happens
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
        database_controls.patience(options.patience)
    if options.broken:
        database_controls.apply(options.broken)
    asyncio.run(work(options))


async def work(options: argparse.Namespace) -> None:
    parts = build_services(options.url)
    await parts.store.open()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, stop.set)
    with options.file.open("a", buffering=1) as told:
        agents = [Agent(parts, f"{os.getpid()}.{n}", told, stop, options.bytes) for n in range(options.agents)]
        await asyncio.gather(*(agent.live() for agent in agents))
    await parts.store.close()


@dataclass
class Agent:
    parts: AppServices
    name: str
    told: TextIO
    stop: asyncio.Event
    bulk: int
    doubt: bool = False  # an answer of this call was lost, so it may turn out to be decided or started already

    async def live(self) -> None:
        number = 0
        while not self.stop.is_set():
            number += 1
            self.doubt = False
            try:
                await self.cycle(number)
            except Conflict as error:
                if not self.doubt:
                    self.note(f"error {error.code} {error.message}")
            except Exception as error:  # noqa: BLE001  whatever it is, it is judged afterwards
                self.note(f"error {error.code if isinstance(error, Error) else 'crash'} {str(error)[:200]!r}")
                await asyncio.sleep(PAUSE)

    async def cycle(self, number: int) -> None:
        parts, args = self.parts, {"path": f"/{number}/{random.randbytes(self.bulk // 2).hex()}"}
        made = await self.until("propose", lambda: pending(parts, f"{self.name}.{number}", args=args), "")
        self.note(f"{made} pending")
        await self.until("decide", lambda: approve(parts, made), made)
        self.note(f"{made} approved")
        execution = await self.until("start", lambda: parts.gate.start("default", made, self.name), made)
        self.note(f"{made} running")
        self.note(f"{made} ran {'as approved' if execution.args == canonical(args) else 'something else'}")
        fence = execution.fence
        await self.until("finish", lambda: parts.gate.finish("default", made, fence, ok=True, payload=OK), made)
        self.note(f"{made} succeeded")

    async def until(self, step: str, attempt: Callable[[], Awaitable[T]], approval_id: str) -> T:
        """Again and again, as an agent does that is told that the database is not there; meanwhile it looks."""
        await asyncio.sleep(random.uniform(0, THINKING))
        while True:
            try:
                return await attempt()
            except StoreUnavailable as error:
                self.doubt = True
                self.note(f"error {error.code} at {step}: {error.message}")
                if self.stop.is_set():
                    raise
            if approval_id:
                await self.look(approval_id)
            await asyncio.sleep(PAUSE)

    async def look(self, approval_id: str) -> None:
        try:
            self.note(f"read {await status(self.parts, approval_id)}")
        except StoreUnavailable as error:
            self.note(f"error unread {error.message}")

    def note(self, line: str) -> None:
        self.told.write(f"{line}\n")


if __name__ == "__main__":
    main()
