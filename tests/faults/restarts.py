"""Restarts a PostgreSQL the hard way while programs propose, decide, start and finish. Run as a program of its own:

    python -m tests.faults.restarts [--restarts N] [--programs N] [--broken]

Each program is a process of its own and writes down, outside the database, what it was told: that is what must be
there afterwards. `--broken` does not wait for the disk: the red control. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from interlock.audit import verify
from interlock.core.decision import Approve, Seen
from interlock.core.errors import Error
from interlock.core.event import Payload
from interlock.stores.postgres import database
from interlock.wiring import Parts, wire
from tests.places import migrated
from tests.postgres import Server
from tests.support import BOB, pending

AT_ONCE = 8  # calls that a program has under way


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--programs", type=int, default=2)
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("--program", nargs=2, metavar=("URL", "FILE"), help="be one of the programs")
    options = parser.parse_args()
    if options.broken:
        database.WRITING["synchronous_commit"] = "off"
    if options.program:
        asyncio.run(program(options.program[0], Path(options.program[1])))
        return
    with tempfile.TemporaryDirectory() as folder, Server(settings={"wal_writer_delay": "10s"}) as server:
        server.create_database("restarts", migrated(server))
        print(json.dumps(run(server, Path(folder), options)))


def run(server: Server, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    url, told = server.url("restarts"), [folder / f"{n}.txt" for n in range(options.programs)]
    extra = ["--broken"] if options.broken else []
    command = [sys.executable, "-m", "tests.faults.restarts", *extra, "--program", url]
    programs = [subprocess.Popen([*command, str(path)], stdin=subprocess.PIPE) for path in told]
    try:
        for number in range(options.restarts):
            grown(told, programs, number)
            server.restart("immediate")
        grown(told, programs, options.restarts)
    finally:
        for each in programs:
            each.communicate()  # closes its input: it comes to an end by itself
    lines = [line.split() for path in told for line in path.read_text().splitlines()]
    return {"ended": [each.returncode for each in programs], **asyncio.run(compare(url, lines))}


def grown(told: list[Path], programs: list[subprocess.Popen[bytes]], number: int) -> None:
    """Waits until every program has heard of something new, so that each restart meets work."""
    before = [lines(path) for path in told]
    deadline = time.monotonic() + 60
    while any(lines(path) < count + 20 for path, count in zip(told, before, strict=True)):
        if time.monotonic() > deadline or any(each.poll() is not None for each in programs):
            raise RuntimeError(f"the programs did not go on by themselves after restart {number}")
        time.sleep(0.02)


def lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


async def compare(url: str, told: list[list[str]]) -> dict[str, Any]:
    """What was acknowledged is there, and is what the row says or led to it."""
    follows = {
        "pending": {"pending", "approved", "running", "succeeded", "expired"},
        "approved": {"approved", "running", "succeeded", "expired"},
        "running": {"running", "succeeded", "unknown"},
        "succeeded": {"succeeded"},
    }
    parts = wire(url)
    await parts.store.open()
    lost = []
    for approval_id, status in (line for line in told if line[0] != "error"):
        try:
            now = (await parts.store.get("default", approval_id)).approval.status
        except Error:
            now = "gone"
        lost += [f"{approval_id} was {status} and is {now}"] if now not in follows[status] else []
    try:
        faults = [fault.message for fault in (await verify(parts.store, "default")).faults]
    except Error as error:
        faults = [error.message]
    await parts.store.close()
    errors = [" ".join(line) for line in told if line[0] == "error"]
    return {"told": len(told), "lost": lost, "faults": faults, "errors": errors}


async def program(url: str, told: Path) -> None:
    parts = wire(url)
    await parts.store.open()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, stop.set)
    with told.open("a", buffering=1) as file:
        await asyncio.gather(*(agent(parts, f"{os.getpid()}.{n}", file, stop) for n in range(AT_ONCE)))
    await parts.store.close()


async def agent(parts: Parts, name: str, told: Any, stop: asyncio.Event) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        try:
            approval_id = await pending(parts, f"{name}.{number}")
            told.write(f"{approval_id} pending\n")
            seen = Seen((await parts.store.get("default", approval_id)).approval.args_sha256)
            await parts.inbox.decide("default", approval_id, Approve(seen), BOB)
            told.write(f"{approval_id} approved\n")
            started = await parts.gate.start("default", approval_id, name)
            told.write(f"{approval_id} running\n")
            payload = Payload(result=b'"ok"')
            await parts.gate.finish("default", approval_id, started.fence, ok=True, payload=payload)
            told.write(f"{approval_id} succeeded\n")
        except Error as error:
            told.write(f"error {type(error).__name__} {error.message}\n")


if __name__ == "__main__":
    main()
