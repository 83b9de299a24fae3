"""A service with workflows of DBOS, one after the other in a process of its own: each line of the input is one.

What takes long to load is loaded once, and the processes are forked from here. Each says what happens in lines of JSON.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import json
import os
import signal
import sys
import urllib.request
from typing import Any

import dbos._sys_db_postgres  # noqa: F401  loaded before the processes are forked
import psycopg  # noqa: F401
from dbos import DBOS, SetWorkflowID
from dbos._sys_db import SystemDatabase

import interlock.storage.postgres  # noqa: F401
from interlock import Interlock, ToolSpec
from interlock.core import errors
from interlock.integrations.dbos import Segments

BOUND = 280  # seconds, after which whoever is left over ends
ACCEPTED_FIELDS = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}, "to": {"type": "string"}},
    "required": ["amount", "to"],
    "additionalProperties": False,
}
PAY = ToolSpec("pay", "write", schema=ACCEPTED_FIELDS)


def main() -> None:
    for line in sys.stdin:
        signal.alarm(BOUND)
        child = os.fork()
        if child == 0:
            signal.alarm(BOUND)
            serve(json.loads(line))
            os._exit(0)
        print_line(pid=child)
        ended = os.waitpid(child, 0)[1]
        signal.alarm(0)
        print_line(ended=os.waitstatus_to_exitcode(ended))


def serve(job: dict[str, Any]) -> None:
    for place in job.get("deaths", []):
        kill_at(**place)
    if job.get("deaf"):  # takes nothing from the queue of DBOS, so that others have to
        SystemDatabase.start_queued_workflows = lambda *_, **__: ([], None)
    DBOS(
        config={
            "name": "clerk",
            "system_database_url": job["url"],
            "application_version": job.get("version", "1"),
            "executor_id": job.get("executor", "clerk-1"),
            "log_level": "CRITICAL",
        }
    )
    gate = Interlock(job.get("gate", job["url"]), key=job.get("key"), agent="clerk", lease_seconds=job.get("lease", 60))
    segments = Segments(gate.agent())
    settle = workflow(segments, job)
    DBOS.launch()
    asyncio.run(carry_on(segments, settle, job))


def workflow(segments: Segments, job: dict[str, Any]) -> Any:
    @DBOS.step()
    async def note(what: str, order: dict[str, Any]) -> str:
        await effect(job, what, order)
        return what

    async def pay(amount: int, to: str) -> dict[str, Any]:
        await effect(job, "pay", {"amount": amount, "to": to})
        if to == "nobody":
            raise ValueError("there is nobody")
        return {"paid": amount}

    async def settle(order: dict[str, Any]) -> list[Any]:
        noted = [await note("before", order)] if "quiet" not in order else []
        for number in range(order.get("calls", 1)):
            args = {"amount": order["amount"] + number + job.get("more", 0), "to": order["to"]}
            noted.append(await segments.gated(PAY, args, pay))
        return [*noted, await note("after", order)]

    return segments.workflow(settle)


async def carry_on(segments: Segments, settle: Any, job: dict[str, Any]) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    keeper = segments.run_worker(stop, job.get("at_once", 10)) if job.get("keeps", True) else stop.wait()
    keeping = asyncio.create_task(keeper)
    await asyncio.gather(*(segments.begin(settle, run_id, order) for run_id, order in job.get("begin", {}).items()))
    print_line(serving=True)
    if job.get("astray"):
        print_line(
            astray=[await refused(way, segments) for way in (run_plain, plain_workflow, plain_step, run_with_taken_id)]
        )
    watching = asyncio.create_task(watch(segments, job.get("watch", [])))
    await keeping
    watching.cancel()


async def watch(segments: Segments, runs: list[str]) -> None:
    for run_id in runs:
        try:
            print_line(run=run_id, result=await segments.result(run_id))
        except Exception as error:  # noqa: BLE001  whatever the workflow raised
            print_line(run=run_id, error=f"{type(error).__name__}: {error}")


async def refused(way: Any, segments: Segments) -> str:
    """How a gated call ends that stands where it must not."""
    try:
        return repr(await way(segments))
    except Exception as error:  # noqa: BLE001  its name is what is asked for
        return type(error).__name__


async def run_plain(segments: Segments) -> Any:
    return await segments.gated(PAY, {"amount": 1, "to": "acme"}, dict)


async def plain_workflow(segments: Segments) -> Any:
    @DBOS.workflow()
    async def astray() -> Any:
        return await run_plain(segments)

    return await astray()


async def plain_step(segments: Segments) -> Any:
    @DBOS.step()
    async def within() -> Any:
        return await run_plain(segments)

    @DBOS.workflow()
    async def stepping() -> Any:
        return await within()

    with SetWorkflowID("run:order-7:seg:1"):
        return await stepping()


async def run_with_taken_id(segments: Segments) -> None:
    """The id of a run that is there already, and another workflow's."""

    async def other(_: object) -> None:
        pass

    await segments.begin(segments.workflow(other), "order-7")


def kill_at(at: str, when: str, nth: int = 1, by: str = "SIGKILL") -> None:
    """Nobody comes further than this: `at` is module:Class.method, and the nth time that it is called counts.

    `by` is a signal, or an error of ours.
    """
    module, _, path = at.partition(":")
    holder, _, name = path.rpartition(".")
    owner = functools.reduce(getattr, holder.split("."), importlib.import_module(module))
    function, count = getattr(owner, name), iter(range(1, 1_000_000))

    def here(now: bool, which: str) -> None:
        if now and when == which and by.startswith("SIG"):
            os.kill(os.getpid(), getattr(signal, by))
        elif now and when == which:
            raise getattr(errors, by)("It cannot be reached.")

    async def die_async(*args: Any, **kwargs: Any) -> Any:
        now = next(count) == nth
        here(now, "before")
        given = await function(*args, **kwargs)
        here(now, "after")
        return given

    def die(*args: Any, **kwargs: Any) -> Any:
        now = next(count) == nth
        here(now, "before")
        given = function(*args, **kwargs)
        here(now, "after")
        return given

    setattr(owner, name, functools.wraps(function)(die_async if inspect.iscoroutinefunction(function) else die))


async def effect(job: dict[str, Any], tool: str, args: dict[str, Any]) -> None:
    data = json.dumps({"tool": tool, "args": args}).encode()
    await asyncio.to_thread(urllib.request.urlopen, job["effects"], data)


def print_line(**what: Any) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    main()
