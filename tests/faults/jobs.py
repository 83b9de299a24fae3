"""Which points are hit, and how: every one, or a spread over all of them that leaves no name out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

VARIANTS = ("kill", "raise", "delay", "stop")
DELAY = 1_600  # milliseconds: longer than a lease, and than a worker sleeps
RARE = 20  # of so many second hits one is an error instead of a kill
LASTING = ("after commit", "after all is answered", "before the tool", "after the tool", "before a block")


@dataclass(frozen=True)
class Job:
    """One life for each plan, then as many as it takes to come to an end; `name` is that of the first point."""

    victim: str
    plans: tuple[str, ...]
    name: str = ""

    @property
    def kinds(self) -> list[str]:
        return [plan.partition(":")[0] for plan in self.plans]


def singles(victim: str, names: Sequence[str], variant: str) -> list[Job]:
    """Kills are followed by a life that is recorded, to know what a second one could hit."""
    extra = f":{DELAY}" if variant == "delay" else ""
    then = ("record",) if variant == "kill" else ()
    return [Job(victim, (f"{variant}:{place}{extra}", *then), name) for name, place in places(names)]


def pairs(job: Job, recovery: Sequence[str]) -> Iterator[Job]:
    """A second kill at every point of the recovery, from every state that a first one can leave behind.

    Between two commits nothing lasts, so the first kill is one right behind something that does. Now and then the
    second hit is an error.
    """
    if job.kinds == ["kill", "record"] and job.name in LASTING:
        for number, (_, place) in enumerate(places(recovery), 1):
            second = "raise" if number % RARE == 0 else "kill"
            yield Job(job.victim, (job.plans[0], f"{second}:{place}"), job.name)


def places(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each name with the place in a plan: its K-th time."""
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        yield name, f"{name}#{seen[name]}"


def spread(jobs: Sequence[Job], most: int) -> list[Job]:
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
