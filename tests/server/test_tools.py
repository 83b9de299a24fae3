"""The tools that are known, over HTTP: what they are, and whether they ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from interlock.config.models import AgentSettings, Settings
from interlock.core.identity import Principal
from interlock.server.state import ServerState
from tests.server.conftest import ClientFactory
from tests.server.test_calls import decide, propose
from tests.support import Clock
from tests.tools.mcp_harness import server_settings


@pytest.fixture
def settings() -> Settings:
    return Settings(agents={"bot": AgentSettings(tools=("delete_file",), tool_approvals={"delete_file": False})})


@pytest.fixture
def ada(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["admin"])


@pytest.fixture
def bob(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["reviewer"])


@pytest.fixture
def agent(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["agent"])


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
    assert names == ["assistant", "bot", "other"]


@pytest.mark.postgres_smoke
async def test_tools_come_in_pages_and_can_be_searched(ada: httpx2.AsyncClient, agent: httpx2.AsyncClient) -> None:
    for n in range(5):
        await propose(agent, call_id=f"call{n}", tool=f"tool_{n}")
    first = (await ada.get("/api/tools", params={"q": "TOOL_", "limit": "3"})).json()
    assert [tool["name"] for tool in first["items"]] == ["tool_0", "tool_1", "tool_2"]
    rest = (await ada.get("/api/tools", params={"q": "TOOL_", "cursor": first["next"]})).json()
    assert ([tool["name"] for tool in rest["items"]], rest["next"]) == (["tool_3", "tool_4"], None)


async def test_tools_of_packs_say_what_they_are_and_whether_they_ask(ada: httpx2.AsyncClient) -> None:  # R9, R10
    found = (await ada.get("/api/tools", params={"q": "cms_", "agent": "assistant"})).json()["items"]
    tools = {tool["name"]: tool for tool in found}
    read, delete = tools["cms_read_page"], tools["cms_delete_page"]
    assert (read["source"], read["pack"], read["effect"], read["confirm"]) == ("pack", "cms", "read", "")
    assert (read["asks_by_default"], read["verdict"], read["offered"]) == (False, "allow", True)
    assert (delete["effect"], delete["confirm"], delete["asks_by_default"]) == ("destructive", "chat", True)
    assert (delete["verdict"], delete["switch"], delete["may_switch_off"]) == ("ask", None, True)
    assert delete["schema"]["required"] == ["slug"]
    assert delete["description"].endswith(".")
    assert delete["seen_at"] is None


async def test_agents_are_tools_and_a_question_always_asks(ada: httpx2.AsyncClient) -> None:  # R13, R37
    tools = {tool["name"]: tool for tool in (await ada.get("/api/tools")).json()["items"]}
    assert (tools["agent_bot"]["source"], tools["agent_bot"]["pack"]) == ("agent", None)
    question = tools["request_human_input"]
    assert (question["pack"], question["verdict"], question["may_switch_off"]) == ("ask_human", "ask", False)
    assert question["offered"] is None


CONDITIONAL = """\
version: 1
rules:
  - {name: small is free, tools: [okr_update_objective], when: size(args.title) < 5, then: allow}
  - {name: no deleting, tools: [cms_delete_*], then: deny}
  - {name: legal, tools: [okr_create_objective], then: ask, approvers: {teams: [legal]}}
"""


async def test_the_verdict_is_that_of_the_policy_and_the_agents_switches(
    ada: httpx2.AsyncClient, bob: httpx2.AsyncClient
) -> None:  # R9, R10
    await ada.post("/api/users", json={"name": "liz", "role": "reviewer", "teams": ["legal"]})
    await ada.put("/api/policy", content=CONDITIONAL, headers={"content-type": "application/yaml"})
    await ada.put("/api/agents/bot", json={"tools": ["okr"], "tool_approvals": {"okr_list_objectives": True}})
    found = (await bob.get("/api/tools", params={"agent": "bot"})).json()["items"]
    tools = {tool["name"]: tool for tool in found}
    assert tools["okr_update_objective"]["verdict"] == "depends"
    assert tools["cms_delete_page"]["verdict"] == "deny"
    assert (tools["okr_list_objectives"]["verdict"], tools["okr_list_objectives"]["switch"]) == ("ask", True)
    assert tools["okr_create_objective"]["may_switch_off"] is False
    assert tools["okr_update_objective"]["may_switch_off"] is True
    assert (tools["cms_delete_page"]["offered"], tools["okr_create_objective"]["offered"]) == (False, True)


async def test_the_tools_of_one_agent_come_alone_and_in_pages(ada: httpx2.AsyncClient) -> None:  # R10
    await ada.put("/api/agents/bot", json={"tools": ["okr", "cms_list_*"], "agents": ["assistant"]})
    wanted = {"agent": "bot", "offered": "true", "limit": "4"}
    names: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await ada.get("/api/tools", params={**wanted, "cursor": cursor})).json()
        names += [tool["name"] for tool in page["items"]]
        cursor = page["next"]
    assert names == sorted(names)
    assert {"agent_assistant", "cms_list_posts", "okr_create_objective"} <= set(names)
    assert not [name for name in names if not name.startswith(("agent_assistant", "cms_list_", "okr_"))]
    unknown = await ada.get("/api/tools", params={"agent": "nobody"})
    assert unknown.status_code == 404
    assert unknown.json()["message"] == "There is no agent 'nobody'. See the Agents page."


async def test_an_agent_that_is_known_from_its_calls_has_the_tools_that_it_called(
    ada: httpx2.AsyncClient, agent: httpx2.AsyncClient
) -> None:  # R10
    await propose(agent, tool="pay", agent="clerk")
    await propose(agent, tool="send", agent="other", call_id="other")
    own = (await ada.get("/api/tools", params={"agent": "clerk", "offered": "true"})).json()["items"]
    assert [tool["name"] for tool in own] == ["pay"]
    others = (await ada.get("/api/tools", params={"agent": "clerk", "offered": "false"})).json()["items"]
    assert "send" in {tool["name"] for tool in others}


async def test_a_viewer_sees_the_tools_and_switches_none(client: ClientFactory, keys: dict[str, str]) -> None:  # R10
    tools = (await client(keys["viewer"]).get("/api/tools", params={"agent": "bot"})).json()["items"]
    assert tools
    assert not any(tool["may_switch_off"] for tool in tools)


class TestWithMcp:
    """A real server, started as the configuration names it."""

    @pytest.fixture
    def settings(self, tmp_path: Path) -> Iterator[Settings]:
        with server_settings("child", tmp_path) as server:
            yield Settings(mcp_servers={"small": server})

    async def test_tools_of_an_mcp_server_ask_and_are_chosen_by_its_name(
        self, state: ServerState, ada: httpx2.AsyncClient
    ) -> None:  # R9, R54
        async with state.assistant.open():
            assert state.assistant.mcp is not None
            await state.assistant.mcp.wait_attempted()
            put = await ada.put("/api/agents/helper", json={"tools": ["mcp:small"]})
            assert put.json()["warnings"] == []
            found = (await ada.get("/api/tools", params={"agent": "helper", "offered": "true"})).json()["items"]
        assert found
        assert {tool["source"] for tool in found} == {"mcp:small"}
        assert {(tool["asks_by_default"], tool["verdict"], tool["pack"]) for tool in found} == {(True, "ask", None)}
        assert not any(tool["may_switch_off"] for tool in found)  # nobody declared what they do
        assert not any(key.startswith("x-") for tool in found for key in tool["schema"])


async def test_without_a_model_the_chat_says_what_to_do(state: ServerState) -> None:  # R9
    doors = await state.workspaces.services("default")
    ann = Principal("default", "ann", "reviewer")
    thread = await state.assistant.threads.say(doors, ann, "hello")
    await state.assistant.loop.sweep()
    await state.assistant.loop.wait_idle()
    [ended] = [line.body for line in await state.store.threads.entries("default", thread.id) if line.kind == "ended"]
    assert ended["status"] == "error"
    assert "OPENAI_API_KEY" in str(ended["reason"])


async def test_a_verdict_comes_with_its_reasons_and_the_terms_of_the_question(ada: httpx2.AsyncClient) -> None:  # R10
    await ada.post("/api/users", json={"name": "liz", "role": "reviewer", "teams": ["legal"]})
    await ada.put("/api/policy", content=CONDITIONAL, headers={"content-type": "application/yaml"})
    await ada.put("/api/agents/bot", json={"tools": ["okr"], "tool_approvals": {"okr_list_objectives": True}})
    found = (await ada.get("/api/tools", params={"agent": "bot"})).json()["items"]
    reasons = {tool["name"]: tool["reasons"] for tool in found}
    small, rest = reasons["okr_update_objective"]
    assert (small["verdict"], small["by"], small["rule"], small["conditional"]) == (
        "allow",
        "rule",
        "small is free",
        True,
    )
    assert (rest["verdict"], rest["by"], rest["rule"], rest["conditional"]) == ("ask", "default", "", False)
    [legal] = reasons["okr_create_objective"]
    assert (legal["needs"], legal["expires_in"]) == ("1 person: team legal", "10m")
    assert legal["answers"] == ["approve", "edit", "respond", "reject"]
    [switched] = reasons["okr_list_objectives"]
    assert (switched["verdict"], switched["by"]) == ("ask", "switch")
    always = {tool["name"]: tool["always_asks"] for tool in found}
    assert always["request_human_input"] == "a question is always for a person"
    assert always["okr_list_objectives"] == ""


@pytest.mark.postgres_smoke
async def test_how_often_a_tool_was_called_is_counted_by_outcome(
    ada: httpx2.AsyncClient, bob: httpx2.AsyncClient, agent: httpx2.AsyncClient, clock: Clock
) -> None:  # R10
    await propose(agent, tool="send", call_id="old")
    clock.advance(31 * 86_400_000)
    for number, kind in enumerate(("approve", "reject", "")):
        told = await propose(agent, tool="send", call_id=f"call{number}")
        if kind:
            await decide(bob, told, kind)
    await propose(agent, tool="send", call_id="elsewhere", agent="other")
    counted = (await bob.get("/api/tools/send/calls", params={"agent": "bot"})).json()
    assert counted["by_status"] == {"approved": 1, "pending": 1, "rejected": 1}
    assert (counted["reads"], counted["complete"]) == (0, True)
    whole = (await bob.get("/api/tools/send/calls", params={"days": "60"})).json()
    assert whole["by_status"]["pending"] == 3
    unknown = await bob.get("/api/tools/unheard_of/calls")
    assert unknown.status_code == 404
    assert unknown.json()["message"] == "There is no tool 'unheard_of'. See the Agents page, or: interlock tools list"
    odd = "a/b/calls"
    await propose(agent, tool=odd, call_id="odd")
    assert (await bob.get(f"/api/tools/{odd}/calls")).json()["by_status"] == {"pending": 1}
