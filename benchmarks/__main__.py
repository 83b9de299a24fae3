"""`make bench`: one run, one table. `python -m benchmarks --json FILE` keeps the figures as well."""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import cycles, ledger, lookup, machine, neighbour
from benchmarks.floors import Bench, Postgres, Sqlite
from tests.postgres import Server

CONDITION = '    when: args.amount > 1000.0 || args.recipient.endsWith("@b.example")'
SIZES = ((1, 400), (32, 3_000), (256, 8_000))  # at once, cycles in a round


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--entries", type=int, default=1_000_000, help="of the ledger that is verified")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures: dict[str, object] = dict(machine.describe())
    for name, value in figures.items():
        print(f"{name:<12}{value}")
    with Server() as server:
        for bench in (Sqlite(), Postgres(server)):
            title = f"{bench.name}: cycles per second"
            print(f"\n{title:<34}{'Interlock':>12}{'floor':>12}{'share':>8}   spread over {options.rounds} rounds")
            for at_once, count in SIZES:
                name = f"{bench.name.lower()}_cycles_{at_once}"
                figures[name] = report_cycles(bench, at_once, count, options.rounds)
    report_lookup(figures)
    report_reads(figures)
    report_neighbour(figures)
    report_ledger(figures, options.entries)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))


def report_cycles(bench: Bench, at_once: int, count: int, rounds: int) -> dict[str, object]:
    rows = [asyncio.run(measured(bench, at_once, count)) for _ in range(rounds)]
    speed, floor = [row[0] for row in rows], [row[1] for row in rows]
    share = statistics.median(a / b for a, b in zip(speed, floor, strict=True))
    waits = sorted(latency for row in rows for latency in row[2])
    label = "one at a time" if at_once == 1 else f"{at_once} at once"
    median = statistics.median(speed)
    print(
        f"{label:<34}{median:>12,.0f}{statistics.median(floor):>12,.0f}{share:>8.2f}"
        f"   {min(speed):,.0f} to {max(speed):,.0f}"
    )
    p50, p99 = (waits[int(len(waits) * share_of)] * 1000 for share_of in (0.5, 0.99))
    print(f"{'  decision to tool, ms':<34}{'p50':>8}{p50:>8.2f}{'p99':>8}{p99:>8.2f}")
    return {"interlock": speed, "floor": floor, "share": share, "decision_to_tool_ms": {"p50": p50, "p99": p99}}


async def measured(bench: Bench, at_once: int, count: int) -> tuple[float, float, Sequence[float]]:
    """Interlock first, then the statements that it sent, again, without it."""
    with tempfile.TemporaryDirectory() as folder:
        async with cycles.opened(bench, Path(folder)) as parts:
            speed, latencies = await cycles.run_cycles(parts, count, at_once, "t")
    with tempfile.TemporaryDirectory() as folder:
        async with cycles.opened(bench, Path(folder), recorded=True) as parts:
            await cycles.run_cycles(parts, count, at_once, "f")
        floor = count / bench.replay()
    return speed, floor, latencies


def report_lookup(figures: dict[str, object]) -> None:
    print(f"\n{'rule look-up, µs':<34}{'plain':>12}{'condition':>12}{'load, s':>12}")
    for rules in (10, 1_000, 10_000):
        plain, condition = lookup.judging(rules) * 1e6, lookup.judging(rules, CONDITION) * 1e6
        load = lookup.loading(rules)
        figures[f"lookup_{rules}"] = {"plain_us": plain, "condition_us": condition, "load_s": load}
        print(f"{f'{rules:,} rules':<34}{plain:>12.2f}{condition:>12.2f}{load:>12.3f}")


def report_reads(figures: dict[str, object]) -> None:
    async def measure() -> float:
        with tempfile.TemporaryDirectory() as folder:
            async with cycles.opened(Sqlite(), Path(folder)) as parts:
                return await cycles.allowed_reads(parts, 5_000)

    spent = statistics.median(asyncio.run(measure()) for _ in range(5)) * 1e6
    figures["allowed_read_us"] = spent
    print(f"\n{'an allowed read, all in, µs':<34}{spent:>12.1f}")


def report_neighbour(figures: dict[str, object]) -> None:
    spent = sorted(neighbour.measure())
    p50, p99 = (spent[int(len(spent) * share)] * 1000 for share in (0.5, 0.99))
    figures["beside_a_busy_writer_ms"] = {"p50": p50, "p99": p99}
    print(f"\n{'a write beside a busy process, ms':<34}{'p50':>8}{p50:>8.1f}{'p99':>8}{p99:>8.1f}")


def report_ledger(figures: dict[str, object], entries: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        append = ledger.build(path, entries) * 1e6
        spent = ledger.measure(path)
    figures["ledger"] = {"entries": entries, "append_us": append, **{f"{what}_s": s for what, s in spent.items()}}
    print(f"\n{f'a ledger of {entries:,} entries':<34}{'s':>12}{'µs each':>12}")
    print(f"{'append (seal)':<34}{append * entries / 1e6:>12.2f}{append:>12.2f}")
    labels = {"one process": "chain and laws, one process", "all processors": "chain and laws, all processors"}
    for what, seconds in spent.items():
        print(f"{labels.get(what, what):<34}{seconds:>12.2f}{seconds / entries * 1e6:>12.2f}")


if __name__ == "__main__":
    main()
