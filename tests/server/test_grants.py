"""Grants over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.server.state import ServerState
from tests.interlock_server import make_keys
from tests.server.conftest import ClientFactory
from tests.server.test_calls import propose

NEW = {"tool": "delete_file", "expires_in": "2h", "reason": "a night of cleaning"}


@pytest.fixture
def bob(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["reviewer"])


@pytest.fixture
async def agent(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    """Has called once, so that its tool is known."""
    made = client(keys["agent"])
    await propose(made, call_id="before")
    return made


async def grant(person: httpx2.AsyncClient, key: str = "", **more: Any) -> httpx2.Response:
    headers = {"idempotency-key": key} if key else {}
    return await person.post("/api/grants", json={**NEW, **more}, headers=headers)


# R20, R51
async def test_a_grant_lets_calls_through_until_it_is_revoked(
    bob: httpx2.AsyncClient, agent: httpx2.AsyncClient
) -> None:
    made = await grant(bob, max_uses=2)
    assert made.status_code == 201, made.text
    body = made.json()
    assert (body["created_by"], body["state"], body["uses_left"]) == ("bob", "active", 2)
    assert (await propose(agent, call_id="one"))["status"] == "approved"
    shown = (await bob.get(f"/api/grants/{body['id']}")).json()
    assert (shown["uses"], len(shown["calls"])) == (1, 1)
    ended = await bob.delete(f"/api/grants/{body['id']}", params={"reason": "done"})
    assert ended.json()["state"] == "revoked"
    assert (await propose(agent, call_id="two"))["status"] == "pending"
    assert (await bob.get("/api/grants")).json() == {"items": [], "next": None}
    [kept] = (await bob.get("/api/grants", params={"state": "all"})).json()["items"]
    assert kept["id"] == body["id"]
    told = (await bob.get(f"/api/grants/{body['id']}")).json()
    assert (told["revoked_by"], told["revoked_reason"]) == ("bob", "done")


# R24
@pytest.mark.postgres_smoke
async def test_retried_grant_is_one_grant(bob: httpx2.AsyncClient, agent: httpx2.AsyncClient) -> None:
    assert agent
    answers = await asyncio.gather(*(grant(bob, "same") for _ in range(5)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len((await bob.get("/api/grants")).json()["items"]) == 1
    other = await grant(bob, "same", reason="another one")
    assert other.status_code == 409
    assert (await grant(bob, "new")).json()["id"] != answers[0].json()["id"]


async def test_a_revoked_grant_is_not_revived_by_its_key(bob: httpx2.AsyncClient, agent: httpx2.AsyncClient) -> None:
    first = (await grant(bob, "same")).json()
    await bob.delete(f"/api/grants/{first['id']}")
    again = await grant(bob, "same")
    assert (again.json()["id"], again.json()["state"]) in [(first["id"], "revoked"), (first["id"], "active")]
    assert (await propose(agent, call_id="after"))["status"] == "pending"


@pytest.mark.parametrize(
    "change",
    [
        {"reason": ""},
        {"reason": "  "},
        {"expires_in": "soon"},
        {"expires_in": "0s"},
        {"expires_in": "400d"},
        {"when": "args.path ==="},
        {"max_uses": 0},
        {"budget": "10"},
        {"budget_of": "path"},
        {"budget": "x", "budget_of": "path"},
        {"created_by": "ada"},
    ],
)
async def test_a_grant_without_sense_is_refused(
    bob: httpx2.AsyncClient, agent: httpx2.AsyncClient, change: dict[str, Any]
) -> None:
    assert agent
    answer = await grant(bob, **change)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


async def test_a_tool_that_nobody_called_has_no_grant(bob: httpx2.AsyncClient) -> None:
    assert (await grant(bob, tool="never_called")).status_code == 404


# R48
async def test_only_people_who_decide_make_grants_and_only_theirs_end(
    client: ClientFactory, keys: dict[str, str], agent: httpx2.AsyncClient
) -> None:
    assert {(await grant(client(keys[role]))).status_code for role in ("agent", "viewer")} == {403}
    made = (await grant(client(keys["admin"]))).json()
    refused = await client(keys["reviewer"]).delete(f"/api/grants/{made['id']}")
    assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    assert (await propose(agent, call_id="still"))["status"] == "approved"


async def test_a_grant_of_another_workspace_is_not_there(
    client: ClientFactory, bob: httpx2.AsyncClient, agent: httpx2.AsyncClient, services: AppServices, state: ServerState
) -> None:
    assert agent
    made = (await grant(bob)).json()
    await state.accounts.add_workspace("other")
    strange = client((await make_keys(services, "other"))["admin"])
    answers = [await strange.get(f"/api/grants/{made['id']}"), await strange.delete(f"/api/grants/{made['id']}")]
    assert {answer.status_code for answer in answers} == {404}
