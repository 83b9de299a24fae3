"""Every pair of operations that can race on one approval, in threads and processes with stores of their own.

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
from tests.faults.clients import PEOPLE, POLICY, ApprovalProgress, Client, tool_name
from tests.faults.final_state import check_final_state
from tests.faults.histories import Recorder
from tests.faults.linearizability import RecordedOperation
from tests.faults.storm import fork, open_database, wait_for_processes

PROCESSES, THREADS = 2, 2
START_DELAY = 2.0  # seconds that everybody has to get ready
SHORT = 6_000  # milliseconds: the deadlines that are raced for
URGENT = POLICY.replace("expires_in: 3s, undo_window: 2s, start_within: 3s", "expires_in: 6s, start_within: 6s")
PATIENT = POLICY.replace("expires_in: 3s, undo_window: 2s, start_within: 3s", "undo_window: 60s, start_within: 60s")
CROWD = 20  # processes


class RaceScenario(NamedTuple):
    """`before` is done by one client; each of `at_once` by another. `deadline`: the moment is that of the approval."""

    tool: str
    before: tuple[str, ...]
    at_once: tuple[str, ...]
    deadline: bool = False


ASKED = ("again", "look")
RUNNING = (*ASKED, "approve", "start")
RACE_SCENARIOS = {
    "four decisions": RaceScenario("send", ASKED, ("approve", "reject", "edit", "respond")),
    "two of two": RaceScenario("pay", ASKED, ("approve", "approve", "look", "approve")),
    "a vote and an edit": RaceScenario("pay", (*ASKED, "approve"), ("approve", "edit", "approve", "edit")),
    "undo": RaceScenario("send", (*ASKED, "reject"), ("undo", "undo", "again", "cancel")),
    "withdrawn": RaceScenario("send", (*ASKED, "approve"), ("start", "cancel", "start", "cancel")),
    "two executors": RaceScenario("send", (*ASKED, "approve"), ("start", "start", "start", "start")),
    "the same call proposed": RaceScenario("note", (), ("again", "again", "other", "again")),
    "the deadline": RaceScenario("send", ASKED, ("approve", "sweep", "reject", "sweep"), deadline=True),
    "the last start": RaceScenario("send", (*ASKED, "approve"), ("start", "sweep", "cancel", "sweep"), deadline=True),
    "the end of a lease": RaceScenario("send", RUNNING, ("fail", "renew", "sweep", "sweep"), deadline=True),
    "two resumes": RaceScenario("put", RUNNING, ("start", "start", "finish", "start"), deadline=True),
}  # fmt: skip


class RaceRound(NamedTuple):
    number: int
    scene: str
    life: ApprovalProgress
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
    with tempfile.TemporaryDirectory() as folder, open_database(options.database, Path(folder)) as (url, _):
        print(json.dumps(run(url, Path(folder), options)))


def run(url: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    numbers = plan(options.rounds)
    fork(lambda: asyncio.run(prepare(url, folder, numbers)), wait=True)
    rounds = [
        RaceRound(n, scenario, ApprovalProgress(**progress), at)
        for n, scenario, progress, at in json.loads((folder / "rounds").read_text())
    ]
    wait_for_processes([fork(lambda p=p: run_process(url, folder, rounds, p)) for p in range(PROCESSES)])
    crowd = run_crowd(url, folder, options.crowd) if options.crowd else {}
    winners = count_winners(folder, rounds)
    fork(lambda: asyncio.run(finish_rounds(url, folder, rounds)), wait=True)
    verdict = check_final_state(url, folder, {})
    verdict.violations += crowd.pop("wrong", [])
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
        "won": {name: dict(winners_in(name, rounds, winners)) for name in RACE_SCENARIOS},
        "crowd": crowd,
        "counts": dict(sorted(verdict.counts.items())),
    }


def plan(rounds: int) -> list[tuple[int, str]]:
    """The same number of rounds for each scenario; the number of a call decides its tool."""
    left = dict.fromkeys(RACE_SCENARIOS, rounds)
    planned: list[tuple[int, str]] = []
    number = 0
    while any(left.values()):
        fitting = [
            name for name, scenario in RACE_SCENARIOS.items() if left[name] and scenario.tool == tool_name(number)
        ]
        if fitting:
            planned.append((number, fitting[0]))
            left[fitting[0]] -= 1
        number += 1
    return planned


async def prepare(url: str, folder: Path, numbers: Sequence[tuple[int, str]]) -> None:
    """Brings every approval to where its race begins. The scenarios with a deadline come last, and have a short one."""
    services, rounds = await open_services(url), list[RaceRound]()
    client = Client(services, Recorder(folder, "prepare"), folder, "prepare", 1)
    client.leases = (SHORT,)
    await services.put_policy("default", PATIENT, "ada", {})
    lives = {number: ApprovalProgress(number) for number, _ in numbers}
    for urgent in (False, True):
        if urgent and numbers:
            await services.put_policy("default", URGENT, "ada", {})
        due = [(n, scenario) for n, scenario in numbers if RACE_SCENARIOS[scenario].deadline is urgent]
        every = 0.01 if urgent else 0.0  # so that not all deadlines are one
        await asyncio.gather(
            *(
                apply_steps(client, lives[n], RACE_SCENARIOS[scenario].before, place * every)
                for place, (n, scenario) in enumerate(due)
            )
        )
    begin = time.time() + START_DELAY
    for place, (number, scenario) in enumerate(numbers):
        progress = lives[number]
        moment = begin + place * 0.002
        if RACE_SCENARIOS[scenario].deadline:
            stored = await services.store.get("default", progress.id)
            moment = deadline_from(histories.answer_from_approval(stored.approval)) / 1000
        rounds.append(RaceRound(number, scenario, progress, moment))
    await services.store.close()
    for each in rounds:
        each.life.own_fence = None
    (folder / "rounds").write_text(json.dumps([(r.number, r.scene, vars(r.life), r.moment) for r in rounds]))


def deadline_from(answer: histories.Answer) -> int:
    return (answer.expires_at if answer.status == "pending" else answer.until) or 0


async def apply_steps(client: Client, progress: ApprovalProgress, steps: Sequence[str], after: float) -> None:
    await asyncio.sleep(after)
    for step in steps:
        await client.do(step, progress)


def run_process(url: str, folder: Path, rounds: Sequence[RaceRound], process: int) -> None:
    threads = [
        threading.Thread(target=lambda n=n: asyncio.run(run_thread(url, folder, rounds, n)))
        for n in range(process * THREADS, (process + 1) * THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def run_thread(url: str, folder: Path, rounds: Sequence[RaceRound], seat: int) -> None:
    """One event loop with a store of its own; it does its part in every round."""
    services = await open_services(url)
    client = Client(services, Recorder(folder, f"t{seat}"), folder, f"contender{seat}", seat)
    client.people, client.leases = (PEOPLE[seat],), (SHORT,)
    chance = random.Random(seat)
    await asyncio.gather(*(run_step(client, each, seat, chance) for each in rounds))
    await services.store.close()


async def run_step(client: Client, each: RaceRound, seat: int, chance: random.Random) -> None:
    progress = ApprovalProgress(**vars(each.life))
    name = RACE_SCENARIOS[each.scene].at_once[seat]
    early = 0.04 if RACE_SCENARIOS[each.scene].deadline else 0.001
    await asyncio.sleep(max(0.0, each.moment + chance.uniform(-early, 0.002) - time.time()))
    if name == "sweep":
        await client.parts.worker.sweep()
    else:
        await client.do(name, progress)


async def open_services(url: str) -> AppServices:
    services = build_services(url)
    await services.store.open()
    await services.put_policy("default", None, "", {})
    return services


async def finish_rounds(url: str, folder: Path, rounds: Sequence[RaceRound]) -> None:
    """Takes back what nobody has started: those deadlines are far away."""
    services = await open_services(url)
    client = Client(services, Recorder(folder, "tidy"), folder, "tidy", 1)
    ids = {each.number: each.life.id for each in rounds}
    page = await services.store.list("default", ApprovalQuery(statuses=("pending", "approved"), limit=500))
    for stored in page.items:
        number = int(stored.approval.subject.call_id[1:])
        await client.do("cancel", ApprovalProgress(number, ids.get(number) or stored.approval.id))
    await services.store.close()


def count_winners(folder: Path, rounds: Sequence[RaceRound]) -> dict[int, list[str]]:
    """What succeeded at each approval once its race was on."""
    found: dict[int, list[RecordedOperation]] = {}
    for shard in range(histories.SHARDS):
        found |= histories.read_histories(folder / f"history-{shard}")
    return {
        each.number: [
            one.op.name
            for one in found[each.number]
            if one.early >= each.moment * 1000 - 50 and one.answer and one.answer.code == "ok"
        ]
        for each in rounds
    }


def winners_in(scenario: str, rounds: Sequence[RaceRound], winners: dict[int, list[str]]) -> Counter[str]:
    return Counter(name for each in rounds if each.scene == scenario for name in winners[each.number])


def run_crowd(url: str, folder: Path, clients: int) -> dict[str, Any]:
    """One approval, and everybody decides it at the same moment: one wins, all others get its record."""
    number = next(n for n in range(10**6, 10**7) if tool_name(n) == "send")
    fork(lambda: asyncio.run(prepare(url, folder, [])), wait=True)  # the patient policy
    begin = time.time() + 1.0 + CROWD * 0.3
    wait_for_processes(
        [
            fork(lambda p=p: asyncio.run(vote_as_person(url, folder, number, begin, p, clients // CROWD)))
            for p in range(CROWD)
        ]
    )
    history = histories.read_histories(folder / f"history-{number % histories.SHARDS}")[number]
    decided = [each for each in history if each.op.name in ("approve", "reject")]
    winners = [each for each in decided if each.answer and each.answer.code == "ok"]
    records = {each.answer[1:5] for each in decided if each.answer and each.answer.code == "already_decided"}
    losers = sum(1 for each in decided if each.answer and each.answer.code == "already_decided")
    by = winners[0].op.actor if winners else ""
    right = len(winners) == 1 and losers == len(decided) - 1 and {record[3] for record in records} == {by}
    spent = sorted(each.answered - each.called for each in decided)
    return {
        "clients": len(decided),
        "winners": len(winners),
        "told the winner": losers,
        "slowest_ms": spent[-1] // 1_000_000,
        "wrong": [] if right else [f"crowd: {len(winners)} winners, records {sorted(map(str, records))}"],
    }


async def vote_as_person(url: str, folder: Path, number: int, begin: float, process: int, clients: int) -> None:
    services = await open_services(url)
    recorder = Recorder(folder, f"p{process}")
    crowd = [Client(services, recorder, folder, "person", process * 1000 + n) for n in range(clients)]
    progress = ApprovalProgress(number)
    await crowd[0].do("again", progress)
    await crowd[0].do("look", progress)

    async def decide(client: Client, name: str) -> None:
        client.people = (Reviewer(name),)
        await asyncio.sleep(max(0.0, begin - time.time()))
        await client.do(client.chance.choice(("approve", "reject")), ApprovalProgress(**vars(progress)))

    await asyncio.gather(*(decide(client, f"person{process}.{n}") for n, client in enumerate(crowd)))
    await services.store.close()


if __name__ == "__main__":
    main()
