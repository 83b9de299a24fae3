"""A worker that tells people is killed at every step, and started again. Run as a program of its own:

    python -m tests.faults.deliveries [--database sqlite|postgresql] [--kills N] [--broken CONTROL]

The worker is `interlock worker` in a process of its own, its channel a webhook to a receiver that writes down what it
hears. Each life is killed at another point, while calls come in and are decided; the next one has to go on from there.
At the end two workers share a lot of calls. Nothing may be lost, and nothing may come twice but with the id that it
came with before. The agents' runs must not notice. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import yaml

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.call import propose
from interlock.core.decision import Acknowledgement, Approve, Reviewer
from interlock.core.outcome import Proceed, Waiting
from tests.faults import http_server
from tests.faults.storm import opened
from tests.standins.hooks import Heard, Receiver, receiving
from tests.support import OK, WRITE, faults

POINTS = ("after claim", "before send", "after send", "after record")
PLANS = tuple(f"kill:{point}#{time}" for time in (1, 2) for point in POINTS)
NEW = 4  # calls that come in with each life
SHARED = 40  # calls for two workers at once
AT_ONCE = 8  # messages that may be on their way when a worker dies
PATIENCE = 90.0  # seconds after which something counts as stuck
SECRET = f"whsec_{base64.b64encode(bytes(32)).decode()}"
BOB = Reviewer("bob", "reviewer", teams=frozenset(), via="test")


class Stuck(Exception):
    """Something that has to happen does not, which is a broken law like any other."""


@dataclass
class World:
    """`asked` are calls that wait or waited for people, `decided` those that were decided after they were told."""

    parts: AppServices
    receiver: Receiver
    folder: Path
    database: str
    broken: str
    patience: float
    asked: list[str] = field(default_factory=list)
    decided: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    agents: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def heard(self) -> list[Heard]:
        """What came as a whole: who is killed may hang up in the middle of a message."""
        whole = [each for each in self.receiver.taken if len(each.body) == int(each.headers["content-length"])]
        return [each for each in whole if each.body]

    @property
    def again(self) -> int:
        """Messages that came with an id that had come before."""
        return len(self.heard) - len({each.headers["webhook-id"] for each in self.heard})

    def told(self, kind: str) -> dict[str, list[str]]:
        """The ids with which each approval was told."""
        found: dict[str, list[str]] = defaultdict(list)
        for heard in self.heard:
            if heard.json["type"] == f"approval.{kind}":
                found[heard.json["data"]["id"]].append(heard.headers["webhook-id"])
        return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--kills", type=int, default=len(PLANS))
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds after which something is stuck")
    parser.add_argument("--broken", choices=sorted(http_server.CONTROLS), default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, opened(options.database, Path(folder)) as (url, _):
        print(json.dumps(asyncio.run(run(url, Path(folder), options))))


async def run(url: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    parts = build_services(url)
    await parts.store.open()
    await parts.put_policy("default", None, "ada", {})
    killed = 0
    async with receiving() as receiver:
        (folder / "interlock.yaml").write_text(configuration(url, receiver.url))
        world = World(parts, receiver, folder, options.database, options.broken, options.patience)
        try:
            await first_life(world)
            for plan in islice(cycle(PLANS), options.kills):
                await live(world, plan)
                killed += 1
            await last_life(world)
        except Stuck as error:
            world.wrong.append(str(error))
        for agent in world.agents:
            agent.cancel()
        judge(world, killed)
        await judge_rows(world)
    await parts.store.close()
    return {
        "suite": "deliveries",
        "database": options.database,
        "operations": len(world.asked) + len(world.decided),
        "succeeded": sum(approval_id in world.told("pending") for approval_id in world.asked) + len(world.ran),
        "faults": killed,
        "wrong": world.wrong[:10],
        "heard": len(world.heard),
        "again": world.again,
        "seconds": round(time.monotonic() - began, 1),
    }


def configuration(url: str, hook: str) -> str:
    channel = {"kind": "webhook", "url": hook, "secret": SECRET, "allow_private": True, "per_minute": 1000}
    return yaml.safe_dump(
        {"storage": {"url": url}, "channels": {"hook": channel}, "routing": {"default_channel": "hook"}}
    )


# Lives


async def first_life(world: World) -> None:
    """From here on people are told."""
    async with working(world):
        await ask(world, 1)
        await until(world, lambda: all_told(world), "the first call was never told")


async def live(world: World, plan: str) -> None:
    """New calls come in, what was told before is decided, and somewhere in between the worker dies."""
    await ask(world, NEW)
    async with working(world, plan) as worker:
        decided = [each for each in world.told("pending") if each in world.asked and each not in world.decided]
        for approval_id in decided[:2]:
            await decide(world, approval_id)
        await until(world, lambda: worker.poll() is not None, f"{plan} was never reached")
    if worker.returncode != -9:
        raise Stuck(f"the worker ended by itself, with {worker.returncode}: {log_of(world)}")


async def last_life(world: World) -> None:
    """Two workers at once: what the dead left behind, and a lot of new calls, each of which one of them takes."""
    async with working(world), working(world):
        await until(world, lambda: all_told(world), "what was left by the dead was never told")
        before = Counter(world.told("pending"))
        await ask(world, SHARED)
        await until(world, lambda: all_told(world), "what two workers share was never told")
        for approval_id in [each for each in world.asked if each not in world.decided]:
            await decide(world, approval_id)
        await until(world, lambda: len(world.ran) == len(world.asked), "agents wait for ever")
        await until(world, lambda: set(world.decided) <= set(world.told("ended")), "decisions were never told")
        await settled(world)
    for approval_id, ids in world.told("pending").items():
        if approval_id not in before and len(ids) > 1:
            world.wrong.append(f"{approval_id} was told twice by two workers")


@asynccontextmanager
async def working(world: World, plan: str = "") -> AsyncIterator[subprocess.Popen[bytes]]:
    program, environ = http_server.program(world.broken, plan)
    command = [*program, "worker"]
    with (world.folder / "worker.log").open("ab") as log:
        worker = await asyncio.to_thread(
            lambda: subprocess.Popen(command, cwd=world.folder, env={**os.environ, **environ}, stdout=log, stderr=log)
        )
    try:
        yield worker
    finally:
        if worker.poll() is None:
            worker.kill()
        await asyncio.to_thread(worker.wait)


def log_of(world: World) -> str:
    return (world.folder / "worker.log").read_text()[-500:]


# People and agents


async def ask(world: World, count: int) -> None:
    for _ in range(count):
        call = propose(WRITE.name, {"path": "/tmp/x"}, "run", f"call{len(world.asked)}")
        outcome = await world.parts.gate.check(call, WRITE)
        assert isinstance(outcome, Waiting)
        world.asked.append(outcome.approval_id)
        world.agents.append(asyncio.create_task(agent(world, outcome.approval_id)))


async def agent(world: World, approval_id: str) -> None:
    """Waits for people, runs what was approved, and knows nothing of messages."""
    outcome = await world.parts.gate.wait("default", approval_id)
    if not isinstance(outcome, Proceed):
        world.wrong.append(f"the agent of {approval_id} was told {outcome}")
        return
    execution = await world.parts.gate.start("default", approval_id, "runner")
    await world.parts.gate.finish("default", approval_id, execution.fence, ok=True, payload=OK)
    world.ran.append(approval_id)


async def decide(world: World, approval_id: str) -> None:
    stored = await world.parts.store.get("default", approval_id)
    seen = Acknowledgement(stored.approval.args_sha256, stored.approval.findings.alarms)
    await world.parts.inbox.decide("default", approval_id, Approve(seen), BOB)
    world.decided.append(approval_id)


def all_told(world: World) -> bool:
    return set(world.asked) <= set(world.told("pending"))


async def settled(world: World) -> None:
    deadline = time.monotonic() + world.patience
    while await open_rows(world):
        if time.monotonic() > deadline:
            raise Stuck(f"not everything was recorded: {await open_rows(world)}")
        await asyncio.sleep(0.05)


async def until(world: World, condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + world.patience
    while not condition():
        if time.monotonic() > deadline:
            raise Stuck(otherwise)
        await asyncio.sleep(0.02)


# What must be true


def judge(world: World, kills: int) -> None:
    pending, ended = world.told("pending"), world.told("ended")
    world.wrong += [f"{each} was never told" for each in world.asked if each not in pending]
    world.wrong += [f"the decision of {each} was never told" for each in world.decided if each not in ended]
    for told, most in ((pending, 1), (ended, 2)):  # what was approved is told again when it has run
        for approval_id, ids in told.items():
            if len(set(ids)) > most:
                world.wrong.append(f"{approval_id} was told with {len(set(ids))} ids")
    if world.again > kills * AT_ONCE:
        world.wrong.append(f"{world.again} messages came again after {kills} kills")


async def judge_rows(world: World) -> None:
    world.wrong += [f"the ledger: {fault}" for fault in await faults(world.parts)]
    for status, delivery_id in await open_rows(world):
        world.wrong.append(f"delivery {delivery_id} is left as {status}")


async def open_rows(world: World) -> Sequence[tuple[str, str]]:
    listed = [
        await world.parts.store.deliveries.list_deliveries("default", each) for each in ("due", "sending", "parked")
    ]
    return [(each.status, each.id) for found in listed for each in found]


if __name__ == "__main__":
    main()
