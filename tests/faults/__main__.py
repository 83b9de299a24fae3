"""`make faults`: every fault suite at full size, each with its red controls in the same run.

    python -m tests.faults [--only NAME …] [--scale 0.01] [--jobs 2] [--write]

A suite passes if nothing was wrong, if at least half of its operations succeeded, and if each red control (the same
suite over a copy that is broken on purpose) was caught. `--write` keeps the result in docs/faults-report.md, beside
that of suites which were not run now.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.faults import (
    chat_controls,
    chat_parked,
    chat_scenarios,
    chat_storm,
    database_controls,
    deliveries,
    http_kills,
    http_races,
    http_restart,
    kill_controls,
    migrations,
    models,
    parity,
    race_controls,
    upgrades,
)
from tests.faults.reports import TRIES, is_noticed
from tests.postgres import find_binaries

REPOSITORY = Path(__file__).resolve().parents[2]
REPORT = REPOSITORY / "docs/faults-report.md"

Options = tuple[str | int, ...]  # numbers are sizes, and grow and shrink with --scale


@dataclass(frozen=True)
class RedControl:
    """The options for a broken copy, and parts of what is reported of it, of which one has to be there."""

    options: Options
    noticed: str | Sequence[str]


@dataclass(frozen=True)
class Suite:
    """A program of this folder at full size, and its red controls by what is broken."""

    name: str
    program: str
    options: Options
    controls: dict[str, RedControl] = field(default_factory=dict)

    def is_called(self, name: str) -> bool:
        """By its own name, or by how it begins: `http` are all suites over HTTP."""
        return self.name == name or self.name.startswith(f"{name}-")


def make_control(name: str, *options: str) -> RedControl:
    """One of the database suites."""
    return RedControl((*options, "--broken", name), database_controls.NOTICED[name])


POSTGRES = ("--database", "postgresql")
SUITES = [
    *(
        Suite(
            f"kills-{database}",
            "driver",
            ("--database", database, "--kills", kills, "--others", 600),
            {
                copy.description: RedControl(("--database", database, "--broken", name), copy.noticed)
                for name, copy in kill_controls.BROKEN_COPIES.items()
            },
        )
        for database, kills in (("sqlite", 6_000), ("postgresql", 4_000))
    ),
    Suite(
        "parity",
        "parity",
        ("--scenarios", 10_000, "--seed", "7"),
        {"one word differs": RedControl(("--scenarios", "20", "--broken"), parity.NOTICED)},
    ),
    Suite(
        "restarts",
        "restarts",
        ("--restarts", 100),
        {"does not wait for the disk": make_control("no-fsync", "--restarts", "5")},
    ),
    Suite(
        "cuts-server",
        "cuts",
        ("--by", "server", "--cuts", 300),
        {"a lost answer is a yes": make_control("taken-for-done", "--by", "server", "--cuts", "24")},
    ),
    Suite("cuts-wire", "cuts", ("--cuts", 300), {"a lost answer is a no": make_control("done-again", "--cuts", "24")}),
    Suite(
        "cuts-long",
        "cuts",
        ("--cuts", 100, "--away", "0.3"),
        {"a lost answer is a yes": make_control("taken-for-done", "--cuts", "24", "--away", "0.3")},
    ),
    Suite("disk-sqlite", "disks", ("--times", 30), {"fails open": make_control("fail-open", "--times", "4")}),
    Suite(
        "disk-postgresql",
        "disks",
        (*POSTGRES, "--times", 30),
        {"a refusal is not heard": make_control("unheard", *POSTGRES, "--times", "4")},
    ),
    Suite("read-only", "read_only", ("--times", 10), {"fails open": make_control("fail-open", "--times", "2")}),
    Suite(
        "fail-over",
        "read_only",
        ("--how", "failover", "--times", 5),
        {"fails open": make_control("fail-open", "--how", "failover", "--times", "1")},
    ),
    *(
        Suite(
            f"clocks-{database}",
            "clocks",
            ("--database", database, "--walks", walks),
            {
                wrong: make_control(name, "--database", database, "--walks", "4")
                for wrong, name in (("the caller's clock", "callers-clock"), ("a clock that is behind", "not-behind"))
            },
        )
        for database, walks in (("sqlite", 100), ("postgresql", 30))
    ),
    *(
        Suite(
            f"migrations-{database}",
            "migrations",
            ("--database", database, "--most", 1_000),
            {
                "no transaction": RedControl(
                    ("--database", database, "--most", "5", "--broken", "no-transaction"), migrations.NOTICED
                )
            },
        )
        for database in ("sqlite", "postgresql")
    ),
    *(
        Suite(
            f"upgrades-{database}",
            "upgrades",
            ("--database", database, "--upgrades", 3),
            {
                "a column is taken away": RedControl(
                    ("--database", database, "--upgrades", "1", "--broken", "taken-away"), upgrades.NOTICED
                )
            },
        )
        for database in ("sqlite", "postgresql")
    ),
    *(
        Suite(
            f"storm-{database}",
            "storm",
            ("--database", database, "--operations", 1_000_000, "--kills", 100),
            {
                name: RedControl(
                    ("--database", database, "--operations", "5000", "--kills", "1", "--broken", name), noticed
                )
                for name, noticed in race_controls.NOTICED.items()
                if (database, name) != ("postgresql", "no-version")  # it breaks SQLite's store
            },
        )
        for database in ("sqlite", "postgresql")
    ),
    *(
        Suite(
            f"races-{database}",
            "races",
            ("--database", database, "--rounds", 50, "--crowd", "1000"),
            {
                name: RedControl(
                    ("--database", database, "--rounds", "20", "--broken", name), race_controls.NOTICED[name]
                )
                for name in ("early-answer", "old-votes")
            },
        )
        for database in ("sqlite", "postgresql")
    ),
    *(
        Suite(
            f"http-races-{database}",
            "http_races",
            ("--database", database, "--clients", "1000", "--duplicates", 10_000, "--servers", servers),
            {
                "early-answer": RedControl(
                    ("--database", database, "--clients", "100", "--broken", "early-answer"), http_races.NOTICED
                )
            },
        )
        for database, servers in (("sqlite", "1"), ("postgresql", "2"))
    ),
    *(
        Suite(
            f"http-kills-{database}",
            "http_kills",
            ("--database", database, "--agents", 1_000, "--kills", 20),
            {
                name: RedControl(("--database", database, "--agents", "50", "--kills", "1", "--broken", name), noticed)
                for name, noticed in http_kills.NOTICED.items()
            },
        )
        for database in ("sqlite", "postgresql")
    ),
    *(
        Suite(
            f"http-restart-{database}",
            "http_restart",
            ("--database", database, "--pending", 1_000_000, "--times", "3"),
            {
                "counts-all": RedControl(
                    ("--database", database, "--pending", "20000", "--times", "1", "--broken", "counts-all"),
                    http_restart.NOTICED,
                )
            },
        )
        for database in ("sqlite", "postgresql")
    ),
    *(
        Suite(
            f"http-histories-{database}",
            "http_histories",
            ("--database", database, "--operations", 100_000, "--kills", 20),
            {
                name: RedControl(
                    ("--database", database, "--operations", "2000", "--kills", "0", "--broken", name),
                    race_controls.NOTICED[name],
                )
                for name in ("early-answer", "first-arguments")
            },
        )
        for database in ("sqlite", "postgresql")
    ),
    *(
        Suite(
            f"chat-kills-{database}",
            "driver",
            ("--database", database, "--victim", *chat_scenarios.SCENARIOS, "--kills", 2_000, "--others", 300),
            {
                copy.description: RedControl(("--database", database, "--broken", name), copy.noticed)
                for name, copy in chat_controls.BROKEN_COPIES.items()
            },
        )
        for database in ("sqlite", "postgresql")
    ),
    *(
        Suite(
            f"chat-storm-{database}",
            "chat_storm",
            ("--database", database, "--kills", 1_000),
            {
                name: RedControl(("--database", database, "--kills", "25", "--broken", name), noticed)
                for name, noticed in chat_storm.NOTICED.items()
            },
        )
        for database in ("sqlite", "postgresql")
    ),
    *(
        Suite(
            f"chat-parked-{database}",
            "chat_parked",
            ("--database", database, "--threads", 10_000, "--decided", 1_000),
            {
                "holds-threads": RedControl(
                    ("--database", database, "--threads", "1000", "--broken", "holds-threads"), chat_parked.NOTICED
                )
            },
        )
        for database in ("sqlite", "postgresql")
    ),
    *(
        Suite(
            f"deliveries-{database}",
            "deliveries",
            ("--database", database, "--kills", 80),
            {
                name: RedControl(
                    ("--database", database, "--kills", kills, "--patience", patience, "--broken", name),
                    deliveries.NOTICED[name],
                )
                for name, kills, patience in (
                    ("recorded-first", "2", "60"),
                    ("new-ids", "4", "60"),
                    ("unclaimed", "1", "20"),
                )
            },
        )
        for database in ("sqlite", "postgresql")
    ),
    Suite(
        "models",
        "models",
        ("--examples", 30, "--seed", "7"),
        {"old-votes": RedControl(("--examples", "50", "--broken", "old-votes"), models.NOTICED)},
    ),
]


@dataclass(frozen=True)
class Result:
    suite: Suite
    report: dict[str, Any]
    caught: dict[str, bool]
    seconds: float

    @property
    def problems(self) -> list[str]:
        said = self.report
        found = [f"wrong: {json.dumps(each)}" for each in said["wrong"][:5]]
        if said["succeeded"] * 2 < said["operations"] or not said["operations"]:
            found.append(f"only {said['succeeded']} of {said['operations']} operations succeeded")
        return found + [f"not caught: {control}" for control, caught in self.caught.items() if not caught]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=2, help="suites at once: most of them wait a good deal")
    parser.add_argument("--write", action="store_true", help=f"keep the result in {REPORT.relative_to(REPOSITORY)}")
    options = parser.parse_args()
    chosen = {name: [suite for suite in SUITES if suite.is_called(name)] for name in options.only}
    if strangers := [name for name, suites in chosen.items() if not suites]:
        parser.error(f"no such suite: {', '.join(sorted(strangers))}; there are {', '.join(s.name for s in SUITES)}")
    wanted = [suite for suite in SUITES if not options.only or any(suite in suites for suites in chosen.values())]
    results = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for done in as_completed([pool.submit(run, suite, options.scale) for suite in wanted]):
            results.append(done.result())
            if options.write:  # each at once: a run of hours that is interrupted keeps what it has found
                write_report({results[-1].suite.name: report_row(results[-1], options.scale)})
    print("\n".join(["", *HEAD, *(report_row(result, options.scale) for result in results)]))
    return 1 if any(result.problems for result in results) else 0


def run(suite: Suite, scale: float) -> Result:
    began = time.monotonic()
    report = run_program(suite.program, scale_options(suite.options, scale))
    caught = {name: is_caught(suite.program, control) for name, control in suite.controls.items()}
    result = Result(suite, report, caught, time.monotonic() - began)
    figures = f"{report['operations']:,} operations, {report['succeeded']:,} succeeded, {report['faults']:,} faults"
    red = f"{sum(caught.values())} of {len(caught)} red controls caught"
    print(f"{suite.name:<24}{result.seconds:8.1f} s  {figures}, {len(report['wrong'])} wrong, {red}", flush=True)
    for problem in result.problems:
        print(f"  {problem}", flush=True)
    return result


def is_caught(program: str, control: RedControl) -> bool:
    """A control that falls over before it has done anything has not been caught."""
    tries = (run_program(program, scale_options(control.options, 1)) for _ in range(TRIES))
    return any(is_noticed(report["wrong"], control.noticed) and report["operations"] > 0 for report in tries)


def scale_options(options: Options, scale: float) -> list[str]:
    return [each if isinstance(each, str) else str(max(1, round(each * scale))) for each in options]


def run_program(program: str, options: Sequence[str]) -> dict[str, Any]:
    """The one line that it prints; one that does not come to its end is wrong by that."""
    command = [sys.executable, "-m", f"tests.faults.{program}", *options]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        report: dict[str, Any] = json.loads(done.stdout)
        return report
    ended = f"{' '.join(command[1:])} ended with {done.returncode}: {done.stderr[-500:]}"
    print(f"  {ended}", file=sys.stderr, flush=True)
    return {"database": "none", "operations": 0, "succeeded": 0, "faults": 0, "wrong": [ended]}


HEAD = (
    "| suite | database | when | tree | size | seconds | operations | succeeded | faults | wrong | red controls |",
    "|---|---|---|---|---:|---:|---:|---:|---:|---:|---|",
)


def report_row(result: Result, scale: float) -> str:
    said = result.report
    counts = " | ".join(f"{said[name]:,}" for name in ("operations", "succeeded", "faults"))
    red = "; ".join(f"{name}: {'yes' if caught else 'NO'}" for name, caught in result.caught.items()) or "none"
    when = f"{time.strftime('%Y-%m-%d', time.gmtime())} | {tree_name()} | {scale:g} | {result.seconds:,.0f}"
    return f"| {result.suite.name} | {said['database']} | {when} | {counts} | {len(said['wrong'])} | {red} |"


@cache
def tree_name() -> str:
    """The commit that was tested, or that and `-dirty`: suites may be run on different days."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.strip()


def write_report(fresh: dict[str, str]) -> None:
    rows = read_report_rows() | fresh
    table = [*HEAD, *(rows[suite.name] for suite in SUITES if suite.name in rows)]
    missing = ", ".join(suite.name for suite in SUITES if suite.name not in rows)
    note = ["", f"Not run at full size so far: {missing}."] if missing else []
    REPORT.write_text("\n".join([*report_heading(), "", *table, *note, ""]))


def read_report_rows() -> dict[str, str]:
    """The rows of suites that were run before and not now."""
    lines = REPORT.read_text().splitlines() if REPORT.exists() else []
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines if line.startswith("| ")}


def report_heading() -> list[str]:
    found = subprocess.run([find_binaries() / "postgres", "--version"], capture_output=True, text=True, check=True)
    system = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()} {platform.release()}"
    versions = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {found.stdout.strip()}"
    return [
        "# Fault injection: the last full runs",
        "",
        "Written by `make faults`: the last run of each suite, on the tree that its row names. What they do is in",
        "[faults](faults.md).",
        "",
        f"{system}; {versions}; Interlock {version('interlock-gate')}.",
        "",
        "A red control is the same suite over a copy that is broken on purpose, in the same run: it has to be caught.",
    ]


if __name__ == "__main__":
    sys.exit(main())
