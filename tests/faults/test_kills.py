"""SIGKILL, errors, delays and SIGSTOP before and after every statement and effect; the invariants hold after each.

A sample that leaves no name of a point out; `make faults` hits every point, and the recoveries too.
"""

from typing import Any

import pytest

from tests.faults.kill_controls import BROKEN_COPIES
from tests.faults.reports import is_caught, run_suite

DATABASES = pytest.mark.parametrize("database", ["sqlite", "postgresql"])


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("database", "kills"), [("sqlite", 520), ("postgresql", 250)])
def test_programs_killed_anywhere_run_nothing_twice_and_lose_nothing(
    database: str, kills: int
) -> None:  # R23, R31, R32, R46
    result = run_kills(database, kills)
    assert result["kinds"]["kill"] > kills * 0.9
    assert result["hit"] > result["names"] * 0.9, "some points were never hit"


@pytest.mark.smoke
def test_a_sample_of_kills_runs_nothing_twice_and_loses_nothing() -> None:  # R23, R46
    assert run_kills("sqlite", 60)["kinds"]["kill"] > 40


def run_kills(database: str, kills: int) -> dict[str, Any]:
    result = run_suite("driver", "--database", database, "--kills", str(kills), "--variant", "kill")
    assert result["wrong"] == []
    assert result["missed"] <= result["operations"] // 10, "too many lives ended before their fault"
    return result


@pytest.mark.timeout(600)
@DATABASES
def test_errors_delays_and_stops_anywhere_break_no_law(database: str) -> None:  # R32
    result = run_suite("driver", "--database", database, "--others", "90", "--variant", "raise", "delay", "stop")
    assert result["wrong"] == []
    assert result["succeeded"] * 2 > result["operations"]
    assert min(result["kinds"][kind] for kind in ("raise", "delay", "stop")) > 20


@pytest.mark.timeout(600)
@DATABASES
@pytest.mark.parametrize(
    "copy",
    [pytest.param(copy, marks=pytest.mark.smoke if number == 0 else ()) for number, copy in enumerate(BROKEN_COPIES)],
)
def test_a_broken_copy_is_caught(database: str, copy: str) -> None:
    """The red controls: the same program over an Interlock that breaks its promise must find that."""
    assert is_caught("driver", "--database", database, "--broken", copy, noticed=BROKEN_COPIES[copy].noticed)
