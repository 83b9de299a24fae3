"""Creating, copying and deleting agents over HTTP: what is said before, what ends, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from interlock.chat import assistant, providers
from interlock.config.models import AgentSettings, Settings
from interlock.core.call import ToolSpec
from interlock.core.call import propose as make_call
from interlock.core.chat.transcript import ToolRequest
from interlock.core.identity import Principal
from interlock.server.middleware import RequestMiddleware
from interlock.server.routes import agents
from interlock.server.state import ServerState
from tests.server.chat_harness import ScriptedModel, StreamReader, run_chat_loop
from tests.server.conftest import ClientFactory
from tests.server.test_calls import propose

BODY = {"model": "demo:scripted", "tools": ["cms", "okr"], "tool_approvals": {"cms_list_pages": True}}
AT = "/api/agents/night"


@pytest.fixture
def settings() -> Settings:
    return Settings(
        agents={"bot": AgentSettings(instructions="From the file.", tools=("okr",), agents=("helper",))} | HELPER
    )


HELPER = {"helper": AgentSettings()}


@pytest.fixture
def ada(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["admin"])


@pytest.fixture
def agent(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["agent"])


async def put(
    person: httpx2.AsyncClient, name: str = "night", headers: dict[str, str] | None = None, **body: Any
) -> Any:
    answer = await person.put(f"/api/agents/{name}", json=body or BODY, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


@asynccontextmanager
async def pending_call(app: RequestMiddleware, state: ServerState, key: str) -> AsyncIterator[tuple[str, str]]:
    """A conversation with the agent in which an approval is pending: the ids of both."""
    call = ToolRequest("c1", "okr_create_objective", '{"title": "Grow"}')
    async with run_chat_loop(state, ScriptedModel(["I write it down.", call], ["Done."])):
        stream = await StreamReader(app, key, "POST", "/api/chat", message="go", agent="night").wait_started()
        while (event := await stream.next_event()).name != "approval_request":
            pass
        yield stream.thread_id, event.data["approval"]["id"]
        await stream.read_all()


# R9
async def test_an_agent_made_here_is_deleted_and_its_name_is_free_again(ada: httpx2.AsyncClient) -> None:
    assert (await put(ada))["base"] is None
    gone = await ada.delete(AT, params={"reason": "Not needed."})
    assert (gone.status_code, gone.json()) == (200, {"name": "night", "remains_as": None, "cancelled": []})
    assert (await ada.get(AT)).status_code == 404
    assert "night" not in [each["name"] for each in (await ada.get("/api/agents")).json()["items"]]
    assert (await ada.delete(AT)).status_code == 404
    [entry] = (await ada.get("/api/audit", params={"kind": "agent_deleted"})).json()["items"]
    assert (entry["actor"], entry["data"]["agent"], entry["content"]["reason"]) == ("ada", "night", "Not needed.")
    again = await put(ada, headers={"if-none-match": "*"}, tools=["okr"])
    assert (again["version"], again["tool_approvals"], again["tools"]) == (3, {}, ["okr"])


# R9
async def test_deleting_the_changes_of_a_configured_agent_restores_the_file(ada: httpx2.AsyncClient) -> None:
    assert (await put(ada, "bot", instructions="Changed."))["base"] == "configuration"
    told = (await ada.get("/api/agents/bot/dependents")).json()
    assert (told["remains_as"], told["blocked"]) == ("configuration", "")
    assert told["consequences"] == ["It returns to its settings in the configuration file."]
    assert (await ada.delete("/api/agents/bot")).json()["remains_as"] == "configuration"
    shown = await ada.get("/api/agents/bot")
    assert (shown.json()["instructions"], shown.json()["source"]) == ("From the file.", "configuration")
    assert shown.headers["etag"] == '"0"'


@pytest.mark.parametrize(
    ("name", "words"), [("bot", "configuration file"), ("assistant", "built in"), ("elsewhere", "outside of Interlock")]
)
async def test_what_is_not_stored_here_is_not_deleted(
    ada: httpx2.AsyncClient, agent: httpx2.AsyncClient, name: str, words: str
) -> None:  # R9
    await propose(agent, agent="elsewhere")
    refused = await ada.delete(f"/api/agents/{name}")
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    assert words in refused.json()["message"]
    assert (await ada.get(f"/api/agents/{name}/dependents")).json()["blocked"] == refused.json()["message"]


# R9
async def test_an_external_agent_stays_known_without_its_switches(
    ada: httpx2.AsyncClient, agent: httpx2.AsyncClient
) -> None:
    await propose(agent, agent="elsewhere")
    assert (await put(ada, "elsewhere", tool_approvals={"delete_file": True}))["base"] == "calls"
    assert (await ada.delete("/api/agents/elsewhere")).json()["remains_as"] == "calls"
    assert (await ada.get("/api/agents/elsewhere")).json()["source"] == "calls"


# R13
async def test_an_agent_that_others_call_is_not_deleted(ada: httpx2.AsyncClient) -> None:
    await put(ada)
    await put(ada, "boss", agents=["night"])
    refused = await ada.delete(AT)
    assert (refused.status_code, refused.json()["agents"]) == (409, ["boss"])
    assert "boss may call night" in refused.json()["message"]
    await put(ada, "boss", agents=[])
    assert (await ada.delete(AT)).status_code == 200


def interrupt_checks(
    monkeypatch: pytest.MonkeyPatch, other_change: Callable[[], Awaitable[object]], times: int = 1
) -> None:
    """Let somebody else's change come after the agents were read for a check, and before the change that it is for."""
    load, left = agents.load_agent_catalog, [None] * times

    async def load_then_change(state: ServerState, workspace: str) -> agents.AgentCatalog:
        catalog = await load(state, workspace)
        if left:
            left.pop()
            await other_change()
        return catalog

    monkeypatch.setattr(agents, "load_agent_catalog", load_then_change)


@pytest.mark.postgres_smoke
async def test_an_agent_that_gets_a_caller_during_the_check_is_not_deleted(
    ada: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:  # R13
    await put(ada)
    interrupt_checks(monkeypatch, lambda: put(ada, "boss", agents=["night"]))
    refused = await ada.delete(AT)
    assert (refused.status_code, refused.json()["agents"]) == (409, ["boss"])
    assert (await ada.get(AT)).status_code == 200


@pytest.mark.postgres_smoke
async def test_a_sub_agent_that_is_deleted_during_the_check_is_not_named(
    ada: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:  # R13
    await put(ada)
    await put(ada, "boss", agents=[])
    interrupt_checks(monkeypatch, lambda: ada.delete(AT))
    refused = await ada.put("/api/agents/boss", json={"agents": ["night"]})
    assert (refused.status_code, refused.json()["problems"][0]["pointer"]) == (400, "/agents/0")
    assert (await ada.get("/api/agents/boss")).json()["agents"] == []


async def test_two_new_names_that_look_alike_do_not_pass_each_other(
    ada: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:  # R9
    interrupt_checks(monkeypatch, lambda: put(ada))
    refused = await ada.put("/api/agents/Night", json=BODY)
    assert (refused.status_code, 'looks like "night"' in refused.json()["message"]) == (400, True)


async def test_a_check_that_is_overtaken_again_and_again_gives_up(
    ada: httpx2.AsyncClient, state: ServerState, monkeypatch: pytest.MonkeyPatch
) -> None:  # R9
    await put(ada)
    made = iter(range(agents.MAX_CHECKS))

    async def change_another() -> None:
        body = f'{{"instructions": "{next(made)}"}}'
        await state.workspaces.put_agent("default", "boss", body, "eve")

    interrupt_checks(monkeypatch, change_another, agents.MAX_CHECKS)
    refused = await ada.delete(AT)
    assert (refused.status_code, refused.json()["error"]) == (409, "stale")
    assert (await ada.get(AT)).status_code == 200


async def test_settings_of_the_file_that_would_now_be_a_circle_are_not_restored(ada: httpx2.AsyncClient) -> None:  # R13
    await put(ada, "bot", agents=[])
    await put(ada, "helper", agents=["bot"])
    refused = await ada.delete("/api/agents/bot")
    assert (refused.status_code, "circle" in refused.json()["message"]) == (400, True)
    assert (await ada.get("/api/agents/bot")).json()["agents"] == []


@pytest.mark.postgres_smoke
async def test_an_agent_that_was_changed_meanwhile_is_not_deleted(ada: httpx2.AsyncClient) -> None:  # R9
    await put(ada)
    await put(ada, tools=["okr"])
    late = await ada.delete(AT, headers={"if-match": '"1"'})
    assert (late.status_code, late.json()["error"]) == (409, "stale")
    assert (await ada.delete(AT, headers={"if-match": '"2"'})).status_code == 200
    edited = await ada.put(AT, json=BODY, headers={"if-match": '"2"'})
    assert (edited.status_code, edited.json()["error"]) == (409, "stale"), "nobody brings it back unawares"


@pytest.mark.parametrize("role", ["agent", "viewer", "reviewer"])
async def test_only_admins_delete_agents_and_see_what_depends_on_them(
    ada: httpx2.AsyncClient, client: ClientFactory, keys: dict[str, str], role: str
) -> None:  # R10
    await put(ada)
    other = client(keys[role])
    assert [(await other.delete(AT)).status_code, (await other.get(f"{AT}/dependents")).status_code] == [403, 403]
    assert (await ada.get(AT)).json()["version"] == 1


# R9, R65
async def test_its_conversations_stay_readable_and_their_approvals_are_cancelled(
    app: RequestMiddleware, state: ServerState, ada: httpx2.AsyncClient, keys: dict[str, str], agent: httpx2.AsyncClient
) -> None:
    await put(ada)
    program = await propose(agent, agent="night", call_id="of a program")
    async with pending_call(app, state, keys["admin"]) as (thread_id, approval_id):
        told = (await ada.get(f"{AT}/dependents")).json()
        assert (told["threads"], told["active_threads"], told["open_calls"]) == (1, 1, 1)
        assert "1 conversation stays readable, but cannot continue." in told["consequences"]
        assert "1 pending approval in its conversations is cancelled and does not run." in told["consequences"]
        assert (await ada.delete(AT)).json()["cancelled"] == [approval_id]
    shown = (await ada.get(f"/api/approvals/{approval_id}")).json()
    assert (shown["status"], shown["decision"]["reason"]) == (
        "cancelled",
        "The agent was deleted before this call started.",
    )
    assert (await ada.get(f"/api/approvals/{program['approval_id']}")).json()["status"] == "pending"
    thread = (await ada.get(f"/api/threads/{thread_id}")).json()
    assert (thread["agent_missing"], thread["status"]) == (True, "idle")
    assert "does not exist any more" in thread["lines"][-1]["body"]["reason"]
    more = await ada.post("/api/chat", json={"message": "go on", "thread_id": thread_id})
    assert (more.status_code, more.json()["agent"]) == (409, "night")
    assert "night" not in [each["name"] for each in (await ada.get("/api/agents")).json()["items"]]


# R9, R65
async def test_what_keeps_naming_it_is_said_before(ada: httpx2.AsyncClient, agent: httpx2.AsyncClient) -> None:
    await put(ada)
    await propose(agent, agent="office")
    await ada.post("/api/keys", json={"name": "night-key", "role": "agent", "agents": ["Night"]})
    grant = {"tool": "delete_file", "agent": "ni*", "expires_in": "1h", "reason": "often"}
    assert (await ada.post("/api/grants", json=grant)).status_code == 201
    rules = [{"name": "nights", "agents": ["night"], "then": "ask"}, {"name": "rest", "agents": ["*"], "then": "ask"}]
    assert (await ada.put("/api/policy", json={"version": 1, "rules": rules})).status_code == 200
    told = (await ada.get(f"{AT}/dependents")).json()
    assert (told["keys"], told["rules"], told["grants"]) == (["night-key"], ["nights"], 1)
    assert (told["switches"], told["threads"], told["open_calls"]) == (["cms_list_pages"], 0, 0)
    assert len(told["consequences"]) == 5
    assert (await ada.get(AT)).json()["version"] == 1, "nothing changed"


# R9
@pytest.mark.parametrize("name", ["Night", "nig\u04bbt", "n\u0456ght"])
async def test_a_new_name_that_looks_like_another_agents_is_refused(ada: httpx2.AsyncClient, name: str) -> None:
    await put(ada)
    refused = await ada.put(f"/api/agents/{name}", json=BODY)
    assert (refused.status_code, refused.json()["problems"][0]["pointer"]) == (400, "/name")
    assert 'looks like "night"' in refused.json()["message"]


async def test_a_new_name_that_mixes_alphabets_is_refused(ada: httpx2.AsyncClient) -> None:  # R9
    refused = await ada.put("/api/agents/c\u043b\u0435rk", json=BODY)
    assert (refused.status_code, "mixes alphabets" in refused.json()["message"]) == (400, True)


@pytest.mark.parametrize("name", ["bot", "assistant", "night", "elsewhere"])
async def test_creating_an_agent_changes_none_of_the_same_name(
    ada: httpx2.AsyncClient, agent: httpx2.AsyncClient, name: str
) -> None:  # R9
    await put(ada)
    await propose(agent, agent="elsewhere")
    before = (await ada.get(f"/api/agents/{name}")).json()
    refused = await ada.put(f"/api/agents/{name}", json={"tools": ["*"]}, headers={"if-none-match": "*"})
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    assert (await ada.get(f"/api/agents/{name}")).json() == before


# R9
async def test_models_are_listed_with_what_is_missing(ada: httpx2.AsyncClient) -> None:
    listed = (await ada.get("/api/models")).json()
    assert (listed["default"], [each["name"] for each in listed["items"]]) == ("", [""])
    assert listed["items"][0]["problem"].startswith("No model is set.")
    await put(ada)
    assert [each["name"] for each in (await ada.get("/api/models")).json()["items"]] == ["", "demo:scripted"]
    one = (await ada.get("/api/models", params={"name": "nobody:model"})).json()["items"]
    assert [(each["name"], 'No provider of models is called "nobody"' in each["problem"]) for each in one] == [
        ("nobody:model", True)
    ]


# R9
async def test_a_model_that_can_be_used_is_opened_once_and_not_for_every_list(
    ada: httpx2.AsyncClient, state: ServerState, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def open_model(name: str, _: object) -> object:
        opened.append(name)
        return object()

    monkeypatch.setattr(providers, "open_model", open_model)
    monkeypatch.setattr(assistant, "MAX_CHECKED_MODELS", 1)
    for _ in range(3):
        [listed] = (await ada.get("/api/models", params={"name": "openai:one"})).json()["items"]
        assert listed == {"name": "openai:one", "problem": ""}
    assert opened == ["openai:one"]
    assert state.assistant.models.open("openai:one") is state.assistant.models.open("openai:one")
    for _ in range(2):
        await ada.get("/api/models", params={"name": "openai:two"})
    assert opened[1:] == ["openai:two"] * 2, "names that people ask about do not fill the memory"


# R9
async def test_an_external_agent_that_had_chats_leaves_them(ada: httpx2.AsyncClient, state: ServerState) -> None:
    """Its settings are only switches now; it had tools and was talked to before."""
    await put(ada)
    services = await state.workspaces.services("default")
    person = Principal("default", "ada", "admin")
    thread = await state.assistant.threads.say(services, person, "go", agent="night")
    call = {"agent": "night", "agent_path": ("night",), "thread_id": thread.id, "requester": "ada"}
    spec = ToolSpec("okr_create_objective", "write")
    asked = await services.gate.check(
        make_call("okr_create_objective", {"title": "Grow"}, thread.id, "1", **call), spec
    )
    await put(ada, tool_approvals={"cms_list_pages": True})
    told = (await ada.get(f"{AT}/dependents")).json()
    assert (told["remains_as"], told["open_calls"], told["threads"]) == ("calls", 1, 1)
    assert told["consequences"][:2] == [
        "It stays in the list, because programs make calls in its name.",
        "1 conversation stays readable, but cannot continue.",
    ]
    assert (await ada.delete(AT)).json() == {"name": "night", "remains_as": "calls", "cancelled": [asked.approval_id]}
