"""Deliveries with the worker killed at every step: none is lost, and a duplicate has the same id.

All points, on SQLite each on its first and on its second occurrence; `make faults` goes round many times.
"""

import pytest

from tests.faults.deliveries import NOTICED, PLANS
from tests.faults.reports import is_caught, run_suite


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("database", "kills"), [("sqlite", len(PLANS)), ("postgresql", len(PLANS) // 2)])
def test_a_worker_that_is_killed_at_any_step_loses_no_message(database: str, kills: int) -> None:  # R23, R24, R32, R46
    result = run_suite("deliveries", "--database", database, "--kills", str(kills))
    assert result["wrong"] == []
    assert result["faults"] == kills
    assert result["succeeded"] == result["operations"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("broken", "kills"), [("recorded-first", "2"), ("new-ids", "4")])
def test_a_worker_that_is_broken_is_noticed(broken: str, kills: str) -> None:
    """The red control."""
    assert is_caught("deliveries", "--kills", kills, "--broken", broken, "--patience", "60", noticed=NOTICED[broken])
