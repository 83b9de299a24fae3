"""The server is killed and started again while agents wait, people decide and calls run. Run as a program of its own:

    python -m tests.faults.http_kills [--database sqlite|postgresql] [--agents N] [--kills N] [--broken CONTROL]

The agents are clients as programs have them (`interlock.client`), which go on by themselves; some calls have two
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
from tests.faults.storm import opened
from tests.serving import Served, keys_at, serving

REVIEWERS = 6
STUCK = 120.0  # seconds without any call that comes to its end
TOGETHER = 25  # agents in one program
TWINS = 5  # of so many calls one has two runners
SPEC = ToolSpec("send", "write")
ENDS = frozenset({"succeeded", "unknown"})


@dataclass
class World:
    """What was told to whom, outside of the server; `waiting` are agents that wait for people right now."""

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
    with tempfile.TemporaryDirectory() as folder, opened(options.database, Path(folder)) as (database, _):
        keys = asyncio.run(keys_at(database))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        world = World(f"http://127.0.0.1:{port}", database, keys)
        print(json.dumps(asyncio.run(run(world, Path(folder), port, options))))


async def run(world: World, folder: Path, port: int, options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    program, environ = http_server.program(options.broken)
    waited: list[int] = []
    away: list[float] = []
    with ExitStack() as lives:

        def start() -> Served:
            return lives.enter_context(serving(world.database, folder, port=port, program=program, environ=environ))

        served = await asyncio.to_thread(start)
        agents = [
            asyncio.create_task(program_of(world, range(first, min(options.agents, first + TOGETHER))))
            for first in range(0, options.agents, TOGETHER)
        ]
        people = [asyncio.create_task(reviewer(world)) for _ in range(REVIEWERS)]
        try:
            for _ in range(options.kills):
                await progress(world, options.agents // 4)
                waited.append(world.waiting)
                killed = time.monotonic()
                await asyncio.to_thread(served.kill)
                await acknowledged(world)
                served = await asyncio.to_thread(start)
                away.append(time.monotonic() - killed)
            await progress(world, options.agents)
            world.stop = True
            await asyncio.wait_for(asyncio.gather(*agents), STUCK)
        except TimeoutError:
            world.wrong.append(f"stuck: {world.done} calls done, {world.waiting} agents wait")
        finally:
            world.stop = True
            for task in (*agents, *people):
                task.cancel()
            await asyncio.gather(*agents, *people, return_exceptions=True)
    wrong = world.wrong + await load_runner.broken_laws(world.database, world.told) + await unended(world)
    return {
        "suite": "http-kills",
        "database": options.database,
        "operations": len(world.told),
        "succeeded": sum(1 for line in world.told if not line.startswith("error")),
        "faults": len(away),
        "wrong": wrong[:10],
        "seconds": round(time.monotonic() - began, 1),
        "agents": options.agents,
        "calls": world.done,
        "waiting": waited,
        "away_ms": [round(each * 1000) for each in away],
    }


async def program_of(world: World, numbers: range) -> None:
    """So many agents share a client: one for each would be as right, and mostly measure how TLS is set up."""
    async with Client(world.url, world.keys["agent"], patience=STUCK) as client:
        await client.me()
        await asyncio.gather(*(agent(world, client, number) for number in numbers))


async def agent(world: World, client: Client, number: int) -> None:
    """Call after call, and a clean end once it is told to stop."""
    count = 0
    while not world.stop:
        count += 1
        try:
            await one(world, client, f"{number}.{count}", twins=(number + count) % TWINS == 0)
        except Error as error:
            world.wrong.append(f"agent {number} was told: {error.code} {error.message}")
            return
        world.done += 1


async def one(world: World, client: Client, name: str, *, twins: bool) -> None:
    outcome = await client.check(propose("send", {"to": name}, "kills", name), SPEC)
    if isinstance(outcome, Waiting):
        world.note(f"{outcome.approval_id} pending")
        world.waiting += 1
        try:
            outcome = await client.wait(outcome.approval_id)
        finally:
            world.waiting -= 1
    if not isinstance(outcome, Proceed):
        world.wrong.append(f"{name} ended as {outcome}")
        return
    runners = (work(world, client, outcome.approval_id, name) for _ in range(2 if twins else 1))
    ran = await asyncio.gather(*runners)
    if sum(ran) != 1:
        world.wrong.append(f"{outcome.approval_id} was started by {sum(ran)} of {len(ran)}")


async def work(world: World, client: Client, approval_id: str, name: str) -> bool:
    try:
        started = await client.start(approval_id)
    except AlreadyStarted:
        return False
    world.note(f"{approval_id} running")
    right = json.loads(started.args) == {"to": name}
    world.note(f"{approval_id} ran {'as approved' if right else 'something else'}")
    await asyncio.sleep(random.uniform(0, 0.02))
    await client.finish(approval_id, started.fence, "sent")
    world.note(f"{approval_id} succeeded")
    return True


async def reviewer(world: World) -> None:
    """Decides what waits, a handful at a time; if the server is away, looks again."""
    headers = {"authorization": f"Bearer {world.keys['reviewer']}"}
    async with httpx2.AsyncClient(base_url=world.url, headers=headers, timeout=10) as client:
        while True:
            with suppress(httpx2.HTTPError):
                items = (await client.get("/api/approvals/pending", params={"limit": 100})).json()["items"]
                for item in random.sample(items, min(20, len(items))):
                    await decide(world, client, item)
            await asyncio.sleep(0.01)


async def decide(world: World, client: httpx2.AsyncClient, item: dict[str, Any]) -> None:
    body = {"kind": "approve", "args_sha256": item["args_sha256"]}
    path, brief = f"/api/approvals/{item['id']}/decision", {"prefer": "return=minimal"}
    answer = await client.post(path, json=body, headers=brief)
    if answer.status_code == 200:
        world.note(f"{item['id']} approved")
        world.fresh.append(item["id"])
    elif answer.status_code not in (409, 503):
        world.wrong.append(f"a decision was answered with {answer.status_code} {answer.text[:200]}")


async def progress(world: World, calls: int) -> None:
    """Waits until so many more calls have come to their end, and so all have met what happened."""
    until, since = world.done + calls, time.monotonic()
    last = world.done
    while world.done < until:
        await asyncio.sleep(0.02)
        if world.done != last:
            last, since = world.done, time.monotonic()
        if time.monotonic() - since > STUCK:
            raise TimeoutError


async def acknowledged(world: World) -> None:
    """The server is dead: what it said that it has written is there, or it is lost."""
    fresh, world.fresh = world.fresh, []
    parts = build_services(world.database)
    await parts.store.open()
    for approval_id in fresh:
        status = (await parts.store.get("default", approval_id)).approval.status
        if status == "pending":
            world.wrong.append(f"{approval_id} was approved, and is pending after the kill")
    await parts.store.close()


async def unended(world: World) -> list[str]:
    parts = build_services(world.database)
    await parts.store.open()
    rows = await load_runner.statuses(parts)
    await parts.store.close()
    return [f"{approval_id} never ended: {status}" for approval_id, status in rows.items() if status not in ENDS]


if __name__ == "__main__":
    main()
