"""Threads that wait for people cost a row each, and no memory. Run as a program of its own:

    python -m tests.faults.chat_parked [--database sqlite|postgresql] [--threads N] [--decided N] [--broken holds]

A real server (`serve --demo`) is given many threads that each come to wait for a decision. Measured are its memory
before and after, and what it does while they wait. Then it is killed, some are approved while it is down, and it is
started again: all of these come to their end, and the others wait on. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from interlock.app.bootstrap import AppServices, build_services
from interlock.app.gate import uuid7
from interlock.core.chat import thread
from interlock.core.chat.thread import THREAD_ID_PREFIX, ThreadOrigin
from interlock.core.decision import Acknowledgement, Approve, Reviewer
from interlock.core.ports import ApprovalQuery
from tests.faults import http_server
from tests.faults.storm import open_database
from tests.interlock_server import RunningServer, run_server

WORKSPACE = "default"
TOOL = "okr_create_objective"
WARM = 500  # threads before the first look, so that caches are full
LOT = 200  # threads that are added at once
IDLE = 5.0  # seconds
EACH = 2_048  # bytes that one parked thread may cost the server, with what the store remembers of the newest approvals
SPARE = 6 << 20  # bytes that a heap may grow by for other reasons
BUSY = 0.1  # of a core, while all wait
PATIENCE = 600.0  # seconds
BOB = Reviewer("bob", "admin", via="test")
NOTICED = "parked threads cost"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.chat_parked")
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--threads", type=int, default=10_000)
    parser.add_argument("--decided", type=int, default=1_000)
    parser.add_argument("--broken", choices=["holds-threads"], default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, open_database(options.database, Path(folder)) as (database, _):
        print(json.dumps(asyncio.run(run(database, Path(folder), options))))


async def run(database: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    services = build_services(database)
    await services.store.open()
    parked, decided = options.threads, min(options.decided, options.threads)
    program, environ = http_server.program(options.broken)
    with run_server(database, folder, "--demo", program=program, environ=environ) as served:
        await park(services, WARM)
        before = memory(served)
        begun = time.monotonic()
        await park(services, parked)
        per_second = parked / (time.monotonic() - begun)
        after = memory(served)
        busy = await cpu_share(served)
        served.kill()
    await decide(services, decided)
    with run_server(database, folder, "--demo", program=program, environ=environ) as served:
        began_again = time.monotonic()
        ended = await wait_for_status(services, "idle", decided)
        picked_up = time.monotonic() - began_again
        restarted = memory(served)
        served.kill()
    waiting = await count_threads(services, "waiting")
    wrong = check_limits(after - before, parked, busy, ended == decided, waiting == WARM + parked - decided)
    await services.store.close()
    return {
        "suite": "chat-parked",
        "database": options.database,
        "operations": parked + decided,
        "succeeded": waiting - WARM + 2 * ended,
        "faults": 2,
        "wrong": wrong,
        "seconds": round(time.monotonic() - began, 1),
        "parked_per_second": round(per_second),
        "memory_before_mb": round(before / 2**20, 1),
        "memory_after_mb": round(after / 2**20, 1),
        "memory_restarted_mb": round(restarted / 2**20, 1),
        "bytes_per_thread": (after - before) // parked,
        "idle_cpu_share": round(busy, 4),
        "decided_while_down": decided,
        "picked_up_seconds": round(picked_up, 2),
    }


def check_limits(grown: int, parked: int, busy: float, all_ended: bool, all_wait: bool) -> list[str]:
    found = []
    if grown > EACH * parked + SPARE:
        found.append(f"{parked} parked threads cost {grown} bytes")
    if busy > BUSY:
        found.append(f"a server whose threads all wait uses {busy:.2f} of a core")
    if not all_ended:
        found.append("what was decided while the server was down did not come to its end")
    if not all_wait:
        found.append("a thread that waits was lost")
    return found


async def park(services: AppServices, number: int) -> None:
    """As many more that wait, each for a decision about an objective."""
    already = await count_threads(services, "waiting")
    for begin in range(0, number, LOT):
        await asyncio.gather(*(add_thread(services, n) for n in range(begin, min(begin + LOT, number))))
    if await wait_for_status(services, "waiting", already + number) != already + number:
        raise RuntimeError("the threads did not come to wait")


async def add_thread(services: AppServices, number: int) -> None:
    thread_id, place = (
        THREAD_ID_PREFIX + uuid7(services.clock()),
        ThreadOrigin(WORKSPACE, "assistant", "ann", ("assistant",)),
    )
    text = f'create an objective "Grow {number}"'
    await services.store.threads.add(
        WORKSPACE, thread_id, lambda moment: thread.open_thread(thread_id, place, text, moment)
    )


async def decide(services: AppServices, number: int) -> None:
    done, cursor = 0, ""
    while done < number:
        page = await services.store.list(
            WORKSPACE, ApprovalQuery(statuses=("pending",), tool=TOOL, limit=100, cursor=cursor)
        )
        chosen = [stored.approval for stored in page.items][: number - done]
        await asyncio.gather(
            *(
                services.inbox.decide(WORKSPACE, each.id, Approve(Acknowledgement(each.args_sha256)), BOB)
                for each in chosen
            )
        )
        done, cursor = done + len(chosen), page.next or ""


async def wait_for_status(services: AppServices, status: str, number: int) -> int:
    """How many have this status: all of them, unless it takes far too long."""
    begun = time.monotonic()
    while (found := await count_threads(services, status)) < number and time.monotonic() - begun < PATIENCE:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    return found


async def count_threads(services: AppServices, status: str) -> int:
    found = await services.store._database.fetch_text(f"select count(*) from threads where status = '{status}'", ())
    return int(found[0][0])


def memory(served: RunningServer) -> int:
    """What the process holds in RAM."""
    lines = Path(f"/proc/{served.process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) * 1024


async def cpu_share(served: RunningServer) -> float:
    used = cpu_seconds(served)
    await asyncio.sleep(IDLE)
    return (cpu_seconds(served) - used) / IDLE


def cpu_seconds(served: RunningServer) -> float:
    fields = Path(f"/proc/{served.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
