"""Where the time of a test run went, and whether `make test` stays within its budget of counted work.

    python -m scripts.test_report test-reports/*.json                  prints the tables
    python -m scripts.test_report --write docs/test-times.md …         and keeps them
    python -m scripts.test_report --check tests/budget.toml …          exits 1 when a suite does more than its budget

The files are written by `pytest --workload FILE`. Seconds depend on the machine, so only counts are checked: processes,
servers and databases started, and browser pages opened.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COUNTS = ("processes", "servers", "databases", "pages")
SLOWEST_FILES = 20
BUDGET_WORKERS = 2  # fixtures of a session are made once for each worker, so more workers start more
ADVICE = (
    "tests/budget.toml allows {limit:,}. "
    "Share a fixture, call in process, or move tests to make test-all (tests/levels.py)."
)
INTRODUCTION = """\
# Where the time of the tests goes

`make test` prints these tables at its end; `make test-times` runs it and keeps them here. Seconds are those of the
machine named below and differ on others. The counts do not: `tests/budget.toml` limits them for each suite, and
`make test` fails when a suite does more. Seconds of a suite are the sum over its tests, so two workers spend half of
that by the clock. Fixtures that tests share count for the test that needs them first. Processor time is that of
the test process alone, and what a child process starts itself is not counted.
"""


@dataclass
class Cost:
    tests: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, record: Mapping[str, Any]) -> None:
        self.tests += 1
        self.seconds += record["seconds"]
        self.cpu += record["cpu"]
        self.counts.update({name: record.get(name, 0) for name in COUNTS})


@dataclass(frozen=True)
class Run:
    """One or more recorded runs, added up."""

    wall: float
    suites: dict[str, Cost]
    files: dict[str, Cost]
    workers: int = BUDGET_WORKERS


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.test_report")
    parser.add_argument("records", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    parser.add_argument("--check", type=Path, metavar="BUDGET")
    options = parser.parse_args(arguments)
    run = read_run(options.records)
    text = report(run)
    print(text)
    if options.write:
        options.write.write_text(f"{INTRODUCTION}\n{machine()}\n\n{text}")
    if options.check and run.workers != BUDGET_WORKERS:
        print(f"The budget was not checked: it is for {BUDGET_WORKERS} workers, and there were {run.workers}.")
        return 0
    excess = over_budget(run, tomllib.loads(options.check.read_text())) if options.check else []
    for line in excess:
        print(line, file=sys.stderr)
    return 1 if excess else 0


def read_run(paths: Iterable[Path]) -> Run:
    wall = 0.0
    workers = 0
    suites: dict[str, Cost] = defaultdict(Cost)
    files: dict[str, Cost] = defaultdict(Cost)
    for path in paths:
        document = json.loads(path.read_text())
        wall += document["wall"]
        workers = max(workers, document["workers"])
        for record in document["tests"]:
            suites[record["suite"]].add(record)
            files[record["test"].partition("::")[0]].add(record)
    return Run(wall, dict(suites), dict(files), workers)


def report(run: Run) -> str:
    total = sum(cost.seconds for cost in run.suites.values()) or 1.0
    lines = [f"Tests ran for {run.wall:,.0f} s by the clock.", ""]
    lines += ["| suite | tests | seconds | share | processor s | processes | servers | databases | pages |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for name, cost in by_seconds(run.suites):
        counts = " | ".join(f"{cost.counts[each]:,}" for each in COUNTS)
        share = cost.seconds / total
        lines += [f"| {name} | {cost.tests:,} | {cost.seconds:,.0f} | {share:.0%} | {cost.cpu:,.0f} | {counts} |"]
    lines += ["", "| slowest files | tests | seconds | processor s | processes |", "|---|---:|---:|---:|---:|"]
    for name, cost in by_seconds(run.files)[:SLOWEST_FILES]:
        started = cost.counts["processes"]
        lines += [f"| `{name}` | {cost.tests:,} | {cost.seconds:,.1f} | {cost.cpu:,.1f} | {started:,} |"]
    return "\n".join(lines) + "\n"


def by_seconds(costs: Mapping[str, Cost]) -> list[tuple[str, Cost]]:
    return sorted(costs.items(), key=lambda item: item[1].seconds, reverse=True)


def over_budget(run: Run, budget: Mapping[str, Mapping[str, int]]) -> list[str]:
    """A line for each count that exceeds its limit. A suite or count without a limit may do nothing of the kind."""
    lines = []
    for suite, cost in sorted(run.suites.items()):
        for count in COUNTS:
            limit = budget.get(suite, {}).get(count, 0)
            if cost.counts[count] > limit:
                lines.append(f"Over budget: {suite} used {cost.counts[count]:,} {count}; {ADVICE.format(limit=limit)}")
    return lines


def machine() -> str:
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()} {platform.machine()}."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
