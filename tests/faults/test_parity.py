"""Both databases give the same outcomes, errors, rows and ledger; `python -m tests.faults.parity` for longer runs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).resolve().parents[2]


def compare(*options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.faults.parity", *options]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(4))
def test_500_random_scenarios_are_the_same_on_both_databases(seed: int) -> None:  # R31
    result = compare("--scenarios", "500", "--seed", str(seed))
    assert result["different"] == []
    succeeded = sum(
        n for line, n in result["seen"].items() if line.split(" ")[1] in ("Approval", "Waiting", "Execution")
    )
    assert succeeded > 2_000, "a run in which everything was refused proves nothing"


def test_a_difference_would_be_noticed() -> None:
    """The red control: one word differs."""
    result = compare("--scenarios", "5", "--broken")
    assert result["count"] > 0
