"""The benchmark programs still fit the stores that they record and fill; the figures themselves are not checked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import cycles, ledger
from benchmarks.floors import Bench, Postgres, Sqlite
from tests.postgres import Server

REPOSITORY = Path(__file__).resolve().parents[2]
CYCLES = 3


@pytest.fixture(params=["sqlite", "postgresql"])
def bench(request: pytest.FixtureRequest) -> Bench:
    if request.param == "sqlite":
        return Sqlite()
    server: Server = request.getfixturevalue("postgres_server")
    return Postgres(server)


async def test_recorded_statements_can_be_replayed(bench: Bench, tmp_path: Path) -> None:
    async with cycles.open_services(bench, tmp_path, recorded=True) as services:
        await cycles.run_cycles(services, CYCLES, 1, "recorded")
    assert bench.replay() > 0


def test_a_written_ledger_passes_every_check(tmp_path: Path) -> None:
    """`measure` itself asserts that entries, rows, counts, triggers and the export are valid."""
    path = tmp_path / "ledger.db"
    assert ledger.build(path, 400) > 0
    assert set(ledger.measure(path)) == {"one process", "all processors", "rows", "export", "verify the export"}


@pytest.mark.nightly
def test_every_figure_of_interlock_is_taken(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", "interlock_gate", "--json", str(figures)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    taken = json.loads(figures.read_text())
    assert set(taken) >= {"reads", "unasked", "parked", "growth", "http", "lookup", "neighbour", "ledger"}
