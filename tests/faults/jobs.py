"""Fault jobs: which points are hit and how, all of them or a sample that covers every name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

VARIANTS = ("kill", "raise", "delay", "stop")
DELAY = 1_600  # milliseconds: longer than a lease, and than a worker sleeps
RARE = 20  # of so many second hits one is an error instead of a kill
LASTING = ("after commit", "after all is answered", "before the tool", "after the tool", "before a block")


@dataclass(frozen=True)
class FaultJob:
    """One process for each plan, then as many as it takes to finish; `name` is that of the first point."""

    victim: str
    plans: tuple[str, ...]
    name: str = ""

    @property
    def kinds(self) -> list[str]:
        return [plan.partition(":")[0] for plan in self.plans]


def single_faults(victim: str, names: Sequence[str], variant: str) -> list[FaultJob]:
    """A kill is followed by a recorded run, which names the points for a second one."""
    extra = f":{DELAY}" if variant == "delay" else ""
    then = ("record",) if variant == "kill" else ()
    return [FaultJob(victim, (f"{variant}:{place}{extra}", *then), name) for name, place in point_positions(names)]


def fault_pairs(job: FaultJob, recovery: Sequence[str]) -> Iterator[FaultJob]:
    """A second kill at every point of the recovery, from every state that a first one can leave behind.

    Between two commits nothing lasts, so the first kill is one right behind something that does. Now and then the
    second hit is an error.
    """
    if job.kinds == ["kill", "record"] and job.name in LASTING:
        for number, (_, place) in enumerate(point_positions(recovery), 1):
            second = "raise" if number % RARE == 0 else "kill"
            yield FaultJob(job.victim, (job.plans[0], f"{second}:{place}"), job.name)


def point_positions(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each name with the place in a plan: its K-th time."""
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        yield name, f"{name}#{seen[name]}"


def spread_jobs(jobs: Sequence[FaultJob], most: int) -> list[FaultJob]:
    """At most so many, evenly over all of them; of each name there is one, as far as there is room."""
    if len(jobs) <= most or most < 1:
        return list(jobs[: max(0, most)])
    by_name: dict[str, list[int]] = {}
    for number, job in enumerate(jobs):
        by_name.setdefault(job.name, []).append(number)
    one_each = [numbers[turn % len(numbers)] for turn, numbers in enumerate(by_name.values())]
    few = min(most, len(one_each))
    chosen = {one_each[number * len(one_each) // few] for number in range(few)}
    room = most - len(chosen)
    chosen |= {int(number * len(jobs) / room) for number in range(room)}
    return [jobs[number] for number in sorted(chosen)]
