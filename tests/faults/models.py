"""More and other random operations than those of `make test`, against the model (tests/models):

    python -m tests.faults.models [--examples N] [--seed S] [--broken CONTROL]

Core, store and services, on both databases. An operation is one example of some fifty steps. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.databases import Database, ServerDatabase, SqliteFile, migrated_template
from tests.faults import race_controls
from tests.models.state_machine import ApprovalMachine
from tests.models.systems_under_test import CoreSystem, ServicesSystem, StoreSystem, SystemUnderTest
from tests.postgres import Server
from tests.support import Clock

CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
MakeSystem = Callable[[], SystemUnderTest]
NOTICED = ("AssertionError: (Operation", "Approved by 1 of 2 people.")  # another answer than that of the model


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broken", choices=["start-unchecked", "old-votes"])
    options = parser.parse_args()
    if options.broken:
        race_controls.CONTROLS[options.broken]()
    began = time.monotonic()
    seen, wrong, done = Counter[str](), list[str](), Counter[str]()
    clock = Clock()
    with asyncio.Runner() as runner, systems_under_test(clock, runner) as makes:
        for name, make in makes.items():
            problem = run_machine(make, clock, options, seen, lambda name=name: done.update([name]))
            wrong += [f"{name}: {problem}"] if problem else []
    operations = done.total()
    print(
        json.dumps(
            {
                "suite": "models",
                "database": "both",
                "operations": operations,
                "succeeded": operations - len(wrong),
                "faults": 0,
                "wrong": wrong,
                "seconds": round(time.monotonic() - began, 1),
                "examples": dict(done),
                "seen": dict(sorted(seen.items())),
            }
        )
    )


@contextmanager
def systems_under_test(clock: Clock, runner: asyncio.Runner) -> Iterator[dict[str, MakeSystem]]:
    with tempfile.TemporaryDirectory() as folder, Server(in_memory=True) as server:
        server.create_database("models", migrated_template(server))
        places: list[Database] = [SqliteFile(Path(folder) / "models.db"), ServerDatabase(server, "models")]
        found: dict[str, MakeSystem] = {"core": lambda: CoreSystem(clock)}
        for place in places:
            clock.drive(place)
            found[f"store on {place.kind}"] = make_system(place, clock, runner, StoreSystem)
            found[f"doors on {place.kind}"] = make_system(place, clock, runner, ServicesSystem)
        yield found


def make_system(database: Database, clock: Clock, runner: asyncio.Runner, kind: type[ServicesSystem]) -> MakeSystem:
    """A workspace of its own for every example; the clock only goes forward, so that none stands behind its ledger."""
    numbers = itertools.count()
    return lambda: kind(database.url, clock, f"{kind.__name__}{next(numbers)}", runner)


def run_machine(
    make: MakeSystem, clock: Clock, options: argparse.Namespace, seen: Counter[str], count: Callable[[], object]
) -> str:
    """What is wrong, with the shortest program that shows it; empty if nothing is."""
    phases = [Phase.generate] if options.broken else [Phase.generate, Phase.shrink]
    how = settings(
        max_examples=options.examples,
        stateful_step_count=50,
        deadline=None,
        database=None,
        phases=phases,
        suppress_health_check=CHECKS,
    )

    def program() -> ApprovalMachine:
        count()
        return ApprovalMachine(make, clock, seen)

    try:
        run_state_machine_as_test(seed(options.seed)(program), settings=how)
    except Exception as error:  # noqa: BLE001  any difference from the model
        return f"{type(error).__name__}: {error}"[:2000]
    return ""


if __name__ == "__main__":
    main()
