"""Takes all figures in an order that needs one PostgreSQL and one pass; `report` presents them."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import cycles, database_limits, growth, ledger, machine, rule_lookup, second_process
from benchmarks.comparison import Comparison, Participant, participants
from benchmarks.floors import Bench, Postgres, Sqlite
from benchmarks.http import figures as http
from tests.postgres import Server

CONDITION = '    when: args.amount > 1000.0 || args.recipient.endsWith("@b.example")'
PEERS_PER_ROUND = (1, 32)  # at once
OURS = (1, 32, 256)
PARKING = {  # seconds at most, and the share that is parked before memory is looked at: more than caches hold
    ("interlock_gate", "sqlite"): (60, 1.2),
    ("interlock_gate", "postgresql"): (60, 1.2),
    ("langgraph", "sqlite"): (120, 0.05),
    ("dbos", "postgresql"): (45, 0.05),
}
Progress = Callable[[str], None]
Rates = dict[str, dict[str, list[float]]]  # of a database, for so many at once, one for each round


@dataclass(frozen=True)
class Size:
    """How long it may take."""

    rounds: int
    seconds: float  # for each number at once, in a turn
    stored: tuple[int, ...]
    parked: int
    entries: int
    reads: int


FULL = Size(5, 2.0, (1_000, 100_000, 1_000_000), 10_000, 1_000_000, 5_000)
QUICK = Size(1, 0.3, (1_000, 10_000), 300, 20_000, 500)


def take_figures(size: Size, only: Sequence[str] | None, say: Progress) -> dict[str, Any]:
    start_time = time.perf_counter()
    figures: dict[str, Any] = {"machine": machine.describe(), "rounds": size.rounds}
    with Server() as server:
        figures["machine"]["postgresql"] = machine.postgres(server)
        everybody = participants(only)
        figures |= run_rounds(Comparison(server), everybody, size, say)
        say("calls that need no question")
        figures["reads"] = {
            bench.name.lower(): measure_reads(bench, size.reads) for bench in (Sqlite(), Postgres(server))
        }
        figures["unasked"] = measure_unasked(Comparison(server), everybody)
        figures["parked"] = measure_parked(Comparison(server), everybody, size, say)
        say("growth")
        figures["growth"] = growth.figures(server, size.stored, min(size.rounds, 3))
        say("the server")
        figures["http"] = http.figures(server, size.rounds, size.seconds)
    say("rules, neighbour, ledger")
    figures["lookup"] = {str(rules): measure_lookup(rules) for rules in (10, 1_000, 10_000)}
    figures["neighbour"] = measure_second_process()
    figures["ledger"] = measure_verification(size.entries)
    figures["seconds"] = time.perf_counter() - start_time
    return figures


def run_rounds(course: Comparison, everybody: Sequence[Participant], size: Size, say: Progress) -> dict[str, Any]:
    """The database, the floor, Interlock and the others take turns."""
    own: Rates = {"sqlite": {}, "postgresql": {}}
    floors: Rates = {"sqlite": {}, "postgresql": {}}
    for number in range(1, size.rounds + 1):
        say(f"round {number} of {size.rounds}: the databases")
        take_limits(course, own, size.seconds / 4)
        take_floors(course, floors, size.seconds)
        for who in everybody:
            say(f"round {number} of {size.rounds}: {who.title}")
            course.turn(who, size.seconds, OURS if who.ours else PEERS_PER_ROUND)
            say(f"  {who.error}" if who.error else f"  {who.all(1, 'cycles_per_second')[-1]:,.0f} a second")
    for who in everybody:
        course.resume_twice(who)
    return {"limits": own, "floors": floors, "contest": [summary(who) for who in everybody]}


def take_limits(course: Comparison, own: Rates, seconds: float) -> None:
    for batch in PEERS_PER_ROUND:
        with tempfile.TemporaryDirectory() as folder:
            own["sqlite"].setdefault(str(batch), []).append(database_limits.sqlite(Path(folder), batch, seconds))
        with course.database() as url:
            own["postgresql"].setdefault(str(batch), []).append(database_limits.postgres(url, batch, seconds))


def take_floors(course: Comparison, floors: Rates, seconds: float) -> None:
    for bench in (Sqlite(), Postgres(course.server)):
        for at_once in OURS:
            rate = asyncio.run(measure_floor(bench, at_once, seconds))
            floors[bench.name.lower()].setdefault(str(at_once), []).append(rate)


async def measure_floor(bench: Bench, at_once: int, seconds: float) -> float:
    """Cycles per second of the statements that Interlock sends in that time, sent again without it."""
    with tempfile.TemporaryDirectory() as folder:
        async with cycles.open_services(bench, Path(folder), recorded=True) as app_services:
            count = await cycles.cycles_for(app_services, seconds, at_once, "f")
        return count / bench.replay()


def summary(who: Participant) -> dict[str, Any]:
    found: dict[str, Any] = {"name": who.about.name, "title": who.about.title, "database": who.database}
    found |= {"error": who.error, "twice": who.twice, "packages": who.about.packages}
    if not who.turns:
        return found
    found |= {"durable": who.turns[0]["durable"], "versions": who.turns[0]["versions"]}
    for at_once in OURS if who.ours else PEERS_PER_ROUND:
        names = ("cycles_per_second", "p50_ms", "p99_ms")
        found[str(at_once)] = {name: who.all(at_once, name) for name in names}
    return found


def measure_reads(bench: Bench, count: int) -> dict[str, float]:
    async def measure() -> tuple[float, float]:
        with tempfile.TemporaryDirectory() as folder:
            async with cycles.open_services(bench, Path(folder)) as app_services:
                return await cycles.allowed_reads(app_services, count)

    taken = [asyncio.run(measure()) for _ in range(5)]
    wall, processor = (statistics.median(each) * 1e6 for each in zip(*taken, strict=True))
    return {"wall_us": wall, "cpu_us": processor}


def measure_unasked(course: Comparison, everybody: Sequence[Participant]) -> dict[str, Any]:
    """Of the agent frameworks; the others have no rule that a call could pass."""
    frameworks = {
        who.about.name: who for who in everybody if who.about.name in ("langgraph", "openai_agents", "pydantic_ai")
    }
    return {who.about.title: course.run(who, "unasked") for who in frameworks.values()}


def measure_parked(
    course: Comparison, everybody: Sequence[Participant], size: Size, say: Progress
) -> list[dict[str, Any]]:
    found = []
    for who in everybody:
        seconds, share = PARKING.get((who.about.name, who.database), (0, 0.0))
        if seconds and not who.error:
            say(f"{size.parked:,} calls that wait: {who.title}")
            counts = ("--first", str(int(size.parked * share)), "--count", str(size.parked))
            options = (*counts, "--seconds", str(seconds))
            found.append({"title": who.title} | course.run(who, "park", *options, patience=seconds * 2))
    return found


def measure_lookup(rules: int) -> dict[str, float]:
    plain, condition = rule_lookup.measure_judge(rules) * 1e6, rule_lookup.measure_judge(rules, CONDITION) * 1e6
    return {"plain_us": plain, "condition_us": condition, "load_s": rule_lookup.measure_load(rules)}


def measure_second_process() -> dict[str, float]:
    spent = sorted(second_process.measure())
    p50, p99 = (spent[int(len(spent) * share)] * 1000 for share in (0.5, 0.99))
    return {"p50_ms": p50, "p99_ms": p99}


def measure_verification(entries: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        append = ledger.build(path, entries) * 1e6
        return {"entries": entries, "append_us": append, "seconds": ledger.measure(path)}
