"""Everything that can meet at one approval, at the same moment: threads and processes, each with a store of its own.

    python -m tests.faults.races [--database sqlite|postgresql] [--rounds N] [--crowd N] [--broken CONTROL]

A round is one approval, brought to where the race begins; then, at one agreed moment, which in some scenes is its
deadline to the millisecond, all contenders act. `--crowd` adds one approval that N clients in 20 processes decide at
once. All of it is recorded and judged as a storm is: effects, rows, ledger, histories. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.decision import Reviewer
from interlock.core.ports import ApprovalQuery
from tests.faults import histories, race_controls
from tests.faults.clients import PEOPLE, POLICY, Client, Life, tool_of
from tests.faults.final_state import judge
from tests.faults.histories import Recorder
from tests.faults.linearizability import Recorded
from tests.faults.storm import ended, fork, opened

PROCESSES, THREADS = 2, 2
AHEAD = 2.0  # seconds that everybody has to get ready
SHORT = 6_000  # milliseconds: the deadlines that are raced for
URGENT = POLICY.replace("expires_in: 3s, undo_window: 2s, start_within: 3s", "expires_in: 6s, start_within: 6s")
PATIENT = POLICY.replace("expires_in: 3s, undo_window: 2s, start_within: 3s", "undo_window: 60s, start_within: 60s")
CROWD = 20  # processes


class Scene(NamedTuple):
    """`before` is done by one client; each of `at_once` by another. `deadline`: the moment is that of the approval."""

    tool: str
    before: tuple[str, ...]
    at_once: tuple[str, ...]
    deadline: bool = False


ASKED = ("again", "look")
RUNNING = (*ASKED, "approve", "start")
SCENES = {
    "four decisions": Scene("send", ASKED, ("approve", "reject", "edit", "respond")),
    "two of two": Scene("pay", ASKED, ("approve", "approve", "look", "approve")),
    "a vote and an edit": Scene("pay", (*ASKED, "approve"), ("approve", "edit", "approve", "edit")),
    "undo": Scene("send", (*ASKED, "reject"), ("undo", "undo", "again", "cancel")),
    "withdrawn": Scene("send", (*ASKED, "approve"), ("start", "cancel", "start", "cancel")),
    "two executors": Scene("send", (*ASKED, "approve"), ("start", "start", "start", "start")),
    "the same call proposed": Scene("note", (), ("again", "again", "other", "again")),
    "the deadline": Scene("send", ASKED, ("approve", "sweep", "reject", "sweep"), deadline=True),
    "the last start": Scene("send", (*ASKED, "approve"), ("start", "sweep", "cancel", "sweep"), deadline=True),
    "the end of a lease": Scene("send", RUNNING, ("fail", "renew", "sweep", "sweep"), deadline=True),
    "two resumes": Scene("put", RUNNING, ("start", "start", "finish", "start"), deadline=True),
}  # fmt: skip


class Round(NamedTuple):
    number: int
    scene: str
    life: Life
    moment: float  # by the wall clock, in seconds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--crowd", type=int, default=0)
    parser.add_argument("--broken", choices=sorted(race_controls.CONTROLS))
    options = parser.parse_args()
    if options.broken:
        race_controls.CONTROLS[options.broken]()
    with tempfile.TemporaryDirectory() as folder, opened(options.database, Path(folder)) as (url, _):
        print(json.dumps(run(url, Path(folder), options)))


def run(url: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    numbers = plan(options.rounds)
    fork(lambda: asyncio.run(prepare(url, folder, numbers)), wait=True)
    rounds = [Round(n, scene, Life(**life), at) for n, scene, life, at in json.loads((folder / "rounds").read_text())]
    ended([fork(lambda p=p: contend(url, folder, rounds, p)) for p in range(PROCESSES)])
    crowd = gather_crowd(url, folder, options.crowd) if options.crowd else {}
    winners = won(folder, rounds)
    fork(lambda: asyncio.run(tidy(url, folder, rounds)), wait=True)
    verdict = judge(url, folder, {})
    verdict.wrong += crowd.pop("wrong", [])
    return {
        "suite": "races",
        "database": options.database,
        "operations": len(rounds),
        "succeeded": sum(1 for each in rounds if winners[each.number]),
        "faults": 0,
        "wrong": verdict.samples(),
        "seconds": round(time.monotonic() - began, 1),
        "answers": verdict.operations,
        "linearizable": verdict.linearizable,
        "won": {name: dict(won_in(name, rounds, winners)) for name in SCENES},
        "crowd": crowd,
        "counts": dict(sorted(verdict.counts.items())),
    }


def plan(rounds: int) -> list[tuple[int, str]]:
    """As many rounds of each scene; a number is that of a call, and has its tool."""
    left = dict.fromkeys(SCENES, rounds)
    planned: list[tuple[int, str]] = []
    number = 0
    while any(left.values()):
        fitting = [name for name, scene in SCENES.items() if left[name] and scene.tool == tool_of(number)]
        if fitting:
            planned.append((number, fitting[0]))
            left[fitting[0]] -= 1
        number += 1
    return planned


async def prepare(url: str, folder: Path, numbers: Sequence[tuple[int, str]]) -> None:
    """Brings every approval to where its race begins. The scenes with a deadline come last, and have a short one."""
    parts, rounds = await opened_parts(url), list[Round]()
    client = Client(parts, Recorder(folder, "prepare"), folder, "prepare", 1)
    client.leases = (SHORT,)
    await parts.put_policy("default", PATIENT, "ada", {})
    lives = {number: Life(number) for number, _ in numbers}
    for urgent in (False, True):
        if urgent and numbers:
            await parts.put_policy("default", URGENT, "ada", {})
        due = [(n, scene) for n, scene in numbers if SCENES[scene].deadline is urgent]
        every = 0.01 if urgent else 0.0  # so that not all deadlines are one
        await asyncio.gather(
            *(bring(client, lives[n], SCENES[scene].before, place * every) for place, (n, scene) in enumerate(due))
        )
    begin = time.time() + AHEAD
    for place, (number, scene) in enumerate(numbers):
        life = lives[number]
        moment = begin + place * 0.002
        if SCENES[scene].deadline:
            stored = await parts.store.get("default", life.id)
            moment = deadline_of(histories.of_approval(stored.approval)) / 1000
        rounds.append(Round(number, scene, life, moment))
    await parts.store.close()
    for each in rounds:
        each.life.mine = None
    (folder / "rounds").write_text(json.dumps([(r.number, r.scene, vars(r.life), r.moment) for r in rounds]))


def deadline_of(answer: histories.Answer) -> int:
    return (answer.expires_at if answer.status == "pending" else answer.until) or 0


async def bring(client: Client, life: Life, steps: Sequence[str], after: float) -> None:
    await asyncio.sleep(after)
    for step in steps:
        await client.do(step, life)


def contend(url: str, folder: Path, rounds: Sequence[Round], process: int) -> None:
    threads = [
        threading.Thread(target=lambda n=n: asyncio.run(contender(url, folder, rounds, n)))
        for n in range(process * THREADS, (process + 1) * THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def contender(url: str, folder: Path, rounds: Sequence[Round], seat: int) -> None:
    """One event loop with a store of its own; it does its part in every round."""
    parts = await opened_parts(url)
    client = Client(parts, Recorder(folder, f"t{seat}"), folder, f"contender{seat}", seat)
    client.people, client.leases = (PEOPLE[seat],), (SHORT,)
    chance = random.Random(seat)
    await asyncio.gather(*(act(client, each, seat, chance) for each in rounds))
    await parts.store.close()


async def act(client: Client, each: Round, seat: int, chance: random.Random) -> None:
    life = Life(**vars(each.life))
    name = SCENES[each.scene].at_once[seat]
    early = 0.04 if SCENES[each.scene].deadline else 0.001
    await asyncio.sleep(max(0.0, each.moment + chance.uniform(-early, 0.002) - time.time()))
    if name == "sweep":
        await client.parts.worker.sweep()
    else:
        await client.do(name, life)


async def opened_parts(url: str) -> AppServices:
    parts = build_services(url)
    await parts.store.open()
    await parts.put_policy("default", None, "", {})
    return parts


async def tidy(url: str, folder: Path, rounds: Sequence[Round]) -> None:
    """Takes back what nobody has started: those deadlines are far away."""
    parts = await opened_parts(url)
    client = Client(parts, Recorder(folder, "tidy"), folder, "tidy", 1)
    ids = {each.number: each.life.id for each in rounds}
    page = await parts.store.list("default", ApprovalQuery(statuses=("pending", "approved"), limit=500))
    for stored in page.items:
        number = int(stored.approval.subject.call_id[1:])
        await client.do("cancel", Life(number, ids.get(number) or stored.approval.id))
    await parts.store.close()


def won(folder: Path, rounds: Sequence[Round]) -> dict[int, list[str]]:
    """What succeeded at each approval once its race was on."""
    found: dict[int, list[Recorded]] = {}
    for shard in range(histories.SHARDS):
        found |= histories.read(folder / f"history-{shard}")
    return {
        each.number: [
            one.op.name
            for one in found[each.number]
            if one.early >= each.moment * 1000 - 50 and one.answer and one.answer.code == "ok"
        ]
        for each in rounds
    }


def won_in(scene: str, rounds: Sequence[Round], winners: dict[int, list[str]]) -> Counter[str]:
    return Counter(name for each in rounds if each.scene == scene for name in winners[each.number])


def gather_crowd(url: str, folder: Path, clients: int) -> dict[str, Any]:
    """One approval, and everybody decides it at the same moment: one wins, all others get its record."""
    number = next(n for n in range(10**6, 10**7) if tool_of(n) == "send")
    fork(lambda: asyncio.run(prepare(url, folder, [])), wait=True)  # the patient policy
    begin = time.time() + 1.0 + CROWD * 0.3
    ended(
        [fork(lambda p=p: asyncio.run(person(url, folder, number, begin, p, clients // CROWD))) for p in range(CROWD)]
    )
    history = histories.read(folder / f"history-{number % histories.SHARDS}")[number]
    decided = [each for each in history if each.op.name in ("approve", "reject")]
    winners = [each for each in decided if each.answer and each.answer.code == "ok"]
    records = {each.answer[1:5] for each in decided if each.answer and each.answer.code == "already_decided"}
    losers = sum(1 for each in decided if each.answer and each.answer.code == "already_decided")
    by = winners[0].op.who if winners else ""
    right = len(winners) == 1 and losers == len(decided) - 1 and {record[3] for record in records} == {by}
    spent = sorted(each.answered - each.called for each in decided)
    return {
        "clients": len(decided),
        "winners": len(winners),
        "told the winner": losers,
        "slowest_ms": spent[-1] // 1_000_000,
        "wrong": [] if right else [f"crowd: {len(winners)} winners, records {sorted(map(str, records))}"],
    }


async def person(url: str, folder: Path, number: int, begin: float, process: int, clients: int) -> None:
    parts = await opened_parts(url)
    recorder = Recorder(folder, f"p{process}")
    crowd = [Client(parts, recorder, folder, "person", process * 1000 + n) for n in range(clients)]
    life = Life(number)
    await crowd[0].do("again", life)
    await crowd[0].do("look", life)

    async def decide(client: Client, name: str) -> None:
        client.people = (Reviewer(name),)
        await asyncio.sleep(max(0.0, begin - time.time()))
        await client.do(client.chance.choice(("approve", "reject")), Life(**vars(life)))

    await asyncio.gather(*(decide(client, f"person{process}.{n}") for n, client in enumerate(crowd)))
    await parts.store.close()


if __name__ == "__main__":
    main()
