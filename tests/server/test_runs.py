"""Runs of remote agents: claimed, renewed, released and closed."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.identity import KeyBindings
from tests.server.conftest import ClientFactory
from tests.support import Clock, event_kinds

Keys = dict[str, str]


async def claim_run(agent: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await agent.post("/api/runs", json={"agent": "mailer", **body})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def end(agent: httpx2.AsyncClient, run: dict[str, Any], verb: str) -> int:
    answer = await agent.post(f"/api/runs/{run['run_id']}/{verb}", json={"runner": run["runner"]})
    return answer.status_code


async def test_a_run_is_resumed_once_its_lease_lapsed(client: ClientFactory, keys: Keys, clock: Clock) -> None:  # R23
    agent = client(keys["agent"])
    first = await claim_run(agent, runner="one", lease_seconds=30)
    assert (first["resumed"], first["api"]) == (False, 1)
    assert (await claim_run(agent, runner="two"))["run_id"] != first["run_id"]  # its program may be alive
    clock.advance(30_000)
    again = await claim_run(agent, runner="three")
    assert (again["run_id"], again["resumed"], again["key"]) == (first["run_id"], True, first["key"])


@pytest.mark.postgres_smoke
async def test_to_ask_for_a_run_twice_opens_one(client: ClientFactory, keys: Keys, services: AppServices) -> None:
    agent = client(keys["agent"])
    first, second = await claim_run(agent, runner="one"), await claim_run(agent, runner="one")
    assert first["run_id"] == second["run_id"]
    assert (await event_kinds(services)).count("run_opened") == 1


async def test_a_program_that_certainly_ended_is_followed_at_once(client: ClientFactory, keys: Keys) -> None:  # R23
    agent = client(keys["agent"])
    first = await claim_run(agent, runner="one")
    listed = (await agent.get("/api/runs", params={"agent": "mailer"})).json()["items"]
    assert [(item["run_id"], item["runner"]) for item in listed] == [(first["run_id"], "one")]
    assert (await claim_run(agent, runner="two", gone=["one"]))["run_id"] == first["run_id"]


async def test_nobody_speaks_for_the_programs_of_another_key(
    client: ClientFactory, keys: Keys, services: AppServices
) -> None:  # R48
    _, other = await services.accounts.create_key("default", "other", "agent", "test")
    mine, theirs = client(keys["agent"]), client(other)
    run = await claim_run(mine, runner="one")
    assert (await theirs.get("/api/runs", params={"agent": "mailer"})).json()["items"] == []
    assert (await claim_run(theirs, runner="two", gone=["one"]))["run_id"] != run["run_id"]
    assert [await end(theirs, run, way) for way in ("close", "release", "renew")] == [404, 404, 404]
    assert await end(mine, run, "renew") == 200


async def test_a_name_with_a_colon_is_not_among_the_programs_of_another_agent(
    client: ClientFactory, services: AppServices
) -> None:
    made = [
        await services.accounts.create_key("default", "bot", "agent", "test", "", KeyBindings((name,)))
        for name in ("mail", "mail:er", "mail%3Aer")
    ]
    short, long, spelled = (client(secret) for _, secret in made)
    run = (await long.post("/api/runs", json={"runner": "one"})).json()
    for other, runner in ((short, "er:one"), (spelled, "one")):
        body = {"runner": runner}
        assert (await other.post(f"/api/runs/{run['run_id']}/renew", json=body)).status_code == 404
    assert await end(long, run, "renew") == 200


async def test_a_closed_run_is_over_and_one_that_was_left_goes_on(client: ClientFactory, keys: Keys) -> None:
    agent = client(keys["agent"])
    left = await claim_run(agent, runner="one")
    assert await end(agent, left, "release") == 200
    taken = await claim_run(agent, runner="two")
    assert taken["run_id"] == left["run_id"]
    assert await end(agent, taken, "close") == 200
    assert await end(agent, taken, "renew") == 409
    assert (await claim_run(agent, runner="three"))["run_id"] != left["run_id"]


async def test_a_run_of_ones_own_is_not_opened(client: ClientFactory, keys: Keys, services: AppServices) -> None:
    agent = client(keys["agent"])
    told, other = await claim_run(agent, run_id="thread-7"), await claim_run(agent, run_id="thread-8")
    assert told["run_id"] == "thread-7"
    assert len(told["key"]) == 64
    assert told["key"] != other["key"]
    assert "run_opened" not in await event_kinds(services)


@pytest.mark.parametrize(
    "change", [{"agent": "x" * 201}, {"agent": "a\x01"}, {"runner": "a b"}, {"lease_seconds": 0}, {"gone": ["é"]}]
)
async def test_a_wrong_body_is_refused(client: ClientFactory, keys: Keys, change: dict[str, Any]) -> None:
    answer = await client(keys["agent"]).post("/api/runs", json={"agent": "mailer", **change})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


async def test_runs_are_for_agents(client: ClientFactory, keys: Keys) -> None:  # R48
    for role in ("viewer", "reviewer", "admin"):
        assert (await client(keys[role]).post("/api/runs", json={})).status_code == 403


async def test_an_interrupted_tool_is_unknown(client: ClientFactory, keys: Keys) -> None:  # R46
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    body = {"tool": "send", "args": {}, "run_id": "run", "call_id": "1", "effect": "write"}
    told = (await agent.post("/api/calls", json=body)).json()
    decision = {"kind": "approve", "args_sha256": told["args_sha256"]}
    await bob.post(f"/api/approvals/{told['approval_id']}/decision", json=decision)
    path = f"/api/calls/{told['approval_id']}"
    fence = (await agent.post(f"{path}/start", json={})).json()["fence"]
    assert (await agent.post(f"{path}/abandon", json={"fence": fence})).json()["status"] == "unknown"
    assert (await agent.get(path)).json()["outcome"] == "finished"


async def test_a_description_is_no_part_of_the_tools_definition(
    client: ClientFactory, keys: Keys, services: AppServices
) -> None:  # R2
    agent = client(keys["agent"])
    body = {"tool": "send", "args": {}, "run_id": "run", "effect": "write"}
    for number in "12":
        await agent.post("/api/calls", json={**body, "call_id": number, "description": f"Send number {number}"})
    assert len(set(await services.store.newest_specs("default", "send", 10))) > 0
    assert len({sha256 for sha256, _, _ in await services.store.newest_specs("default", "send", 10)}) == 1
