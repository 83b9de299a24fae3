"""Clock jumps; `python -m tests.faults.clocks --walks 1000` for longer walks."""

import pytest

from tests.faults.database_controls import NOTICED
from tests.faults.reports import is_caught, run_suite


@pytest.mark.parametrize(("database", "walks"), [("sqlite", "15"), ("postgresql", "6")])
def test_time_counts_to_the_millisecond_wherever_the_clock_goes(database: str, walks: str) -> None:
    result = run_suite("clocks", "--database", database, "--walks", walks)
    assert result["wrong"] == []
    assert result["succeeded"] >= result["operations"] / 2
    seen = result["outcomes"]
    for what in ("wait pending: expired", "approve pending: clock_behind", "start approved: running"):
        assert seen[what] > 0, what


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("control", ["callers-clock", "not-behind"])
def test_another_time_than_that_after_the_locks_would_be_noticed(database: str, control: str) -> None:
    options = ("--database", database, "--walks", "4", "--broken", control)
    assert is_caught("clocks", *options, noticed=NOTICED[control])
