"""The figures as tables; it takes no figure itself, so that a run can be shown again."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.tables import Table, number
from benchmarks.targets import measured_targets

Figures = Mapping[str, Any]
LABELS = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "own": "its own"}
NONE = "-"
LISTED = 10_000


def tables(figures: Figures) -> list[Table]:
    """In the order of the page."""
    parts = (
        comparison_table,
        durability_table,
        shares,
        unasked_table,
        lookup_table,
        growth_table,
        parked_table,
        http_table,
        ledger_table,
        measured_targets,
    )
    return [part(figures) for part in parts]


def comparison_table(figures: Figures) -> Table:
    head = [
        "cycles per second",
        "one at a time",
        "spread",
        "32 at once",
        "spread",
        "decision to tool p50, ms",
        "p99, ms",
        "tool runs if resumed twice",
    ]
    rows = [*own_rows(figures), *(peer_row(peer) for peer in figures["contest"])]
    failed = [f"{peer_title(peer)}: {peer['error']}." for peer in figures["contest"] if peer["error"]]
    notes = [
        f"Median of {figures['rounds']} rounds in which all take turns; the spread is from the slowest to the fastest. "
        "Decision to tool is taken one at a time. Resumed twice: afterwards / at once.",
        *([f"Not measured. {' '.join(failed)}"] if failed else []),
    ]
    return Table("One durable cycle", head, rows, notes)


def durability_table(figures: Figures) -> Table:
    rows = [[peer_title(peer), peer["durable"]] for peer in figures["contest"] if "durable" in peer]
    return Table("What makes them durable", ["who", "asked of it while it ran"], rows)


def own_rows(figures: Figures) -> list[list[str]]:
    """The databases by themselves, and Interlock's statements by themselves."""
    kinds = (("limits", "{}: insert, update"), ("floors", "{}: Interlock's statements"))
    return [
        [label.format(LABELS[name]), *rate(sizes["1"]), *rate(sizes["32"]), NONE, NONE, NONE]
        for kind, label in kinds
        for name, sizes in figures[kind].items()
    ]


def peer_row(peer: Mapping[str, Any]) -> list[str]:
    if "1" not in peer:
        return [peer_title(peer), *([NONE] * 7)]
    alone, many = peer["1"], peer["32"]
    waits = [number(statistics.median(alone[name])) for name in ("p50_ms", "p99_ms")]
    again = peer["twice"]
    runs = f"{again['afterwards']} / {again['at_once']}" if "at_once" in again else again.get("error", NONE)
    return [peer_title(peer), *rate(alone["cycles_per_second"]), *rate(many["cycles_per_second"]), *waits, runs]


def shares(figures: Figures) -> Table:
    rows = []
    for peer in own_peers(figures):
        for at_once in ("1", "32", "256"):
            speeds, floor = peer[at_once]["cycles_per_second"], figures["floors"][peer["database"]][at_once]
            share = statistics.median(a / b for a, b in zip(speeds, floor, strict=True))
            waits = [number(statistics.median(peer[at_once][name])) for name in ("p50_ms", "p99_ms")]
            medians = [number(statistics.median(each)) for each in (speeds, floor)]
            rows.append([f"{LABELS[peer['database']]}, {at_once} at once", *medians, f"{share:.2f}", *waits])
    head = ["cycles per second", "Interlock", "its statements alone", "share", "decision to tool p50, ms", "p99, ms"]
    return Table("Beside the same statements", head, rows)


def unasked_table(figures: Figures) -> Table:
    rows = []
    for title, found in figures["unasked"].items():
        costs = [NONE] * 3 if "error" in found else [_spread(found[f"{name}_us"]) for name in ("own", "read", "write")]
        rows.append([title, found.get("error") or number(found["bare_us"]), *costs])
    head = ["processor time, µs a call", "bare", "its own approval step adds", "Interlock adds: a read", "a write"]
    notes = [
        "A whole turn of the framework's agent, with what each way adds to the same turn without it: the median, and "
        "the middle half. A write that is allowed is claimed and recorded on the disk (SQLite), so that it runs once.",
        *(
            f"Without any framework, an allowed read on {LABELS[name]}: {number(read['cpu_us'])} µs, "
            f"{number(read['wall_us'])} by the clock."
            for name, read in figures["reads"].items()
        ),
    ]
    return Table("A call that needs no question", head, rows, notes)


def _spread(cost: Sequence[float]) -> str:
    middle, low, high = map(number, cost)
    return f"{middle} ({low} to {high})"


def lookup_table(figures: Figures) -> Table:
    rows = [
        [f"{int(rules):,} rules", number(found["plain_us"]), number(found["condition_us"]), f"{found['load_s']:.3f}"]
        for rules, found in figures["lookup"].items()
    ]
    return Table("Finding the rule", ["µs", "without a condition", "with one", "loading, s"], rows)


def growth_table(figures: Figures) -> Table:
    columns = ("one_us", "many_us", "decide_ms", "page_ms")
    rows = []
    for name, sizes in figures["growth"].items():
        for size, found in sizes.items():
            rows.append([f"{LABELS[name]}, {int(size):,}", *(number(found[column]) for column in columns)])
        costs = [{size: found[column] for size, found in sizes.items()} for column in columns]
        rows.append([f"{LABELS[name]}, slope", *(f"{slope(cost):+.3f}" for cost in costs)])
    head = ["approvals that wait", "cycle, µs", "cycle at 256, µs", "decision to tool, ms", "page of 50, ms"]
    notes = [
        "The slope is that of the logarithm of the cost over the logarithm of the size: 0 is flat, 1 grows with it."
    ]
    return Table("Growth", head, rows, notes)


def parked_table(figures: Figures) -> Table:
    rows = []
    for found in figures["parked"]:
        if "error" in found:
            rows.append([found["title"], NONE, NONE, NONE, found["error"]])
        else:
            listing = found["list_seconds"] / found["listed"] * LISTED * 1000
            many = [f"{found['parked']:,}", f"{found['kib_each']:.2f}", f"{found['listed']:,}"]
            rows.append([found["title"], *many, f"{listing:,.0f}"])
    head = ["calls that wait", "how many more", "memory, KiB each", "all that wait", f"to list {LISTED:,}, ms"]
    notes = [
        "Memory is looked at when caches are full: Interlock's hold 10,000 calls at most. "
        "LangGraph has no list of what waits: all checkpoints are read. DBOS lists all workflows that are pending. "
        "All that wait are listed, and the time is given for 10,000 of them.",
    ]
    return Table("Calls that wait", head, rows, notes)


def http_table(figures: Figures) -> Table:
    taken = figures["http"]
    labels = {
        "cycles": "create and decide, 64 connections, cycles per second",
        "whole": "the same, with the whole approval in each answer",
        "to_tool_ms": "decision over HTTP to the tool in another process, p50, ms",
    }
    rows = [
        [label, *(text for name in ("sqlite", "postgresql") for text in rate(taken[name][what]))]
        for what, label in labels.items()
    ]
    shares = [f"{taken[name]['beside_streams']['cycles_per_second']:.2f}" for name in ("sqlite", "postgresql")]
    rows.append(["share left beside 1,000 idle and 100 stalled streams", shares[0], NONE, shares[1], NONE])
    stream = taken["stream"]
    notes = [
        "One `interlock serve` with its worker; the load and the agent are processes of their own on the same machine, "
        "over loopback. The agent is the library with the server's address. "
        f"{stream['streams']:,} idle event streams took {number(stream['kib_per_stream'])} KiB each.",
        *(["Taken in a run of its own, later than the other tables."] if taken.get("apart") else []),
    ]
    return Table("The server", ["over HTTP", "SQLite", "spread", "PostgreSQL", "spread"], rows, notes)


def ledger_table(figures: Figures) -> Table:
    found, beside = figures["ledger"], figures["neighbour"]
    entries = found["entries"]
    labels = {"one process": "chain and laws, one process", "all processors": "chain and laws, all processors"}
    rows = [["append (seal)", number(found["append_us"] * entries / 1e6), number(found["append_us"])]]
    for what, seconds in found["seconds"].items():
        rows.append([labels.get(what, what), number(seconds), number(seconds / entries * 1e6)])
    notes = [
        f"A write beside another process that writes as fast as it can: p50 {number(beside['p50_ms'])} ms, "
        f"p99 {number(beside['p99_ms'])} ms."
    ]
    return Table(f"A ledger of {entries:,} entries", ["", "s", "µs each"], rows, notes)


def unmeasured_table(figures: Figures) -> list[str]:
    """Every row of a table that lacks its figures: whose it is, what was measured, and the reason."""
    contest = figures["contest"]
    failed = [
        *((peer_title(peer), "cycles", peer) for peer in contest),
        *((peer_title(peer), "resumed twice", peer["twice"]) for peer in contest),
        *((title, "a call that needs no question", found) for title, found in figures["unasked"].items()),
        *((found["title"], "calls that wait", found) for found in figures["parked"]),
    ]
    return [f"{title}, {what}: {found['error']}" for title, what, found in failed if found.get("error")]


def peer_title(peer: Mapping[str, Any]) -> str:
    return f"{peer['title']}, {LABELS[peer['database']]}"


def own_peers(figures: Figures) -> list[Mapping[str, Any]]:
    return [peer for peer in figures["contest"] if peer["name"] == "interlock_gate" and "1" in peer]


def rate(values: Sequence[float]) -> tuple[str, str]:
    """The median and its spread."""
    return number(statistics.median(values)), f"{number(min(values))} to {number(max(values))}"


def slope(costs: Mapping[str, float]) -> float:
    """Of the logarithm of the cost over that of the size."""
    points = [(math.log(float(size)), math.log(cost)) for size, cost in costs.items()]
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def version_table(figures: Figures) -> dict[str, str]:
    found = dict(figures["machine"])
    for peer in figures["contest"]:
        found |= {
            name: text for name, text in peer.get("versions", {}).items() if name not in ("sqlite", "interlock-gate")
        }
    return found
