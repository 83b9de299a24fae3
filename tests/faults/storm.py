"""Random operations on few approvals by many clients in several processes, some of which are killed:

    python -m tests.faults.storm [--database sqlite|postgresql] [--operations N] [--kills N] [--broken CONTROL]

Every operation is recorded when it is called and when it is answered; every effect is a line in a file that the
database knows nothing of. Afterwards the effects are counted, the ledger and all rows are verified, nothing may be
stuck, and the history of each approval has to be linearizable. On PostgreSQL connections are cut as well. Prints one
JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import mmap
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import interlock.storage.postgres.database  # noqa: F401  loaded once: all processes run the same code
from interlock.app.bootstrap import AppServices, build_services
from interlock.core.errors import StoreUnavailable
from interlock.runtime.process_identity import make_runner_id
from tests.databases import migrated_template
from tests.faults import race_controls
from tests.faults.clients import POLICY, Client, forbidden_transitions
from tests.faults.final_state import check_final_state
from tests.faults.histories import Recorder
from tests.postgres import Server

PROCESSES = 3
LANES_PER_PROCESS = 64  # approvals that are under way at once; every process has a client at each
STALLED = 120.0  # seconds without any progress
DATABASE = "storm"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--operations", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broken", choices=sorted(race_controls.CONTROLS))
    options = parser.parse_args()
    if options.broken:
        race_controls.CONTROLS[options.broken]()
    with tempfile.TemporaryDirectory() as folder, open_database(options.database, Path(folder)) as (url, server):
        if options.broken and server:
            with server.connect(DATABASE) as connection:  # its own refusals would hide what the code does wrong
                connection.execute("alter table approvals disable trigger user")
        print(json.dumps(run(url, server, Path(folder), options)))


@contextmanager
def open_database(database: str, folder: Path) -> Iterator[tuple[str, Server | None]]:
    if database == "sqlite":
        yield f"sqlite:///{folder}/storm.db", None
        return
    with Server() as server:
        server.create_database(DATABASE, migrated_template(server))
        yield server.url(DATABASE), server


def run(url: str, server: Server | None, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    shared = SharedCounters()
    storm = Storm(url, server, folder, shared, random.Random(options.seed))
    storm.run(options.operations, options.kills)
    stormed = time.monotonic() - began
    if options.broken == "swapped-answer":
        race_controls.swap_recorded_answers(folder)
    verdict = check_final_state(url, folder, storm.killed)
    return {
        "suite": "storm",
        "database": options.database,
        "operations": verdict.operations,
        "succeeded": verdict.succeeded,
        "faults": storm.faults.total(),
        "wrong": verdict.samples(),
        "seconds": round(time.monotonic() - began, 1),
        "stormed": round(stormed, 1),
        "approvals": verdict.approvals,
        "effects": verdict.effects,
        "linearizable": verdict.linearizable,
        "lost": verdict.lost,
        "kinds": dict(storm.faults),
        "bytes": database_size(server, folder),
        "counts": dict(sorted(verdict.counts.items())),
        "statuses": dict(sorted(verdict.statuses.items())),
    }


class SharedCounters:
    """Shared memory that survives each process: the position of each lane, counts, and when to stop."""

    def __init__(self) -> None:
        self._memory = memoryview(mmap.mmap(-1, 8 * (LANES_PER_PROCESS + PROCESSES + 1))).cast("q")

    def current(self, lane: int) -> int:
        return int(self._memory[lane]) * LANES_PER_PROCESS + lane

    def advance(self, lane: int, number: int) -> None:
        """Two that advance at once advance by one."""
        self._memory[lane] = number // LANES_PER_PROCESS + 1

    def count(self, process: int, operations: int) -> None:
        self._memory[LANES_PER_PROCESS + process] += operations

    def operations(self) -> int:
        return sum(self._memory[LANES_PER_PROCESS : LANES_PER_PROCESS + PROCESSES])

    def stop(self) -> None:
        self._memory[-1] = 1

    def stopped(self) -> bool:
        return bool(self._memory[-1])


class Storm:
    """Starts the processes, kills some of them and cuts connections, and starts them again."""

    def __init__(
        self, url: str, server: Server | None, folder: Path, shared: SharedCounters, chance: random.Random
    ) -> None:
        self.url, self.server, self.folder, self.shared, self.chance = url, server, folder, shared, chance
        self.killed: dict[str, int] = {}
        self.names: dict[int, str] = {}  # of the processes that run, by number
        self.faults = Counter[str]()

    def run(self, operations: int, kills: int) -> None:
        fork(lambda: asyncio.run(prepare_database(self.url)), wait=True)
        running = [self.start(number) for number in range(PROCESSES)]
        try:
            for fault in range(kills):
                self.reach(operations * (fault + 1) // (kills + 1), running)
                self.kill(self.chance.randrange(PROCESSES), running)
                self.cut()
            self.reach(operations, running)
        except BaseException:
            for pid in running:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            raise
        self.killed |= dict.fromkeys(self.names.values(), now())  # from here on they go by themselves
        self.shared.stop()
        wait_for_processes(running)

    def start(self, number: int) -> int:
        seed = self.chance.getrandbits(32)
        self.names[number] = f"{number}-{seed}"
        return fork(lambda: asyncio.run(run_clients(self.url, self.folder, self.shared, number, seed)))

    def reach(self, operations: int, running: list[int]) -> None:
        last, moved = -1, time.monotonic()
        while (done := self.shared.operations()) < operations:
            if done != last:
                last, moved = done, time.monotonic()
            if time.monotonic() - moved > STALLED or any(os.waitpid(pid, os.WNOHANG)[0] for pid in running):
                raise RuntimeError(f"the storm came to a halt after {done} operations")
            time.sleep(0.01)

    def kill(self, number: int, running: list[int]) -> None:
        pid = running[number]
        self.killed[self.names[number]] = now()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.faults["kills"] += 1
        running[number] = self.start(number)

    def cut(self) -> None:
        """Cuts every connection of the database, in any state."""
        if self.server is None:
            return
        with self.server.connect() as connection:
            cut = connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [DATABASE]
            ).fetchall()
        self.faults["cuts"] += len(cut)


async def prepare_database(url: str) -> None:
    services = build_services(url)
    await services.store.open()
    await services.put_policy("default", POLICY, "ada", {})
    await services.store.close()


async def run_clients(url: str, folder: Path, shared: SharedCounters, number: int, seed: int) -> None:
    """One process: a client for each lane, and a worker for the timers."""
    services = await reach_database(url)
    recorder, runner, stop = Recorder(folder, f"{number}-{seed}"), make_runner_id(), asyncio.Event()
    worker = asyncio.create_task(services.worker.run(stop))
    clients = [Client(services, recorder, folder, runner, seed * 1000 + lane) for lane in range(LANES_PER_PROCESS)]
    await asyncio.gather(*(follow_lane(client, lane, shared, number) for lane, client in enumerate(clients)))
    stop.set()
    await worker
    await services.store.close()


async def reach_database(url: str) -> AppServices:
    """A program that loses its connection while opening ends with an error, and is started again."""
    while True:
        services = build_services(url)
        try:
            await services.store.open()
            await services.put_policy("default", None, "", {})
            return services
        except StoreUnavailable:
            await services.store.close()


async def follow_lane(client: Client, lane: int, shared: SharedCounters, process: int) -> None:
    while not shared.stopped():
        number, before = shared.current(lane), client.operations
        await client.play(number, lambda: shared.current(lane))
        if shared.current(lane) == number:
            shared.advance(lane, number)
        shared.count(process, client.operations - before)
        if client.chance.random() < 0.01 and not await forbidden_transitions(client.parts, number):
            raise RuntimeError("a denied call was not refused")


def fork(work: Callable[[], object], *, wait: bool = False) -> int:
    pid = os.fork()
    if pid:
        wait_for_processes([pid] if wait else [])
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException as error:  # noqa: BLE001  a forked child must end here, not in its parent's code
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(code)


def now() -> int:
    """Milliseconds, as deadlines are counted."""
    return time.time_ns() // 1_000_000


def wait_for_processes(processes: list[int]) -> None:
    """Waits for all; what one of them died of is on the standard error."""
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in processes]
    if any(codes):
        raise RuntimeError(f"processes ended with {codes}")


def database_size(server: Server | None, folder: Path) -> int:
    """Of the database, its log included."""
    if server is None:
        return sum(path.stat().st_size for path in folder.glob("storm.db*"))
    with server.connect(DATABASE) as connection:
        row = connection.execute("select pg_database_size(%s)", [DATABASE]).fetchone()
    return int(row[0]) if row else 0


if __name__ == "__main__":
    main()
