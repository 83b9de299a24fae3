"""The server is killed and started again while agents wait, people decide and calls run. Run as a program of its own:

    python -m tests.faults.http_kills [--database sqlite|postgresql] [--agents N] [--kills N] [--broken CONTROL]

The agents are clients as programs have them (`interlock.sdk.client`), which go on by themselves; some calls have two
runners. What everybody was told and what was run is written down here: what was acknowledged has to be there right
after each kill and at the end, nothing runs twice, and every approval comes to its end. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import socket
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from interlock.app.bootstrap import build_services
from interlock.core.call import ToolSpec, propose
from interlock.core.errors import AlreadyStarted, Error
from interlock.core.outcome import Proceed, Waiting
from interlock.sdk.client import Client
from tests.faults import http_server, load_runner
from tests.faults.storm import open_database
from tests.interlock_server import RunningServer, create_keys, run_server

REVIEWERS = 6
STUCK = 120.0  # seconds without any call that comes to its end
TOGETHER = 25  # agents in one program
TWINS = 5  # of so many calls one has two runners
SPEC = ToolSpec("send", "write")
ENDS = frozenset({"succeeded", "unknown"})
NOTICED = {
    "acknowledged-first": "is pending after the kill",
    "started-for-all": "was started by 2 of 2",
}  # part of what is reported of each broken server


@dataclass
class KillRun:
    """Answers of the server, recorded outside of it; `waiting` are the agents that wait for people now."""

    url: str
    database: str
    keys: Mapping[str, str]
    told: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)  # decisions that were acknowledged since the last kill
    wrong: list[str] = field(default_factory=list)
    done: int = 0
    waiting: int = 0
    stop: bool = False

    def note(self, line: str) -> None:
        self.told.append(line)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--broken", choices=sorted(http_server.CONTROLS), default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, open_database(options.database, Path(folder)) as (database, _):
        keys = asyncio.run(create_keys(database))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        run_state = KillRun(f"http://127.0.0.1:{port}", database, keys)
        print(json.dumps(asyncio.run(run(run_state, Path(folder), port, options))))


async def run(run_state: KillRun, folder: Path, port: int, options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    program, environ = http_server.program(options.broken)
    waited: list[int] = []
    away: list[float] = []
    with ExitStack() as lives:

        def start() -> RunningServer:
            return lives.enter_context(
                run_server(run_state.database, folder, port=port, program=program, environ=environ)
            )

        served = await asyncio.to_thread(start)
        agents = [
            asyncio.create_task(start_program(run_state, range(first, min(options.agents, first + TOGETHER))))
            for first in range(0, options.agents, TOGETHER)
        ]
        people = [asyncio.create_task(run_reviewer(run_state)) for _ in range(REVIEWERS)]
        try:
            for _ in range(options.kills):
                await wait_for_progress(run_state, options.agents // 4)
                waited.append(run_state.waiting)
                killed = time.monotonic()
                await asyncio.to_thread(served.kill)
                await check_acknowledged(run_state)
                served = await asyncio.to_thread(start)
                away.append(time.monotonic() - killed)
            await wait_for_progress(run_state, options.agents)
            run_state.stop = True
            await asyncio.wait_for(asyncio.gather(*agents), STUCK)
        except TimeoutError:
            run_state.wrong.append(f"stuck: {run_state.done} calls done, {run_state.waiting} agents wait")
        finally:
            run_state.stop = True
            for task in (*agents, *people):
                task.cancel()
            await asyncio.gather(*agents, *people, return_exceptions=True)
    wrong = (
        run_state.wrong
        + await load_runner.find_violations(run_state.database, run_state.told)
        + await find_unended(run_state)
    )
    return {
        "suite": "http-kills",
        "database": options.database,
        "operations": len(run_state.told),
        "succeeded": sum(1 for line in run_state.told if not line.startswith("error")),
        "faults": len(away),
        "wrong": wrong[:10],
        "seconds": round(time.monotonic() - began, 1),
        "agents": options.agents,
        "calls": run_state.done,
        "waiting": waited,
        "away_ms": [round(each * 1000) for each in away],
    }


async def start_program(run_state: KillRun, numbers: range) -> None:
    """So many agents share a client: one for each would be as right, and mostly measure how TLS is set up."""
    async with Client(run_state.url, run_state.keys["agent"], retry_timeout=STUCK) as client:
        await client.me()
        await asyncio.gather(*(run_agent(run_state, client, number) for number in numbers))


async def run_agent(run_state: KillRun, client: Client, number: int) -> None:
    """Proposes one call after the other until it is stopped."""
    count = 0
    while not run_state.stop:
        count += 1
        try:
            await run_call(run_state, client, f"{number}.{count}", twins=(number + count) % TWINS == 0)
        except Error as error:
            run_state.wrong.append(f"agent {number} was told: {error.code} {error.message}")
            return
        run_state.done += 1


async def run_call(run_state: KillRun, client: Client, name: str, *, twins: bool) -> None:
    outcome = await client.check(propose("send", {"to": name}, "kills", name), SPEC)
    if isinstance(outcome, Waiting):
        run_state.note(f"{outcome.approval_id} pending")
        run_state.waiting += 1
        try:
            outcome = await client.wait(outcome.approval_id)
        finally:
            run_state.waiting -= 1
    if not isinstance(outcome, Proceed):
        run_state.wrong.append(f"{name} ended as {outcome}")
        return
    runners = (execute_call(run_state, client, outcome.approval_id, name) for _ in range(2 if twins else 1))
    ran = await asyncio.gather(*runners)
    if sum(ran) != 1:
        run_state.wrong.append(f"{outcome.approval_id} was started by {sum(ran)} of {len(ran)}")


async def execute_call(run_state: KillRun, client: Client, approval_id: str, name: str) -> bool:
    try:
        started = await client.start(approval_id)
    except AlreadyStarted:
        return False
    run_state.note(f"{approval_id} running")
    right = json.loads(started.args) == {"to": name}
    run_state.note(f"{approval_id} ran {'as approved' if right else 'something else'}")
    await asyncio.sleep(random.uniform(0, 0.02))
    await client.finish(approval_id, started.fence, "sent")
    run_state.note(f"{approval_id} succeeded")
    return True


async def run_reviewer(run_state: KillRun) -> None:
    """Decides what waits, a handful at a time; if the server is away, looks again."""
    headers = {"authorization": f"Bearer {run_state.keys['reviewer']}"}
    async with httpx2.AsyncClient(base_url=run_state.url, headers=headers, timeout=10) as client:
        while True:
            with suppress(httpx2.HTTPError):
                items = (await client.get("/api/approvals/pending", params={"limit": 100})).json()["items"]
                for item in random.sample(items, min(20, len(items))):
                    await decide(run_state, client, item)
            await asyncio.sleep(0.01)


async def decide(run_state: KillRun, client: httpx2.AsyncClient, item: dict[str, Any]) -> None:
    body = {"kind": "approve", "args_sha256": item["args_sha256"]}
    path, brief = f"/api/approvals/{item['id']}/decision", {"prefer": "return=minimal"}
    answer = await client.post(path, json=body, headers=brief)
    if answer.status_code == 200:
        run_state.note(f"{item['id']} approved")
        run_state.fresh.append(item["id"])
    elif answer.status_code not in (409, 503):
        run_state.wrong.append(f"a decision was answered with {answer.status_code} {answer.text[:200]}")


async def wait_for_progress(run_state: KillRun, calls: int) -> None:
    """Waits until so many more calls have come to their end, and so all have met what happened."""
    until, since = run_state.done + calls, time.monotonic()
    last = run_state.done
    while run_state.done < until:
        await asyncio.sleep(0.02)
        if run_state.done != last:
            last, since = run_state.done, time.monotonic()
        if time.monotonic() - since > STUCK:
            raise TimeoutError


async def check_acknowledged(run_state: KillRun) -> None:
    """The server is dead: what it said that it has written is there, or it is lost."""
    fresh, run_state.fresh = run_state.fresh, []
    services = build_services(run_state.database)
    await services.store.open()
    for approval_id in fresh:
        status = (await services.store.get("default", approval_id)).approval.status
        if status == "pending":
            run_state.wrong.append(f"{approval_id} was approved, and is pending after the kill")
    await services.store.close()


async def find_unended(run_state: KillRun) -> list[str]:
    services = build_services(run_state.database)
    await services.store.open()
    rows = await load_runner.read_statuses(services)
    await services.store.close()
    return [f"{approval_id} never ended: {status}" for approval_id, status in rows.items() if status not in ENDS]


if __name__ == "__main__":
    main()
