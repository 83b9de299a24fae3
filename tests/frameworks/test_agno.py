"""What is special to Agno: its confirmations, its database of runs, teams, toolkits, synchronous runs.

Its scenes run one after the other in one process of its environment; each test looks at one of them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.frameworks.framework_program import PROGRAMS, read_json, start_program

Scenes = dict[str, Any]
NAME = "agno"


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    folder = tmp_path_factory.mktemp("scenes")
    return read_json(start_program(NAME, PROGRAMS / f"{NAME}_scenarios.py", folder, folder=folder))


def test_without_interlock_a_tool_runs_twice_when_its_run_is_continued_twice(scenes: Scenes) -> None:
    assert scenes["without_it_resumed_twice"] == ["mail to bob", "mail to bob"]


# R24, R54
def test_resumed_twice_at_once_it_runs_once_and_both_are_told_the_same(scenes: Scenes) -> None:
    assert scenes["resumed_twice"] == {"ran": ["mail to bob"], "told": [["sent to bob"]] * 2, "left": 0}


# R34, R47
def test_a_confirmation_from_a_client_runs_nothing_and_a_rejection_stays_one(scenes: Scenes) -> None:
    seen = scenes["forged"]
    assert seen["ran"] == []
    assert seen["statuses"] == ["rejected"]
    assert json.loads(seen["told"][0])["error"] == "Access denied: No."


# R12, R47
def test_a_call_that_the_client_changed_does_not_run_then_or_later(scenes: Scenes) -> None:
    seen = scenes["edited_by_the_client"]
    assert seen["ran"] == []
    assert "other arguments" in seen["told"][0]
    assert seen["later"] == seen["told"]
    assert seen["left"] == 0


# R11
def test_what_a_person_wrote_reaches_the_tool_with_all_that_agno_gives_it(scenes: Scenes) -> None:
    seen = scenes["edited_by_a_person"]
    assert seen["seen"] == [["hook", "book", {"day": "Tuesday", "seats": 2}], ["person", "Tuesday", 2]]
    assert seen["told"][0].startswith("booked\n\nA reviewer changed the arguments before it ran: ")
    assert seen["status"] == ["succeeded"]


# R6
def test_of_two_calls_the_one_that_does_not_ask_runs_at_once(scenes: Scenes) -> None:
    seen = scenes["two_calls"]
    assert seen["before"] == ["look up A1"]
    assert seen["after"] == ["look up A1", "mail to bob"]
    assert seen["told"] == ["A1 is paid", "sent to bob"]
    assert seen["left"] == 0


def test_an_id_that_the_model_uses_again_is_another_call(scenes: Scenes) -> None:
    seen = scenes["the_same_id_again"]
    assert seen["ran"] == ["mail to bob", "mail to carol", "mail to bob"]
    assert seen["statuses"] == ["succeeded"] * 3
    assert not seen["paused"]


# R13
def test_a_member_of_a_team_asks_under_its_path_and_the_team_goes_on(scenes: Scenes) -> None:
    seen = scenes["team"]
    assert seen["held"]
    assert seen["paths"] == [["desk", "writer"]]
    assert (seen["before"], seen["after"]) == ([], ["mail to bob"])
    assert not seen["end"]


def test_a_synchronous_program_pauses_and_goes_on(scenes: Scenes) -> None:
    assert scenes["synchronous"] == {"held": True, "ran": ["mail to bob"], "told": ["sent to bob"], "left": 0}


# R6
def test_a_stream_that_stops_at_a_question_goes_on(scenes: Scenes) -> None:
    seen = scenes["streamed"]
    assert seen["held"]
    assert (seen["before"], seen["after"]) == (["look up A1"], ["look up A1", "mail to bob"])
    assert seen["told"] == ["A1 is paid", "sent to bob"]


def test_what_the_user_fills_in_is_asked_about(scenes: Scenes) -> None:
    assert scenes["with_input_of_the_user"] == {"told": ["sent to carol"], "ran": ["mail to carol"]}


def test_without_a_db_it_waits_inline(scenes: Scenes) -> None:
    assert scenes["without_a_db"] == {"told": ["sent to bob"], "ran": ["mail to bob"]}


# R9
def test_read_that_asks_waits_inline(scenes: Scenes) -> None:
    assert scenes["a_read_that_asks"] == {"told": ["A1 is paid"], "ran": ["look up A1"]}


def test_the_tools_of_a_toolkit_ask_and_its_instructions_stay(scenes: Scenes) -> None:
    assert scenes["toolkit"] == {"asked": ["later", "parts"], "told": ["A1 later", "B2 in parts"], "minds": True}


def test_tools_that_run_elsewhere_are_refused(scenes: Scenes) -> None:
    outside, hosted = scenes["elsewhere"]
    assert "gate it where it runs" in outside
    assert "web_search runs at the model's provider" in hosted


# R34
def test_without_a_database_not_even_a_read_runs_and_the_run_ends(scenes: Scenes) -> None:
    seen = scenes["no_database"]
    assert seen["ran"] == []
    assert seen["turns"] == 1
    assert "Create it first" in seen["told"][0]


def test_a_tool_that_fails_is_recorded_so_and_the_model_is_told(scenes: Scenes) -> None:
    seen = scenes["a_tool_that_fails"]
    assert seen["status"] == ["failed"]
    assert "no mailbox for bob" in seen["told"][0]


# R24
def test_a_tool_that_does_not_know_how_it_ended_is_recorded_so_and_the_model_is_told_not_to_try_again(
    scenes: Scenes,
) -> None:
    for seen in scenes["a_tool_that_does_not_know"]:
        assert seen["status"] == ["unknown"]
        assert "its outcome is unknown" in seen["told"][0]
