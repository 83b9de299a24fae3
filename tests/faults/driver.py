"""Kills a program at every statement, starts it again, and checks the laws. Run as a program of its own:

    python -m tests.faults.driver FOLDER [--victim program|reviewer|opener] [--broken NAME] [--share K/N]

It forks, so it must stay without threads; everything that has threads runs in a child. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from interlock import CallFailed, CallUnknown, Interlock, faults
from interlock.audit import verify
from interlock.core.decision import Approve, Reviewer, Seen
from interlock.core.errors import Error
from interlock.core.ports import Query
from interlock.stores.sqlite import SqliteDatabase
from interlock.stores.store import SqlStore
from interlock.wiring import wall_clock, wire, wire_store
from tests.faults import broken

POLICY = "version: 1\ndefaults: {expires_in: 1h}\n"
PATIENCE = 60  # seconds after which something counts as stuck
BOB = Reviewer("bob", via="test")
NOT_STRUCK = "the program came to its end before the fault"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--victim", default="program")
    parser.add_argument("--broken", default="")
    parser.add_argument("--share", default="0/1")
    options = parser.parse_args()
    part, of = map(int, options.share.split("/"))
    folder: Path = options.folder
    if options.broken:
        broken.apply(options.broken)
    template = folder / "template.db"
    if options.victim != "opener":
        child(lambda: open_and_close(template, ""))
    points = recorded(folder, template, options.victim)
    results = [one(folder, template, options.victim, n) for n in range(part + 1, len(points) + 1, of)]
    missed = [n for n, laws in results if laws == [NOT_STRUCK]]
    wrong = [{"point": points[n - 1], "laws": laws} for n, laws in results if laws and n not in missed]
    report = {"points": len(points), "tried": len(results), "missed": len(missed), "wrong": wrong}
    print(json.dumps({**report, "names": dict(Counter(points))}))


def recorded(folder: Path, template: Path, victim: str) -> list[str]:
    """A clean run names every point, so that statements added later are covered by themselves."""
    log = folder / "points.txt"
    play(folder / "clean", template, victim, f"record:{log}")
    return log.read_text().splitlines()


def one(folder: Path, template: Path, victim: str, number: int) -> tuple[int, list[str]]:
    return number, play(folder / str(number), template, victim, f"kill:{number}")


def play(folder: Path, template: Path, victim: str, plan: str) -> list[str]:
    """One life of the program with a fault, then as many as it takes to come to an end; gives broken laws."""
    folder.mkdir()
    path = folder / "interlock.db"
    if victim == "opener":
        ended = child(lambda: open_and_close(path, plan))
        again = child(lambda: open_and_close(path, ""))
        return ([] if again == 0 else ["the database does not open again"]) + survived(plan, ended)
    shutil.copy(template, path)
    reviewer_plan, program_plan = (plan, "") if victim == "reviewer" else ("", plan)
    reviewer = start(lambda: review(path, reviewer_plan))
    first = wait(start(lambda: program(path, program_plan)), on_death={reviewer: lambda: review(path, "")})
    last = 0 if first == 0 or finished(path) else child(lambda: program(path, ""))
    reviewer_now = RUNNING.pop(reviewer, reviewer)
    end(reviewer_now)
    laws = survived(plan, first) if victim == "program" else []
    laws += [] if last == 0 else [f"the program did not come to an end: {last}"]
    report = folder / "laws.json"
    child(lambda: check(path, report))
    shown = json.loads(report.read_text()) if report.exists() else ["the laws could not be checked"]
    shutil.rmtree(folder)
    return [*laws, *shown]


def finished(path: Path) -> bool:
    """A program that had only to close its run has nothing left to continue."""
    effects = path.with_name("effects.txt")
    return effects.exists() and "finished" in effects.read_text().splitlines()


def survived(plan: str, status: int) -> list[str]:
    """A plan to kill that killed nothing proves nothing. Chores take turns by the clock, so the last points may not
    come in every life: a life that came to its end without them is told apart, and may not be frequent.
    """
    if not plan.startswith("kill") or status == -signal.SIGKILL:
        return []
    return [NOT_STRUCK] if status == 0 else [f"the fault {plan} did not strike: {status}"]


# What runs in children


def program(path: Path, plan: str) -> None:
    """An agent with a read, a call that must run once, and an idempotent one; its effects are lines in a file."""
    os.environ["INTERLOCK_FAULT"] = plan
    lock = Interlock(f"sqlite:///{path}", policy=POLICY, agent="victim", lease_seconds=2)
    effects = path.with_name("effects.txt")

    @lock.tool(effect="read")
    async def look() -> str:
        return "seen"

    @lock.tool(effect="write")
    async def send(to: str) -> str:
        note(effects, f"send {to}")
        return "sent"

    @lock.tool(effect="write", idempotent=True)
    async def put(key: str) -> str:
        execution = lock.execution()
        note(effects, f"put {key} {execution.idempotency_key if execution else ''}")
        return "put"

    async def agent() -> None:
        await look()
        for tool, arg in ((send, "a"), (put, "b")):
            try:
                await tool(arg)
            except (CallUnknown, CallFailed) as error:
                note(effects, f"told {type(error).__name__}")
        note(effects, "finished")
        lock.close()

    asyncio.run(agent())


def note(effects: Path, line: str) -> None:
    """Outside the process and durable: what a bank would have seen."""
    with effects.open("a") as file:
        file.write(f"{line}\n")
        file.flush()
        os.fsync(file.fileno())


def review(path: Path, plan: str) -> None:
    """Approves everything that waits, for ever."""

    async def reviewer() -> None:
        parts = wire(f"sqlite:///{path}", wall_clock, faults.plan(plan))
        await parts.store.open()
        while True:
            async with parts.store.watch("default") as watch:
                page = await parts.store.list("default", Query(statuses=("pending",)))
                for stored in page.items:
                    approval = stored.approval
                    try:
                        await parts.inbox.decide("default", approval.id, Approve(Seen(approval.args_sha256)), BOB)
                    except Error as error:
                        print(error, file=sys.stderr)
                if not page.items:
                    await watch.changed(1)

    asyncio.run(reviewer())


def open_and_close(path: Path, plan: str) -> None:
    async def opener() -> None:
        store = SqlStore(SqliteDatabase(path, wall_clock, faults.plan(plan)))
        parts = wire_store(store)
        await store.open()
        await store.secret_key("default")
        await parts.put_policy("default", POLICY, "ada", {})
        await store.close()

    asyncio.run(opener())


def check(path: Path, report: Path) -> None:
    """Effects at most once, counted outside; the ledger valid; nothing stuck; unknown only where it is unknown."""

    async def laws() -> list[str]:
        parts = wire(f"sqlite:///{path}", wall_clock)
        await parts.store.open()
        await parts.worker.sweep()
        found = [fault.message for fault in (await verify(parts.store, "default")).faults]
        page = await parts.store.list("default", Query(limit=500))
        statuses = {s.approval.subject.tool: s.approval.status for s in page.items}
        await parts.store.close()
        return found + broken_laws(statuses, path.with_name("effects.txt").read_text().splitlines())

    try:
        result = asyncio.run(laws())
    except Exception as error:  # noqa: BLE001  whatever it is, it breaks a law
        result = [repr(error)]
    report.write_text(json.dumps(result))


def broken_laws(statuses: dict[str, str], effects: list[str]) -> list[str]:
    sends = effects.count("send a")
    keys = {line.split()[2] for line in effects if line.startswith("put ")}
    laws = []
    if sends > 1:
        laws.append(f"send ran {sends} times")
    if len(keys) > 1:
        laws.append("put ran under two keys")
    if statuses.get("send") not in ("succeeded", "unknown"):
        laws.append(f"send is stuck as {statuses.get('send')}")
    if statuses.get("send") == "succeeded" and sends != 1:
        laws.append("send is recorded as done, and was not")
    if statuses.get("put") != "succeeded" or not keys:
        laws.append(f"put is stuck as {statuses.get('put')}")
    return laws


# Processes

RUNNING: dict[int, int] = {}  # a reviewer that was killed → the one that took its place


def start(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
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


def child(work: Callable[[], None]) -> int:
    return wait(start(work), {})


def wait(pid: int, on_death: dict[int, Callable[[], None]]) -> int:
    """The exit status; meanwhile a companion that dies is replaced."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        for companion, work in list(on_death.items()):
            if os.waitpid(companion, os.WNOHANG)[0]:
                RUNNING[companion] = start(work)
                del on_death[companion]
        time.sleep(0.002)
    end(pid)
    return 99


def end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
