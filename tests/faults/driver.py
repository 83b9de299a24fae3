"""Injects a fault at every statement and effect, restarts, and checks the invariants. Run as a program of its own:

    python -m tests.faults.driver --database sqlite|postgresql [--kills N] [--others N]
        [--victim NAME …] [--variant kill|raise|delay|stop …] [--broken NAME] [--lanes N]

A clean run of each victim names its points. Then each point is hit once; further kills are pairs: the second one hits
the run that recovers from the first. Fewer hits than points are spread over them, each name at least once. It forks,
so it stays without threads; everything that has threads runs in a child. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.faults import chat_controls, kill_controls, processes
from tests.faults.chat_scenarios import SCENARIOS as CHATS
from tests.faults.jobs import VARIANTS, FaultJob, fault_pairs, single_faults, spread_jobs
from tests.faults.scenario_runner import DatabaseSource, JobResult, Worker, memory_folder
from tests.faults.scenarios import SCENARIOS

BROKEN_COPIES = kill_controls.BROKEN_COPIES | chat_controls.BROKEN_COPIES


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.driver")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), required=True)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--others", type=int, default=0, help="raised errors, delays and stops, a third each")
    parser.add_argument("--victim", nargs="+", choices=[*SCENARIOS, *CHATS], default=list(SCENARIOS))
    parser.add_argument("--variant", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--broken", default="", choices=["", *BROKEN_COPIES])
    parser.add_argument("--lanes", type=int, default=6)
    parser.add_argument("--pairs", type=float, default=0.2, help="share of the kills that are pairs, if there are few")
    options = parser.parse_args()
    if options.broken:
        copy = BROKEN_COPIES[options.broken]
        copy.apply()
        options.victim, options.variant, options.pairs = copy.victims, (copy.variant,), 0.0
        options.kills, options.others = copy.hits, copy.hits * 3
    importlib.import_module("interlock.storage.postgres.database")  # else every process would load it again
    gc.freeze()  # loaded modules are shared with every fork, and not collected in any of them
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="interlock-faults-", dir=memory_folder())))
        databases = stack.enter_context(DatabaseSource.open(options.database, folder))
        points = dict(zip(options.victim, record_points(databases, options.victim), strict=True))
        played = [each for jobs in plan_rounds(options, points, databases) for each in jobs]
    print(json.dumps(print_report(options, points, played) | {"seconds": round(time.monotonic() - began, 1)}))


def record_points(databases: DatabaseSource, victims: Sequence[str]) -> list[list[str]]:
    """A clean run names every point, so that new statements are covered automatically."""
    jobs = [FaultJob(victim, ("record",)) for victim in victims]
    return [played.points for played in run_jobs(databases, jobs, len(jobs))]


def plan_rounds(
    options: argparse.Namespace, points: dict[str, list[str]], databases: DatabaseSource
) -> Iterator[Sequence[JobResult]]:
    """Single faults first: the recovering runs name the points for a second one."""
    ones = plan_hits(options, points, "kill")
    chosen = spread_jobs(
        ones, options.kills if options.kills > 2 * len(ones) else int(options.kills * (1 - options.pairs))
    )
    first = run_jobs(databases, chosen if "kill" in options.variant else [], options.lanes)
    yield first
    left = options.kills - len(first)
    twos = [job for played in first if played.faults for job in fault_pairs(played.job, played.points)]
    if "kill" in options.variant and left > 1:
        yield run_jobs(
            databases, spread_jobs(twos, left * 21 // 40), options.lanes
        )  # some of the second hits are no kills
    for variant in (each for each in options.variant if each != "kill"):
        yield run_jobs(databases, spread_jobs(plan_hits(options, points, variant), options.others // 3), options.lanes)


def plan_hits(options: argparse.Namespace, points: dict[str, list[str]], variant: str) -> list[FaultJob]:
    jobs = [job for victim, names in points.items() for job in single_faults(victim, names, variant)]
    copy = BROKEN_COPIES.get(options.broken)
    return jobs if copy is None else [job for job in jobs if copy.is_hit(job.name)]


def run_jobs(databases: DatabaseSource, jobs: Sequence[FaultJob], workers: int) -> list[JobResult]:
    """Several workers at once, since some processes only wait."""
    workers = min(workers, len(jobs))
    files = [databases.folder / f"played{n}-{time.monotonic_ns()}.json" for n in range(workers)]
    pids = [
        processes.fork_child(lambda n=n: Worker(databases, n).run(jobs[n::workers], files[n])) for n in range(workers)
    ]  # type: ignore[misc]
    ended = [processes.wait_for_exit(pid) for pid in pids]
    if any(ended):
        raise RuntimeError(f"a lane ended with {ended}")
    played = {each.job: each for file in files for each in map(JobResult.read, file.read_text().splitlines())}
    return [played[job] for job in jobs]


def print_report(
    options: argparse.Namespace, points: dict[str, list[str]], played: Sequence[JobResult]
) -> dict[str, Any]:
    faults = Counter(kind for each in played for kind in each.faults)
    missed = [each for each in played if not each.faults]
    wrong = [each.summary() for each in played if each.violations]
    return {
        "suite": f"{options.broken or 'faults'} on {options.database}",
        "database": options.database,
        "operations": len(played),
        "succeeded": len(played) - len(missed) - len(wrong),
        "faults": sum(faults.values()),
        "kinds": dict(faults),
        "wrong": wrong[:50],
        "count": len(wrong),
        "missed": len(missed),
        "unknown": sum(each.unknown for each in played),
        "points": {victim: len(names) for victim, names in points.items()},
        "names": len({name for names in points.values() for name in names}),
        "hit": len({each.job.name for each in played if each.faults}),
    }


if __name__ == "__main__":
    main()
