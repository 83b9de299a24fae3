"""SIGKILL before and after every statement and effect; the laws hold after each. And broken copies are caught."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).resolve().parents[2]


def run_driver(folder: Path, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.faults.driver", str(folder), *options]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("share", ["0/2", "1/2"])
def test_a_program_killed_anywhere_runs_nothing_twice_and_goes_on(tmp_path: Path, share: str) -> None:  # R32, R46
    result = run_driver(tmp_path, "--share", share)
    assert result["tried"] > 50
    assert {"before the tool", "after the tool", "before commit", "after commit"} <= set(result["names"])
    assert result["wrong"] == []
    assert result["missed"] <= result["tried"] // 5, "too many lives ended before their fault"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_reviewer_killed_anywhere_loses_no_decision(tmp_path: Path) -> None:  # R23, R32
    result = run_driver(tmp_path, "--victim", "reviewer")
    assert result["tried"] > 20
    assert "before update_approval" in result["names"]
    assert result["wrong"] == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_first_start_killed_anywhere_leaves_a_database_that_opens(tmp_path: Path) -> None:  # R31
    result = run_driver(tmp_path, "--victim", "opener")
    assert result["tried"] > 50
    assert (result["wrong"], result["missed"]) == ([], 0)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("broken", ["no-transaction", "start-after-effect"])
def test_a_broken_copy_is_caught(tmp_path: Path, broken: str) -> None:
    """The red control: the same loop over an Interlock that breaks its promise must fail."""
    result = run_driver(tmp_path, "--broken", broken, "--share", "0/3")
    assert result["tried"] > 20
    assert len(result["wrong"]) > 3
