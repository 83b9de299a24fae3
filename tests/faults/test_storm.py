"""A million random operations, in small; `python -m tests.faults.storm --operations 1000000 --kills 100` for all."""

import pytest

from tests.faults.race_controls import NOTICED
from tests.faults.reports import is_caught, run_suite

# Every answer that an operation can have; what is rarer is only asked of longer storms.
ANSWERS = {
    "propose": {"ok", "call_mismatch"},
    "look": {"ok"},
    "approve": {"ok", "already_decided", "expired", "forbidden", "digest_mismatch"},
    "edit": {"ok", "already_decided"},
    "respond": {"ok", "already_decided"},
    "reject": {"ok", "already_decided"},
    "undo": {"ok", "conflict", "forbidden"},
    "cancel": {"ok", "already_started"},
    "start": {"ok", "already_started", "not_approved", "expired"},
    "renew": {"ok", "lease_lost"},
    "finish": {"ok", "conflict", "lease_lost"},
    "abandon": {"ok"},
    "resolve": {"ok", "conflict", "forbidden"},
}
ENDS = {"cancelled", "expired", "failed", "rejected", "responded", "succeeded", "unknown"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_in_a_storm_nothing_runs_unasked_twice_or_otherwise(database: str) -> None:  # R24, R32, R46
    result = run_suite("storm", "--database", database, "--operations", "20000", "--kills", "4")
    assert result["wrong"] == []
    assert result["operations"] >= 20_000
    assert result["linearizable"] == result["operations"], "every history has an explanation"
    assert result["succeeded"] * 2 >= result["operations"]
    assert result["kinds"]["kills"] == 4
    assert database == "sqlite" or result["kinds"]["cuts"] > 4
    assert result["effects"] > 200
    assert result["bytes"] < 1_500 * result["operations"]
    kinds = {f"{name} {code}" for name, codes in ANSWERS.items() for code in codes}
    assert len(kinds & set(result["counts"])) >= len(kinds) * 0.8, "a few are so rare that a small storm may lack them"
    assert set(result["statuses"]) <= ENDS
    assert {"succeeded", "failed", "rejected"} <= set(result["statuses"])


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("broken", "noticed"), NOTICED.items())
def test_a_broken_copy_does_not_weather_a_storm(broken: str, noticed: str) -> None:
    """The red control."""
    assert is_caught("storm", "--operations", "3000", "--kills", "1", "--broken", broken, noticed=noticed)
