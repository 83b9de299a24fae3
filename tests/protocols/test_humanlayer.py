"""HumanLayer's SDK 0.7.9, unmodified, against the real server: only its address and its key are ours."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.frameworks.framework_program import EffectServer, read_json, start_program, wait_finished
from tests.interlock_server import RunningServer, create_keys, run_server
from tests.journeys.shell import Shell, wait_until
from tests.tools.ports import reserved_port

PROGRAM = Path(__file__).parent / "humanlayer_program.py"
PAGE = Path(__file__).parents[2] / "docs" / "clients" / "humanlayer.md"
BASE = "/humanlayer/v1"
CALLS, QUESTIONS = f"{BASE}/function_calls", f"{BASE}/contact_requests"
POLICY = """
version: 1
defaults: {undo_window: 0s}
rules:
  - {name: lookups are free, tools: [look_up], then: allow}
  - {name: nobody drops, tools: [drop_*], then: deny, reason: Dropping is not allowed.}
  - {name: little time, tools: [hurry], then: ask, expires_in: 1s}
"""
LONG_UNDO_WINDOW = "version: 1\ndefaults: {undo_window: 1h}\n"
NO_TIME = "version: 1\ndefaults: {expires_in: 1s}\n"
DELEGATED = "Handed over to the agent's program, which runs it and does not say what came of it."
MAIL = {"to": "ann", "text": "hi"}

with_sdk = pytest.mark.nightly  # the SDK is in an environment of its own, which only `make test-all` installs


@dataclass
class HumanLayerScenario:
    server: RunningServer
    keys: dict[str, str]
    other_keys: dict[str, str]  # keys of another workspace
    effects: EffectServer
    folder: Path

    def client(self, role: str = "agent") -> httpx2.Client:
        return self.server.client(self.keys[role])

    def start(self, story: str, run: str, role: str = "agent", **more: Any) -> subprocess.Popen[str]:
        job = {"story": story, "run": run, "effects": self.effects.url, **more}
        environ = {"HUMANLAYER_API_BASE": f"{self.server.url}{BASE}", "HUMANLAYER_API_KEY": self.keys[role]}
        return start_program("humanlayer", PROGRAM, json.dumps(job), folder=self.folder, **environ, NO_PROXY="*")

    def run_scenario(self, story: str, run: str, role: str = "agent", **more: Any) -> Any:
        return read_json(self.start(story, run, role, **more))

    def approvals(self, run: str) -> list[dict[str, Any]]:
        """The approvals of a run."""
        with self.client("reviewer") as person:
            items: list[dict[str, Any]] = _ok(person.get("/api/approvals", params={"run_id": run}))["items"]
        return items

    def wait_pending(self, run: str) -> dict[str, Any]:
        """The one that waits, once there is one."""
        wait_until(lambda: bool(self.approvals(run)), f"a call of {run} waits", 110)
        return self.approvals(run)[0]

    def decide(self, run: str, kind: str, **more: Any) -> dict[str, Any]:
        """As a person does at the inbox, whatever the program is doing meanwhile."""
        item = self.wait_pending(run)
        body = {"kind": kind, "args_sha256": item["args_sha256"], **more}
        with self.client("reviewer") as person:
            return _ok(person.post(f"/api/approvals/{item['id']}/decision", json=body))

    def put_policy(self, text: str) -> None:
        with self.client("admin") as admin:
            _ok(admin.put("/api/policy", content=text, headers={"content-type": "application/yaml"}))

    def post(self, run: str, **more: Any) -> httpx2.Response:
        """A function call as the SDK writes it, its status empty; the call's id is the run's."""
        spec = {"fn": "send_mail", "kwargs": MAIL, "channel": None, "reject_options": None, "state": None}
        body = {"run_id": run, "call_id": run, "spec": spec, "status": None}
        with self.client() as agent:
            return agent.post(CALLS, json=_merged(body, more))

    def look(self, call: str, key: str = "") -> httpx2.Response:
        with self.server.client(key or self.keys["agent"]) as agent:
            return agent.get(f"{CALLS}/{call}")


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HumanLayerScenario]:
    folder = tmp_path_factory.mktemp("humanlayer")
    database = f"sqlite:///{folder / 'approvals.db'}"
    keys, strangers = asyncio.run(_keys(database))
    with EffectServer().serve() as effects, run_server(database, folder) as server:
        yield HumanLayerScenario(server, keys, strangers, effects, folder)
    shell = Shell(folder)
    assert shell("audit", "verify").out.startswith("valid: ")


@pytest.fixture(autouse=True)
def usual_policy(scenario: HumanLayerScenario) -> None:
    scenario.put_policy(POLICY)


@pytest.fixture
def run() -> str:
    return f"agent-{uuid.uuid4().hex[:12]}"


# --- what the SDK does


# R16, R37, R54
@with_sdk
@pytest.mark.parametrize("story", ["approval", "approval_async"])
def test_what_is_approved_runs_once_and_is_kept_as_handed_over(
    scenario: HumanLayerScenario, run: str, story: str
) -> None:
    program = scenario.start(story, run)
    waits = scenario.decide(run, "approve")
    assert waits["args"] == MAIL
    assert read_json(program) == "sent: 204"
    assert scenario.effects.calls_to(run) == [MAIL]
    (done,) = scenario.approvals(run)
    with scenario.client("reviewer") as person:
        shown = _ok(person.get(f"/api/approvals/{done['id']}"))
    assert (shown["status"], shown["result"], shown["agent"]) == ("succeeded", DELEGATED, "bot")


@with_sdk
@pytest.mark.parametrize("story", ["approval", "approval_async"])
def test_what_is_rejected_does_not_run_and_the_model_is_told_why(
    scenario: HumanLayerScenario, run: str, story: str
) -> None:
    program = scenario.start(story, run)
    scenario.decide(run, "reject", reason="Not to Ann.")
    assert read_json(program) == "User denied send_mail with message: Not to Ann."
    assert scenario.effects.calls_to(run) == []


@with_sdk
def test_rejection_without_a_reason_gets_a_standard_text(scenario: HumanLayerScenario, run: str) -> None:
    program = scenario.start("denial_in_slack", run)
    scenario.decide(run, "reject")
    assert read_json(program) == "User in the office denied send_mail with message: A person rejected this call."


@with_sdk
def test_a_reason_that_is_an_option_is_told_by_its_name(scenario: HumanLayerScenario, run: str) -> None:
    program = scenario.start("options", run)
    scenario.decide(run, "reject", reason="Not this month")
    told, status = read_json(program), {"approved": False, "comment": "Not this month", "reject_option_name": "later"}
    assert {name: told["status"][name] for name in status} == status
    assert [each["name"] for each in told["spec"]["reject_options"]] == ["later", "never"]


@pytest.mark.parametrize(("reason", "name"), [("never", "never"), ("No budget.", None)])
def test_other_reasons_are_told_as_they_are(
    scenario: HumanLayerScenario, run: str, reason: str, name: str | None
) -> None:
    _ok(scenario.post(run, spec={"reject_options": [{"name": "never", "title": "At no time"}]}))
    scenario.decide(run, "reject", reason=reason)
    status = _ok(scenario.look(run))["status"]
    assert (status["approved"], status["comment"], status["reject_option_name"]) == (False, reason, name)


@with_sdk
@pytest.mark.parametrize("story", ["question", "question_async"])
def test_a_question_gets_what_the_person_said(scenario: HumanLayerScenario, run: str, story: str) -> None:
    program = scenario.start(story, run)
    scenario.decide(run, "respond", message="Blue, please.")
    assert read_json(program) == "Blue, please."


@with_sdk
def test_a_question_with_options_is_answered_by_one_of_them(scenario: HumanLayerScenario, run: str) -> None:
    program = scenario.start("choice", run)
    item = scenario.wait_pending(run)
    with scenario.client("reviewer") as person:
        body = {"kind": "respond", "args_sha256": item["args_sha256"], "message": "Neither."}
        wrong = person.post(f"/api/approvals/{item['id']}/decision", json=body)
        assert wrong.status_code == 422
    scenario.decide(run, "respond", message="The blue one")
    told = read_json(program)
    assert (told["status"]["response"], told["status"]["response_option_name"]) == ("The blue one", "blue")
    assert (told["spec"]["subject"], told["spec"]["state"]) == ("Colours", {"step": 7})


@with_sdk
def test_what_nobody_decided_in_time_is_a_no_that_says_so(scenario: HumanLayerScenario, run: str) -> None:
    told = scenario.run_scenario("other_names", run, fn="hurry")
    assert told == "User denied hurry with message: The call timed out: nobody decided or started it in time."
    assert scenario.approvals(run)[0]["status"] == "expired"


@with_sdk
def test_a_question_that_nobody_answered_is_no_answer(scenario: HumanLayerScenario, run: str) -> None:
    scenario.put_policy(NO_TIME)
    told = scenario.run_scenario("question", run)
    assert "410 Client Error: Gone" in told["raised"]
    assert "Nobody answered this question in time." in told["raised"]


@with_sdk
def test_the_policy_answers_at_once_where_it_can(scenario: HumanLayerScenario, run: str) -> None:
    assert scenario.run_scenario("other_names", run, fn="look_up") == "ran for ann"
    denied = scenario.run_scenario("other_names", run, fn="drop_table")
    assert denied == "User denied drop_table with message: Dropping is not allowed."
    assert [(item["tool"], item["status"]) for item in scenario.approvals(run)] == [("look_up", "succeeded")]


@with_sdk
def test_it_is_decided_at_the_command_line_while_the_program_looks(scenario: HumanLayerScenario, run: str) -> None:
    program, shell = scenario.start("approval", run), Shell(scenario.folder)
    done = shell("approvals", "approve", scenario.wait_pending(run)["id"], "--user", "bob")
    assert done.code == 0, done.err
    assert read_json(program) == "sent: 204"
    assert scenario.effects.calls_to(run) == [MAIL]


@with_sdk
def test_a_person_decides_with_the_sdk_and_their_own_key(scenario: HumanLayerScenario, run: str) -> None:
    scenario.post(run, spec={"reject_options": [{"name": "later", "prompt_fill": "Ask again next month."}]})
    program = scenario.start("looking", run, call=run)
    said = {"approved": False, "reject_option_name": "later"}
    refused = scenario.run_scenario("deciding", run, role="agent", call=run, status=said)
    assert "403 Client Error: Forbidden" in refused["raised"]
    decided = scenario.run_scenario("deciding", run, role="reviewer", call=run, status=said)
    assert decided["status"]["approved"] is False
    assert read_json(program) == "Ask again next month."
    assert scenario.approvals(run)[0]["decision"]["by"] == "bob"


@with_sdk
def test_a_person_answers_with_the_sdk_and_their_own_key(scenario: HumanLayerScenario, run: str) -> None:
    program = scenario.start("choice", run)
    call = scenario.wait_pending(run)["call_id"]
    refused = scenario.run_scenario("answering", run, role="agent", call=call, status={"response": "The red one"})
    assert "403 Client Error: Forbidden" in refused["raised"]
    told = scenario.run_scenario("answering", run, role="reviewer", call=call, status={"response_option_name": "red"})
    assert told == read_json(program)
    assert told["status"]["response"] == "The red one"


@with_sdk
def test_what_a_spec_holds_is_told_back_and_shown_but_for_tokens(scenario: HumanLayerScenario, run: str) -> None:
    told = scenario.run_scenario("channels", run, call=run)
    assert told["status"]["approved"] is None
    assert told["spec"]["state"] == {"step": 7, "done": None}
    assert told["spec"]["channel"]["email"]["address"] == "boss@example.com"
    assert told["spec"]["channel"]["slack"]["bot_token"] is None
    with scenario.client("reviewer") as person:
        found = {item["tool"]: item["id"] for item in scenario.approvals(run)}
        call = _ok(person.get(f"/api/approvals/{found['send_mail']}"))
        question = _ok(person.get(f"/api/approvals/{found['request_human_input']}"))
    assert "boss@example.com" in call["card"]["agent_says"]
    assert "xoxb-1" not in json.dumps(call)
    said = [(entry["actor"], entry["content"]["text"]) for entry in call["timeline"] if entry["kind"] == "commented"]
    assert said == [("agent:bot", "Escalation: It is urgent.")]
    assert "Escalation: Nobody answers." in json.dumps(question["timeline"])


@with_sdk
def test_a_server_that_restarts_between_two_looks_loses_nothing(tmp_path: Path, run: str) -> None:
    database = f"sqlite:///{tmp_path / 'approvals.db'}"
    keys, strangers = asyncio.run(_keys(database))
    begun, go = tmp_path / "begun", tmp_path / "go"
    with EffectServer().serve() as effects, reserved_port() as port:
        with run_server(database, tmp_path, port=port) as server:
            scenario = HumanLayerScenario(server, keys, strangers, effects, tmp_path)
            program = scenario.start("with_a_break", run, begun=str(begun), go=str(go))
            wait_until(begun.exists, "it waits for its next look", 110)
            scenario.decide(run, "approve")
            server.kill()
        with run_server(database, tmp_path, port=port):
            go.touch()
            assert read_json(program) == "sent: 204"
        assert effects.calls_to(run) == [MAIL]


@with_sdk
def test_where_no_server_answers_the_wait_ends_and_nothing_runs(tmp_path: Path, run: str) -> None:
    """The SDK itself tries nothing again."""
    with EffectServer().serve() as effects, reserved_port() as port:
        environ = {"HUMANLAYER_API_BASE": f"http://127.0.0.1:{port}", "HUMANLAYER_API_KEY": "none"}
        job = json.dumps({"story": "approval", "run": run, "effects": effects.url})
        told = read_json(start_program("humanlayer", PROGRAM, job, folder=tmp_path, **environ, NO_PROXY="*"))
        assert str(told).startswith("Error fetching approval for send_mail: ")
        assert effects.calls == []


@with_sdk
def test_the_page_shows_what_its_program_prints(scenario: HumanLayerScenario, tmp_path: Path) -> None:
    """It waits as long between two looks as the SDK does by itself."""
    text = PAGE.read_text()
    program, shown = (re.findall(rf"^```{kind}\n(.*?)^```$", text, re.M | re.S)[0] for kind in ("python", "text"))
    (tmp_path / "mailer.py").write_text(program)
    run = f"page-{uuid.uuid4().hex[:8]}"
    environ = {"HUMANLAYER_API_BASE": f"{scenario.server.url}{BASE}", "HUMANLAYER_API_KEY": scenario.keys["agent"]}
    running = start_program("humanlayer", "mailer.py", folder=tmp_path, **environ, HUMANLAYER_RUN_ID=run, NO_PROXY="*")
    scenario.decide(run, "approve")
    out, err = wait_finished(running)
    assert (out, running.returncode) == (shown, 0), err


# --- a yes is told once
@with_sdk
def test_of_programs_that_look_at_the_same_call_one_runs_it(scenario: HumanLayerScenario, run: str) -> None:
    _ok(scenario.post(run))
    programs = [scenario.start("looking", run, call=run) for _ in range(3)]
    scenario.decide(run, "approve")
    told = [read_json(program) for program in programs]
    assert sorted(str(each)[:10] for each in told).count("sent: 204") == 1
    refused = [each["raised"] for each in told if each != "sent: 204"]
    assert all("409 Client Error: Conflict" in each for each in refused)
    assert scenario.effects.calls_to(run) == [MAIL]


def test_of_simultaneous_polls_one_gets_the_approval(scenario: HumanLayerScenario, run: str) -> None:
    _ok(scenario.post(run))
    scenario.decide(run, "approve")
    meeting = threading.Barrier(8)

    def look(_: int) -> httpx2.Response:
        with scenario.client() as agent:
            meeting.wait(110)
            return agent.get(f"{CALLS}/{run}")

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(look, range(8)))
    assert sorted(each.status_code for each in told) == [200] + [409] * 7
    assert [each.json()["status"]["approved"] for each in told if each.status_code == 200] == [True]


def test_reported_approval_is_refused_to_later_polls_and_posts(scenario: HumanLayerScenario, run: str) -> None:
    _ok(scenario.post(run))
    scenario.decide(run, "approve")
    assert _ok(scenario.post(run))["status"]["approved"] is None  # only a look tells it
    with scenario.client() as agent:
        assert agent.head(f"{CALLS}/{run}").status_code == 405  # and nothing that is less than a look takes it away
    assert _ok(scenario.look(run))["status"]["approved"] is True
    for again in (scenario.look(run), scenario.post(run)):
        assert (again.status_code, again.json()["error"]) == (409, "already_started")
        assert "use a new call_id" in again.json()["message"]


def test_a_call_that_was_started_elsewhere_is_not_handed_over(scenario: HumanLayerScenario, run: str) -> None:
    _ok(scenario.post(run))
    item = scenario.decide(run, "approve")
    with scenario.client() as agent:
        _ok(agent.post(f"/api/calls/{item['id']}/start", json={}))
    assert scenario.look(run).status_code == 409


def test_what_was_cancelled_is_a_no_that_says_so(scenario: HumanLayerScenario, run: str) -> None:
    _ok(scenario.post(run))
    with scenario.client() as agent:
        _ok(agent.post(f"/api/calls/{scenario.wait_pending(run)['id']}/cancel", json={"reason": "No longer needed."}))
    status = _ok(scenario.look(run))["status"]
    assert (status["approved"], status["comment"]) == (False, "No longer needed.")


def test_a_rejection_is_told_when_it_can_no_longer_be_taken_back(scenario: HumanLayerScenario, run: str) -> None:
    scenario.put_policy(LONG_UNDO_WINDOW)
    _ok(scenario.post(run))
    item = scenario.decide(run, "reject", reason="No.")
    status = _ok(scenario.look(run))["status"]
    assert (status["approved"], status["comment"], status["responded_at"]) == (None, None, None)
    with scenario.client("reviewer") as person:
        _ok(person.post(f"/api/approvals/{item['id']}/undo"))
    scenario.decide(run, "approve")
    assert _ok(scenario.look(run))["status"]["approved"] is True


def test_nobody_can_edit_what_the_program_has_already(scenario: HumanLayerScenario, run: str) -> None:
    _ok(scenario.post(run))
    item = scenario.wait_pending(run)
    body = {"args_sha256": item["args_sha256"], "args": {"to": "bob"}, "message": "no"}
    with scenario.client("reviewer") as person:
        for kind in ("edit", "respond"):
            fitting = {name: body[name] for name in body if kind == "edit" or name != "args"}
            wrong = person.post(f"/api/approvals/{item['id']}/decision", json={"kind": kind, **fitting})
            assert wrong.status_code == 422
    assert _ok(scenario.look(run))["status"]["approved"] is None


# --- what a client says is not believed


@pytest.mark.parametrize("status", [{"approved": True}, True, "approved", 1, {}, [], "", 0, False])
def test_a_status_that_a_client_posts_is_refused(scenario: HumanLayerScenario, run: str, status: object) -> None:
    forged = scenario.post(run, status=status)
    assert (forged.status_code, forged.json()["error"]) == (400, "invalid_request")
    assert scenario.look(run).status_code == 404


@pytest.mark.parametrize(
    "more",
    [
        {"approved": True},
        {"spec": {"approved": True}},
        {"spec": {"kwargs": []}},
        {"spec": {"fn": ""}},
        {"spec": {"reject_options": [{"name": "a"}, {"name": "a"}]}},
        {"spec": {"reject_options": [{"name": "a", "interactive": "true"}]}},
        {"spec": {"state": {"long": "x" * 20_000}}},
        {"call_id": ""},
        {"call_id": "a/b"},
        {"run_id": "thread-0192f0c1-2b3d-7c4e-9f60-718293a4b5c6"},
    ],
)
def test_what_does_not_fit_leaves_nothing_behind(scenario: HumanLayerScenario, run: str, more: dict[str, Any]) -> None:
    assert scenario.post(run, **more).status_code in (400, 403)
    assert scenario.approvals(run) == []


@pytest.mark.parametrize(
    "said",
    [
        *[{"approved": value} for value in ("true", "yes", 1, 0, "", None, {}, [])],
        {},
        [],
        None,
        {"approved": True, "args": {"to": "bob"}},
        {"approved": True, "by": "ada"},
        {"approved": True, "reject_option_name": "later"},
        {"approved": False, "reject_option_name": "other"},
        {"approved": False, "comment": "x" * 501},
    ],
)
def test_an_answer_that_is_no_yes_and_no_no_decides_nothing(
    scenario: HumanLayerScenario, run: str, said: object
) -> None:
    _ok(scenario.post(run, spec={"reject_options": [{"name": "later"}]}))
    with scenario.client("reviewer") as person:
        wrong = person.post(f"{BASE}/agent/function_calls/{run}/respond", json=said)
        assert wrong.status_code in (400, 422), wrong.text
        timeline = person.get(f"/api/approvals/{scenario.wait_pending(run)['id']}").json()["timeline"]
    assert [entry["kind"] for entry in timeline] == ["proposed", "decision_refused"]  # R41
    assert _ok(scenario.look(run))["status"]["approved"] is None


@pytest.mark.parametrize("said", [{}, {"response": ""}, {"response": None}, {"response": 0}, {"response": []}])
def test_an_answer_without_words_answers_nothing(scenario: HumanLayerScenario, run: str, said: object) -> None:
    with scenario.client() as agent, scenario.client("reviewer") as person:
        _ok(agent.post(QUESTIONS, json={"run_id": run, "call_id": run, "spec": {"msg": "Well?"}}))
        assert person.post(f"{BASE}/agent/human_contacts/{run}/respond", json=said).status_code in (400, 422)
        assert _ok(agent.get(f"{QUESTIONS}/{run}"))["status"]["response"] is None


def test_a_yes_by_its_address_counts_with_its_comment(scenario: HumanLayerScenario, run: str) -> None:
    _ok(scenario.post(run))
    with scenario.client("reviewer") as person:
        said = {"approved": True, "comment": "As agreed.", "responded_at": "1999-01-01T00:00:00Z"}
        decided = _ok(person.post(f"{BASE}/agent/function_calls/{run}/respond", json=said))
    told = _ok(scenario.look(run))
    assert told == decided
    assert (told["status"]["approved"], told["status"]["comment"]) == (True, "As agreed.")
    assert not told["status"]["responded_at"].startswith("1999")


def test_an_option_that_wants_words_leaves_the_answer_open(scenario: HumanLayerScenario, run: str) -> None:
    options = [{"name": "other", "title": "Something else", "interactive": True}, {"name": "red"}]
    spec = {"msg": "Which one?", "response_options": options}
    with scenario.client() as agent:
        _ok(agent.post(QUESTIONS, json={"run_id": run, "call_id": run, "spec": spec}))
        scenario.decide(run, "respond", message="A green one.")
        status = _ok(agent.get(f"{QUESTIONS}/{run}"))["status"]
    assert (status["response"], status["response_option_name"]) == ("A green one.", None)


OPTIONS = [{"name": "red", "title": "Red"}, {"name": "other", "title": "Other", "interactive": True}]


@pytest.mark.parametrize(
    ("words", "name", "status", "response"),
    [
        ("Blue, please.", "other", 200, "Blue, please."),
        ("Red", "red", 200, "Red"),
        ("", "red", 200, "Red"),
        ("Blue, please.", "red", 422, None),
    ],
)
def test_words_that_come_with_an_option_are_not_dropped(
    scenario: HumanLayerScenario, run: str, words: str, name: str, status: int, response: str | None
) -> None:
    spec = {"msg": "Which colour?", "response_options": OPTIONS}
    said = {"response": words, "response_option_name": name}
    with scenario.client() as agent, scenario.client("reviewer") as person:
        _ok(agent.post(QUESTIONS, json={"run_id": run, "call_id": run, "spec": spec}))
        assert person.post(f"{BASE}/agent/human_contacts/{run}/respond", json=said).status_code == status
        assert _ok(agent.get(f"{QUESTIONS}/{run}"))["status"]["response"] == response


def test_an_answer_that_was_erased_is_no_answer(scenario: HumanLayerScenario, run: str) -> None:
    body = {"run_id": run, "call_id": run, "spec": {"msg": "Which colour?"}}
    with scenario.client() as agent, scenario.client("reviewer") as person:
        _ok(agent.post(QUESTIONS, json=body))
        _ok(person.post(f"{BASE}/agent/human_contacts/{run}/respond", json={"response": "Blue."}))
        Shell(scenario.folder)("erase", "--approval", scenario.approvals(run)[0]["id"], "--yes")
        told = [agent.get(f"{QUESTIONS}/{run}"), agent.post(QUESTIONS, json=body)]
    assert [(each.status_code, "erased" in each.json()["message"]) for each in told] == [(409, True)] * 2


def test_an_agent_cannot_bury_a_card_under_its_words(scenario: HumanLayerScenario, run: str) -> None:
    _ok(scenario.post(run))
    with scenario.client() as agent:
        escalate = f"{BASE}/agent/function_calls/{run}/escalate_email"
        said = [agent.post(escalate, json={"escalation_msg": f"Please look, {number}."}) for number in range(101)]
    assert [each.status_code for each in said] == [200] * 100 + [409]


def test_a_second_answer_changes_nothing(scenario: HumanLayerScenario, run: str) -> None:
    _ok(scenario.post(run))
    with scenario.client("reviewer") as person:
        address = f"{BASE}/agent/function_calls/{run}/respond"
        _ok(person.post(address, json={"approved": False, "comment": "No."}))
        again = person.post(address, json={"approved": True})
    assert (again.status_code, again.json()["error"]) == (409, "already_decided")
    assert _ok(scenario.look(run))["status"]["comment"] == "No."


def test_an_agents_key_never_decides(scenario: HumanLayerScenario, run: str) -> None:
    _ok(scenario.post(run))
    with scenario.client() as agent:
        refused = agent.post(f"{BASE}/agent/function_calls/{run}/respond", json={"approved": True})
    assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    assert _ok(scenario.look(run))["status"]["approved"] is None


def test_a_yes_by_its_address_counts_only_for_what_has_no_findings(scenario: HumanLayerScenario, run: str) -> None:
    _ok(scenario.post(run, spec={"kwargs": {"to": "ann", "text": "hi\u202eolleh"}}))
    with scenario.client("reviewer") as person:
        hidden = person.post(f"{BASE}/agent/function_calls/{run}/respond", json={"approved": True})
    assert (hidden.status_code, hidden.json()["error"]) == (409, "digest_mismatch")
    assert _ok(scenario.look(run))["status"]["approved"] is None


@pytest.mark.parametrize("fn", ["send_mail", "drop_table"])
@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"kwargs": {"to": "bob", "text": "hi"}}},
        {"spec": {"fn": "send_money"}},
        {"spec": {"state": {"step": 8}}},
        {"spec": {"channel": {"email": {"address": "eve@example.com"}}}},
        {"spec": {"reject_options": [{"name": "later"}]}},
        {"run_id": "another-run"},
    ],
)
def test_another_call_under_a_known_id_is_refused(
    scenario: HumanLayerScenario, run: str, fn: str, change: dict[str, Any]
) -> None:
    first = _ok(scenario.post(run, spec={"fn": fn}))
    same = _ok(scenario.post(run, spec={"fn": fn}))
    assert (first["spec"], first["status"]["approved"]) == (same["spec"], same["status"]["approved"])
    merged = _merged({"spec": {"fn": fn}}, change) if "fn" not in change.get("spec", {}) else change
    if fn == "drop_table" and merged["spec"]["fn"] == "send_money":
        merged["spec"]["fn"] = "drop_all"
    changed = scenario.post(run, **merged)
    assert (changed.status_code, changed.json()["error"]) == (409, "call_mismatch")


def test_ids_are_known_to_those_who_asked_and_to_nobody_else(scenario: HumanLayerScenario, run: str) -> None:
    _ok(scenario.post(run))
    scenario.decide(run, "approve")
    with scenario.client("admin") as admin:
        other = _ok(admin.post("/api/keys", json={"name": "another", "role": "agent"}))["key"]
    strange = [scenario.look(run, scenario.other_keys["agent"]), scenario.look(run, other), scenario.look("nothing")]
    with scenario.server.client(scenario.other_keys["reviewer"]) as person:
        strange.append(person.post(f"{BASE}/agent/function_calls/{run}/respond", json={"approved": True}))
    with scenario.client() as agent:
        strange.append(agent.get(f"{QUESTIONS}/{run}"))
        assert [(each.status_code, each.json()) for each in strange] == [(404, strange[0].json())] * 5
    assert _ok(scenario.look(run))["status"]["approved"] is True  # what they tried took nothing away


@pytest.mark.parametrize("run_id", ["same", "another-run"])
def test_who_meets_a_call_of_another_agent_is_not_told_where_it_is(
    scenario: HumanLayerScenario, run: str, run_id: str
) -> None:
    _ok(scenario.post(run))
    with scenario.client() as agent:
        _ok(agent.post(QUESTIONS, json={"run_id": f"{run}-q", "call_id": run, "spec": {"msg": "Which?"}}))
    with scenario.client("admin") as admin:
        other = _ok(admin.post("/api/keys", json={"name": f"other of {run}", "role": "agent"}))["key"]
    call = {"call_id": run, "spec": {"fn": "send_mail", "kwargs": MAIL}}
    question = {"call_id": run, "spec": {"msg": "Which?"}}
    with scenario.server.client(other) as agent:
        same = run_id == "same"
        met = [
            agent.post(CALLS, json={**call, "run_id": run if same else run_id}),
            agent.post(QUESTIONS, json={**question, "run_id": f"{run}-q" if same else run_id}),
        ]
    assert [(each.status_code, sorted(each.json())) for each in met] == [(409, ["error", "message"])] * 2


def test_retried_post_asks_once(scenario: HumanLayerScenario, run: str) -> None:
    body = {"run_id": run, "call_id": run, "spec": {"fn": "send_mail", "kwargs": MAIL}}
    with scenario.client() as agent:
        plain = [_ok(agent.post(CALLS, json=body)) for _ in range(3)]
        keyed = [_ok(agent.post(CALLS, json=body, headers={"idempotency-key": run})) for _ in range(2)]
    assert plain + keyed == [plain[0]] * 5
    assert len(scenario.approvals(run)) == 1


def test_forbidden_call_is_reported_to_every_poll(scenario: HumanLayerScenario, run: str) -> None:
    posted = _ok(scenario.post(run, spec={"fn": "drop_table"}))
    assert _ok(scenario.look(run)) == _ok(scenario.look(run)) == posted
    assert (posted["status"]["approved"], posted["status"]["comment"]) == (False, "Dropping is not allowed.")
    assert scenario.look(run, scenario.other_keys["agent"]).status_code == 404


@with_sdk
def test_a_question_that_the_policy_forbids_is_refused_at_once(scenario: HumanLayerScenario, run: str) -> None:
    scenario.put_policy("version: 1\nrules: [{name: quiet, tools: [request_*], then: deny, reason: Ask nobody.}]\n")
    told = scenario.run_scenario("question", run)
    assert "403 Client Error: Forbidden" in told["raised"]
    assert "Ask nobody." in told["raised"]


async def _keys(database: str) -> tuple[dict[str, str], dict[str, str]]:
    return await create_keys(database), await create_keys(database, "elsewhere")


def _ok(got: httpx2.Response) -> dict[str, Any]:
    assert got.status_code in (200, 201), got.text
    told: dict[str, Any] = got.json()
    return told


def _merged(body: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    inner = {**body.get("spec", {}), **more.get("spec", {})}
    return {**body, **more, "spec": inner}
