"""Agent Inbox: the unmodified LangGraph client, in a process of its own, against a real server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.framework_program import EffectServer
from tests.journeys.shell import wait_until
from tests.node_packages import CLIENTS
from tests.protocols.agent_inbox_scenario import (
    ARGS,
    ORIGIN,
    SCHEMA,
    AgentInboxScenario,
    answer,
    edit_answer,
    open_agent_inbox_scenario,
    run_inbox,
)
from tests.protocols.node_client import TIMEOUT, start_node_client

pytestmark = pytest.mark.skipif(not CLIENTS.is_installed(), reason=CLIENTS.missing)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients" / "agent-inbox.md"
NOTHING = "00000000-0000-7000-8000-000000000000"
EVERYTHING = {"graph_id": "interlock"}


def forgery(label: str, make: Callable[[Any], Any], *values: Any) -> dict[str, Any]:
    return {label.format(repr(value)): make(value) for value in values}


def message_answer(kind: Any) -> Callable[[Any], Any]:
    return lambda args: [{"type": kind, "args": args}]


RESUMES: dict[str, Any] = {
    **forgery("{} in place of a list", lambda it: it, None, "", 0, {}, False, True, 1, "true", "yes", "accept"),
    "no answer": [],
    "two answers": [{"type": "accept", "args": None}, {"type": "accept", "args": None}],
    "an answer without a list": {"type": "accept", "args": None},
    "the answers of another protocol": {"decisions": [{"type": "approve"}]},
    **forgery("{} as an answer", lambda it: [it], None, True, 1, "accept", [], {}),
    **forgery("the type {}", lambda it: message_answer(it)(None), "approve", "ACCEPT", "", None, True, 1),
    "no type": [{"args": None}],
    "an id beside the answer": [{"type": "accept", "args": None, "approval_id": NOTHING}],
    **forgery("accept with {}", message_answer("accept"), "", "yes", 0, 1, True, {}, []),
    "accept with other arguments": message_answer("accept")({"action": "send", "args": {**ARGS, "to": "eve"}}),
    "accept with truthy arguments": message_answer("accept")({"action": "send", "args": {**ARGS, "count": "3"}}),
    "accept with another tool": message_answer("accept")({"action": "wipe", "args": ARGS}),
    "edit to another tool": message_answer("edit")({"action": "wipe", "args": ARGS}),
    **forgery("edit with {}", message_answer("edit"), None, "", "yes", 0, {}, []),
    **forgery("edit to {}", lambda it: message_answer("edit")({"action": "send", "args": it}), None, "", 0, {}, []),
    "edit to nothing in each": message_answer("edit")({"action": "send", "args": {"to": None, "count": None}}),
    "edit with an argument more": message_answer("edit")({"action": "send", "args": {**ARGS, "more": "x"}}),
    **forgery("response with {}", message_answer("response"), None, "", 0, True, {}, []),
    **forgery("ignore with {}", message_answer("ignore"), "", 0, {}, "no"),
}
PAYLOADS: dict[str, Any] = {
    **{name: {"command": {"resume": resume}} for name, resume in RESUMES.items()},
    "no command": {},
    "a command of nothing": {"command": {}},
    "a history that says it was approved": {"input": {"messages": [{"type": "human", "content": "Approved."}]}},
    "a jump behind the question": {"command": {"goto": "tools", "resume": answer("accept")["command"]["resume"]}},
    "other arguments put into the state": {"command": {"update": {"args": {"to": "eve"}}}},
}


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentInboxScenario]:
    with open_agent_inbox_scenario(tmp_path_factory.mktemp("agent-inbox")) as made, run_inbox(made) as world:
        yield world


@pytest.fixture
def effects() -> Iterator[EffectServer]:
    with EffectServer().serve() as counting:
        yield counting


@pytest.fixture(scope="module")
def forged(scenario: AgentInboxScenario) -> dict[str, tuple[str, Any, Any]]:
    """By name: a call that waits, and what came of the forgery as a run and as a stream."""
    waiting = {name: scenario.propose() for name in PAYLOADS}
    steps = [(verb, waiting[name], payload) for name, payload in PAYLOADS.items() for verb in ("run", "stream")]
    results = iter(scenario.run_client(*steps))
    return {name: (waiting[name], next(results), next(results)) for name in PAYLOADS}


def interrupt_value(thread: dict[str, Any]) -> dict[str, Any]:
    """What the web app takes out of a thread."""
    ((interrupt,),) = thread["interrupts"].values()
    (request,) = interrupt["value"]
    return dict(request)


def refusal(result: dict[str, Any]) -> str:
    """Of a stream: the reason is its first event, which the web app shows."""
    first, last = result["told"]
    assert (first["event"], last["event"]) == ("error", "end")
    return str(first["data"]["error"])


# R16, R54
def test_what_waits_is_an_interrupted_thread(scenario: AgentInboxScenario) -> None:
    waiting = scenario.propose(agent="lister", schema=SCHEMA)
    query = {"status": "interrupted", "metadata": {"graph_id": "lister"}, "limit": 10, "offset": 0}
    listed, one, state = scenario.run_client(("search", query), ("get", waiting), ("state", waiting))
    assert listed["told"] == [one["told"]]
    assert (one["told"]["thread_id"], one["told"]["status"]) == (waiting, "interrupted")
    request = interrupt_value(one["told"])
    assert request["action_request"] == {"action": "send", "args": ARGS}
    assert request["config"] == dict.fromkeys(("allow_accept", "allow_edit", "allow_respond", "allow_ignore"), True)
    assert f"/a/{waiting})" in request["description"]
    assert state["told"]["tasks"][0]["interrupts"][0]["value"] == [request]
    assert state["told"]["values"] == one["told"]["values"]


def test_pages_are_parted_by_limit_and_offset(scenario: AgentInboxScenario) -> None:
    made = [scenario.propose(agent="pager") for _ in range(5)]
    of_agent = {"status": "interrupted", "metadata": {"graph_id": "pager"}}
    pages = scenario.run_client(*(("search", {**of_agent, "limit": 2, "offset": at}) for at in (0, 2, 4, 6)))
    assert [[each["thread_id"] for each in page["told"]] for page in pages] == [made[:2], made[2:4], made[4:], []]
    bounds = [{"limit": 101}, {"limit": 0}, {"offset": 1001}, {"offset": -1}, {"limit": "2"}]
    assert [each["status"] for each in scenario.run_client(*(("search", bound) for bound in bounds))] == [400] * 5


def test_a_filter_that_no_thread_has_finds_none(scenario: AgentInboxScenario) -> None:
    scenario.propose()
    filters = [
        EVERYTHING,
        {"graph_id": "nobody"},
        {"assistant_id": NOTHING},
        {**EVERYTHING, "more": 1},
        {"graph_id": 1},
    ]
    found = scenario.run_client(*(("search", {"metadata": each}) for each in filters))
    assert [bool(each["told"]) for each in found] == [True, False, False, False, False]


def test_what_was_decided_is_listed_by_what_came_of_it(scenario: AgentInboxScenario) -> None:
    busy, idle, waiting = [scenario.propose(agent="decided") for _ in range(3)]
    scenario.decide(busy, kind="approve")
    scenario.decide(idle, kind="reject", reason="Not today.")
    of_agent = {"metadata": {"graph_id": "decided"}}
    statuses = ("busy", "idle", "interrupted", "error")
    found = scenario.run_client(*(("search", {**of_agent, "status": each}) for each in statuses), ("search", of_agent))
    *parted, everything = [[each["thread_id"] for each in one["told"]] for one in found]
    assert parted == [[busy], [idle], [waiting], []]
    assert everything == [waiting, idle, busy]
    values = found[1]["told"][0]["values"]
    assert (values["status"], values["decision"]["reason"]) == ("rejected", "` Not today. `")


def test_an_accepted_call_runs_once_with_the_arguments_that_were_shown(
    scenario: AgentInboxScenario, effects: EffectServer
) -> None:
    forged = {"input": {"args": {"to": "eve"}}, "metadata": {"args": {"to": "eve"}}, "config": {"tool": "wipe"}}
    with scenario.agent(effects) as (waiting, agent):
        accept = {**answer("accept", {"action": "send", "args": ARGS}), **forged}
        taken, replayed, again, after = scenario.run_client(
            ("stream", waiting, accept), ("stream", waiting, accept), ("run", waiting, accept), ("get", waiting)
        )
        out, _ = agent.communicate(timeout=TIMEOUT)
    assert [each["event"] for each in taken["told"]] == ["metadata", "values", "end"]
    assert refusal(replayed) == again["error"] == "already_decided"
    assert again["status"] == 409
    assert (after["told"]["interrupts"], out) == ({}, "sent to ann\n")
    assert effects.calls_to("send") == [ARGS]


def test_texts_that_somebody_typed_run_as_what_the_schema_says(
    scenario: AgentInboxScenario, effects: EffectServer
) -> None:
    with scenario.agent(effects) as (waiting, agent):
        (taken,) = scenario.run_client(("stream", waiting, edit_answer(to="cat", count="4", urgent="true")))
        out, _ = agent.communicate(timeout=TIMEOUT)
    assert taken["told"][0]["event"] == "metadata", taken
    assert out == "sent to cat\n"
    assert effects.calls_to("send") == [{"to": "cat", "count": 4, "urgent": True}]


def test_an_ignored_call_does_not_run(scenario: AgentInboxScenario, effects: EffectServer) -> None:
    with scenario.agent(effects) as (waiting, agent):
        (taken,) = scenario.run_client(("run", waiting, answer("ignore")))
        out, _ = agent.communicate(timeout=TIMEOUT)
    assert taken["told"]["status"] == "success"
    assert "Ignored in Agent Inbox." in out
    assert effects.calls_to("send") == []


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"count": "1e999"}, "/count"),
        ({"count": ""}, "/count"),
        ({"urgent": "yes"}, "/urgent"),
        ({"count": "3.5"}, "/count"),
    ],
)
def test_a_typed_text_that_does_not_fit_is_refused_with_its_field(
    scenario: AgentInboxScenario, typed: dict[str, str], field: str
) -> None:
    waiting = scenario.propose()
    streamed, told = scenario.run_client(
        ("stream", waiting, edit_answer(**typed)), ("run", waiting, edit_answer(**typed))
    )
    assert refusal(streamed) == told["error"] == "invalid_decision"
    assert told["status"] == 422
    assert field in told["message"]
    assert streamed["told"][0]["data"] == {name: value for name, value in told.items() if name != "status"}
    assert scenario.show_approval(waiting)["status"] == "pending"
    assert [each["kind"] for each in scenario.show_approval(waiting)["timeline"]].count("decision_refused") == 2


def test_a_response_answers_a_question_and_stands_in_for_a_call(scenario: AgentInboxScenario) -> None:
    colour, number = (
        scenario.ask("Which colour?", choices=["red", "blue"]),
        scenario.ask("How many?", schema={"type": "integer"}),
    )
    call = scenario.propose()
    config = interrupt_value(scenario.run_client(("get", colour))[0]["told"])["config"]
    assert config == {"allow_accept": False, "allow_edit": False, "allow_respond": True, "allow_ignore": False}
    wrong, right, odd, count, said, accepted = scenario.run_client(
        ("run", colour, answer("response", "green")),
        ("run", colour, answer("response", "blue")),
        ("run", number, answer("response", "many")),
        ("run", number, answer("response", "12")),
        ("run", call, answer("response", "Ask again on Monday.")),
        ("run", scenario.ask("Really?"), answer("accept")),
    )
    assert [wrong["status"], odd["status"], accepted["status"]] == [422, 422, 422]
    assert [each["told"]["metadata"]["status"] for each in (right, count, said)] == ["responded"] * 3
    with scenario.server.client(scenario.keys["agent"]) as agent:
        told = [agent.get(f"/api/calls/{each}").json()["message"] for each in (colour, number, call)]
    assert told == ["blue", 12, "Ask again on Monday."]


def test_marked_as_resolved_is_rejected(scenario: AgentInboxScenario) -> None:
    waiting, other = scenario.propose(), scenario.propose()
    resolved, again, values, node = scenario.run_client(
        ("resolve", waiting), ("resolve", waiting), ("resolve", other, {"to": "eve"}), ("resolve", other, None, "tools")
    )
    assert resolved["told"]["checkpoint"]["thread_id"] == waiting
    assert (again["status"], again["error"]) == (409, "already_decided")
    assert [values["status"], node["status"]] == [400, 400]
    shown = scenario.show_approval(waiting)
    assert (shown["status"], shown["decision"]["reason"].split(",")[0]) == (
        "rejected",
        "Marked as resolved in Agent Inbox",
    )
    assert scenario.show_approval(other)["status"] == "pending"


def test_an_expired_call_is_over_at_once(scenario: AgentInboxScenario) -> None:
    """The client would ask again and again after a 410."""
    waiting = scenario.propose("blink")
    wait_until(lambda: scenario.show_approval(waiting)["status"] == "expired", "it expires")
    run, stream, resolve, after = scenario.run_client(
        ("run", waiting, answer("accept")),
        ("stream", waiting, answer("accept")),
        ("resolve", waiting),
        ("get", waiting),
    )
    assert [(each["status"], each["error"]) for each in (run, resolve)] == [(409, "expired")] * 2
    assert refusal(stream) == "expired"
    assert (after["told"]["status"], after["told"]["values"]["status"]) == ("idle", "expired")
    assert not scenario.can_start(waiting)


def test_what_was_decided_elsewhere_stays_decided(scenario: AgentInboxScenario) -> None:
    waiting = scenario.propose()
    scenario.decide(waiting, kind="reject", reason="No.")
    answers = [
        answer("accept"),
        edit_answer(count="4"),
        edit_answer(count="four"),
        answer("response", "Yes."),
        answer("ignore"),
    ]
    late = scenario.run_client(*(("run", waiting, each) for each in answers), ("stream", waiting, answer("accept")))
    assert [(each["status"], each["error"]) for each in late[:-1]] == [(409, "already_decided")] * 5
    assert refusal(late[-1]) == "already_decided"
    assert "ada (reject)" in late[-1]["told"][0]["data"]["message"]
    refused = [each for each in scenario.show_approval(waiting)["timeline"] if each["kind"] == "decision_refused"]
    assert [each["content"]["kind"] for each in refused] == [
        *("approve", "edit", "edit", "respond", "reject", "approve")
    ]  # R41
    assert not scenario.can_start(waiting)


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_forged_answer_is_refused_and_nothing_runs(
    scenario: AgentInboxScenario, forged: dict[str, tuple[str, Any, Any]], name: str
) -> None:
    waiting, run, stream = forged[name]
    assert run.get("status") in (400, 409, 422), run
    assert stream.get("status") == 400 or refusal(stream) == run["error"], stream
    assert not scenario.can_start(waiting)
    assert scenario.show_approval(waiting)["status"] == "pending"


def test_ids_of_nobody_and_of_another_workspace_are_unknown_alike(scenario: AgentInboxScenario) -> None:
    theirs = scenario.propose(keys=scenario.other_keys)
    for thread in (NOTHING, theirs, "not-an-id", "search"):
        steps = [(verb, thread, answer("accept")) for verb in ("get", "state", "run", "stream")]
        found = scenario.run_client(*steps, ("resolve", thread))
        assert [(each["status"], each["error"]) for each in found] == [(404, "not_found")] * 5
    (listed,) = scenario.run_client(("search", {"limit": 100}))
    assert theirs not in [each["thread_id"] for each in listed["told"]]


def test_only_those_decide_who_may(scenario: AgentInboxScenario) -> None:
    exclusive = scenario.propose("wipe", {"disk": "all"})
    config = interrupt_value(scenario.run_client(("get", exclusive))[0]["told"])["config"]
    assert set(config.values()) == {False}
    run, stream, resolve = scenario.run_client(
        ("run", exclusive, answer("accept")), ("stream", exclusive, answer("accept")), ("resolve", exclusive)
    )
    assert [(each["status"], each["error"]) for each in (run, resolve)] == [(403, "forbidden")] * 2
    assert refusal(stream) == "forbidden"
    for role, status in (("agent", 403), ("viewer", 403), ("nobody", 401)):
        steps = [("run", exclusive, answer("accept")), ("stream", exclusive, answer("accept")), ("resolve", exclusive)]
        assert [each["status"] for each in scenario.run_client(*steps, role=role)] == [status] * 3
    assert scenario.show_approval(exclusive)["status"] == "pending"
    (taken,) = scenario.run_client(("run", exclusive, answer("accept")), role="admin")
    assert taken["told"]["metadata"] == {"status": "approved"}


def test_only_what_the_rule_allows_is_offered(scenario: AgentInboxScenario) -> None:
    waiting = scenario.propose("deploy", {"version": "1.2"})
    one, said, made = scenario.run_client(
        ("get", waiting),
        ("run", waiting, answer("response", "Later.")),
        ("run", waiting, answer("edit", {"action": "deploy", "args": {"version": "1.3"}})),
    )
    allowed = {"allow_accept": True, "allow_edit": False, "allow_respond": False, "allow_ignore": True}
    assert interrupt_value(one["told"])["config"] == allowed
    assert [said["status"], made["status"]] == [422, 422]


def test_what_may_deceive_is_accepted_elsewhere(scenario: AgentInboxScenario) -> None:
    waiting = scenario.propose("mail", {"to": "ann@ex\u0430mple.com"})
    one, bare, repeated = scenario.run_client(
        ("get", waiting),
        ("run", waiting, answer("accept")),
        ("run", waiting, answer("accept", {"action": "mail", "args": {"to": "ann@ex\u0430mple.com"}})),
    )
    request = interrupt_value(one["told"])
    assert request["config"]["allow_accept"] is False
    assert "Check carefully" in request["description"]
    assert [bare["error"], repeated["error"]] == ["digest_mismatch", "findings_not_acknowledged"]
    assert scenario.show_approval(waiting)["status"] == "pending"


def test_an_edit_of_somebody_else_is_accepted_only_as_it_is_now(scenario: AgentInboxScenario) -> None:
    waiting = scenario.propose("pay", {"amount": 5})
    scenario.decide(waiting, kind="edit", args={"amount": 50})
    one, bare, old, new_edit, now = scenario.run_client(
        ("get", waiting),
        ("run", waiting, answer("accept")),
        ("run", waiting, answer("accept", {"action": "pay", "args": {"amount": 5}})),
        ("run", waiting, answer("edit", {"action": "pay", "args": {"amount": 6}})),
        ("run", waiting, answer("accept", {"action": "pay", "args": {"amount": 50}})),
    )
    request = interrupt_value(one["told"])
    assert request["action_request"]["args"] == {"amount": 50}
    assert (request["config"]["allow_accept"], request["config"]["allow_edit"]) == (False, False)
    assert [each["error"] for each in (bare, old, new_edit)] == ["digest_mismatch"] * 3
    assert now["told"]["metadata"] == {"status": "approved"}


def test_a_quorum_needs_the_others_too(scenario: AgentInboxScenario) -> None:
    waiting = scenario.propose("pay", {"amount": 5})
    first, again, one = scenario.run_client(
        ("run", waiting, answer("accept")), ("run", waiting, answer("accept")), ("get", waiting)
    )
    assert [first["told"]["metadata"], again["told"]["metadata"]] == [{"status": "pending"}] * 2
    assert interrupt_value(one["told"])["config"]["allow_accept"] is False
    assert not scenario.can_start(waiting)


def test_what_the_web_app_could_not_show_as_it_is_is_accepted_elsewhere(scenario: AgentInboxScenario) -> None:
    """The last would come back as 9007199254740992, in an edit of something else."""
    odd = ({"text": "x" * 70_000}, {"to": list(range(300))}, {"text": "short", "to": [{"account": 2**53 + 1}]})
    change = answer("edit", {"action": "mail", "args": {"text": "short"}})
    waiting = [scenario.propose("mail", args) for args in odd]
    steps = [(("get", each), ("run", each, answer("accept")), ("run", each, change)) for each in waiting]
    results = scenario.run_client(*steps[0], *steps[1], *steps[2])
    for one, *runs in (results[:3], results[3:6], results[6:]):
        request = interrupt_value(one["told"])
        assert request["action_request"]["args"] == {}
        assert (request["config"]["allow_accept"], request["config"]["allow_edit"]) == (False, False)
        assert [(run["status"], run["error"]) for run in runs] == [(422, "invalid_decision")] * 2


def test_a_secret_stays_hidden_and_what_the_agent_hides_is_decided_in_interlock(scenario: AgentInboxScenario) -> None:
    args = {"token": "hunter2-hunter2", "count": 3}
    schema = {"type": "object", "properties": {"token": {"type": "string"}, "count": {"type": "integer"}}}
    waiting = scenario.propose("send", args, secret=["/token"], schema=schema)
    (one,) = scenario.run_client(("get", waiting))
    request = interrupt_value(one["told"])
    shown = request["action_request"]["args"]
    assert "hunter2" not in str(one)
    assert "The agent hides 1 argument from you: token." in request["description"]
    assert (request["config"]["allow_accept"], request["config"]["allow_edit"]) == (False, False)
    typed = {"token": str(shown["token"]).replace("'", '"').replace(" ", ""), "count": "4"}
    (taken,) = scenario.run_client(("run", waiting, answer("edit", {"action": "send", "args": typed})))
    assert taken["error"] == "findings_not_acknowledged"
    assert scenario.show_approval(waiting)["status"] == "pending"


def test_the_page_of_another_site_may_ask_with_a_key_and_look_without_one(scenario: AgentInboxScenario) -> None:
    wanted = {"access-control-request-method": "POST", "access-control-request-headers": "content-type,x-api-key"}
    address = f"/agent-inbox/threads/{scenario.propose()}/runs/stream"
    with scenario.server.client() as browser:
        before = browser.options(address, headers={"origin": ORIGIN, **wanted})
        assert (before.status_code, before.headers["access-control-allow-origin"]) == (204, ORIGIN)
        assert before.headers["access-control-allow-headers"] == "content-type,x-api-key"
        looked = browser.get("/agent-inbox/info", headers={"origin": ORIGIN})
        assert (looked.status_code, looked.headers["access-control-allow-origin"]) == (200, ORIGIN)
        assert looked.json()["host"]["project_id"] is None
        key = {"x-api-key": scenario.keys["reviewer"]}
        done = browser.post(address, headers={"origin": ORIGIN, **key}, json=answer("accept"))
        assert (done.status_code, done.headers["access-control-allow-origin"]) == (200, ORIGIN)
        assert "content-location" in done.headers["access-control-expose-headers"]
        elsewhere = browser.options(address, headers={"origin": "https://evil.example", **wanted})
        assert "access-control-allow-origin" not in elsewhere.headers


def test_the_shortest_program_works_as_the_page_says(
    scenario: AgentInboxScenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a workspace of its own: it accepts all that waits."""
    (program,) = re.findall(r"^```js\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (printed,) = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    script = tmp_path / "inbox.mjs"
    script.write_text(program)
    waiting = scenario.propose("create_issue", {"title": "Fix login", "labels": ["bug"]}, scenario.empty_keys)
    monkeypatch.setenv("SERVER", scenario.server.url)
    monkeypatch.setenv("KEY", scenario.empty_keys["reviewer"])
    with start_node_client(script, tmp_path, {}) as process:
        out, err = process.communicate(timeout=TIMEOUT)
    assert (out, err) == (printed, "")
    assert scenario.can_start(waiting, scenario.empty_keys)
