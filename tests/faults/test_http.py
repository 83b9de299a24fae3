"""The server under races, kills and restarts, in small; `make faults` runs all of it. Red controls included."""

import pytest

from tests.faults import http_kills, http_races, http_restart
from tests.faults.race_controls import NOTICED
from tests.faults.reports import is_caught, run_suite

BOTH = pytest.mark.parametrize("database", ["sqlite", "postgresql"])


@BOTH
@pytest.mark.smoke
def test_of_1000_clients_one_decides_and_all_others_get_its_decision(database: str) -> None:  # R21, R24
    result = run_suite("http_races", "--database", database, "--duplicates", "2000")
    assert result["wrong"] == []
    assert result["succeeded"] == result["operations"] == 3_000
    assert (result["crowd"]["200 ok"], result["crowd"]["409 already_decided"]) == (1, 999)


def test_two_servers_on_one_database_have_one_winner() -> None:  # R24
    options = ("--database", "postgresql", "--servers", "2", "--clients", "200", "--duplicates", "500")
    result = run_suite("http_races", *options)
    assert result["wrong"] == []
    assert (result["servers"], result["crowd"]["200 ok"]) == (2, 1)


@pytest.mark.smoke
def test_a_server_that_answers_before_it_has_decided_has_several_winners() -> None:
    """The red control."""
    assert is_caught(
        "http_races", "--clients", "100", "--duplicates", "50", "--broken", "early-answer", noticed=http_races.NOTICED
    )


@pytest.mark.timeout(600)
@BOTH
def test_a_killed_server_loses_nothing_and_all_agents_go_on_by_themselves(database: str) -> None:  # R24, R46
    result = run_suite("http_kills", "--database", database, "--agents", "100", "--kills", "3")
    assert result["wrong"] == []
    assert result["faults"] == 3
    assert min(result["waiting"]) > 10, "agents waited when it was killed"
    assert result["calls"] > 100


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("broken", "noticed"), http_kills.NOTICED.items())
def test_a_server_that_says_too_much_is_noticed(broken: str, noticed: str) -> None:
    """The red control."""
    assert is_caught("http_kills", "--agents", "50", "--kills", "1", "--broken", broken, noticed=noticed)


@BOTH
def test_a_start_over_20000_pending_reads_no_more_than_over_one(database: str) -> None:  # R46
    """How long it takes over a million is measured by `make faults`; here only what does not depend on the machine."""
    result = run_suite("http_restart", "--database", database, "--pending", "20000", "--times", "1")
    assert result["wrong"] == []
    assert result["succeeded"] == 1


@BOTH
def test_a_start_that_looks_at_every_approval_is_noticed(database: str) -> None:
    """The red control."""
    options = ("--database", database, "--pending", "20000", "--times", "1")
    assert is_caught("http_restart", *options, "--broken", "counts-all", noticed=http_restart.NOTICED)


@pytest.mark.timeout(600)
@BOTH
def test_histories_over_http_have_an_explanation(database: str) -> None:  # R24, R46
    result = run_suite("http_histories", "--database", database, "--operations", "3000", "--kills", "2")
    assert result["wrong"] == []
    assert result["linearizable"] == result["operations"] >= 3_000
    assert result["succeeded"] * 2 >= result["operations"]
    assert result["effects"] > 50


@pytest.mark.timeout(600)
@pytest.mark.parametrize("broken", ["early-answer", "start-unchecked", "first-arguments"])
def test_histories_of_a_broken_server_have_none(broken: str) -> None:
    """The red control."""
    assert is_caught(
        "http_histories", "--operations", "2000", "--kills", "0", "--broken", broken, noticed=NOTICED[broken]
    )
