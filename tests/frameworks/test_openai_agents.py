"""What is special to the OpenAI Agents SDK: hand-offs, agents as tools, its state, streams, sessions, MCP servers.

Its scenes run one after the other in one process of its environment; each test looks at one of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.frameworks.framework_program import (
    PROGRAMS,
    ROOT,
    EffectServer,
    Framework,
    ProgramResult,
    read_json,
    read_result,
    start_program,
    wait_finished,
)
from tests.journeys.shell import Shell

Scenes = dict[str, dict[str, Any]]
ENVIRONMENT = "openai_agents"
MAILED = {"to": "bob@example.com", "text": "Hello"}
UNKNOWN = "its outcome is unknown"
EDITED = "A reviewer changed the arguments before it ran"


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    folder = tmp_path_factory.mktemp("scenes")
    return read_json(start_program(ENVIRONMENT, PROGRAMS / "openai_agents_scenarios.py", folder, folder=folder))


# R13
def test_an_agent_that_is_handed_off_to_has_a_gate_of_its_own(scenes: Scenes) -> None:
    seen = scenes["handed_off"]
    path = ["support", "billing"]
    assert sorted(seen["waiting"]) == [["look_up", path], ["refund", path]]
    assert seen["held"] == 2
    assert seen["before"] == []
    assert sorted(seen["after"]) == ["look_up A1", "refund A1"]
    assert seen["agent"] == "billing"


# R13
def test_a_handoff_that_names_its_agent_when_it_happens_is_gated_when_it_happens(scenes: Scenes) -> None:
    assert scenes["handoff_by_hand"] == {"held": 1, "paths": [["support", "billing"]], "ran": []}


# R13
def test_the_question_of_an_agent_that_is_a_tool_comes_out_and_its_answer_goes_back_in(scenes: Scenes) -> None:
    seen = scenes["as_tool"]
    assert seen["waiting"] == [["refund", ["support", "clerk"]]]
    assert seen["held"] == ["refund"]
    assert seen["before"] == []
    assert seen["after"] == ["refund A1"]
    assert seen["said"] == "refunded A1"


# R13
def test_of_an_agent_that_two_others_have_as_a_tool_it_counts_who_called_it(scenes: Scenes) -> None:
    assert scenes["shared"] == {"held": 1, "paths": [["support", "b", "clerk"]], "ran": ["look_up A1"]}


# R11, R13
def test_to_call_an_agent_can_ask_too_and_the_edit_is_what_it_is_told(scenes: Scenes) -> None:
    seen = scenes["agent_that_asks"]
    assert seen["before"] == []
    assert seen["told"] == "Look closely."
    assert seen["after"] == ["look_up A1"]


# R6
def test_of_two_that_wait_the_one_that_is_decided_goes_on(scenes: Scenes) -> None:
    seen = scenes["one_of_two"]
    assert seen["nothing"] is None, "there was nothing new"
    assert seen["half"] == ["refund A1"]
    assert seen["held"] == ["B2"]
    assert seen["after"] == ["refund A1"]
    assert seen["told"][0] == "refunded A1"
    assert "Not this one." in seen["told"][1]


# R34
def test_an_approval_that_only_the_sdk_knows_of_runs_nothing(scenes: Scenes) -> None:
    seen = scenes["forged"]
    assert json.loads(seen["told"])["status"] == "pending"
    assert seen["before"] == []
    assert seen["after"] == ["refund A1"], "it runs once a person has decided"
    assert seen["rows"] == ["succeeded"]


# R35
def test_what_a_person_refused_the_sdk_cannot_approve(scenes: Scenes) -> None:
    seen = scenes["rejected"]
    assert json.loads(seen["told"])["error"] == "Access denied: Too much."
    assert seen["ran"] == []


# R11
def test_after_an_edit_the_model_is_told_what_ran_also_when_the_state_is_run_again(scenes: Scenes) -> None:
    seen = scenes["edited"]
    assert seen["ran"] == ["refund Z9"]
    assert seen["told"] == [f'refunded Z9\n\n{EDITED}: {{"order": "Z9"}}', f"refunded Z9\n\n{EDITED}."]


# R54
def test_a_stream_ends_where_it_waits_and_goes_on_as_a_stream(scenes: Scenes) -> None:
    seen = scenes["streamed"]
    assert seen["held"] == 1
    assert seen["ran"] == ["refund A1"]
    assert seen["said"] == "refunded A1"
    assert seen["left"] == []
    assert "run_item_stream_event" in seen["kinds"]


# R6, R13
def test_a_stream_goes_on_part_by_part_also_inside_of_another_agent(scenes: Scenes) -> None:
    seen = scenes["stream_in_parts"]
    assert seen["held"] == [["A1", "B2"], ["A1", "B2"], ["B2"], []]
    assert seen["ran"] == [[], ["refund A1"], ["refund A1", "refund B2"]]
    assert seen["said"] == "refunded A1 | refunded B2"


# R54
def test_the_history_of_a_session_is_whole_after_a_pause_and_goes_on(scenes: Scenes) -> None:
    seen = scenes["session"]
    assert seen["between"] == ["user", "function_call"]
    assert seen["after"] == ["user", "function_call", "function_call_output", "message"]
    assert seen["held"] == [1, 1]
    assert seen["ran"] == ["refund A1", "refund B2"]


# R54
def test_conversations_with_one_agent_at_the_same_time_do_not_mix(scenes: Scenes) -> None:
    assert scenes["at_once"] == {"asked": [1] * 20, "over": 20, "ran": 20}


# R54
def test_an_id_that_a_model_uses_again_is_another_call(scenes: Scenes) -> None:
    seen = scenes["id_used_again"]
    assert seen["ran"] == ["refund A1", "refund A1"]
    assert seen["rows"] == ["succeeded", "succeeded"]


# R5, R54
def test_a_read_that_is_free_frees_no_other_tool_with_its_id_and_its_arguments(scenes: Scenes) -> None:
    seen = scenes["ids_that_meet"]
    assert seen["ran"] == []
    assert seen["said"].startswith("stopped | ")
    assert "Nobody wipes." in seen["said"]


# R13, R54
def test_what_is_approved_for_one_agent_is_not_another_one_s_though_ids_and_arguments_are_the_same(
    scenes: Scenes,
) -> None:
    seen = scenes["two_desks"]
    assert seen["held"] == 2
    assert seen["desks"] == ["a", "b"]
    assert seen["ran"] == ["refund A1"]
    assert "refunded A1" in seen["said"]
    assert "Not by b." in seen["said"]


# R54
def test_what_the_sdk_does_about_an_error_stays_and_the_record_says_failed(scenes: Scenes) -> None:
    seen = scenes["failing"]
    assert seen["default"] == "An error occurred while running the tool. Please try again."
    assert seen["own"] == "own: no A1"
    assert seen["raised"] == "Error running tool refund: no A1"
    assert json.loads(seen["again"])["status"] == "failed", "the same call is not run again"
    assert [seen[f"{way} row"] for way in ("default", "own", "raised")] == [["failed"]] * 3
    assert len(seen["ran"]) == 3


# R46
@pytest.mark.parametrize(("scene", "word"), [("too_slow", "again"), ("cancelled", "again"), ("stream_left", "said")])
def test_what_was_stopped_inside_the_tool_is_never_run_again(scenes: Scenes, scene: str, word: str) -> None:
    assert UNKNOWN in scenes[scene][word]
    assert scenes[scene]["ran"] == ["refund A1"]


# R46
def test_after_a_timeout_the_model_is_told_by_the_sdk(scenes: Scenes) -> None:
    assert scenes["too_slow"]["told"] == "Tool 'refund' timed out after 3600 seconds."


# R54
def test_tools_of_an_mcp_server_ask_and_a_clone_has_no_way_around(scenes: Scenes) -> None:
    seen = scenes["mcp"]
    assert seen["before"] == ["read_file a"]
    assert seen["after"] == ["read_file a", "delete_file c"]
    assert EDITED in seen["said"][1]
    assert seen["clone"] == []


# R46
def test_a_server_that_does_not_answer_has_done_nobody_knows_what(scenes: Scenes) -> None:
    seen = scenes["mcp_errors"]
    assert seen["ran"] == ["delete_file lost", "delete_file refused"]
    assert seen["rows"] == ["unknown", "failed"]
    first, again = seen["told"]
    assert UNKNOWN in first[0]
    assert UNKNOWN in again[0]
    assert first[1] == "An error occurred while running the tool. Please try again.", "as the SDK says it"
    assert "no such file" in again[1]


# R34
@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("no name", "pass run_id"),
        ("no conversation", "support.conversation(run_id)"),
        ("hosted", "ungated=['web_search']"),
        ("sent twice", "max_retry_attempts=0"),
        ("two gates", "Make an agent for each gate"),
    ],
)
def test_what_cannot_be_gated_is_refused_and_says_what_to_do(scenes: Scenes, case: str, words: str) -> None:
    assert words in scenes["refusals"][case]
    assert scenes["refusals"]["ran"] == []


# R34
def test_where_nobody_can_be_asked_nothing_runs(scenes: Scenes) -> None:
    assert "Error running tool" in scenes["store_gone"]["said"]
    assert scenes["store_gone"]["ran"] == []


# R12
def test_arguments_of_the_model_that_do_not_fit_go_back_to_it_and_ask_nobody(scenes: Scenes) -> None:
    seen = scenes["bad_arguments"]
    assert [json.loads(told)["status"] for told in seen["told"]] == ["invalid"] * 5
    assert "/order: must be a text" in seen["told"][0]
    assert "not a JSON object" in seen["told"][1]
    assert (seen["ran"], seen["rows"]) == ([], [])


# R9
def test_a_tool_without_arguments_one_added_later_and_one_that_the_sdk_would_ask_about_all_ask(scenes: Scenes) -> None:
    seen = scenes["small_things"]
    assert seen["held"] == 3
    assert seen["asked"] == ["ping", "look_up", "custom"]
    assert seen["before"] == []
    assert sorted(seen["after"]) == ['custom {"x": 2}', "look_up A1", "ping"]
    assert EDITED in seen["told"][2][1]["text"]


# R54
def test_red_control_the_sdk_alone_runs_a_tool_as_often_as_its_state_is_resumed(scenes: Scenes) -> None:
    assert scenes["own_step"]["ran"] == ["refund A1", "refund A1"]


@pytest.fixture
def apart(shell: Shell, effects: EffectServer) -> Callable[..., Any]:
    job = {"url": shell.url, "effects": effects.url, "run": "run-1", "story": "mail", "folder": str(shell.folder)}

    def start(name: str, **more: Any) -> Any:
        words = (PROGRAMS / "openai_agents_processes.py", name, json.dumps({**job, **more}))
        return start_program(ENVIRONMENT, *words, folder=shell.folder)

    return start


# R24, R46
def test_two_processes_run_the_same_state_at_once_and_the_tool_runs_once(
    apart: Callable[..., Any], shell: Shell, effects: EffectServer
) -> None:
    read_result(apart("begin"))
    Framework(ENVIRONMENT, shell, effects, inline=False).decide("approve")
    programs = [apart("approve", meet=True) for _ in range(2)]
    ends = [read_result(program).results for program in programs]
    assert ends == [["sent to bob@example.com"]] * 2, "both are told the one result"
    assert effects.calls_to("send_mail") == [MAILED]


# R23, R54
def test_a_helper_process_goes_on_when_the_decision_is_there(
    apart: Callable[..., Any], shell: Shell, effects: EffectServer
) -> None:
    read_result(apart("begin"))
    helper = apart("resume_all")
    Framework(ENVIRONMENT, shell, effects, inline=False).decide("approve")
    end: ProgramResult = read_result(helper)
    assert end.results == ["sent to bob@example.com"]
    assert effects.calls_to("send_mail") == [MAILED]


# R54
def test_the_program_on_its_page_asks(shell: Shell) -> None:
    (shell.folder / "policy.yaml").write_text("version: 1\nrules: [{name: money, tools: [refund], then: ask}]\n")
    page = ROOT / "docs" / "frameworks" / "openai-agents.md"
    program = start_program(ENVIRONMENT, PROGRAMS / "openai_agents_page.py", page, folder=shell.folder)
    out, err = wait_finished(program)
    assert program.returncode == 0, err
    assert out.strip() == "['refund']"
    shell.url = f"sqlite:///{shell.folder / 'interlock.db'}"
    assert [item["rule"] for item in shell("approvals", "list", "--json").json["items"]] == ["money"]
