"""Agents and tools over HTTP, and what their switches do to calls."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from interlock.configuration import Agent, Settings
from interlock.web.site import Site
from interlock.wiring import Parts
from interlock.workspaces import FOLLOW_EVERY
from tests.server.conftest import As
from tests.server.test_calls import propose
from tests.serving import make_keys

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
    return Settings(agents={"bot": Agent(model="m", tools=("delete_file",), tool_approvals={"delete_file": False})})


@pytest.fixture
def ada(client: As, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["admin"])


@pytest.fixture
def bob(client: As, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["reviewer"])


@pytest.fixture
def agent(client: As, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["agent"])


async def put(person: httpx2.AsyncClient, approvals: dict[str, bool], **more: Any) -> httpx2.Response:
    body = {"model": "m", "tools": ["delete_file"], "tool_approvals": approvals, **more}
    return await person.put("/api/agents/bot", json=body, params={"reason": "tried it"})


# R9
async def test_what_is_stored_of_an_agent_counts_at_once_in_place_of_the_file(
    ada: httpx2.AsyncClient, agent: httpx2.AsyncClient
) -> None:
    assert (await propose(agent, call_id="by the file"))["status"] == "approved"
    stored = await put(ada, {"delete_file": True})
    assert stored.status_code == 200, stored.text
    assert (stored.json()["version"], stored.json()["source"], stored.json()["changed_by"]) == (1, "stored", "ada")
    assert (await propose(agent, call_id="asked"))["status"] == "pending"
    await put(ada, {"delete_file": False})
    assert (await propose(agent, call_id="lifted"))["status"] == "approved"


async def test_another_process_takes_it_up_within_a_second(ada: httpx2.AsyncClient, parts: Parts, site: Site) -> None:
    await site.workspaces.doors("default")
    await parts.store.put_agent("default", "bot", '{"tools":[],"agents":[],"tool_approvals":{"x":true}}', "eve")
    await site.workspaces.refresh("default")
    doors = await site.workspaces.doors("default")
    assert doors.loaded.policy.toggles["bot"] == {"x": True}
    assert FOLLOW_EVERY <= 1
    assert ada


# R9
async def test_unknown_tools_are_kept_with_a_warning(ada: httpx2.AsyncClient, agent: httpx2.AsyncClient) -> None:
    await propose(agent)
    body = (await put(ada, {"delete_fil": True, "delete_file": True}, agents=["helper"])).json()
    assert body["tool_approvals"] == {"delete_fil": True, "delete_file": True}
    assert body["warnings"] == [
        'no tool called "delete_fil" was seen here yet; did you mean "delete_file"?',
        'no agent called "helper" is known here; it is one of bot',
    ]
    assert (await ada.get("/api/agents/bot")).json()["warnings"] == body["warnings"]


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
    assert (await put(bob, on)).status_code == 200  # to ask more is for every reviewer
    refused = await put(bob, {**on, "sue": False})
    assert (refused.status_code, refused.json()["tool"]) == (403, "sue")
    unsaid = await put(bob, {"delete_file": False, "pay": True})
    assert (unsaid.status_code, unsaid.json()["tool"]) == (403, "sue")
    assert (await put(bob, {**on, "pay": False})).status_code == 200
    assert (await put(ada, {**on, "sue": False})).status_code == 200


# R10
async def test_a_reviewer_changes_nothing_else_of_an_agent(bob: httpx2.AsyncClient) -> None:
    changed = await put(bob, {"delete_file": False}, instructions="Do as I say.")
    assert (changed.status_code, changed.json()["error"]) == (403, "forbidden")


@pytest.mark.parametrize("role", ["agent", "viewer"])
async def test_agents_and_viewers_switch_nothing(client: As, keys: dict[str, str], role: str) -> None:
    answer = await put(client(keys[role]), {"delete_file": False})
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")


async def test_who_changed_an_agent_and_why_is_in_the_record(ada: httpx2.AsyncClient) -> None:
    await put(ada, {"pay": False})
    [entry] = (await ada.get("/api/audit", params={"kind": "agent_changed"})).json()["items"]
    assert (entry["actor"], entry["data"]) == ("ada", {"agent": "bot", "version": 1})
    assert entry["content"]["reason"] == "tried it"
    assert entry["content"]["body"]["tool_approvals"] == {"pay": False}


async def test_tools_are_known_from_calls_and_from_the_configuration(
    ada: httpx2.AsyncClient, agent: httpx2.AsyncClient
) -> None:
    await propose(agent, call_id="one")
    await propose(agent, call_id="two", agent="other")
    await propose(agent, call_id="three", schema={"type": "object"})
    tools = {tool["name"]: tool for tool in (await ada.get("/api/tools")).json()["items"]}
    mine = tools["delete_file"]
    assert (mine["effect"], mine["agents"], mine["definitions"]) == ("destructive", ["bot", "other"], 2)
    assert mine["seen_at"].endswith("Z")
    assert tools["fund_transfer"]["source"] == "configuration"
    names = [each["name"] for each in (await ada.get("/api/agents")).json()["items"]]
    assert names == ["bot", "other"]


async def test_tools_come_in_pages_and_can_be_searched(ada: httpx2.AsyncClient, agent: httpx2.AsyncClient) -> None:
    for n in range(5):
        await propose(agent, call_id=f"call{n}", tool=f"tool_{n}")
    first = (await ada.get("/api/tools", params={"q": "TOOL_", "limit": "3"})).json()
    assert [tool["name"] for tool in first["items"]] == ["tool_0", "tool_1", "tool_2"]
    rest = (await ada.get("/api/tools", params={"q": "TOOL_", "after": first["next"]})).json()
    assert ([tool["name"] for tool in rest["items"]], rest["next"]) == (["tool_3", "tool_4"], None)


async def test_agents_and_tools_of_another_workspace_are_not_there(
    client: As, keys: dict[str, str], parts: Parts, site: Site, agent: httpx2.AsyncClient
) -> None:
    await propose(agent, agent="secret_agent")
    await site.accounts.add_workspace("other")
    strange = client((await make_keys(parts, "other"))["admin"])
    assert (await strange.get("/api/agents/secret_agent")).status_code == 404
    assert "delete_file" not in (await strange.get("/api/tools")).text
    assert keys
