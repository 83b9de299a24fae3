"""What is special to LangChain, LangGraph and deep agents. Most of it is seen in one run of one program."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.databases import Database
from tests.frameworks.framework_program import (
    PROGRAMS,
    TIMEOUT,
    EffectServer,
    read_json,
    read_result,
    start_program,
    wait_finished,
)
from tests.frameworks.test_every_framework import ASKING
from tests.journeys.shell import Shell, wait_until

THREADS = PROGRAMS / "langchain_threads.py"
BOB, EVE = ["bob", 1], ["eve", 1]
REJECTED = '"status": "rejected"'


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("cases")
    return read_json(start_program("langchain", PROGRAMS / "langchain_scenarios.py", folder, folder=folder))


# R16
def test_a_pause_is_shown_in_the_new_shape_with_what_binds_it(seen: dict[str, Any]) -> None:
    (value,) = seen["shapes"]["new"]
    (request,) = value["action_requests"]
    assert (request["name"], request["args"]) == ("send_mail", {"to": "bob", "copies": 1})
    (review,) = value["review_configs"]
    assert review == {"action_name": "send_mail", "allowed_decisions": ["approve", "edit", "respond", "reject"]}
    assert value["approval_id"]
    assert len(value["args_sha256"]) == 64


# R16
def test_a_pause_can_be_shown_in_the_old_shape(seen: dict[str, Any]) -> None:
    ((value,),) = seen["shapes"]["old"]
    assert value["action_request"] == {"action": "send_mail", "args": {"to": "bob", "copies": 1}}
    assert value["config"] == dict.fromkeys(("allow_accept", "allow_edit", "allow_respond", "allow_ignore"), True)
    assert value["approval_id"]


# R34
def test_no_resume_value_runs_a_call_without_a_decision(seen: dict[str, Any]) -> None:
    assert seen["lies"] == {"waiting": [1] * 6, "ran": [], "asked the model": 1}


# R16
@pytest.mark.parametrize(
    ("answer", "ran"),
    [
        ("approve", [BOB]),
        ("one", [BOB]),
        ("accept", [BOB]),
        ("edit", [["eve", 2]]),
        ("edit as texts", [["eve", 2]]),
        ("respond", []),
        ("response", []),
        ("reject", []),
        ("ignore", []),
    ],
)
def test_where_the_graph_says_who_answers_both_shapes_decide(seen: dict[str, Any], answer: str, ran: list[Any]) -> None:
    left, did, (told,) = seen["answers"][answer]
    assert (left, did) == (0, ran)
    words = {"respond": "Ask Eve", "response": "Ask Eve", "reject": "Not today", "ignore": REJECTED}
    assert words.get(answer, "sent to") in told


# R12, R16
def test_an_answer_that_will_not_do_goes_back_to_the_person_and_never_to_the_model(seen: dict[str, Any]) -> None:
    found = seen["bad_answers"]
    assert {name: found[name].split(".")[0] for name in ("a text", "two", "none", "another tool", "no kind")} == {
        "a text": 'An answer is an object with a type, such as {"type": "approve"}',
        "two": "This question takes one decision, and the answer has 2",
        "none": "This question takes one decision, and the answer has 0",
        "another tool": "An edit changes arguments, never the tool: it is send_mail",
        "no kind": "The type of an answer is one of approve, edit, respond, reject, accept, ignore, response",
    }
    assert found["true"] == found["a text"]
    assert "/copies" in found["a misfit"]
    assert "for another call" in found["another call"]
    assert "cannot count here" in found["nobody"]
    assert (found["ran"], found["in the end"]) == ([], [BOB])
    assert (found["told"], found["asked the model"]) == (["sent to bob"], 2)


def test_who_approves_what_was_shown_does_not_approve_what_became_of_it(seen: dict[str, Any]) -> None:
    found = seen["edited_elsewhere"]
    assert found["ran"] == []
    assert found["told"].startswith("The arguments changed since you saw them.")


# R21
def test_an_answer_counts_once_and_for_the_one_who_gave_it(seen: dict[str, Any]) -> None:
    assert seen["quorum"] == {"waiting": [1, 1], "before": [], "ran": [["board", 1]]}


def test_a_click_that_comes_too_late_is_no_answer_to_the_next_question(seen: dict[str, Any]) -> None:
    assert seen["decided_elsewhere"] == {"ran": [], "waits for": "eve"}


# R6
def test_of_three_calls_each_goes_its_own_way_and_none_is_repeated(seen: dict[str, Any]) -> None:
    found = seen["partial"]
    assert found["waiting"] == [2, 1]
    assert found["ran"] == [["Oslo"], ["Oslo", EVE], ["Oslo", EVE]]
    assert REJECTED in found["results"][0]
    assert found["results"][1:] == ["clear in Oslo", "sent to eve"]
    assert found["asked the model"] == 2


def test_a_model_that_repeats_the_id_of_a_call_makes_a_new_call(seen: dict[str, Any]) -> None:
    assert seen["same_ids"] == {"ran": [BOB, BOB], "results": ["sent to bob", "sent to bob"]}


def test_what_langgraph_injects_is_not_shown_and_is_there_when_edited_arguments_run(seen: dict[str, Any]) -> None:
    found = seen["injected"]
    assert found["shown"] == {"to": "bob"}
    assert found["ran"][0] == [["eve", 2, True, True]]


# R46
def test_a_command_passes_and_a_step_that_is_replayed_gets_what_was_recorded(seen: dict[str, Any]) -> None:
    found = seen["injected"]
    assert found["notes"] == ["eve"]
    assert found["ran"][1] == found["ran"][0]
    assert found["results"] == ["noted eve"]


def test_a_tool_that_pauses_by_itself_gets_its_own_answer_and_not_the_gates(seen: dict[str, Any]) -> None:
    found, own = seen["inside"], {"who": "age"}
    for name in ("delegates", "a read", "permitted"):
        assert found[name] == [own, ["began age", "began age", "age 42"], ["42"]], name
    shown, ran, (told,) = found["undeclared"]
    assert (shown, ran) == (own, ["began age"])
    assert "outcome is unknown" in told


# R13
def test_sub_agents_of_a_deep_agent_have_gates_of_their_own(seen: dict[str, Any]) -> None:
    found = seen["deep"]
    first = [f"Agent: main → {name}." for name in ("general-purpose", "researcher", "researcher", "writer")]
    assert found["rounds"] == [first, first[1:], first[2:], first[3:]]
    assert sorted(map(str, found["ran"])) == ["Oslo", "Oslo", *[str(BOB)] * 3]
    assert found["said"] == "Done."


# R13
def test_the_sub_agent_that_deep_agents_make_by_themselves_is_gated_too(seen: dict[str, Any]) -> None:
    assert seen["without_a_gate"] == {"bare": [False, 1], "gated": [True, 0]}, "bare is the red control"


# R13, R16
def test_a_front_end_can_answer_the_pause_of_a_sub_agent(seen: dict[str, Any]) -> None:
    assert seen["answered_below"] == {"by id": [False, [BOB]], "without": [False, [BOB]]}


# R9
def test_the_switches_of_the_open_agent_platform_count_where_they_are_asked_for(seen: dict[str, Any]) -> None:
    found = seen["open_agent_platform"]
    ui = {"type": "tool_approvals", "default": {}, "tools": ["send_mail"]}
    assert found["schema"]["x_oap_ui_config"] == ui
    runs, asks, nothing = [0, 1], [1, 0], [0, 0]
    assert {name: found[name] for name in found if name != "schema"} == {
        "empty": runs,
        "false": runs,
        "a text": asks,
        "named": asks,
        "named a read": asks,
        "a rule asks": asks,
        "a rule denies": nothing,
        "no map": asks,
        **{
            f"{section} {name}": end
            for section in ("mcp_config", "rag")
            for name, end in {
                "marks a read": asks,
                "marks a read, not asked for": asks,
                "lifts": runs,
                "lifts, not asked for": asks,
                "another tool": asks,
                "lifts what another map marks": asks,
            }.items()
        },
    }


# R35
def test_what_cannot_run_is_told_to_the_model_and_asked_of_nobody(seen: dict[str, Any]) -> None:
    found = seen["wrong_calls"]
    assert (found["waiting"], found["ran"]) == (0, [])
    no_tool, misfit, denied = found["results"]
    assert "no_such_tool is not a valid tool" in no_tool
    assert "to: Field required" in misfit
    assert "never erase" in denied


def test_without_a_thread_nothing_runs_and_the_error_says_what_to_pass(seen: dict[str, Any]) -> None:
    assert seen["without_a_thread"]["ran"] == []
    assert "thread_id" in seen["without_a_thread"]["error"]


# R54
def test_a_tool_node_and_a_node_of_ones_own_go_through_the_same_gate(seen: dict[str, Any]) -> None:
    found, results = seen["plain_graphs"], ["sent to bob", "clear in Oslo", "sent to eve", "Done."]
    assert found["each"] == {"rounds": [2, 1], "ran": ["Oslo", BOB, EVE], "results": results}
    assert found["together"]["rounds"] == [1, 1]
    assert [each for each in found["together"]["ran"] if each != "Oslo"] == [BOB, EVE]
    assert found["together"]["results"] == results
    assert found["alone"] == {"rounds": [1], "ran": [["zoe", 1]], "results": ["sent to zoe"]}


def test_calls_of_one_node_end_before_it_pauses(seen: dict[str, Any]) -> None:
    assert seen["company"] == {"ran": [["slow", 1]], "waiting": 1, "results": ["sent to slow", "sent to all"]}


def test_a_pause_that_is_found_too_early_is_looked_at_again_and_not_lost(seen: dict[str, Any]) -> None:
    too_early, gone_on, over = seen["early"]
    assert "looked at again" in too_early
    assert gone_on == over == ["Oslo"], "a thread whose process died on the way goes on, and one that is over stays so"


# R9
def test_the_switches_of_a_config_go_on_with_the_thread(seen: dict[str, Any]) -> None:
    assert seen["kept_switches"] == {"ran": [BOB, "Oslo"], "results": ["sent to bob", "clear in Oslo"]}


def test_the_program_of_the_page_runs(seen: dict[str, Any]) -> None:
    assert seen["documented"] == {"ran": ["Oslo", BOB], "printed": "Done."}


# R46
def test_without_the_database_nothing_runs(seen: dict[str, Any]) -> None:
    assert seen["out_of_reach"] == {"error": "StoreUnavailable", "ran": []}


def test_a_graph_that_runs_in_threads_is_gone_on_with_and_a_second_time_does_no_harm(seen: dict[str, Any]) -> None:
    assert seen["in_threads"] == {"ran": [BOB], "asked the model": 2, "next": []}


def test_a_secret_is_not_shown_and_is_decided_in_the_inbox_alone(seen: dict[str, Any]) -> None:
    found = seen["secrets"]
    assert "hunter2" not in found["shown"]
    assert (found["before"], found["ran"]) == ([], [["hunter2", 1]])


# R35
def test_a_policy_that_becomes_free_changes_nothing_about_what_was_asked(seen: dict[str, Any]) -> None:
    found = seen["turned"]
    assert (found["ran"], found["still asked"]) == ([["eve", 2]], 1), "what was approved runs as it was approved"
    assert "Not today" in found["results"][0]


# R5, R24
def test_middleware_behind_the_gate_can_neither_repeat_a_call_nor_change_it(seen: dict[str, Any]) -> None:
    case = seen["behind"]
    assert case["repeats"] == ["bob"]
    assert case["meddles"] == []
    assert "Put the gate last" in case["meddles error"]


class ThreadPrograms:
    """The program with its threads in a database, as processes; people decide at the command line."""

    def __init__(self, database: Database, effects: EffectServer, folder: Path) -> None:
        self.effects = effects
        self.shell = Shell(folder)
        self.shell.url = database.url
        (folder / "policy.yaml").write_text(ASKING)
        assert self.shell("policy", "put", "policy.yaml").code == 0

    def job(self, story: str, **more: Any) -> str:
        job = {"url": self.shell.url, "effects": self.effects.url, "run": "thread-1", "story": story}
        return json.dumps({**job, "folder": str(self.shell.folder), **more})

    def start(self, role: str, story: str = "mail", **more: Any) -> subprocess.Popen[str]:
        return start_program("langchain", THREADS, role, self.job(story, **more), folder=self.shell.folder)

    def start_resume(self, story: str) -> subprocess.Popen[str]:
        """`interlock runs resume`, until it is told to stop."""
        (self.shell.folder / "job.json").write_text(self.job(story))
        words = [
            "-m",
            "interlock",
            "runs",
            "resume",
            "tests.frameworks.programs.langchain_threads:resume",
            "--agent",
            "clerk",
        ]
        return start_program("langchain", *words, "--database", self.shell.url, folder=self.shell.folder)

    def paused_threads(self) -> int:
        return len(self.shell("runs", "list", "--json").json["items"])

    def approve(self) -> None:
        (item, *_) = self.shell("approvals", "list", "--json").json["items"]
        assert self.shell("approvals", "approve", item["id"]).code == 0


@pytest.fixture
def threads(database: Database, effects: EffectServer, tmp_path: Path) -> ThreadPrograms:
    return ThreadPrograms(database, effects, tmp_path)


# R46, R54
def test_a_process_of_its_own_goes_on_with_a_thread_when_all_is_decided(threads: ThreadPrograms) -> None:
    assert read_result(threads.start("by hand", "two mails")).paused
    assert threads.paused_threads() == 1
    keeper = threads.start_resume("two mails")
    threads.approve()
    threads.approve()
    wait_until(lambda: threads.paused_threads() == 0, "the thread went on", TIMEOUT)
    keeper.terminate()
    out, err = wait_finished(keeper)
    assert (keeper.returncode, "Resumed thread-1." in out) == (0, True), f"{out}\n{err}"
    end = read_result(threads.start("by hand", "two mails"))
    assert (end.paused, end.results) == (False, ["sent to bob@example.com", "sent to eve@example.com"])
    assert len(threads.effects.calls_to("send_mail")) == 2


# R24, R46
def test_a_thread_that_two_processes_and_a_keeper_resume_at_once_runs_its_call_once(threads: ThreadPrograms) -> None:
    assert read_result(threads.start("by hand")).paused
    threads.approve()
    programs = [threads.start("by hand", meet=True) for _ in range(2)]
    programs.append(threads.start("keep"))
    ends = [wait_finished(program) for program in programs]
    assert len(threads.effects.calls_to("send_mail")) == 1, ends
    assert programs[2].returncode == 0, ends
    assert 0 in [program.returncode for program in programs[:2]], ends
    assert read_result(threads.start("by hand")).results == ["sent to bob@example.com"]
