"""Paused runs of remote agents: what a key may see, and retries after a lost response."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from typing import Any

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.run import MAX_BODY, MAX_STATE
from interlock.server.middleware import RequestMiddleware
from interlock.server.state import ServerState
from tests.server.asgi_request import TIMEOUT, make_scope, send_request
from tests.server.conftest import ClientFactory
from tests.support import Clock, approve, propose_pending

Keys = dict[str, str]
SECRET = b"the password is hunter2"


async def report_pause(agent: httpx2.AsyncClient, run_id: str = "run", **body: Any) -> dict[str, Any]:
    state = b64encode(body.pop("state", SECRET)).decode()
    return await post_pause(agent, "/api/pauses", run_id=run_id, agent="mailer", state=state, **body)


async def claim_pauses(agent: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    return await post_pause(agent, "/api/pauses/claim", **{"agent": "mailer", "runner": "one", **body})


async def post_pause(client: httpx2.AsyncClient, path: str, /, **body: Any) -> dict[str, Any]:
    answer = await client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    said: dict[str, Any] = answer.json()
    return said


async def route_names(client: httpx2.AsyncClient, **query: str) -> list[str]:
    return [item["called"] for item in (await client.get("/api/pauses", params=query)).json()["items"]]


async def wait_for_watcher(state: ServerState) -> None:
    while not state.counters.waiting:  # noqa: ASYNC110  a number, which nothing announces
        await asyncio.sleep(0.001)


async def test_a_run_is_paused_listed_claimed_and_over(
    client: ClientFactory, keys: Keys, services: AppServices, clock: Clock
) -> None:
    agent = client(keys["agent"])
    approval_id = await propose_pending(services)
    first = await report_pause(agent, called="what the framework calls it " * 10)
    listed = (await agent.get("/api/pauses", params={"agent": "mailer"})).json()
    assert listed == {"items": [{**first, "waiting": 1, "resuming": False}], "next": None}
    assert (await claim_pauses(agent))["items"] == []
    await approve(services, approval_id)
    taken = await claim_pauses(agent)
    (item,) = taken["items"]
    assert (item["called"], item["state"]) == (first["called"], b64encode(SECRET).decode())
    assert item["fence"] > first["fence"]
    clock.advance(59_000)
    named = {"run_id": "run", "fence": item["fence"]}
    assert await post_pause(agent, "/api/pauses/renew", **named) == named
    assert (await claim_pauses(agent, runner="two"))["items"] == []
    assert await post_pause(agent, "/api/pauses/complete", **named) == {"run_id": "run", "over": True}
    assert await post_pause(agent, "/api/pauses/complete", **named) == {"run_id": "run", "over": False}
    assert await route_names(agent) == []
    assert (await agent.post("/api/pauses/renew", json=named)).status_code == 409


async def test_the_state_of_a_run_is_for_keys_of_the_same_name_alone(
    client: ClientFactory, keys: Keys, services: AppServices
) -> None:  # R48
    _, other = await services.accounts.create_key("default", "other", "agent", "test")
    name = next(key.name for key in await services.accounts.keys("default") if keys["agent"].startswith(key.id))
    _, replaced = await services.accounts.create_key("default", name, "agent", "test")
    _, bobs = await services.accounts.create_key("default", name, "agent", "test", "bob")
    mine = client(keys["agent"])
    fence = (await report_pause(mine))["fence"]
    for stranger in (client(other), client(bobs)):
        assert await route_names(stranger) == []
        assert (await claim_pauses(stranger))["items"] == []
        assert (await stranger.post("/api/pauses", json={"run_id": "run", "agent": "mailer"})).status_code == 409
        named = {"run_id": "run", "fence": fence}
        assert (await stranger.post("/api/pauses/renew", json=named)).status_code == 409
        assert not (await post_pause(stranger, "/api/pauses/complete", **named))["over"]
        await post_pause(stranger, "/api/pauses/release", **named, failed=True)
    assert len((await claim_pauses(client(replaced)))["items"]) == 1


async def test_people_see_paused_runs_and_never_their_state(client: ClientFactory, keys: Keys) -> None:  # R48
    await report_pause(client(keys["agent"]))
    await claim_pauses(client(keys["agent"]))
    for role in ("viewer", "reviewer", "admin"):
        listed = await client(keys[role]).get("/api/pauses")
        (item,) = listed.json()["items"]
        assert (item["run_id"], item["agent"], item["attempts"], item["resuming"]) == ("run", "mailer", 1, True)
        assert "state" not in listed.text
        assert (await client(keys[role]).post("/api/pauses/claim", json={})).status_code == 403


async def test_retried_claim_gives_the_same_runs(client: ClientFactory, keys: Keys) -> None:
    agent = client(keys["agent"])
    await report_pause(agent)
    first, again = await claim_pauses(agent, attempt="a1"), await claim_pauses(agent, attempt="a1")
    assert first["items"] == again["items"] != []
    assert (await claim_pauses(agent, attempt="a2"))["items"] == []


async def test_a_claim_leaves_nothing_among_the_answers_that_are_kept(
    client: ClientFactory, keys: Keys, services: AppServices
) -> None:  # R48
    agent = client(keys["agent"], **{"idempotency-key": "once"})
    await report_pause(client(keys["agent"]))
    assert len((await claim_pauses(agent))["items"]) == 1
    assert (await claim_pauses(agent))["items"] == []  # and so it was no repetition


async def test_a_run_of_a_program_that_certainly_ended_is_free_at_once(
    client: ClientFactory, keys: Keys, services: AppServices
) -> None:
    _, other = await services.accounts.create_key("default", "other", "agent", "test")
    agent = client(keys["agent"])
    await report_pause(agent)
    await claim_pauses(agent, runner="one", attempt="a1")
    await claim_pauses(client(other), runner="two", gone=["one"])
    told_two = await claim_pauses(agent, runner="two")
    assert (told_two["items"], told_two["held"]) == ([], ["one"])
    assert len((await claim_pauses(agent, runner="two", gone=["one"]))["items"]) == 1


async def test_a_run_that_failed_is_left_alone_for_a_while(client: ClientFactory, keys: Keys, clock: Clock) -> None:
    agent = client(keys["agent"])
    await report_pause(agent)
    (item,) = (await claim_pauses(agent))["items"]
    named = {"run_id": "run", "fence": item["fence"]}
    assert await post_pause(agent, "/api/pauses/release", **named, failed=True) == {"run_id": "run", "seconds": 1.0}
    assert (await claim_pauses(agent))["items"] == []
    clock.advance(1_000)
    (item,) = (await claim_pauses(agent))["items"]
    assert item["attempts"] == 2
    await post_pause(agent, "/api/pauses/release", run_id="run", fence=item["fence"])
    assert len((await claim_pauses(agent))["items"]) == 1


@pytest.mark.postgres_smoke
async def test_a_claim_is_answered_when_a_person_decides(
    client: ClientFactory, keys: Keys, services: AppServices, state: ServerState
) -> None:
    agent = client(keys["agent"])
    approval_id = await propose_pending(services)
    await report_pause(agent)
    services.store.pauses.poll_interval = 3_600
    claiming = asyncio.ensure_future(claim_pauses(agent, wait=60))
    await wait_for_watcher(state)
    await approve(services, approval_id)
    async with asyncio.timeout(60):
        assert len((await claiming)["items"]) == 1


async def test_a_server_that_stops_answers_at_once_and_takes_nothing(
    client: ClientFactory, keys: Keys, state: ServerState
) -> None:
    agent = client(keys["agent"])
    claiming = asyncio.ensure_future(claim_pauses(agent, wait=60))
    await wait_for_watcher(state)
    state.stopping.set()
    async with asyncio.timeout(60):
        assert await claiming == {"items": [], "held": []}
    assert state.counters.waiting == 0


@pytest.mark.postgres_smoke
async def test_pages_follow_each_other(client: ClientFactory, keys: Keys) -> None:
    agent = client(keys["agent"])
    for number in range(5):
        await report_pause(agent, f"run.{number}")
    first = (await agent.get("/api/pauses", params={"limit": "3"})).json()
    second = (await agent.get("/api/pauses", params={"limit": "3", "cursor": first["next"]})).json()
    found = [item["run_id"] for item in (*first["items"], *second["items"])]
    assert (found, second["next"]) == ([f"run.{number}" for number in range(5)], None)


@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"limit": "1001"}, {"limit": "x"}, {"cursor": "x"}, {"cursor": "1."}, {"agent": "a\n"}]
)
async def test_a_list_that_cannot_be_is_refused(client: ClientFactory, keys: Keys, query: dict[str, str]) -> None:
    assert (await client(keys["viewer"]).get("/api/pauses", params=query)).status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        {"run_id": ""},
        {"run_id": "a\nb"},
        {"run_id": "x" * 201},
        {"run_id": "run", "called": "x" * 2_001},
        {"run_id": "run", "state": "no base64"},
        {"run_id": "run", "state": "é"},
        {"run_id": "run", "agent": "a\n"},
    ],
)
async def test_a_pause_that_cannot_be_kept_is_refused(client: ClientFactory, keys: Keys, body: dict[str, Any]) -> None:
    agent = client(keys["agent"])
    assert (await agent.post("/api/pauses", json=body)).status_code == 400
    assert await route_names(agent) == []


async def test_a_run_of_the_chat_cannot_be_paused(client: ClientFactory, keys: Keys) -> None:
    agent = client(keys["agent"])
    body = {"run_id": "thread-00000000-0000-0000-0000-000000000000"}
    assert (await agent.post("/api/pauses", json=body)).status_code == 403


async def test_a_state_of_four_megabytes_goes_there_and_back(client: ClientFactory, keys: Keys) -> None:
    agent, state = client(keys["agent"]), bytes(range(256)) * (MAX_STATE // 256)
    await report_pause(agent, state=state)
    (item,) = (await claim_pauses(agent))["items"]
    assert item["state"] == b64encode(state).decode()
    more = json.dumps({"run_id": "run", "state": b64encode(bytes(MAX_STATE + 1)).decode()})
    answer = await agent.post("/api/pauses", content=more, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    answer = await agent.post("/api/pauses", content=bytes(MAX_BODY + 1), headers={"content-type": "application/json"})
    assert answer.status_code == 413


async def test_a_large_body_is_read_from_those_alone_who_may_send_one(
    app: RequestMiddleware, keys: Keys
) -> None:  # R48
    """Nobody else makes the server keep so much: not a byte of it is looked at."""
    body = b'{"run_id": "run", "state": "' + b"A" * 2_000_000 + b'"}'
    kind = {"content-type": "application/json", "content-length": str(len(body))}
    for headers, status in (({}, 401), ({"authorization": f"Bearer {keys['admin']}"}, 403)):
        assert (await send_request(app, "POST", "/api/pauses", {**kind, **headers}, body)).status == status
    agent = {"authorization": f"Bearer {keys['agent']}"}
    assert (await send_request(app, "POST", "/api/pauses", {**kind, **agent}, body)).status == 200
    assert (await send_request(app, "POST", "/api/calls", {**kind, **agent}, body)).status == 413


async def test_a_client_that_closed_its_connection_takes_no_run(
    client: ClientFactory, app: RequestMiddleware, keys: Keys, services: AppServices, state: ServerState
) -> None:
    agent = client(keys["agent"])
    approval_id = await propose_pending(services)
    await report_pause(agent)
    body = json.dumps({"agent": "mailer", "runner": "gone", "wait": 20}).encode()
    headers = {"authorization": f"Bearer {keys['agent']}", "content-type": "application/json"}
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    messages.put_nowait({"type": "http.request", "body": body, "more_body": False})
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    waiting = asyncio.ensure_future(app(make_scope("POST", "/api/pauses/claim", headers, body), messages.get, send))
    await wait_for_watcher(state)
    messages.put_nowait({"type": "http.disconnect"})
    await asyncio.wait_for(waiting, TIMEOUT)
    await approve(services, approval_id)
    assert [item["run_id"] for item in (await claim_pauses(agent))["items"]] == ["run"]
    assert json.loads(sent[-1]["body"])["items"] == []
