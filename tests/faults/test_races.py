"""Many processes, one database file."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).resolve().parents[2]


def contend(folder: Path, contest: str, count: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.faults.contenders", str(folder), contest, str(count)]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["faults"] == []
    return result


@pytest.mark.slow
def test_two_processes_that_start_a_thousand_calls_start_each_once(tmp_path: Path) -> None:  # R46
    one, two = contend(tmp_path, "start", 1000)["reports"]
    assert len(one["won"]) + len(two["won"]) == 1000
    assert set(one["won"]) == set(two["lost"])
    assert set(two["won"]) == set(one["lost"])


@pytest.mark.slow
def test_of_32_processes_that_decide_one_wins_and_all_others_get_its_decision(tmp_path: Path) -> None:  # R24
    reports = contend(tmp_path, "decide", 32)["reports"]
    winners = [report["won"] for report in reports if "won" in report]
    assert len(winners) == 1
    assert {report["standing"]["by"] for report in reports if "standing" in report} == set(winners)
