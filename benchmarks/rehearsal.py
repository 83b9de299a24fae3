"""A draft policy on recorded calls. `python -m benchmarks.rehearsal [CALLS]`: the store's share and core's."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.call import ToolCall, ToolSpec, propose
from interlock.core.policy.analysis import RecordedCall, rehearse
from interlock.policy.conditions import compile_condition
from interlock.policy.file import load_policy
from interlock.policy.rehearsal import run_rehearsal as rehearse_store
from interlock.policy.templates import read_template

IN_FORCE = load_policy(read_template("money"), compile_condition).policy
DRAFT = load_policy(read_template("money").replace("<= 100.0", "<= 250.0"), compile_condition).policy
SPECS = (ToolSpec("fund_transfer", "write", describe="Pay {amount}"), ToolSpec("delete_page", "destructive"))
AT_ONCE = 500
KEEP = 20


@dataclass(frozen=True, slots=True)
class RehearsalFigures:
    calls: int
    turned: int
    filled: float
    whole: float
    judging: float


def measure(calls: int) -> RehearsalFigures:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(calls, f"sqlite:///{Path(folder) / 'bench.db'}"))


async def _measure(calls: int, url: str) -> RehearsalFigures:
    app_services = build_services(url)
    await app_services.store.open()
    try:
        app_services.gate.in_force.set_policy(IN_FORCE)
        start_time = time.perf_counter()
        await _fill(app_services, calls)
        filled = time.perf_counter() - start_time
        start_time = time.perf_counter()
        found = await rehearse_store(app_services.store, "default", (IN_FORCE, DRAFT), 0, KEEP, lambda *_: None)
        whole = time.perf_counter() - start_time
        assert found.report.calls == calls
        return RehearsalFigures(calls, found.report.changed_verdicts, filled, whole, _measure_judging(calls))
    finally:
        await app_services.store.close()


async def _fill(app_services: AppServices, calls: int) -> None:
    made = list(_calls(calls))
    for start in range(0, calls, AT_ONCE):
        await asyncio.gather(*(app_services.gate.check(call, spec) for call, spec in made[start : start + AT_ONCE]))


def _measure_judging(calls: int) -> float:
    """The pure part alone, on calls that are in memory."""
    recorded = [
        RecordedCall(call=call, spec=spec, verdict="ask", rule="", at=number)
        for number, (call, spec) in enumerate(_calls(calls), 1)
    ]
    start_time = time.perf_counter()
    report = rehearse(recorded, IN_FORCE, DRAFT, KEEP)
    assert report.calls == calls
    return time.perf_counter() - start_time


def _calls(count: int) -> Iterator[tuple[ToolCall, ToolSpec]]:
    """Payments small, large and odd, and a tenth of something else."""
    chance = random.Random(1)
    for number in range(count):
        spec = SPECS[number % 10 == 0]
        args = {
            "amount": chance.choice([chance.uniform(1, 2_000), -5, "many"])
            if number % 20 == 1
            else chance.randint(1, 2_000),
            "currency": chance.choice(["EUR", "EUR", "EUR", "USD"]),
            "recipient": chance.choice(["ann@example.com", "eve@elsewhere.example"]),
            "note": "x" * 100,
        }
        yield propose(spec.name, args, "bench", str(number), agent=f"agent{number % 7}", requester="ann"), spec


if __name__ == "__main__":
    found = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
    print(f"{'recorded calls':<34}{found.calls:>12,}   filled in {found.filled:.1f} s, {found.turned:,} would change")
    print(f"{'rehearsal, s':<34}{found.whole:>12.2f}   of which judging by two policies {found.judging:.2f}")
    print(f"{'a call, µs':<34}{found.whole / found.calls * 1e6:>12.1f}")
