"""Pinned tools over the wire: what a call claims of one does not count, and a changed definition asks again."""
# R57

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.config.models import ActionSettings, Settings
from interlock.core.call import ToolSpec
from interlock.core.errors import Conflict, DeniedNow
from interlock.core.pins import MAX_DECLARED
from interlock.server.serve import make_server_state
from interlock.server.state import ServerState
from tests.server.conftest import ClientFactory
from tests.support import Clock, event_kinds, ledger_violations

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}, "token": {"type": "string"}}}
READS_ARE_FREE = "rules:\n  - {name: reads are free, effect: read, then: allow}\n"
EVERYTHING_IS_FREE = "rules:\n  - {name: all is free, then: allow}\n"


async def put_policy(state: ServerState, text: str) -> None:
    await state.workspaces.put_policy("default", f"version: 1\n{text}", "ada")


async def pin(state: ServerState, spec: ToolSpec) -> None:
    await state.store.pin("default", [spec], "", "ada")
    await state.workspaces.refresh("default")


async def propose(agent: httpx2.AsyncClient, /, **claims: Any) -> dict[str, Any]:
    call = {"tool": "send", "args": {"to": "ann"}, "run_id": "run", "call_id": uuid4().hex, **claims}
    answer = await agent.post("/api/calls", json=call)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def show_approval(client: httpx2.AsyncClient, told: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = (await client.get(f"/api/approvals/{told['approval_id']}")).json()
    return body


def notes(card: dict[str, Any]) -> str:
    return " ".join(fact["text"] for fact in card["card"]["facts"] if fact["label"].startswith("note"))


@pytest.mark.parametrize("tool", ["send", "SEND"])
async def test_a_pinned_write_that_is_claimed_as_a_read_asks(
    client: ClientFactory, keys: dict[str, str], state: ServerState, tool: str
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    await put_policy(state, READS_ARE_FREE)
    assert (await propose(agent, tool=tool, effect="read"))["outcome"] == "proceed"
    await pin(state, ToolSpec("send", "write"))
    told = await propose(agent, tool=tool, effect="read")
    assert told["outcome"] == "waiting"
    card = await show_approval(bob, told)
    assert card["effect"] == "write"
    assert "effect read instead of write" in notes(card)


async def test_a_pinned_read_runs_unasked_whatever_the_policy_thinks_of_claims(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    agent = client(keys["agent"])
    await put_policy(state, "defaults: {trust_declared: false}\n" + READS_ARE_FREE)
    assert (await propose(agent, effect="read"))["outcome"] == "waiting"
    await pin(state, ToolSpec("send", "read"))
    assert (await propose(agent))["outcome"] == "proceed"
    assert (await propose(agent, effect="read"))["outcome"] == "proceed"


async def test_a_changed_definition_asks_although_a_rule_or_a_grant_lets_it_pass(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    await pin(state, ToolSpec("send", "write", schema=SCHEMA))
    await propose(agent)
    grant = {"tool": "send", "expires_in": "1h", "reason": "It is fine."}
    assert (await bob.post("/api/grants", json=grant)).status_code == 201
    other = {"type": "object", "properties": {"to": {"type": "string", "title": "Bcc"}}}
    for policy in ("", EVERYTHING_IS_FREE):
        await put_policy(state, policy)
        assert (await propose(agent))["outcome"] == "proceed"
        assert (await propose(agent, effect="write", schema=SCHEMA))["outcome"] == "proceed"
        told = await propose(agent, schema=other)
        assert told["outcome"] == "waiting"
        card = await show_approval(bob, told)
        assert "another schema" in notes(card)
        assert card["schema"] == SCHEMA


async def test_arguments_that_fit_the_changed_schema_alone_are_shown_to_people(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    await pin(state, ToolSpec("send", "write", schema={**SCHEMA, "additionalProperties": False}))
    told = await propose(agent, args={"bcc": "eve"}, schema={"type": "object"})
    card = await show_approval(bob, told)
    assert told["outcome"] == "waiting"
    assert "approve" not in card["may_decide"]
    refused = {"tool": "send", "args": {"bcc": "eve"}, "run_id": "run", "call_id": "x"}
    assert (await agent.post("/api/calls", json=refused)).status_code == 400  # nothing else is declared: it is an error


async def test_a_pinned_secret_stays_hidden_though_the_call_does_not_say_it(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    await pin(state, ToolSpec("send", "write", secret=("token",)))
    told = await propose(agent, args={"to": "ann", "token": "hunter2"})
    answer = await bob.get(f"/api/approvals/{told['approval_id']}")
    assert "hunter2" not in answer.text
    assert notes(answer.json()) == ""
    body = {"requestId": str(uuid4()), "actionType": "send", "payload": {"token": "hunter2"}, "metadata": {}}
    assert (await agent.post("/requests", json=body)).status_code == 200
    assert "hunter2" not in (await bob.get(f"/api/approvals/{body['requestId']}")).text


async def test_secrets_that_only_the_call_declares_hide_nothing_of_a_pinned_tool(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    await pin(state, ToolSpec("send", "write"))
    card = await show_approval(bob, await propose(agent, secret=["*"]))
    assert card["args"] == {"to": "ann"}
    assert "other secret fields" in notes(card)


async def test_an_idempotent_pin_gives_more_than_one_start_until_start_by(
    client: ClientFactory, keys: dict[str, str], state: ServerState, clock: Clock
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    await put_policy(state, "defaults: {start_within: 1m}\n")
    await pin(state, ToolSpec("send", "write", idempotent=True))
    told = await propose(agent)
    path, body = f"/api/calls/{told['approval_id']}", {"kind": "approve", "args_sha256": told["args_sha256"]}
    assert (await bob.post(f"/api/approvals/{told['approval_id']}/decision", json=body)).status_code == 200
    for fence in (1, 2):
        started = await agent.post(f"{path}/start", json={"lease_seconds": 1})
        assert (started.status_code, started.json()["fence"]) == (200, fence)
        clock.advance(2_000)
    clock.advance(60_000)
    late = await agent.post(f"{path}/start", json={})
    assert (late.status_code, late.json()["error"]) == (409, "already_started")


async def test_a_claimed_idempotence_of_a_pinned_tool_gives_one_start(
    client: ClientFactory, keys: dict[str, str], state: ServerState, clock: Clock
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    await pin(state, ToolSpec("send", "write"))
    told = await propose(agent, idempotent=True)
    path, body = f"/api/calls/{told['approval_id']}", {"kind": "approve", "args_sha256": told["args_sha256"]}
    assert (await bob.post(f"/api/approvals/{told['approval_id']}/decision", json=body)).status_code == 200
    assert (await agent.post(f"{path}/start", json={"lease_seconds": 1})).status_code == 200
    clock.advance(2_000)
    assert (await agent.post(f"{path}/start", json={})).json()["error"] == "already_started"


async def test_a_name_that_looks_like_a_pinned_one_is_refused(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    await put_policy(state, READS_ARE_FREE)
    await pin(state, ToolSpec("send", "write"))
    told = await propose(client(keys["agent"]), tool="s\u0435nd", effect="read")
    assert (told["outcome"], "looks like 'send'" in told["reason"]) == ("refused", True)


@pytest.mark.parametrize(
    ("pinned", "claimed", "effect", "risk"),
    [
        ("write", "destructive", "destructive", "high"),
        ("read", "write", "write", "medium"),
        ("destructive", "read", "destructive", "high"),
        ("write", "", "write", "medium"),
    ],
)
async def test_a_call_that_declares_another_effect_has_the_risk_of_the_stricter_one(
    client: ClientFactory,
    keys: dict[str, str],
    state: ServerState,
    services: AppServices,
    pinned: str,
    claimed: str,
    effect: str,
    risk: str,
) -> None:
    bob = client(keys["reviewer"])
    await pin(state, ToolSpec("send", pinned, schema=SCHEMA))
    told = await propose(client(keys["agent"]), effect=claimed, schema={"type": "object"})
    card = await show_approval(bob, told)
    assert (card["effect"], card["risk"], card["card"]["risk"]) == (effect, risk, risk)
    (item,) = (await bob.get("/api/approvals")).json()["items"]
    assert item["risk"] == risk
    assert await ledger_violations(services) == []


async def test_a_pinned_tool_has_the_servers_sentence_as_an_unregistered_one(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    drop = {"tool": "run_sql", "args": {"sql": "DROP TABLE users"}}
    before = await show_approval(bob, await propose(agent, **drop))
    await pin(state, ToolSpec("run_sql", "write"))
    for claims in ({}, {"description": "Look at the weather"}):
        card = await show_approval(bob, await propose(agent, **drop, **claims))
        assert card["sentence"] == before["sentence"] == "Run run_sql: sql = DROP TABLE users"
        edit = {"kind": "edit", "args": {"sql": "SELECT 1"}, "args_sha256": card["args_sha256"]}
        assert (await bob.post(f"/api/approvals/{card['id']}/decision", json=edit)).status_code == 200
        edited = (await bob.get(f"/api/approvals/{card['id']}")).json()
        assert edited["sentence"] == "Run run_sql: sql = SELECT 1"


async def test_humanlayers_functions_are_judged_as_pinned(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    await pin(state, ToolSpec("send", "write", secret=("token",)))
    body = {"run_id": "r", "call_id": "c", "spec": {"fn": "send", "kwargs": {"token": "hunter2"}}}
    assert (await client(keys["agent"]).post("/humanlayer/v1/function_calls", json=body)).status_code == 200
    (item,) = (await client(keys["reviewer"]).get("/api/approvals")).json()["items"]
    assert item["effect"] == "write"
    assert "hunter2" not in (await client(keys["reviewer"]).get(f"/api/approvals/{item['id']}")).text


async def test_a_pin_that_another_process_made_is_followed(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    doors = await state.workspaces.services("default")
    await state.store.pin("default", [ToolSpec("send", "write")], "", "ada")
    before = doors.snapshot.pins
    await state.workspaces.refresh("default")
    assert before.find("send") is None
    pinned = doors.snapshot.pins
    assert pinned.find("send") is not None
    await state.workspaces.refresh("default")
    assert doors.snapshot.pins is pinned  # what did not change is not read anew


async def test_how_an_agent_declares_its_reads_and_what_it_changed_is_noted(
    client: ClientFactory, keys: dict[str, str], state: ServerState, services: AppServices
) -> None:
    agent = client(keys["agent"])
    assert (await propose(agent, tool="look", effect="read", schema=SCHEMA, agent="bot"))["outcome"] == "proceed"
    await pin(state, ToolSpec("send", "write"))
    await propose(agent, effect="destructive", agent="bot")
    seen = {(tool.name, tool.agent): tool.spec_sha256 for tool in await services.store.tools("default")}
    look = ToolSpec("look", "read", schema=SCHEMA, declared=True)
    assert seen["look", "bot"] == look.sha256
    assert await services.store.spec(ToolSpec("send", "destructive", declared=True).sha256) is not None
    assert "tool_pinned" in await event_kinds(services)


# The routes


@pytest.fixture
def ada(client: ClientFactory, keys: dict[str, str], state: ServerState) -> httpx2.AsyncClient:
    """She looks when what agents declared in reads is written, which is done in the background."""

    async def wait(_: httpx2.Request) -> None:
        await state.store.flush("default")

    admin = client(keys["admin"])
    admin.event_hooks = {"request": [wait]}
    return admin


async def declare(agent: httpx2.AsyncClient, tool: str, **more: Any) -> dict[str, Any]:
    return await propose(agent, tool=tool, agent="bot", **more)


async def list_tools(ada: httpx2.AsyncClient, **query: str) -> dict[str, dict[str, Any]]:
    answer = await ada.get("/api/pins", params=query)
    assert answer.status_code == 200, answer.text
    return {tool["name"]: tool for tool in answer.json()["items"]}


async def test_tools_are_listed_by_whose_word_they_run_on(
    client: ClientFactory, keys: dict[str, str], ada: httpx2.AsyncClient, clock: Clock
) -> None:
    agent = client(keys["agent"])
    await declare(agent, "look", effect="read", schema=SCHEMA)
    clock.advance(60_000)
    await declare(agent, "look", effect="read", schema=SCHEMA)
    await declare(agent, "send", effect="write")
    await declare(agent, "odd")
    assert (await ada.post("/api/pins", json={"tool": "send", "agent": "bot"})).status_code == 201
    tools = await list_tools(ada)
    assert {name: tools[name]["standing"] for name in ("look", "send", "odd", "cms_delete_post")} == {
        "look": "declared",
        "send": "pinned",
        "odd": "declared",
        "cms_delete_post": "registered",
    }
    look = tools["look"]
    assert (look["effect"], look["schema"], look["agents"], look["calls"]) == ("read", SCHEMA, ["bot"], 2)
    assert look["first_seen_at"] < look["last_seen_at"]
    assert (look["on_word"], tools["send"]["on_word"], tools["odd"]["on_word"]) == (True, False, False)
    assert (tools["send"]["pinned_by"], tools["send"]["changed"]) == ("ada", [])
    assert set(await list_tools(ada, agent="bot")) == {"look", "send", "odd"}
    assert set(await list_tools(ada, standing="pinned")) == {"send"}
    page = (await ada.get("/api/pins", params={"agent": "bot", "limit": "2"})).json()
    assert ([tool["name"] for tool in page["items"]], page["next"]) == (["look", "odd"], "odd")
    assert (page["on_word"], page["trust_declared"]) == (1, True)


async def test_a_declared_tool_whose_name_looks_like_another_is_marked_and_not_pinned_with_all(
    client: ClientFactory, keys: dict[str, str], ada: httpx2.AsyncClient
) -> None:
    agent, imitation = client(keys["agent"]), "\u0441\u043e\u0440\u0443"  # of one alphabet: a mixture is refused
    for tool in ("copy", "COPY", imitation, "look"):
        await propose(agent, tool=tool, effect="write", agent="other" if tool == "copy" else "bot")
    tools = await list_tools(ada, agent="bot")
    assert tools[imitation]["looks_like"] == ["COPY", "copy"]
    assert tools["COPY"]["looks_like"] == [imitation]  # that differs in case alone from copy, and is the same tool
    assert tools["look"]["looks_like"] == []
    made = (await ada.post("/api/pins/all", json={"agent": "bot"})).json()
    assert [each["tool"] for each in made["pinned"]] == ["look"]
    assert {each["tool"]: each["reason"] for each in made["left_out"]} == {
        "COPY": "its name looks like \\u{441}\\u{43e}\\u{440}\\u{443}",
        imitation: "its name looks like COPY",
    }


async def test_what_looks_like_a_registered_or_pinned_tool_is_not_pinned(
    client: ClientFactory, keys: dict[str, str], ada: httpx2.AsyncClient, state: ServerState
) -> None:
    for plain, alike in (("cms_delete_post", "cms_d\u0435lete_post"), ("send", "s\u0435nd")):
        if plain == "send":
            await pin(state, ToolSpec("send", "write"))
        refused = await ada.post("/api/pins", json={"tool": alike, "effect": "read"})
        assert (refused.status_code, refused.json()["error"]) == (409, "conflict"), refused.text
        assert f"looks like {plain}" in refused.json()["message"]
    with pytest.raises(Conflict):
        await state.store.pin("default", [ToolSpec("s\u0435nd", "read")], "", "ada")
    assert {pin.tool for pin in await state.store.pins("default")} == {"send"}


async def test_no_tool_runs_on_its_agents_word_where_the_policy_believes_none(
    client: ClientFactory, keys: dict[str, str], ada: httpx2.AsyncClient, state: ServerState
) -> None:
    await declare(client(keys["agent"]), "send", effect="write")
    assert (await ada.get("/api/pins")).json()["on_word"] == 1
    await put_policy(state, "defaults: {trust_declared: false}\n")
    told = (await ada.get("/api/pins")).json()
    assert (told["on_word"], told["trust_declared"]) == (0, False)


async def test_a_pin_takes_the_definition_that_was_shown_or_none(
    client: ClientFactory, keys: dict[str, str], ada: httpx2.AsyncClient, clock: Clock
) -> None:
    agent = client(keys["agent"])
    await declare(agent, "send", effect="write")
    shown = (await list_tools(ada))["send"]["declared_sha256"]
    clock.advance(60_000)
    await declare(agent, "send", effect="read", schema=SCHEMA)
    body = {"tool": "send", "spec_sha256": shown}
    stale = await ada.post("/api/pins", json=body)
    assert (stale.status_code, stale.json()["error"]) == (409, "stale")
    body["spec_sha256"] = (await list_tools(ada))["send"]["declared_sha256"]
    made = await ada.post("/api/pins", json={**body, "effect": "destructive"})
    assert (made.status_code, made.json()["effect"], made.json()["schema"]) == (201, "destructive", SCHEMA)


async def test_a_pinned_tool_that_is_declared_otherwise_says_so_in_the_list(
    client: ClientFactory, keys: dict[str, str], ada: httpx2.AsyncClient, clock: Clock
) -> None:
    agent = client(keys["agent"])
    await declare(agent, "send", effect="write")
    await ada.post("/api/pins", json={"tool": "send"})
    clock.advance(60_000)
    await declare(agent, "send", effect="read")
    assert (await list_tools(ada))["send"]["changed"] == ["effect read instead of write"]
    await ada.post("/api/pins", json={"tool": "send"})
    send = (await list_tools(ada))["send"]
    assert (send["effect"], send["changed"]) == ("read", [])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"tool": "never_seen"}, 404),
        ({"tool": "never_seen", "effect": "read", "agent": "bot"}, 404),
        ({"tool": "cms_delete_post", "effect": "read"}, 409),
        ({"tool": "odd"}, 400),
        ({"tool": "odd", "effect": "harmless"}, 400),
        ({"tool": "odd", "effect": "write"}, 201),
        ({"tool": "never_seen", "effect": "read"}, 201),
    ],
)
async def test_what_cannot_be_pinned_is_refused(
    client: ClientFactory, keys: dict[str, str], ada: httpx2.AsyncClient, body: dict[str, str], status: int
) -> None:
    await declare(client(keys["agent"]), "odd")
    assert (await ada.post("/api/pins", json=body)).status_code == status


async def test_all_tools_of_an_agent_are_pinned_but_those_that_a_rule_names(
    client: ClientFactory, keys: dict[str, str], ada: httpx2.AsyncClient, state: ServerState, clock: Clock
) -> None:
    agent = client(keys["agent"])
    await put_policy(
        state,
        "rules:\n  - {name: reads are free, effect: read, then: allow}\n"
        "  - {name: nobody drops, tools: [drop_*], then: deny, reason: No.}\n",
    )
    for tool in ("look", "find", "drop_users"):
        await declare(agent, tool, effect="read")
    await declare(agent, "odd")
    await propose(agent, tool="foreign", agent="other", effect="read")
    shown = {name: tool["declared_sha256"] for name, tool in (await list_tools(ada, agent="bot")).items()}
    assert shown.keys() == {"look", "find", "odd"}  # a denied call declares nothing
    clock.advance(60_000)
    await declare(agent, "find", effect="read", schema=SCHEMA)
    await declare(agent, "drop_users", effect="read")
    await declare(agent, "push", effect="write")
    made = await ada.post("/api/pins/all", json={"agent": "bot", "shown": shown})
    assert made.status_code == 200, made.text
    assert [pin["tool"] for pin in made.json()["pinned"]] == ["look"]
    left_out = {each["tool"]: each["reason"] for each in made.json()["left_out"]}
    assert left_out.keys() == {"find", "odd", "push"}
    again = (await ada.post("/api/pins/all", json={"agent": "bot"})).json()
    assert [pin["tool"] for pin in again["pinned"]] == ["find", "push"]
    assert (await ada.post("/api/pins/all", json={"agent": "nobody"})).status_code == 404


async def test_a_tool_that_an_ask_rule_names_is_left_out_and_pinned_by_itself(
    client: ClientFactory, keys: dict[str, str], ada: httpx2.AsyncClient, state: ServerState
) -> None:
    await put_policy(state, "rules:\n  - {name: mails, tools: [send], then: ask}\n")
    agent = client(keys["agent"])
    await declare(agent, "look", effect="read")  # an allowed read is noted with the next batch, which the other makes
    await declare(agent, "send", effect="read")
    made = (await ada.post("/api/pins/all", json={"agent": "bot"})).json()
    assert [pin["tool"] for pin in made["pinned"]] == ["look"]
    assert made["left_out"] == [{"tool": "send", "reason": "the rule 'mails' names it"}]
    assert (await list_tools(ada))["send"]["named_by"] == "the rule 'mails' names it"
    assert (await ada.post("/api/pins", json={"tool": "send", "effect": "write"})).status_code == 201


async def test_the_list_of_tools_says_what_is_pinned(
    client: ClientFactory, keys: dict[str, str], ada: httpx2.AsyncClient
) -> None:
    await declare(client(keys["agent"]), "send", effect="read")
    await ada.post("/api/pins", json={"tool": "send", "effect": "destructive"})
    await ada.post("/api/pins", json={"tool": "never_seen", "effect": "read"})
    tools = {tool["name"]: tool for tool in (await ada.get("/api/tools")).json()["items"]}
    assert [(tools[name]["source"], tools[name]["effect"]) for name in ("send", "never_seen")] == [
        ("pin", "destructive"),
        ("pin", "read"),
    ]


async def test_unpinned_tool_counts_as_declared_by_its_agent(
    client: ClientFactory, keys: dict[str, str], ada: httpx2.AsyncClient, state: ServerState
) -> None:
    await put_policy(state, READS_ARE_FREE)
    agent = client(keys["agent"])
    await declare(agent, "a/send", effect="read")
    assert (await ada.post("/api/pins", json={"tool": "a/send", "effect": "write"})).status_code == 201
    assert (await declare(agent, "a/send", effect="read"))["outcome"] == "waiting"
    assert (await ada.delete("/api/pins/a/send")).json()["tool"] == "a/send"
    assert (await declare(agent, "a/send", effect="read"))["outcome"] == "proceed"
    assert (await ada.delete("/api/pins/a/send")).status_code == 404
    assert (await list_tools(ada))["a/send"]["standing"] == "declared"


DESTROYS_NOTHING = """
rules:
  - {name: nothing is destroyed, effect: destructive, then: deny}
  - {name: notes, tools: ["note_*"], then: allow}
"""


async def test_a_claim_that_was_made_before_a_pin_does_not_count_after_it(
    client: ClientFactory, keys: dict[str, str], state: ServerState, services: AppServices
) -> None:
    agent, bob, ada = client(keys["agent"]), client(keys["reviewer"]), client(keys["admin"])
    await put_policy(state, DESTROYS_NOTHING)
    asked, approved = [await propose(agent, tool="burn", effect="write") for _ in range(2)]
    allowed, started = [await propose(agent, tool="note_burn", effect="write") for _ in range(2)]
    assert (asked["outcome"], allowed["outcome"]) == ("waiting", "proceed")
    yes = {"kind": "approve", "args_sha256": approved["args_sha256"]}
    assert (await bob.post(f"/api/approvals/{approved['approval_id']}/decision", json=yes)).status_code == 200
    assert (await agent.post(f"/api/calls/{started['approval_id']}/start", json={})).status_code == 200
    for tool in ("burn", "NOTE_Burn"):
        assert (await ada.post("/api/pins", json={"tool": tool, "effect": "destructive"})).status_code == 201
        assert (await propose(agent, tool=tool, effect="write"))["outcome"] == "refused"
    for decision in (yes, {"kind": "edit", "args": {"to": "bob"}, "args_sha256": asked["args_sha256"]}):
        refused = await bob.post(f"/api/approvals/{asked['approval_id']}/decision", json=decision)
        assert (refused.status_code, refused.json()["error"]) == (422, "denied_now")
    for told in (approved, allowed):
        refused = await agent.post(f"/api/calls/{told['approval_id']}/start", json={})
        assert (refused.status_code, refused.json()["error"]) == (409, "denied_now")
    finished = {"fence": 1, "ok": True, "result": "done"}
    assert (await agent.post(f"/api/calls/{started['approval_id']}/finish", json=finished)).status_code == 200
    assert await ledger_violations(services) == []


async def test_nor_does_one_that_is_on_its_way_while_the_tool_is_pinned(
    client: ClientFactory, keys: dict[str, str], state: ServerState, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, spend = client(keys["agent"]), state.quotas.run_within_quota
    await put_policy(state, DESTROYS_NOTHING)

    async def pinned_meanwhile(*given: Any) -> Any:
        await pin(state, ToolSpec("note_burn", "destructive"))
        return await spend(*given)

    monkeypatch.setattr(state.quotas, "run_within_quota", pinned_meanwhile)
    told = await propose(agent, tool="note_burn", effect="write")
    refused = await agent.post(f"/api/calls/{told['approval_id']}/start", json={})
    assert refused.json()["error"] == "denied_now"


async def test_nor_does_a_pin_that_another_one_replaced(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    agent = client(keys["agent"])
    await put_policy(state, DESTROYS_NOTHING)
    await pin(state, ToolSpec("note_burn", "write"))
    told = await propose(agent, tool="note_burn")
    assert told["outcome"] == "proceed"
    await pin(state, ToolSpec("note_burn", "destructive"))
    refused = await agent.post(f"/api/calls/{told['approval_id']}/start", json={})
    assert refused.json()["error"] == "denied_now"


async def test_a_call_from_before_is_judged_as_the_tool_is_registered_now(
    client: ClientFactory, keys: dict[str, str], state: ServerState, services: AppServices
) -> None:
    agent = client(keys["agent"])
    await put_policy(state, "rules:\n  - {name: no, effect: write, then: deny}\n  - {name: rest, then: allow}\n")
    told = await propose(agent, effect="destructive")
    assert told["outcome"] == "proceed"
    started_anew = await make_server_state(Settings(actions={"send": ActionSettings({"type": "object"})}), services)
    gate = (await started_anew.workspaces.services("default")).gate
    with pytest.raises(DeniedNow):
        await gate.start("default", told["approval_id"], "runner")


async def test_a_key_that_makes_up_tools_hides_its_own_alone_and_is_named(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    await put_policy(state, READS_ARE_FREE)
    ada, agent = client(keys["admin"]), client(keys["agent"])
    made, secret = await state.accounts.create_key("default", "flooder", "agent", "ada")
    for number in range(MAX_DECLARED):
        spec = ToolSpec(f"made up {number}", "read", declared=True)
        state.store.note_tool("default", spec, "honest", made.id)
        if number % 50 == 0:
            await state.store.flush("default")
    await state.store.flush("default")
    await propose(client(secret), tool="hidden", effect="read", agent="honest")
    await propose(agent, tool="seen", effect="read", agent="honest")
    await state.store.flush("default")
    told = (await ada.get("/api/pins", params={"agent": "honest", "limit": 500, "cursor": "made up 999"})).json()
    assert [tool["name"] for tool in told["items"]] == ["seen"]
    assert (told["on_word"], len(told["bounds"])) == (MAX_DECLARED + 1, 1)
    assert f"The key {made.id} has declared 1,000 definitions" in told["bounds"][0]
