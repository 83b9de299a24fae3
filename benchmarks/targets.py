"""Performance targets, and whether the figures meet them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.tables import Table, number

LABELS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
MOST_MEMORY = 0.1  # KiB for a call that waits: a row costs none, and a process breathes a little


@dataclass(frozen=True)
class Target:
    what: str
    goal: float
    measured: float | None
    unit: str = ""
    is_maximum: bool = True  # the aim is an upper bound

    def row(self) -> list[str]:
        sign = "≤" if self.is_maximum else "≥"
        if self.measured is None:
            return [self.what, "not measured", f"{sign} {self.goal:g}{self.unit}", "-"]
        reached = self.measured <= self.goal if self.is_maximum else self.measured >= self.goal
        return [
            self.what,
            f"{number(self.measured)}{self.unit}",
            f"{sign} {self.goal:g}{self.unit}",
            "yes" if reached else "no",
        ]


def measured_targets(figures: Mapping[str, Any]) -> Table:
    rows = [aim.row() for aim in all_targets(figures)]
    return Table("Aims", ["what", "figure", "aim", "reached"], rows)


def all_targets(figures: Mapping[str, Any]) -> Iterator[Target]:
    for peer in figures["contest"]:
        if peer["name"] == "interlock_gate" and "1" in peer:
            yield from speed_targets(figures, peer)
    rules = figures["lookup"]["1000"]
    yield Target("rule look-up, 1,000 rules, no condition", 2, rules["plain_us"], " µs")
    yield Target("rule look-up, 1,000 rules, a condition", 15, rules["condition_us"], " µs")
    for name, read in figures["reads"].items():
        yield Target(f"{LABELS[name]}: an allowed read, all in", 10, read["wall_us"], " µs")
    for name, sizes in figures["growth"].items():
        yield from growth_targets(LABELS[name], sizes, {"sqlite": 0.5, "postgresql": 2.0}[name])
    for found in figures["parked"]:
        if found["title"].startswith("Interlock"):
            yield Target(f"{found['title']}: memory for a call that waits", MOST_MEMORY, found.get("kib_each"), " KiB")
    yield from server_targets(figures["http"])
    yield verification_targets(figures["ledger"])


def server_targets(http: Mapping[str, Any]) -> Iterator[Target]:
    for name, most_ms, least in (("sqlite", 10, 2_000), ("postgresql", 5, 1_200)):
        where, found = LABELS[name], http[name]
        to_tool = statistics.median(found["to_tool_ms"])
        yield Target(f"{where}: decision over HTTP to the tool in another process, p50", most_ms, to_tool, " ms")
        what = f"{where}: create and decide over HTTP, 64 connections"
        yield Target(what, least, statistics.median(found["cycles"]), " a second", is_maximum=False)
        share = found["beside_streams"]["cycles_per_second"]
        yield Target(f"{where}: deciding beside 1,000 idle and 100 stalled streams", 0.8, share, " x", is_maximum=False)
    yield Target("an idle event stream, of 5,000", 15, http["stream"]["kib_per_stream"], " KiB")


def speed_targets(figures: Mapping[str, Any], peer: Mapping[str, Any]) -> Iterator[Target]:
    name, where = peer["database"], LABELS[peer["database"]]
    least = {"sqlite": (0.6, 0.4, 4.0, 40.0, 0.7), "postgresql": (0.5, 0.4, 3.0, 20.0, 1.2)}[name]
    for at_once, aim in (("1", least[0]), ("256", least[1])):
        floor = figures["floors"][name][at_once]
        share = statistics.median(a / b for a, b in zip(peer[at_once]["cycles_per_second"], floor, strict=True))
        yield Target(f"{where}: share of the same statements, {at_once} at once", aim, share, is_maximum=False)
    for at_once, aim in (("1", least[2]), ("32", least[3])):
        best = best_other(figures["contest"], at_once)
        times = statistics.median(peer[at_once]["cycles_per_second"]) / best if best else None
        yield Target(f"{where}: times the best of the others, {at_once} at once", aim, times, " x", is_maximum=False)
    yield Target(f"{where}: decision to tool, p50", least[4], statistics.median(peer["1"]["p50_ms"]), " ms")


def best_other(contest: Sequence[Mapping[str, Any]], at_once: str) -> float | None:
    """The fastest peer on any storage: the strictest comparison."""
    others = [peer for peer in contest if peer["name"] != "interlock_gate" and at_once in peer]
    return max((statistics.median(peer[at_once]["cycles_per_second"]) for peer in others), default=None)


def growth_targets(where: str, sizes: Mapping[str, Mapping[str, float]], page: float) -> Iterator[Target]:
    small, large = min(sizes, key=int), max(sizes, key=int)
    span = f"from {int(small):,} to {int(large):,} stored"
    for column, at_once in (("one_us", "one"), ("many_us", "256")):
        yield Target(
            f"{where}: a cycle, {at_once} at once, {span}", 1.3, sizes[large][column] / sizes[small][column], " x"
        )
    yield Target(f"{where}: page of 50 out of {int(large):,}", page, sizes[large]["page_ms"], " ms")


def verification_targets(ledger: Mapping[str, Any]) -> Target:
    """The aim is for a million; a quick run has fewer and is scaled."""
    million = ledger["seconds"]["all processors"] * 1_000_000 / ledger["entries"]
    return Target("verify 1,000,000 entries of the ledger", 5, million, " s")
