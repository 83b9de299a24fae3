"""Agents and tools over HTTP, and what their switches do to calls."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.app.workspaces import REFRESH_INTERVAL
from interlock.config.models import AgentSettings, Settings
from interlock.core.call import ToolSpec
from interlock.core.errors import Misconfigured
from interlock.core.ports import User
from interlock.demo.workspace import DEMO
from interlock.server.serve import make_server_state
from interlock.server.state import ServerState
from tests.interlock_server import make_keys
from tests.server.conftest import ClientFactory
from tests.server.test_calls import propose

MODEL = "demo:scripted"
POLICY = """\
version: 1
rules:
  - name: payments
    tools: [pay]
    then: ask
    approvers: {teams: [finance]}
  - name: laws
    tools: [sue]
    then: ask
    approvers: {teams: [legal]}
"""


@pytest.fixture
def settings() -> Settings:
    return Settings(
        agents={"bot": AgentSettings(model=MODEL, tools=("delete_file",), tool_approvals={"delete_file": False})}
    )


@pytest.fixture
def ada(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["admin"])


@pytest.fixture
def bob(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["reviewer"])


@pytest.fixture
def agent(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["agent"])


async def put_approvals(person: httpx2.AsyncClient, approvals: dict[str, bool], **more: Any) -> httpx2.Response:
    body = {"model": MODEL, "tools": ["delete_file"], "tool_approvals": approvals, **more}
    return await person.put("/api/agents/bot", json=body, params={"reason": "tried it"})


# R9
async def test_what_is_stored_of_an_agent_counts_at_once_in_place_of_the_file(
    ada: httpx2.AsyncClient, agent: httpx2.AsyncClient
) -> None:
    assert (await propose(agent, call_id="by the file"))["status"] == "approved"
    stored = await put_approvals(ada, {"delete_file": True})
    assert stored.status_code == 200, stored.text
    assert (stored.json()["version"], stored.json()["source"], stored.json()["changed_by"]) == (1, "stored", "ada")
    assert (await propose(agent, call_id="asked"))["status"] == "pending"
    await put_approvals(ada, {"delete_file": False})
    assert (await propose(agent, call_id="lifted"))["status"] == "approved"


async def test_another_process_takes_it_up_within_a_second(
    ada: httpx2.AsyncClient, services: AppServices, state: ServerState
) -> None:
    await state.workspaces.services("default")
    await services.store.put_agent("default", "bot", '{"tools":[],"agents":[],"tool_approvals":{"x":true}}', "eve")
    await state.workspaces.refresh("default")
    doors = await state.workspaces.services("default")
    assert doors.loaded_policy.policy.toggles["bot"] == {"x": True}
    assert REFRESH_INTERVAL <= 1
    assert ada


# R9
async def test_unknown_tools_are_kept_with_a_warning(ada: httpx2.AsyncClient, agent: httpx2.AsyncClient) -> None:
    await propose(agent)
    tools = ["delete_file", "cms", "linear_*", "okr_list_objectivs", "*"]
    body = (await put_approvals(ada, {"delete_fil": True, "delete_file": True}, tools=tools)).json()
    assert body["tool_approvals"] == {"delete_fil": True, "delete_file": True}
    assert body["warnings"] == [
        'there is no tool "linear_*" here, so it is ignored',  # without its key the pack has none
        'there is no tool "okr_list_objectivs" here, so it is ignored; did you mean "okr_list_objectives"?',
        'tool_approvals names "delete_fil", which is no tool here, so it is ignored; did you mean "delete_file"?',
    ]
    assert (await ada.get("/api/agents/bot")).json()["warnings"] == body["warnings"]


@pytest.mark.postgres_smoke
async def test_what_was_changed_meanwhile_is_not_replaced(ada: httpx2.AsyncClient) -> None:
    seen = (await ada.get("/api/agents/bot")).headers["etag"]
    assert seen == '"0"'
    body = {"tool_approvals": {"pay": True}}
    first = await ada.put("/api/agents/bot", json=body, headers={"if-match": seen})
    assert (first.status_code, first.headers["etag"]) == (200, '"1"')
    late = await ada.put("/api/agents/bot", json={}, headers={"if-match": seen})
    assert (late.status_code, late.json()["error"]) == (409, "stale")


# R10
async def test_a_reviewer_lifts_only_what_they_may_approve(ada: httpx2.AsyncClient, bob: httpx2.AsyncClient) -> None:
    await ada.post("/api/users", json={"name": "liz", "role": "reviewer", "teams": ["legal"]})
    ruled = await ada.put("/api/policy", content=POLICY, headers={"content-type": "application/yaml"})
    assert ruled.status_code == 200, ruled.text
    on = {"delete_file": False, "pay": True, "sue": True}
    assert (await put_approvals(bob, on)).status_code == 200  # to ask more is for every reviewer
    refused = await put_approvals(bob, {**on, "sue": False})
    assert (refused.status_code, refused.json()["tool"]) == (403, "sue")
    unsaid = await put_approvals(bob, {"delete_file": False, "pay": True})
    assert (unsaid.status_code, unsaid.json()["tool"]) == (403, "sue")
    assert (await put_approvals(bob, {**on, "pay": False})).status_code == 200
    assert (await put_approvals(ada, {**on, "sue": False})).status_code == 200


# R10
async def test_a_reviewer_changes_nothing_else_of_an_agent(bob: httpx2.AsyncClient) -> None:
    changed = await put_approvals(bob, {"delete_file": False}, instructions="Do as I say.")
    assert (changed.status_code, changed.json()["error"]) == (403, "forbidden")


@pytest.mark.parametrize("role", ["agent", "viewer"])
async def test_agents_and_viewers_switch_nothing(client: ClientFactory, keys: dict[str, str], role: str) -> None:
    answer = await put_approvals(client(keys[role]), {"delete_file": False})
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")


async def test_who_changed_an_agent_and_why_is_in_the_record(ada: httpx2.AsyncClient) -> None:
    await put_approvals(ada, {"pay": False})
    [entry] = (await ada.get("/api/audit", params={"kind": "agent_changed"})).json()["items"]
    assert (entry["actor"], entry["data"]["agent"], entry["data"]["version"]) == ("ada", "bot", 1)
    assert entry["content"]["reason"] == "tried it"
    assert entry["content"]["body"]["tool_approvals"] == {"pay": False}


@pytest.mark.parametrize(
    ("body", "pointer", "words"),
    [
        ({"model": "gpt-5"}, "/model", "provider:name"),
        ({"limits": {"turns": "20"}}, "/limits/turns", "whole number from 1 to 1,000"),
        ({"limits": {"time": "2d"}}, "/limits/time", "from 1s to 1d"),
        ({"limits": {"tunrs": 5}}, "/limits/tunrs", 'did you mean "turns"?'),
        ({"agents": ["bot"]}, "/agents/0", "lists itself"),
        ({"agents": ["assistent"]}, "/agents/0", 'did you mean "assistant"?'),
        ({"agents": ["elsewhere"]}, "/agents/0", "unknown agent"),
        ({"tool_aprovals": {}}, "", 'did you mean "tool_approvals"?'),
    ],
)
async def test_an_agent_that_could_not_be_used_is_refused_with_what_is_meant(
    ada: httpx2.AsyncClient, agent: httpx2.AsyncClient, body: dict[str, Any], pointer: str, words: str
) -> None:  # R9, R13
    await propose(agent, agent="elsewhere")
    answer = await ada.put("/api/agents/bot", json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    [problem] = answer.json()["problems"]
    assert problem["pointer"] == pointer
    assert words in problem["message"]
    assert (await ada.get("/api/agents/bot")).json()["version"] == 0


async def test_agents_that_would_call_each_other_in_a_circle_are_refused(ada: httpx2.AsyncClient) -> None:  # R13
    assert (await ada.put("/api/agents/one", json={"agents": ["bot"]})).status_code == 200
    circle = await ada.put("/api/agents/bot", json={"agents": ["one"]})
    assert (circle.status_code, "circle" in circle.json()["message"]) == (400, True)


async def test_what_is_left_out_stays_as_the_file_has_it(ada: httpx2.AsyncClient) -> None:  # R9
    await ada.put("/api/agents/bot", json={"instructions": "Be kind."})
    shown = (await ada.get("/api/agents/bot")).json()
    assert (shown["instructions"], shown["tools"], shown["model"]) == ("Be kind.", ["delete_file"], MODEL)
    assert shown["tool_approvals"] == {"delete_file": False}
    await ada.put("/api/agents/bot", json={"tools": [], "tool_approvals": {}})
    shown = (await ada.get("/api/agents/bot")).json()
    assert (shown["instructions"], shown["tools"], shown["tool_approvals"]) == ("", [], {})


async def test_switches_that_are_left_out_hold_as_the_file_has_them(
    ada: httpx2.AsyncClient, agent: httpx2.AsyncClient
) -> None:  # R9
    await ada.put("/api/agents/bot", json={"instructions": "Be kind."})
    assert (await propose(agent, call_id="by the file"))["status"] == "approved"
    await ada.put("/api/agents/bot", json={"tool_approvals": {}})
    assert (await propose(agent, call_id="by default"))["status"] == "pending"


async def test_a_switch_that_is_set_later_counts_when_a_call_is_started(
    state: ServerState, ada: httpx2.AsyncClient, agent: httpx2.AsyncClient
) -> None:  # R56
    """The policy has the same digest as before: what was judged by the other switches is judged again."""
    rules = "rules:\n  - {name: nobody destroys, then: deny, effect: destructive}\n  - {name: rest, then: ask}\n"
    await state.workspaces.put_policy("default", f"version: 1\n{rules}", "ada")
    told = await propose(agent, tool="shred", effect="write", agent="bot")
    yes = {"kind": "approve", "args_sha256": told["args_sha256"]}
    assert (await ada.post(f"/api/approvals/{told['approval_id']}/decision", json=yes)).status_code == 200
    assert (await ada.put("/api/agents/bot", json={"tool_approvals": {"shred": True}})).status_code == 200
    refused = await agent.post(f"/api/calls/{told['approval_id']}/start", json={})
    assert (refused.status_code, refused.json()["error"]) == (409, "denied_now")


async def test_a_policy_that_does_not_load_keeps_no_people_and_pins_back(
    services: AppServices, state: ServerState, ada: httpx2.AsyncClient
) -> None:
    """As after another server's upgrade: what is stored has a rule that this one does not know."""
    assert ada
    await services.store.put_policy("default", "0" * 64, "version: 1\nrules: [{name: x, then: fly}]\n", "eve")
    await services.store.put_user("default", User("zoe", "viewer", teams=frozenset({"legal"})), "eve")
    await services.store.pin("default", [ToolSpec("shred", "destructive")], "", "eve")
    with pytest.raises(Misconfigured):
        await state.workspaces.refresh("default")
    doors = await state.workspaces.services("default")
    assert doors.people["zoe"].teams == {"legal"}
    assert doors.pins.find("shred") is not None
    assert doors.snapshot.policy is None or doors.snapshot.policy.sha256 != "0" * 64


async def test_the_built_in_agent_is_listed_and_can_be_changed(ada: httpx2.AsyncClient) -> None:  # R9
    built_in = (await ada.get("/api/agents/assistant")).json()
    assert (built_in["source"], built_in["version"], built_in["tools"]) == ("built-in", 0, ["*"])
    changed = (await ada.put("/api/agents/assistant", json={"tool_approvals": {"okr_create_objective": False}})).json()
    assert (changed["source"], changed["tools"], changed["warnings"]) == ("stored", ["*"], [])


async def test_a_switch_that_a_caller_overrules_is_said(ada: httpx2.AsyncClient) -> None:  # R13
    await ada.put("/api/agents/parent", json={"agents": ["bot"], "tool_approvals": {"okr_create_objective": True}})
    body = (await put_approvals(ada, {"okr_create_objective": False})).json()
    [warning] = [line for line in body["warnings"] if "okr" in line]
    assert warning.endswith("has no effect when bot is called by parent, for which it asks")


async def test_the_agents_of_the_demo_are_built_in(services: AppServices) -> None:  # R13
    state = await make_server_state(Settings(), services, demo=DEMO)
    known = state.assistant.agents.all({})
    assert {name: each.origin for name, each in known.items()} == {"assistant": "built-in", "writer": "built-in"}
    assert known["assistant"].agent.agents == ("writer",)


async def test_a_server_does_not_start_with_wrong_settings_of_a_pack(services: AppServices) -> None:  # R7, R30
    state = await make_server_state(Settings(tools={"http": {"allow": "example.com"}}), services)
    with pytest.raises(Misconfigured, match=r"tools\.http\.allow is a list"):
        async with state.assistant.open():
            pass


async def test_agents_and_tools_of_another_workspace_are_not_there(
    client: ClientFactory, keys: dict[str, str], services: AppServices, state: ServerState, agent: httpx2.AsyncClient
) -> None:
    await propose(agent, agent="secret_agent")
    await state.accounts.add_workspace("other")
    strange = client((await make_keys(services, "other"))["admin"])
    assert (await strange.get("/api/agents/secret_agent")).status_code == 404
    assert "delete_file" not in (await strange.get("/api/tools")).text
    assert keys


async def test_an_agent_says_which_of_its_fields_were_changed_here(ada: httpx2.AsyncClient) -> None:  # R9
    assert (await ada.get("/api/agents/bot")).json()["stored"] == []
    changed = (await ada.put("/api/agents/bot", json={"tool_approvals": {"delete_file": True}})).json()
    assert (changed["stored"], changed["tools"]) == (["tool_approvals"], ["delete_file"])


async def test_only_admins_create_agents(ada: httpx2.AsyncClient, bob: httpx2.AsyncClient) -> None:  # R10
    """Else a reviewer could take a name that looks like one to come, or set the switches of an unknown agent."""
    refused = await bob.put("/api/agents/payments-bot", json={"tool_approvals": {"pay": False}})
    assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    assert (await ada.get("/api/agents/payments-bot")).status_code == 404
    assert (await ada.put("/api/agents/payments-bot", json={})).status_code == 200
    assert (await bob.put("/api/agents/payments-bot", json={"tool_approvals": {"pay": True}})).status_code == 200
