"""Both databases give the same outcomes, errors, rows and ledger; `python -m tests.faults.parity` for longer runs."""

import pytest

from tests.faults.parity import NOTICED
from tests.faults.reports import is_noticed, run_suite


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(4))
def test_500_random_scenarios_are_the_same_on_both_databases(seed: int) -> None:  # R31
    result = run_suite("parity", "--scenarios", "500", "--seed", str(seed))
    assert result["different"] == []
    succeeded = sum(
        n for line, n in result["seen"].items() if line.split(" ")[1] in ("Approval", "Waiting", "Execution")
    )
    assert succeeded > 2_000, "a run in which everything was refused proves nothing"


@pytest.mark.smoke
def test_a_sample_of_random_scenarios_is_the_same_on_both_databases() -> None:  # R31
    result = run_suite("parity", "--scenarios", "60", "--seed", "3")
    assert result["different"] == []
    assert sum(result["seen"].values()) > 300, "a run in which nothing happened proves nothing"


@pytest.mark.smoke
def test_a_difference_would_be_noticed() -> None:
    """The red control: one word differs."""
    result = run_suite("parity", "--scenarios", "5", "--broken")
    assert is_noticed(result["different"], NOTICED)
