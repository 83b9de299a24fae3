"""Processes that want the same thing at the same moment. Run as a program of its own, since it forks:

    python -m tests.faults.contenders FOLDER start COUNT     two processes start COUNT approved calls each
    python -m tests.faults.contenders FOLDER decide COUNT    COUNT processes decide one approval

Prints one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from interlock.audit import verify
from interlock.core.decision import Approve, Reject, Reviewer, Seen
from interlock.core.errors import AlreadyDecided, AlreadyStarted
from interlock.wiring import Parts, wall_clock, wire
from tests.support import approve, pending


def main() -> None:
    folder, contest, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    path = folder / "interlock.db"
    work = {"start": start, "decide": decide}[contest]
    ids = child(path, lambda parts: prepare(parts, contest, count))
    go = os.pipe()
    results = [fork(path, work(ids, name), go) for name in range(2 if contest == "start" else count)]
    os.close(go[0])
    for _, ready in results:
        ready.readline()  # each says that it is open and waiting
    os.close(go[1])  # and they are off
    reports = [json.loads(pipe.read()) for _, pipe in results]
    for pid, _ in results:
        os.waitpid(pid, 0)
    print(json.dumps({"reports": reports, "faults": child(path, laws)}))


async def prepare(parts: Parts, contest: str, count: int) -> list[str]:
    ids = [await pending(parts, n) for n in range(count if contest == "start" else 1)]
    if contest == "start":
        await asyncio.gather(*(approve(parts, approval_id) for approval_id in ids))
    return ids


def start(ids: list[str], name: int) -> Callable[[Parts], Coroutine[Any, Any, Any]]:
    async def run(parts: Parts) -> dict[str, list[str]]:
        won, lost = [], []
        for approval_id in ids:
            try:
                await parts.gate.start("default", approval_id, f"contender{name}")
                won.append(approval_id)
            except AlreadyStarted:
                lost.append(approval_id)
        return {"won": won, "lost": lost}

    return run


def decide(ids: list[str], name: int) -> Callable[[Parts], Coroutine[Any, Any, Any]]:
    async def run(parts: Parts) -> dict[str, Any]:
        seen = Seen((await parts.store.get("default", ids[0])).approval.args_sha256)
        decision = Approve(seen) if name % 2 else Reject("", seen)
        try:
            approval = await parts.inbox.decide("default", ids[0], decision, Reviewer(f"person{name}"))
            return {"won": approval.decision.by if approval.decision else None}
        except AlreadyDecided as error:
            return {"standing": error.ids["decision"]}

    return run


async def laws(parts: Parts) -> list[str]:
    return [fault.message for fault in (await verify(parts.store, "default")).faults]


def fork(path: Path, work: Callable[[Parts], Coroutine[Any, Any, Any]], go: tuple[int, int]) -> tuple[int, Any]:
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, os.fdopen(read)
    os.close(read)
    os.close(go[1])

    async def contend(parts: Parts) -> Any:
        os.write(write, b"ready\n")
        await asyncio.to_thread(os.read, go[0], 1)  # ends when the parent closes the pipe
        return await work(parts)

    os.write(write, json.dumps(asyncio.run(opened(path, contend))).encode())
    os._exit(0)


def child(path: Path, work: Callable[[Parts], Coroutine[Any, Any, Any]]) -> Any:
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(write, json.dumps(asyncio.run(opened(path, work))).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        result = json.loads(pipe.read())
    os.waitpid(pid, 0)
    return result


async def opened(path: Path, work: Callable[[Parts], Coroutine[Any, Any, Any]]) -> Any:
    parts = wire(f"sqlite:///{path}", wall_clock)
    await parts.store.open()
    try:
        return await work(parts)
    finally:
        await parts.store.close()


if __name__ == "__main__":
    main()
