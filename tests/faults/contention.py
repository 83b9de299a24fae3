"""Processes that compete for the same approval, thread or ledger. Run as a program of its own, since it forks:

    python -m tests.faults.contention URL start COUNT     two processes start COUNT approved calls each
    python -m tests.faults.contention URL claim COUNT     three processes claim COUNT threads that are due
    python -m tests.faults.contention URL decide COUNT    COUNT processes decide one approval
    python -m tests.faults.contention URL batches COUNT   8 processes write COUNT batches to four ledgers, one follows;
                                                          --broken: every other one locks in reverse

Prints one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from interlock.app.audit import verify
from interlock.app.bootstrap import AppServices, build_services
from interlock.core.chat import thread as threads
from interlock.core.decision import Acknowledgement, Approve, Reject, Reviewer
from interlock.core.errors import AlreadyDecided, AlreadyStarted, Conflict
from interlock.core.ledger.event import Event, Moment
from interlock.storage.postgres import batches as batching
from tests.support import WRITE, approve, propose_pending

LEASE = 30_000
LEDGERS = ["north", "east", "south", "west"]


def main() -> None:
    url, contest, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    work = {"start": start, "claim": claim, "decide": decide, "batches": batches}[contest]
    contenders = {"start": 2, "claim": 3, "decide": count, "batches": 9}[contest]
    ids = run_child(url, lambda services: prepare(services, contest, count))
    go = os.pipe()
    results = [fork(url, work(ids, name), go) for name in range(contenders)]
    os.close(go[0])
    for _, ready in results:
        ready.readline()  # each says that it is open and waiting
    os.close(go[1])  # and they are off
    try:
        reports = [json.loads(pipe.read()) for _, pipe in results]
    except ValueError:  # one of them died; the others would wait for it
        for pid, _ in results:
            os.kill(pid, signal.SIGKILL)
        raise
    for pid, _ in results:
        os.waitpid(pid, 0)
    print(json.dumps({"reports": reports, "faults": run_child(url, find_violations)}))


async def prepare(services: AppServices, contest: str, count: int) -> list[str]:
    if contest == "batches":
        return [str(count)]
    if contest == "claim":
        return [(await make_thread(services, f"thread-{n}")).id for n in range(count)]
    ids = [await propose_pending(services, n) for n in range(count if contest == "start" else 1)]
    if contest == "start":
        await asyncio.gather(*(approve(services, approval_id) for approval_id in ids))
    return ids


def start(ids: list[str], name: int) -> Callable[[AppServices], Coroutine[Any, Any, Any]]:
    async def run(services: AppServices) -> dict[str, list[str]]:
        won, lost = [], []
        for approval_id in ids:
            try:
                await services.gate.start("default", approval_id, f"contender{name}")
                won.append(approval_id)
            except AlreadyStarted:
                lost.append(approval_id)
        return {"won": won, "lost": lost}

    return run


def claim(ids: list[str], name: int) -> Callable[[AppServices], Coroutine[Any, Any, Any]]:
    async def run(services: AppServices) -> dict[str, list[str]]:
        taken = await asyncio.gather(*(lease_thread(services, each, f"contender{name}") for each in ids))
        return {"won": [thread.id for thread in taken if thread is not None]}

    return run


async def make_thread(services: AppServices, thread_id: str) -> threads.Thread:
    place = threads.ThreadOrigin("default", "assistant", "ann", ("assistant",))
    return await services.store.threads.add(
        "default", thread_id, lambda moment: threads.open_thread(thread_id, place, "Hello", moment)
    )


async def lease_thread(services: AppServices, thread_id: str, runner: str) -> threads.Thread | None:
    """The thread if this runner has it now."""

    def step(thread: threads.Thread, moment: Moment) -> threads.ThreadTransition:
        return threads.acquire(thread, runner, LEASE, moment, runner_is_dead=False)

    try:
        return await services.store.threads.step("default", thread_id, step)
    except Conflict:
        return None


def decide(ids: list[str], name: int) -> Callable[[AppServices], Coroutine[Any, Any, Any]]:
    async def run(services: AppServices) -> dict[str, Any]:
        seen = Acknowledgement((await services.store.get("default", ids[0])).approval.args_sha256)
        decision = Approve(seen) if name % 2 else Reject("", seen)
        try:
            approval = await services.inbox.decide("default", ids[0], decision, Reviewer(f"person{name}"))
            return {"won": approval.decision.by if approval.decision else None}
        except AlreadyDecided as error:
            return {"standing": error.ids["decision"]}

    return run


def batches(ids: list[str], name: int) -> Callable[[AppServices], Coroutine[Any, Any, Any]]:
    """Eight write to all ledgers at once, each in an order of its own; the ninth follows the ledgers meanwhile."""
    return follow_ledgers if name == 8 else lambda services: write(services, name, int(ids[0]) // 8)


async def write(services: AppServices, name: int, share: int) -> dict[str, Any]:
    if "--broken" in sys.argv and name % 2:
        for name_of in ("_LOCK", "_LOCK_IF_UNCHANGED"):
            text = getattr(batching, name_of)
            setattr(batching, name_of, text.replace("order by workspace", "order by workspace desc"))
    written, chance, number, failed = CountingConnection(services), random.Random(name), 0, 0
    while written.batches < share:
        number += 1
        order = chance.sample(LEDGERS, len(LEDGERS))
        asked = [propose_pending(services, f"{name}.{number}", workspace=ledger) for ledger in order]
        made = await asyncio.gather(*asked, return_exceptions=True)
        ids = {ledger: each for ledger, each in zip(order, made, strict=True) if isinstance(each, str)}
        answers = [approve(services, ids[ledger], workspace=ledger) for ledger in reversed(order) if ledger in ids]
        done = [each for each in await asyncio.gather(*answers, return_exceptions=True) if isinstance(each, str)]
        failed += 2 * len(order) - len(ids) - len(done)
    await services.store.deny("done", [Event("denied", f"writer{name}", {})], WRITE)
    return {"batches": written.batches, "events": number * 2 * len(LEDGERS) - failed, "failed": failed}


async def follow_ledgers(services: AppServices) -> dict[str, Any]:
    """Reads on from where it was: what turns up behind it is never seen, so the counts would not agree."""
    seen, skipped, ended = dict.fromkeys(LEDGERS, 0), 0, 0
    while ended < 8:
        ended = (await services.store.head("done")).seq
        for ledger in LEDGERS:
            numbers = [entry.seq async for page in services.store.entries(ledger, seen[ledger]) for entry in page]
            skipped += numbers != list(range(seen[ledger] + 1, seen[ledger] + 1 + len(numbers)))
            seen[ledger] = numbers[-1] if numbers else seen[ledger]
    return {"followed": sum(seen.values()), "skipped": skipped}


class CountingConnection:
    """How many batches a store has sent."""

    def __init__(self, services: AppServices) -> None:
        self.batches = 0
        services.store._database.wrap_connection(self._count)  # type: ignore[attr-defined]

    def _count(self, connection: Any) -> Any:
        self.batches += 1
        return connection


async def find_violations(services: AppServices) -> list[str]:
    found = [await verify(services.store, workspace) for workspace in ("default", "done", *LEDGERS)]
    return [fault.message for report in found for fault in report.violations]


def fork(url: str, work: Callable[[AppServices], Coroutine[Any, Any, Any]], go: tuple[int, int]) -> tuple[int, Any]:
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, os.fdopen(read)
    os.close(read)
    os.close(go[1])

    async def contend(services: AppServices) -> Any:
        os.write(write, b"ready\n")
        await asyncio.to_thread(os.read, go[0], 1)  # ends when the parent closes the pipe
        return await work(services)

    os.write(write, json.dumps(asyncio.run(open_services(url, contend))).encode())
    os._exit(0)


def run_child(url: str, work: Callable[[AppServices], Coroutine[Any, Any, Any]]) -> Any:
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(write, json.dumps(asyncio.run(open_services(url, work))).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        result = json.loads(pipe.read())
    os.waitpid(pid, 0)
    return result


async def open_services(url: str, work: Callable[[AppServices], Coroutine[Any, Any, Any]]) -> Any:
    services = build_services(url)
    await services.store.open()
    try:
        return await work(services)
    finally:
        await services.store.close()


if __name__ == "__main__":
    main()
