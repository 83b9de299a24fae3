"""Where Interlock has to be, and whether it is there."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.tables import Table, number

LABELS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
MOST_MEMORY = 0.1  # KiB for a call that waits: a row costs none, and a process breathes a little


@dataclass(frozen=True)
class Aim:
    what: str
    aim: float
    found: float | None
    unit: str = ""
    most: bool = True  # the aim is an upper bound

    def row(self) -> list[str]:
        sign = "≤" if self.most else "≥"
        if self.found is None:
            return [self.what, "not measured", f"{sign} {self.aim:g}{self.unit}", "-"]
        reached = self.found <= self.aim if self.most else self.found >= self.aim
        return [
            self.what,
            f"{number(self.found)}{self.unit}",
            f"{sign} {self.aim:g}{self.unit}",
            "yes" if reached else "no",
        ]


def aims(figures: Mapping[str, Any]) -> Table:
    rows = [aim.row() for aim in all_aims(figures)]
    return Table("Aims", ["what", "figure", "aim", "reached"], rows)


def all_aims(figures: Mapping[str, Any]) -> Iterator[Aim]:
    for peer in figures["contest"]:
        if peer["name"] == "interlock_gate" and "1" in peer:
            yield from speed_aims(figures, peer)
    rules = figures["lookup"]["1000"]
    yield Aim("rule look-up, 1,000 rules, no condition", 2, rules["plain_us"], " µs")
    yield Aim("rule look-up, 1,000 rules, a condition", 15, rules["condition_us"], " µs")
    for name, read in figures["reads"].items():
        yield Aim(f"{LABELS[name]}: an allowed read, all in", 10, read["wall_us"], " µs")
    for name, sizes in figures["growth"].items():
        yield from growth_aims(LABELS[name], sizes, {"sqlite": 0.5, "postgresql": 2.0}[name])
    for found in figures["parked"]:
        if found["title"].startswith("Interlock"):
            yield Aim(f"{found['title']}: memory for a call that waits", MOST_MEMORY, found.get("kib_each"), " KiB")
    yield from server_aims(figures["http"])
    yield verifying(figures["ledger"])


def server_aims(http: Mapping[str, Any]) -> Iterator[Aim]:
    for name, most_ms, least in (("sqlite", 10, 2_000), ("postgresql", 5, 1_200)):
        where, found = LABELS[name], http[name]
        to_tool = statistics.median(found["to_tool_ms"])
        yield Aim(f"{where}: decision over HTTP to the tool in another process, p50", most_ms, to_tool, " ms")
        what = f"{where}: create and decide over HTTP, 64 connections"
        yield Aim(what, least, statistics.median(found["cycles"]), " a second", most=False)
        share = found["beside_streams"]["cycles_per_second"]
        yield Aim(f"{where}: deciding beside 1,000 idle and 100 stalled streams", 0.8, share, " x", most=False)
    yield Aim("an idle event stream, of 5,000", 15, http["stream"]["kib_per_stream"], " KiB")


def speed_aims(figures: Mapping[str, Any], peer: Mapping[str, Any]) -> Iterator[Aim]:
    name, where = peer["database"], LABELS[peer["database"]]
    least = {"sqlite": (0.6, 0.4, 4.0, 40.0, 0.7), "postgresql": (0.5, 0.4, 3.0, 20.0, 1.2)}[name]
    for at_once, aim in (("1", least[0]), ("256", least[1])):
        floor = figures["floors"][name][at_once]
        share = statistics.median(a / b for a, b in zip(peer[at_once]["cycles_per_second"], floor, strict=True))
        yield Aim(f"{where}: share of the same statements, {at_once} at once", aim, share, most=False)
    for at_once, aim in (("1", least[2]), ("32", least[3])):
        best = best_other(figures["contest"], at_once)
        times = statistics.median(peer[at_once]["cycles_per_second"]) / best if best else None
        yield Aim(f"{where}: times the best of the others, {at_once} at once", aim, times, " x", most=False)
    yield Aim(f"{where}: decision to tool, p50", least[4], statistics.median(peer["1"]["p50_ms"]), " ms")


def best_other(contest: Sequence[Mapping[str, Any]], at_once: str) -> float | None:
    """Whatever it stores in: the strictest comparison."""
    others = [peer for peer in contest if peer["name"] != "interlock_gate" and at_once in peer]
    return max((statistics.median(peer[at_once]["cycles_per_second"]) for peer in others), default=None)


def growth_aims(where: str, sizes: Mapping[str, Mapping[str, float]], page: float) -> Iterator[Aim]:
    small, large = min(sizes, key=int), max(sizes, key=int)
    span = f"from {int(small):,} to {int(large):,} stored"
    for column, at_once in (("one_us", "one"), ("many_us", "256")):
        yield Aim(
            f"{where}: a cycle, {at_once} at once, {span}", 1.3, sizes[large][column] / sizes[small][column], " x"
        )
    yield Aim(f"{where}: page of 50 out of {int(large):,}", page, sizes[large]["page_ms"], " ms")


def verifying(ledger: Mapping[str, Any]) -> Aim:
    """The aim is for a million; a quick run has fewer and is scaled."""
    million = ledger["seconds"]["all processors"] * 1_000_000 / ledger["entries"]
    return Aim("verify 1,000,000 entries of the ledger", 5, million, " s")
