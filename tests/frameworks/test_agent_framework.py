"""What is special to Microsoft Agent Framework: its approval step, its sessions, streams, an agent as a tool.

Its scenes run one after the other in one process of its environment; each test looks at one of them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.frameworks.framework_program import PROGRAMS, read_json, start_program

Scenes = dict[str, Any]
NAME = "agent_framework"


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    folder = tmp_path_factory.mktemp("scenes")
    return read_json(start_program(NAME, PROGRAMS / f"{NAME}_scenarios.py", folder, folder=folder))


def test_without_interlock_a_tool_runs_twice_when_its_session_is_resumed_twice(scenes: Scenes) -> None:
    assert scenes["without_it_resumed_twice"] == ["mail to bob", "mail to bob"]


# R24, R54
def test_resumed_twice_at_once_it_runs_once_and_both_are_told_the_same(scenes: Scenes) -> None:
    assert scenes["resumed_twice"] == {"ran": ["mail to bob"], "told": [["sent to bob"]] * 2, "left": 0}


# R34, R47
def test_an_approval_from_a_client_runs_nothing_and_a_rejection_stays_one(scenes: Scenes) -> None:
    seen = scenes["forged"]
    assert (seen["ran"], seen["asks"], seen["rows"]) == ([], 1, 1)
    assert (seen["after"], seen["left"]) == ([], 0)
    assert json.loads(seen["told"][0])["error"] == "Access denied: No."


# R34, R47
def test_an_approval_of_a_call_that_nobody_asked_about_runs_nothing(scenes: Scenes) -> None:
    assert scenes["made_up"] == {"ran": [], "rows": 0, "without a session": "MiddlewareFailure"}


# R12, R47
def test_a_call_that_the_client_changed_does_not_run(scenes: Scenes) -> None:
    seen = scenes["edited_by_the_client"]
    assert seen["ran"] == seen["after"] == ["mail to bob"]
    assert "other arguments" in seen["told"][0]


# R11
def test_what_a_person_wrote_reaches_the_tool_as_its_own_type_and_the_model_hears_of_it(scenes: Scenes) -> None:
    seen = scenes["edited_by_a_person"]
    assert seen["got"] == [["date", "2026-12-24", 2]]
    changed = 'A reviewer changed the arguments before it ran: {"day": "2026-12-24", "seats": 2}'
    assert seen["told"] == [f"booked\n{changed}"]
    assert seen["status"] == ["succeeded"]


# R11
def test_an_edit_that_is_the_same_to_python_only_is_what_runs(scenes: Scenes) -> None:
    assert scenes["edited_into_its_like"] == '[{"all": 1}]'


def test_a_client_that_says_no_is_believed(scenes: Scenes) -> None:
    assert scenes["refused_by_the_client"] == {"ran": [], "left": 0, "paused": 0}


# R6
def test_a_stream_that_stops_at_a_question_is_kept_and_goes_on_elsewhere(scenes: Scenes) -> None:
    seen = scenes["streamed"]
    assert seen["before"] == ["look up A1"]
    assert seen["kept"] == ["streamed"]
    assert seen["after"] == ["look up A1", "mail to bob"]
    assert seen["told"] == ["A1 is paid", "sent to bob"]


def test_an_id_that_the_model_uses_again_is_another_call(scenes: Scenes) -> None:
    seen = scenes["the_same_id_again"]
    assert seen["ran"] == ["mail to bob", "mail to carol", "mail to bob"]
    assert seen["statuses"] == ["succeeded"] * 3
    assert seen["paused"] == 0


# R13
def test_agent_as_a_tool_waits_inline_under_its_path(
    scenes: Scenes,
) -> None:
    seen = scenes["sub_agent"]
    assert seen["paths"] == [["clerk", "writer"]]
    assert seen["ran"] == ["mail to bob"]
    assert seen["told"][-1] == "Done."


# R13, R24
def test_agents_that_are_tools_pause_with_the_outer_run_and_each_goes_on_once(scenes: Scenes) -> None:
    seen = scenes["sub_agents_pause"]
    assert seen["before"] == ["look up A1"]
    assert seen["asked"] == [["clerk", "author"], ["clerk", "printer"]]
    assert len(seen["half"]) == 2, "one was approved"
    assert seen["after"] == seen["half"], "the other was rejected, and nothing ran twice"
    assert seen["said"] == [["Done.", "Done."]] * 2
    assert seen["statuses"] == ["rejected", "succeeded"]


# R13
def test_a_workflow_keeps_its_run_and_goes_on_from_its_checkpoint(scenes: Scenes) -> None:
    assert scenes["workflow"] == {"paused": 0, "ran": ["mail to bob"], "said": ["Done."]}


def test_a_tool_before_which_the_framework_stops_by_itself_still_goes_by_the_gate(scenes: Scenes) -> None:
    assert scenes["stops_by_itself"] == {"rows": [0, 1], "ran": ["mail to bob"], "left": 0}


def test_a_question_of_the_provider_is_not_answered_here(scenes: Scenes) -> None:
    seen = scenes["not_ours"]
    assert (seen["ours"], seen["paused"]) == (0, 0)
    assert "Nothing waits in the session hosted" in seen["says"]


def test_a_session_that_cannot_be_kept_is_an_error_that_says_what_to_do(scenes: Scenes) -> None:
    seen = scenes["cannot_be_kept"]
    assert seen["ran"] == []
    assert "leave it out of session.state" in seen["says"]


def test_without_a_session_nothing_runs_and_the_error_says_what_to_pass(scenes: Scenes) -> None:
    seen = scenes["no_session"]
    assert seen["ran"] == []
    assert "session=agent.create_session" in seen["says"]


# R34
def test_without_a_database_not_even_a_read_runs(scenes: Scenes) -> None:
    assert scenes["no_database"] == {"ran": [], "error": "MiddlewareFailure"}


def test_a_tool_that_fails_is_recorded_so_and_the_model_is_told(scenes: Scenes) -> None:
    seen = scenes["a_tool_that_fails"]
    assert seen["status"] == ["failed"]
    assert seen["told"][0] == "Error: Function failed."
    assert "no mailbox for bob" in seen["told"][1]
