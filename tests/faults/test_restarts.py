"""`pg_ctl restart -m immediate` under load; `python -m tests.faults.restarts --restarts 100` for longer runs."""

import pytest

from tests.faults.database_controls import NOTICED
from tests.faults.reports import is_caught, run_suite


@pytest.mark.timeout(600)
def test_no_acknowledged_decision_is_lost_over_20_immediate_restarts() -> None:  # R23
    result = run_suite("restarts", "--restarts", "20")
    assert result["wrong"] == []
    assert result["faults"] == 20
    assert result["succeeded"] > 20 * 2 * 20


@pytest.mark.timeout(600)
def test_a_store_that_does_not_wait_for_the_disk_would_lose_some() -> None:
    """The red control."""
    assert is_caught("restarts", "--restarts", "3", "--broken", "no-fsync", noticed=NOTICED["no-fsync"])
