"""The agent's routes, from a proposal to its end."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from tests.server.conftest import ClientFactory
from tests.support import Clock

CALL = {"tool": "delete_file", "args": {"path": "/tmp/x"}, "run_id": "run", "call_id": "call1", "effect": "destructive"}


CallJson = dict[str, Any]


async def propose(agent: httpx2.AsyncClient, /, **more: Any) -> dict[str, Any]:
    answer = await agent.post("/api/calls", json={**CALL, **more})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def decide(
    person: httpx2.AsyncClient, told: dict[str, Any], kind: str = "approve", **more: Any
) -> httpx2.Response:
    body = {"kind": kind, "args_sha256": told["args_sha256"], **more}
    return await person.post(f"/api/approvals/{told['approval_id']}/decision", json=body)


# R3, R22, R24
@pytest.mark.postgres_smoke
async def test_a_call_is_proposed_approved_started_and_finished(client: ClientFactory, keys: dict[str, str]) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    told = await propose(agent)
    assert (told["outcome"], told["status"]) == ("waiting", "pending")
    path = f"/api/calls/{told['approval_id']}"
    assert (await decide(bob, told)).json()["status"] == "approved"
    ready = (await agent.get(path, params={"wait": "5"})).json()
    assert (ready["outcome"], ready["status"], ready["args"]) == ("proceed", "approved", {"path": "/tmp/x"})
    started = (await agent.post(f"{path}/start", json={})).json()
    assert started.pop("lease_until").endswith("Z")
    assert started == {"fence": 1, "idempotency_key": told["approval_id"], "args": {"path": "/tmp/x"}}
    again = await agent.post(f"{path}/start", json={})
    assert (again.status_code, again.json()["error"]) == (409, "already_started")
    done = await agent.post(f"{path}/finish", json={"fence": 1, "ok": True, "result": {"gone": True}})
    assert done.json()["status"] == "succeeded"
    assert (await propose(agent))["result"] == {"gone": True}


# R1
async def test_a_read_is_free(client: ClientFactory, keys: dict[str, str]) -> None:
    told = await propose(client(keys["agent"]), effect="read")
    assert (told["outcome"], told["status"], told["args"]) == ("proceed", "allowed", {"path": "/tmp/x"})
    assert "approval_id" not in told
    assert len(told["args_sha256"]) == 64


# R24
async def test_a_known_call_with_other_arguments_is_a_conflict(client: ClientFactory, keys: dict[str, str]) -> None:
    agent = client(keys["agent"])
    await propose(agent)
    answer = await agent.post("/api/calls", json={**CALL, "args": {"path": "/etc"}})
    assert (answer.status_code, answer.json()["error"]) == (409, "call_mismatch")


# R21
async def test_second_decision_gets_the_first_one(client: ClientFactory, keys: dict[str, str]) -> None:
    agent, bob, ada = client(keys["agent"]), client(keys["reviewer"]), client(keys["admin"])
    told = await propose(agent)
    assert (await decide(bob, told)).status_code == 200
    late = await decide(ada, told, "reject")
    assert (late.status_code, late.json()["error"]) == (409, "already_decided")
    assert late.json()["decision"]["by"] == "bob"
    assert late.json()["decision"]["at"].endswith("Z")


@pytest.mark.parametrize("role", ["agent", "viewer"])
async def test_agents_and_viewers_never_decide(client: ClientFactory, keys: dict[str, str], role: str) -> None:  # R48
    told = await propose(client(keys["agent"]))
    answer = await decide(client(keys[role]), told)
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")


# R5
async def test_a_call_that_timed_out_is_told_so(client: ClientFactory, keys: dict[str, str], clock: Clock) -> None:
    agent = client(keys["agent"])
    told = await propose(agent, expires_in="10s")
    clock.advance(10_000)
    end = (await agent.get(f"/api/calls/{told['approval_id']}")).json()
    assert (end["outcome"], end["status"]) == ("refused", "expired")
    assert "timed out" in end["reason"]


# R21
async def test_without_a_key_nothing_is_told(client: ClientFactory) -> None:
    answer = await client().post("/api/calls", json=CALL)
    assert (answer.status_code, answer.json()["error"]) == (401, "unauthenticated")
    assert "interlock keys create" in answer.json()["message"]
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_description_is_never_a_template(client: ClientFactory, keys: dict[str, str]) -> None:
    told = await propose(client(keys["agent"]), description="Delete {path} {path.__class__}")
    shown = await decide(client(keys["reviewer"]), told, "reject")
    assert shown.json()["card"]["agent_description"] == "Delete {path} {path.__class__}"


@pytest.mark.parametrize(
    "change",
    [{"args": []}, {"tool": 3}, {"effect": "delete"}, {"call_id": ""}, {"approved": True}, {"expires_in": "soon"}],
)
async def test_a_wrong_body_is_refused_with_the_place(
    client: ClientFactory, keys: dict[str, str], change: dict[str, Any]
) -> None:
    answer = await client(keys["agent"]).post("/api/calls", json={**CALL, **change})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert answer.json()["message"]


# R48: nobody gets round "not the requester" by naming somebody else
async def test_a_key_for_one_person_asks_in_no_other_name(
    client: ClientFactory, keys: dict[str, str], services: AppServices
) -> None:
    secret = (await services.accounts.create_key("default", "bobs-bot", "agent", "ada", "bob"))[1]
    agent, ada = client(secret), client(keys["admin"])
    answer = await agent.post("/api/calls", json={**CALL, "initiated_by": "ada"})
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    told = await propose(agent)
    assert (await decide(ada, told)).json()["requester"] == "bob"


async def test_lists_in_a_body_are_taken(client: ClientFactory, keys: dict[str, str]) -> None:
    lists = {"secret": ["path"], "agent_path": ["planner", "worker"], "decisions": ["approve", "reject"]}
    told = await propose(client(keys["agent"]), **lists)
    shown = (await decide(client(keys["reviewer"]), told, acknowledged=["agent_secret:"])).json()
    assert shown["agent_path"] == ["planner", "worker"]
    assert shown["decisions"] == ["approve", "reject"]
    assert "/tmp/x" not in str(shown)
