"""Freezes over HTTP, and what the policy of now denies."""

from __future__ import annotations

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.server.state import ServerState
from tests.server.conftest import ClientFactory
from tests.server.test_calls import propose

ALL = {"scope": "workspace", "reason": "Something is wrong."}


@pytest.fixture
def ada(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["admin"])


@pytest.fixture
def agent(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["agent"])


async def make_approved(ada: httpx2.AsyncClient, agent: httpx2.AsyncClient, call_id: str = "one") -> str:
    told = await propose(agent, call_id=call_id)
    body = {"kind": "approve", "args_sha256": told["args_sha256"]}
    done = await ada.post(f"/api/approvals/{told['approval_id']}/decision", json=body)
    assert done.status_code == 200, done.text
    return str(told["approval_id"])


# R59
async def test_a_frozen_workspace_starts_nothing_and_says_why(
    ada: httpx2.AsyncClient, agent: httpx2.AsyncClient
) -> None:
    approval_id = await make_approved(ada, agent)
    made = await ada.post("/api/freeze", json=ALL)
    assert made.status_code == 201, made.text
    freeze = made.json()
    assert (freeze["scope"], freeze["created_by"], freeze["released_at"]) == ("workspace", "ada", None)
    refused = await agent.post(f"/api/calls/{approval_id}/start", json={})
    assert (refused.status_code, refused.json()["error"]) == (409, "frozen")
    assert refused.json()["reason"] == "Something is wrong."
    for effect in ("read", "write"):
        told = await propose(agent, call_id=effect, effect=effect)
        assert (told["outcome"], told["status"]) == ("refused", "denied")
        assert "Something is wrong." in told["reason"]
    assert (await agent.get(f"/api/calls/{approval_id}")).json()["outcome"] == "waiting"
    assert (await ada.get("/api/stats")).json()["freezes"] == 1
    assert "interlock_freezes{" in (await ada.get("/metrics")).text
    ended = await ada.delete(f"/api/freeze/{freeze['id']}", params={"reason": "Mended."})
    assert ended.json()["released_by"] == "ada"
    assert (await agent.post(f"/api/calls/{approval_id}/start", json={})).status_code == 200
    assert (await ada.get("/api/freeze")).json() == {"items": [], "next": None}
    [kept] = (await ada.get("/api/freeze", params={"state": "all"})).json()["items"]
    assert kept["id"] == freeze["id"]


# R59
async def test_a_frozen_key_stops_those_who_come_with_it(
    ada: httpx2.AsyncClient, agent: httpx2.AsyncClient, services: AppServices, client: ClientFactory
) -> None:
    key, secret = await services.accounts.create_key("default", "second", "agent", "ada")
    stopped = client(secret)
    theirs, approval_id = await make_approved(ada, stopped), await make_approved(ada, agent, call_id="two")
    assert (await ada.post("/api/freeze", json={**ALL, "scope": "key", "name": "nobody"})).status_code == 404
    assert (await ada.post("/api/freeze", json={**ALL, "scope": "key", "name": key.id})).status_code == 201
    assert (await propose(stopped, call_id="three"))["outcome"] == "refused"
    assert (await stopped.post(f"/api/calls/{theirs}/start", json={})).json()["error"] == "frozen"
    assert (await agent.post(f"/api/calls/{approval_id}/start", json={})).status_code == 200


# R59
async def test_an_agents_freeze_holds_its_key_under_another_name(
    ada: httpx2.AsyncClient, agent: httpx2.AsyncClient
) -> None:
    await propose(agent, call_id="one", agent="billing", effect="read")
    await ada.post("/api/freeze", json={**ALL, "scope": "agent", "name": "billing"})
    told = await propose(agent, call_id="two", agent="somebody-else")
    assert told["outcome"] == "refused"


# R59
@pytest.mark.parametrize("body", [{**ALL, "name": "x"}, {**ALL, "reason": " "}, {"scope": "agent", "reason": "x"}])
async def test_a_freeze_that_makes_no_sense_is_refused(ada: httpx2.AsyncClient, body: dict[str, str]) -> None:
    assert (await ada.post("/api/freeze", json=body)).status_code == 400


# R59
async def test_a_new_deny_rule_stops_what_waits_and_what_was_approved(
    ada: httpx2.AsyncClient, agent: httpx2.AsyncClient
) -> None:
    approval_id = await make_approved(ada, agent)
    waiting = await propose(agent, call_id="two")
    rule = {"name": "no more", "tools": ["delete_file"], "then": "deny", "reason": "Nobody deletes files."}
    assert (await ada.put("/api/policy", json={"version": 1, "rules": [rule]})).status_code == 200
    body = {"kind": "approve", "args_sha256": waiting["args_sha256"]}
    refused = await ada.post(f"/api/approvals/{waiting['approval_id']}/decision", json=body)
    assert (refused.status_code, refused.json()["error"]) == (422, "denied_now")
    stopped = await agent.post(f"/api/calls/{approval_id}/start", json={})
    assert (stopped.status_code, stopped.json()["error"]) == (409, "denied_now")
    told = (await agent.get(f"/api/calls/{approval_id}")).json()
    assert (told["outcome"], told["status"], told["reason"]) == ("refused", "cancelled", "Nobody deletes files.")


# R59
async def test_humanlayer_reports_no_approval_while_frozen_or_denied(
    ada: httpx2.AsyncClient, agent: httpx2.AsyncClient, state: ServerState
) -> None:
    asked = {"run_id": "r", "call_id": "c", "spec": {"fn": "delete_file", "kwargs": {"path": "/tmp/x"}}}
    assert (await agent.post("/humanlayer/v1/function_calls", json=asked)).status_code == 200
    yes = await ada.post("/humanlayer/v1/agent/function_calls/c/respond", json={"approved": True})
    assert yes.status_code == 200, yes.text
    freeze = (await ada.post("/api/freeze", json=ALL)).json()
    look = "/humanlayer/v1/function_calls/c"
    assert (await agent.get(look)).json()["status"]["approved"] is None
    await ada.delete(f"/api/freeze/{freeze['id']}")
    deny = "version: 1\nrules: [{name: no more, tools: [delete_file], then: deny, reason: Nobody deletes.}]\n"
    await state.workspaces.put_policy("default", deny, "ada")
    refused = await agent.get(look)
    assert (refused.status_code, refused.json()["error"]) == (409, "denied_now")
    told = (await agent.get(look)).json()["status"]
    assert (told["approved"], told["comment"]) == (False, "Nobody deletes.")
