"""The chat agent, killed anywhere and repeatedly: no effect twice, no recorded turn repeated, nothing stuck.

Samples; `make faults` kills at every point, and 1,000 times at random.
"""

import pytest

from tests.faults.chat_controls import BROKEN_COPIES
from tests.faults.chat_scenarios import SCENARIOS
from tests.faults.chat_storm import CONTROLS, NOTICED
from tests.faults.reports import is_caught, run_suite

DATABASES = pytest.mark.parametrize("database", ["sqlite", "postgresql"])


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("database", "kills"), [("sqlite", 100), ("postgresql", 80)])
def test_a_turn_that_is_killed_anywhere_goes_on_in_another_process(database: str, kills: int) -> None:  # R3, R24, R46
    options = ("--database", database, "--victim", *SCENARIOS, "--kills", str(kills), "--variant", "kill")
    result = run_suite("driver", *options)
    assert result["wrong"] == []
    assert result["kinds"]["kill"] > kills * 0.7
    assert result["succeeded"] * 2 > result["operations"]


@pytest.mark.timeout(600)
@DATABASES
def test_a_process_that_stood_still_neither_writes_nor_acts(database: str) -> None:  # R24, R46
    options = ("--database", database, "--victim", "chat", "chat-child", "chat-stop", "--others", "27")
    result = run_suite("driver", *options, "--variant", "stop", "delay", "raise")
    assert result["wrong"] == []
    assert result["succeeded"] * 2 > result["operations"]


@pytest.mark.timeout(600)
@DATABASES
def test_in_a_storm_of_kills_every_thread_comes_to_its_end(database: str) -> None:  # R3, R6, R24, R46
    result = run_suite("chat_storm", "--database", database, "--kills", "25")
    assert result["wrong"] == []
    assert result["kinds"]["kills"] == 25
    assert result["succeeded"] == result["operations"] > 20
    assert result["effects"] > 20
    assert result["taken_over"] > 25


@pytest.mark.timeout(600)
@DATABASES
def test_threads_that_wait_cost_no_memory_and_outlive_the_server(database: str) -> None:  # R3, R6
    result = run_suite("chat_parked", "--database", database, "--threads", "1000", "--decided", "100")
    assert result["wrong"] == []
    assert result["decided_while_down"] == 100


@pytest.mark.timeout(600)
@pytest.mark.parametrize("copy", BROKEN_COPIES)
def test_a_broken_agent_is_caught(copy: str) -> None:
    """The red controls."""
    assert is_caught("driver", "--database", "sqlite", "--broken", copy, noticed=BROKEN_COPIES[copy].noticed)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("broken", CONTROLS)
def test_a_broken_agent_does_not_weather_a_storm(broken: str) -> None:
    assert is_caught("chat_storm", "--kills", "25", "--broken", broken, noticed=NOTICED[broken], seeds=True)
