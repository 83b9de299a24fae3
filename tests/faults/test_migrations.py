"""Killed migrations; without `--most`, `python -m tests.faults.migrations` does it at every statement."""

import pytest

from tests.faults.migrations import NOTICED
from tests.faults.reports import is_caught, run_suite


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.smoke
def test_a_migration_that_is_killed_is_done_by_the_next_one_as_if_nothing_had_happened(database: str) -> None:  # R31
    result = run_suite("migrations", "--database", database, "--most", "5")
    assert result["wrong"] == []
    assert result["faults"] >= 10
    assert result["succeeded"] == result["operations"]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.smoke
def test_a_migration_without_a_transaction_would_be_noticed(database: str) -> None:
    assert is_caught("migrations", "--database", database, "--most", "5", "--broken", "no-transaction", noticed=NOTICED)
