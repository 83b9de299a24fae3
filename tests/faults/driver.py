"""Hits programs at every statement and effect, starts them again, and checks the laws. Run as a program of its own:

    python -m tests.faults.driver --database sqlite|postgresql [--kills N] [--others N]
        [--victim NAME …] [--variant kill|raise|delay|stop …] [--broken NAME] [--lanes N]

A clean life of each victim names its points. Then each point is hit once; further kills are pairs: the second one hits
the life that recovers from the first. Fewer hits than points are spread over them, each name at least once. It forks,
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
from tests.faults.chat_scenarios import SCENES as CHATS
from tests.faults.jobs import VARIANTS, Job, pairs, singles, spread
from tests.faults.scenario_runner import Ground, Lane, Played, memory
from tests.faults.scenarios import SCENES

COPIES = kill_controls.COPIES | chat_controls.COPIES


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.driver")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), required=True)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--others", type=int, default=0, help="raised errors, delays and stops, a third each")
    parser.add_argument("--victim", nargs="+", choices=[*SCENES, *CHATS], default=list(SCENES))
    parser.add_argument("--variant", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--broken", default="", choices=["", *COPIES])
    parser.add_argument("--lanes", type=int, default=6)
    parser.add_argument("--pairs", type=float, default=0.2, help="share of the kills that are pairs, if there are few")
    options = parser.parse_args()
    if options.broken:
        copy = COPIES[options.broken]
        copy.apply()
        options.victim, options.variant, options.pairs = copy.victims, (copy.variant,), 0.0
        options.kills, options.others = copy.hits, copy.hits * 3
    importlib.import_module("interlock.storage.postgres.database")  # else every life would load it again
    gc.freeze()  # what is loaded is shared with every life, and not looked through in any of them
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="interlock-faults-", dir=memory())))
        ground = stack.enter_context(Ground.of(options.database, folder))
        points = dict(zip(options.victim, recorded(ground, options.victim), strict=True))
        played = [each for jobs in rounds(options, points, ground) for each in jobs]
    print(json.dumps(report(options, points, played) | {"seconds": round(time.monotonic() - began, 1)}))


def recorded(ground: Ground, victims: Sequence[str]) -> list[list[str]]:
    """A clean life names every point, so that statements added later are covered by themselves."""
    jobs = [Job(victim, ("record",)) for victim in victims]
    return [played.points for played in live(ground, jobs, len(jobs))]


def rounds(options: argparse.Namespace, points: dict[str, list[str]], ground: Ground) -> Iterator[Sequence[Played]]:
    """The single hits first: the lives after them say which points there are for a second one."""
    ones = hits(options, points, "kill")
    chosen = spread(ones, options.kills if options.kills > 2 * len(ones) else int(options.kills * (1 - options.pairs)))
    first = live(ground, chosen if "kill" in options.variant else [], options.lanes)
    yield first
    left = options.kills - len(first)
    twos = [job for played in first if played.struck for job in pairs(played.job, played.points)]
    if "kill" in options.variant and left > 1:
        yield live(ground, spread(twos, left * 21 // 40), options.lanes)  # some of the second hits are no kills
    for variant in (each for each in options.variant if each != "kill"):
        yield live(ground, spread(hits(options, points, variant), options.others // 3), options.lanes)


def hits(options: argparse.Namespace, points: dict[str, list[str]], variant: str) -> list[Job]:
    jobs = [job for victim, names in points.items() for job in singles(victim, names, variant)]
    copy = COPIES.get(options.broken)
    return jobs if copy is None else [job for job in jobs if copy.is_hit(job.name)]


def live(ground: Ground, jobs: Sequence[Job], lanes: int) -> list[Played]:
    """Several lanes at once: some lives only wait."""
    lanes = min(lanes, len(jobs))
    files = [ground.folder / f"played{n}-{time.monotonic_ns()}.json" for n in range(lanes)]
    pids = [processes.start(lambda n=n: Lane(ground, n).run(jobs[n::lanes], files[n])) for n in range(lanes)]  # type: ignore[misc]
    ended = [processes.wait_for(pid) for pid in pids]
    if any(ended):
        raise RuntimeError(f"a lane ended with {ended}")
    played = {each.job: each for file in files for each in map(Played.read, file.read_text().splitlines())}
    return [played[job] for job in jobs]


def report(options: argparse.Namespace, points: dict[str, list[str]], played: Sequence[Played]) -> dict[str, Any]:
    faults = Counter(kind for each in played for kind in each.struck)
    missed = [each for each in played if not each.struck]
    wrong = [each.shown() for each in played if each.wrong]
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
        "hit": len({each.job.name for each in played if each.struck}),
    }


if __name__ == "__main__":
    main()
