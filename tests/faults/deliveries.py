"""A notification worker that is killed at every step and restarted. Run as a program of its own:

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
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
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
from tests.fakes.http_receiver import ReceivedRequest, Receiver, run_receiver
from tests.faults import http_server
from tests.faults.storm import open_database
from tests.support import OK, WRITE, ledger_violations

POINTS = ("after claim", "before send", "after send", "after record")
PLANS = tuple(f"kill:{point}#{time}" for time in (1, 2) for point in POINTS)
NEW = 4  # new calls for each run
SHARED = 40  # calls for two workers at once
AT_ONCE = 8  # messages that may be on their way when a worker dies
PATIENCE = 90.0  # seconds after which something counts as stuck
SECRET = f"whsec_{base64.b64encode(bytes(32)).decode()}"
NOTICED: Mapping[str, str | Sequence[str]] = {  # part of what is reported of each broken worker
    "recorded-first": "what was left by the dead was never told",
    "new-ids": "was told with",
    "unclaimed": ("was told twice by two workers", "messages came again after"),
}
BOB = Reviewer("bob", "reviewer", teams=frozenset(), via="test")


class ProgressTimeout(Exception):
    """An expected event does not happen, which is a violation."""


@dataclass
class DeliveryRun:
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
    def received(self) -> list[ReceivedRequest]:
        """What came as a whole: who is killed may hang up in the middle of a message."""
        whole = [each for each in self.receiver.accepted if len(each.body) == int(each.headers["content-length"])]
        return [each for each in whole if each.body]

    @property
    def restarts(self) -> int:
        """Messages that came with an id that had come before."""
        return len(self.received) - len({each.headers["webhook-id"] for each in self.received})

    def told_people(self, kind: str) -> dict[str, list[str]]:
        """The message ids of each approval."""
        found: dict[str, list[str]] = defaultdict(list)
        for heard in self.received:
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
    with tempfile.TemporaryDirectory() as folder, open_database(options.database, Path(folder)) as (url, _):
        print(json.dumps(asyncio.run(run(url, Path(folder), options))))


async def run(url: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    services = build_services(url)
    await services.store.open()
    await services.put_policy("default", None, "ada", {})
    killed = 0
    async with run_receiver() as receiver:
        (folder / "interlock.yaml").write_text(configuration(url, receiver.url))
        run_state = DeliveryRun(services, receiver, folder, options.database, options.broken, options.patience)
        try:
            await first_run(run_state)
            for plan in islice(cycle(PLANS), options.kills):
                await run_with_fault(run_state, plan)
                killed += 1
            await last_run(run_state)
        except ProgressTimeout as error:
            run_state.wrong.append(str(error))
        for agent in run_state.agents:
            agent.cancel()
        check_run(run_state, killed)
        await check_rows(run_state)
    await services.store.close()
    return {
        "suite": "deliveries",
        "database": options.database,
        "operations": len(run_state.asked) + len(run_state.decided),
        "succeeded": sum(approval_id in run_state.told_people("pending") for approval_id in run_state.asked)
        + len(run_state.ran),
        "faults": killed,
        "wrong": run_state.wrong[:10],
        "heard": len(run_state.received),
        "again": run_state.restarts,
        "seconds": round(time.monotonic() - began, 1),
    }


def configuration(url: str, hook: str) -> str:
    channel = {"kind": "webhook", "url": hook, "secret": SECRET, "allow_private": True, "per_minute": 1000}
    return yaml.safe_dump(
        {"storage": {"url": url}, "channels": {"hook": channel}, "routing": {"default_channel": "hook"}}
    )


# Runs of the worker


async def first_run(run_state: DeliveryRun) -> None:
    """Starts notifications."""
    async with start_worker(run_state):
        await propose_calls(run_state, 1)
        run_state.patience, patience = PATIENCE, run_state.patience  # nothing was broken yet: it may only be slow
        await wait_until(run_state, lambda: wait_until_all_told(run_state), "the first call was never told")
        run_state.patience = patience


async def run_with_fault(run_state: DeliveryRun, plan: str) -> None:
    """New calls arrive, notified ones are decided, and the worker is killed in between."""
    await propose_calls(run_state, NEW)
    async with start_worker(run_state, plan) as worker:
        decided = [
            each
            for each in run_state.told_people("pending")
            if each in run_state.asked and each not in run_state.decided
        ]
        for approval_id in decided[:2]:
            await decide(run_state, approval_id)
        await wait_until(run_state, lambda: worker.poll() is not None, f"{plan} was never reached")
    if worker.returncode != -9:
        raise ProgressTimeout(f"the worker ended by itself, with {worker.returncode}: {log_path(run_state)}")


async def last_run(run_state: DeliveryRun) -> None:
    """Two workers at once: what the dead left behind, and a lot of new calls, each of which one of them takes."""
    async with start_worker(run_state), start_worker(run_state):
        await wait_until(run_state, lambda: wait_until_all_told(run_state), "what was left by the dead was never told")
        before = Counter(run_state.told_people("pending"))
        await propose_calls(run_state, SHARED)
        await wait_until(run_state, lambda: wait_until_all_told(run_state), "what two workers share was never told")
        for approval_id in [each for each in run_state.asked if each not in run_state.decided]:
            await decide(run_state, approval_id)
        await wait_until(run_state, lambda: len(run_state.ran) == len(run_state.asked), "agents wait for ever")
        await wait_until(
            run_state,
            lambda: set(run_state.decided) <= set(run_state.told_people("ended")),
            "decisions were never told",
        )
        await wait_until_settled(run_state)
    for approval_id, ids in run_state.told_people("pending").items():
        if approval_id not in before and len(ids) > 1:
            run_state.wrong.append(f"{approval_id} was told twice by two workers")


@asynccontextmanager
async def start_worker(run_state: DeliveryRun, plan: str = "") -> AsyncIterator[subprocess.Popen[bytes]]:
    program, environ = http_server.program(run_state.broken, plan)
    command = [*program, "worker"]
    with (run_state.folder / "worker.log").open("ab") as log:
        worker = await asyncio.to_thread(
            lambda: subprocess.Popen(
                command, cwd=run_state.folder, env={**os.environ, **environ}, stdout=log, stderr=log
            )
        )
    try:
        yield worker
    finally:
        if worker.poll() is None:
            worker.kill()
        await asyncio.to_thread(worker.wait)


def log_path(run_state: DeliveryRun) -> str:
    return (run_state.folder / "worker.log").read_text()[-500:]


# People and agents


async def propose_calls(run_state: DeliveryRun, count: int) -> None:
    for _ in range(count):
        call = propose(WRITE.name, {"path": "/tmp/x"}, "run", f"call{len(run_state.asked)}")
        outcome = await run_state.parts.gate.check(call, WRITE)
        assert isinstance(outcome, Waiting)
        run_state.asked.append(outcome.approval_id)
        run_state.agents.append(asyncio.create_task(run_agent(run_state, outcome.approval_id)))


async def run_agent(run_state: DeliveryRun, approval_id: str) -> None:
    """Waits for people, runs what was approved, and knows nothing of messages."""
    outcome = await run_state.parts.gate.wait("default", approval_id)
    if not isinstance(outcome, Proceed):
        run_state.wrong.append(f"the agent of {approval_id} was told {outcome}")
        return
    execution = await run_state.parts.gate.start("default", approval_id, "runner")
    await run_state.parts.gate.finish("default", approval_id, execution.fence, ok=True, payload=OK)
    run_state.ran.append(approval_id)


async def decide(run_state: DeliveryRun, approval_id: str) -> None:
    stored = await run_state.parts.store.get("default", approval_id)
    seen = Acknowledgement(stored.approval.args_sha256, stored.approval.findings.alarms)
    await run_state.parts.inbox.decide("default", approval_id, Approve(seen), BOB)
    run_state.decided.append(approval_id)


def wait_until_all_told(run_state: DeliveryRun) -> bool:
    return set(run_state.asked) <= set(run_state.told_people("pending"))


async def wait_until_settled(run_state: DeliveryRun) -> None:
    deadline = time.monotonic() + run_state.patience
    while await unfinished_rows(run_state):
        if time.monotonic() > deadline:
            raise ProgressTimeout(f"not everything was recorded: {await unfinished_rows(run_state)}")
        await asyncio.sleep(0.05)


async def wait_until(run_state: DeliveryRun, condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + run_state.patience
    while not condition():
        if time.monotonic() > deadline:
            raise ProgressTimeout(otherwise)
        await asyncio.sleep(0.02)


# What must be true


def check_run(run_state: DeliveryRun, kills: int) -> None:
    pending, ended = run_state.told_people("pending"), run_state.told_people("ended")
    run_state.wrong += [f"{each} was never told" for each in run_state.asked if each not in pending]
    run_state.wrong += [f"the decision of {each} was never told" for each in run_state.decided if each not in ended]
    for answers, most in ((pending, 1), (ended, 2)):  # an approved call is sent again when it has run
        for approval_id, ids in answers.items():
            if len(set(ids)) > most:
                run_state.wrong.append(f"{approval_id} was told with {len(set(ids))} ids")
    if run_state.restarts > kills * AT_ONCE:
        run_state.wrong.append(f"{run_state.restarts} messages came again after {kills} kills")


async def check_rows(run_state: DeliveryRun) -> None:
    run_state.wrong += [f"the ledger: {fault}" for fault in await ledger_violations(run_state.parts)]
    for status, delivery_id in await unfinished_rows(run_state):
        run_state.wrong.append(f"delivery {delivery_id} is left as {status}")


async def unfinished_rows(run_state: DeliveryRun) -> Sequence[tuple[str, str]]:
    listed = [
        await run_state.parts.store.deliveries.list_deliveries("default", each) for each in ("due", "sending", "parked")
    ]
    return [(each.status, each.id) for found in listed for each in found]


if __name__ == "__main__":
    main()
