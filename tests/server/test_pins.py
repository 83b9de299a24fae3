"""Pinned tools over the wire: what a call claims of one does not count, and a changed definition asks again. R57"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx2
import pytest

from interlock.core.call import ToolSpec
from interlock.web.site import Site
from interlock.wiring import Parts
from tests.server.conftest import As
from tests.support import Clock, kinds

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}, "token": {"type": "string"}}}
READS_ARE_FREE = "rules:\n  - {name: reads are free, effect: read, then: allow}\n"
EVERYTHING_IS_FREE = "rules:\n  - {name: all is free, then: allow}\n"


async def put_policy(site: Site, text: str) -> None:
    await site.workspaces.put_policy("default", f"version: 1\n{text}", "ada")


async def pin(site: Site, spec: ToolSpec) -> None:
    await site.store.pin("default", [spec], "", "ada")
    await site.workspaces.refresh("default")


async def propose(agent: httpx2.AsyncClient, /, **claims: Any) -> dict[str, Any]:
    call = {"tool": "send", "args": {"to": "ann"}, "run_id": "run", "call_id": uuid4().hex, **claims}
    answer = await agent.post("/api/calls", json=call)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def shown(client: httpx2.AsyncClient, told: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = (await client.get(f"/api/approvals/{told['approval_id']}")).json()
    return body


def notes(card: dict[str, Any]) -> str:
    return " ".join(fact["text"] for fact in card["card"]["facts"] if fact["label"].startswith("note"))


@pytest.mark.parametrize("tool", ["send", "SEND"])
async def test_a_pinned_write_that_is_claimed_as_a_read_asks(
    client: As, keys: dict[str, str], site: Site, tool: str
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    await put_policy(site, READS_ARE_FREE)
    assert (await propose(agent, tool=tool, effect="read"))["outcome"] == "proceed"
    await pin(site, ToolSpec("send", "write"))
    told = await propose(agent, tool=tool, effect="read")
    assert told["outcome"] == "waiting"
    card = await shown(bob, told)
    assert card["effect"] == "write"
    assert "effect read instead of write" in notes(card)


async def test_a_pinned_read_runs_unasked_whatever_the_policy_thinks_of_claims(
    client: As, keys: dict[str, str], site: Site
) -> None:
    agent = client(keys["agent"])
    await put_policy(site, "defaults: {trust_declared: false}\n" + READS_ARE_FREE)
    assert (await propose(agent, effect="read"))["outcome"] == "waiting"
    await pin(site, ToolSpec("send", "read"))
    assert (await propose(agent))["outcome"] == "proceed"
    assert (await propose(agent, effect="read"))["outcome"] == "proceed"


async def test_a_changed_definition_asks_although_a_rule_or_a_grant_lets_it_pass(
    client: As, keys: dict[str, str], site: Site
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    await pin(site, ToolSpec("send", "write", SCHEMA))
    await propose(agent)
    grant = {"tool": "send", "expires_in": "1h", "reason": "It is fine."}
    assert (await bob.post("/api/grants", json=grant)).status_code == 201
    other = {"type": "object", "properties": {"to": {"type": "string", "title": "Bcc"}}}
    for policy in ("", EVERYTHING_IS_FREE):
        await put_policy(site, policy)
        assert (await propose(agent))["outcome"] == "proceed"
        assert (await propose(agent, effect="write", schema=SCHEMA))["outcome"] == "proceed"
        told = await propose(agent, schema=other)
        assert told["outcome"] == "waiting"
        card = await shown(bob, told)
        assert "another schema" in notes(card)
        assert card["schema"] == SCHEMA


async def test_arguments_that_fit_the_changed_schema_alone_are_shown_to_people(
    client: As, keys: dict[str, str], site: Site
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    await pin(site, ToolSpec("send", "write", {**SCHEMA, "additionalProperties": False}))
    told = await propose(agent, args={"bcc": "eve"}, schema={"type": "object"})
    card = await shown(bob, told)
    assert told["outcome"] == "waiting"
    assert "approve" not in card["may_decide"]
    refused = {"tool": "send", "args": {"bcc": "eve"}, "run_id": "run", "call_id": "x"}
    assert (await agent.post("/api/calls", json=refused)).status_code == 400  # nothing else is declared: it is an error


async def test_a_pinned_secret_stays_hidden_though_the_call_does_not_say_it(
    client: As, keys: dict[str, str], site: Site
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    await pin(site, ToolSpec("send", "write", secret=("token",)))
    told = await propose(agent, args={"to": "ann", "token": "hunter2"})
    answer = await bob.get(f"/api/approvals/{told['approval_id']}")
    assert "hunter2" not in answer.text
    assert notes(answer.json()) == ""
    body = {"requestId": str(uuid4()), "actionType": "send", "payload": {"token": "hunter2"}, "metadata": {}}
    assert (await agent.post("/requests", json=body)).status_code == 200
    assert "hunter2" not in (await bob.get(f"/api/approvals/{body['requestId']}")).text


async def test_secrets_that_only_the_call_declares_hide_nothing_of_a_pinned_tool(
    client: As, keys: dict[str, str], site: Site
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    await pin(site, ToolSpec("send", "write"))
    card = await shown(bob, await propose(agent, secret=["*"]))
    assert card["args"] == {"to": "ann"}
    assert "other secret fields" in notes(card)


async def test_an_idempotent_pin_gives_more_than_one_start_until_start_by(
    client: As, keys: dict[str, str], site: Site, clock: Clock
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    await put_policy(site, "defaults: {start_within: 1m}\n")
    await pin(site, ToolSpec("send", "write", idempotent=True))
    told = await propose(agent)
    path, body = f"/api/calls/{told['approval_id']}", {"kind": "approve", "args_sha256": told["args_sha256"]}
    assert (await bob.post(f"/api/approvals/{told['approval_id']}/decision", json=body)).status_code == 200
    for fence in (1, 2):
        started = await agent.post(f"{path}/start", json={"lease_seconds": 1})
        assert (started.status_code, started.json()["fence"]) == (200, fence)
        clock.forward(2_000)
    clock.forward(60_000)
    late = await agent.post(f"{path}/start", json={})
    assert (late.status_code, late.json()["error"]) == (409, "already_started")


async def test_a_claimed_idempotence_of_a_pinned_tool_gives_one_start(
    client: As, keys: dict[str, str], site: Site, clock: Clock
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    await pin(site, ToolSpec("send", "write"))
    told = await propose(agent, idempotent=True)
    path, body = f"/api/calls/{told['approval_id']}", {"kind": "approve", "args_sha256": told["args_sha256"]}
    assert (await bob.post(f"/api/approvals/{told['approval_id']}/decision", json=body)).status_code == 200
    assert (await agent.post(f"{path}/start", json={"lease_seconds": 1})).status_code == 200
    clock.forward(2_000)
    assert (await agent.post(f"{path}/start", json={})).json()["error"] == "already_started"


async def test_a_name_that_looks_like_a_pinned_one_is_refused(client: As, keys: dict[str, str], site: Site) -> None:
    await put_policy(site, READS_ARE_FREE)
    await pin(site, ToolSpec("send", "write"))
    told = await propose(client(keys["agent"]), tool="s\u0435nd", effect="read")
    assert (told["outcome"], "looks like 'send'" in told["reason"]) == ("refused", True)


async def test_humanlayers_functions_are_judged_as_pinned(client: As, keys: dict[str, str], site: Site) -> None:
    await pin(site, ToolSpec("send", "write", secret=("token",)))
    body = {"run_id": "r", "call_id": "c", "spec": {"fn": "send", "kwargs": {"token": "hunter2"}}}
    assert (await client(keys["agent"]).post("/humanlayer/v1/function_calls", json=body)).status_code == 200
    (item,) = (await client(keys["reviewer"]).get("/api/approvals")).json()["items"]
    assert item["effect"] == "write"
    assert "hunter2" not in (await client(keys["reviewer"]).get(f"/api/approvals/{item['id']}")).text


async def test_a_pin_that_another_process_made_is_followed(client: As, keys: dict[str, str], site: Site) -> None:
    doors = await site.workspaces.doors("default")
    await site.store.pin("default", [ToolSpec("send", "write")], "", "ada")
    before = doors.known.pins
    await site.workspaces.refresh("default")
    assert before.find("send") is None
    pinned = doors.known.pins
    assert pinned.find("send") is not None
    await site.workspaces.refresh("default")
    assert doors.known.pins is pinned  # what did not change is not read anew


async def test_how_an_agent_declares_its_reads_and_what_it_changed_is_noted(
    client: As, keys: dict[str, str], site: Site, parts: Parts
) -> None:
    agent = client(keys["agent"])
    assert (await propose(agent, tool="look", effect="read", schema=SCHEMA, agent="bot"))["outcome"] == "proceed"
    await pin(site, ToolSpec("send", "write"))
    await propose(agent, effect="destructive", agent="bot")
    seen = {(tool.name, tool.agent): tool.spec_sha256 for tool in await parts.store.tools("default")}
    look = ToolSpec("look", "read", SCHEMA, declared=True)
    assert seen["look", "bot"] == look.sha256
    assert await parts.store.spec(ToolSpec("send", "destructive", declared=True).sha256) is not None
    assert "tool_pinned" in await kinds(parts)
