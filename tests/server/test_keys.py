"""Keys over HTTP: what they are bound to, when they end, how they are replaced; and recent sign-ins."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import httpx2
import pytest

from interlock.core.identity import RECENT_SIGN_IN
from interlock.server.state import ServerState
from tests.server.conftest import ClientFactory
from tests.support import Clock

OURS = "http://127.0.0.1:8321"
PASSWORD = "a long enough password"
DAY = 24 * 3_600_000
Ask = Callable[[httpx2.AsyncClient], Awaitable[httpx2.Response]]


@pytest.fixture
def ada(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["admin"])


async def sign_in(state: ServerState, client: ClientFactory, name: str = "ada") -> httpx2.AsyncClient:
    await state.accounts.set_password("default", name, PASSWORD, "test")
    browser = client(origin=OURS)
    assert (await browser.post("/api/session", json={"name": name, "password": PASSWORD})).status_code == 200
    return browser


async def test_a_key_says_what_it_is_bound_to(ada: httpx2.AsyncClient) -> None:
    body = {"name": "mailer", "role": "agent", "agents": ["office"], "tools": ["mail_*"], "requester": "none"}
    made = await ada.post("/api/keys", json={**body, "expires_in": "30d"})
    assert made.status_code == 201, made.text
    told = made.json()
    assert (told["agents"], told["tools"], told["requester"], told["user"]) == (["office"], ["mail_*"], "none", None)
    listed = next(each for each in (await ada.get("/api/keys")).json()["items"] if each["id"] == told["id"])
    assert listed == {name: value for name, value in told.items() if name != "key"}
    plain = (await ada.post("/api/keys", json={"name": "office", "role": "agent"})).json()
    assert (plain["agents"], plain["requester"], plain["expires_at"]) == ([], None, None)
    assert (plain["per_minute"], plain["pending"]) == (None, None)
    limited = {"name": "few", "role": "agent", "per_minute": 0, "pending": 2}
    told = (await ada.post("/api/keys", json=limited)).json()
    assert (told["per_minute"], told["pending"]) == (0, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "viewer", "agents": ["office"]},
        {"role": "agent", "agents": ["of\u202efice"]},
        {"role": "agent", "tools": [" "]},
        {"role": "agent", "user": "bob", "requester": "carol"},
        {"role": "agent", "requester": "bib"},
        {"role": "viewer", "user": "bob", "pending": 1},
        {"role": "agent", "pending": -1},
        {"role": "agent", "expires_in": "0s"},
        {"role": "agent", "expires_in": "soon"},
    ],
)
async def test_bindings_that_cannot_be_are_refused(ada: httpx2.AsyncClient, wrong: dict[str, object]) -> None:
    answer = await ada.post("/api/keys", json={"name": "office", **wrong})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


async def test_an_expired_key_is_refused_with_what_to_do(
    ada: httpx2.AsyncClient, client: ClientFactory, clock: Clock
) -> None:
    made = (await ada.post("/api/keys", json={"name": "office", "role": "agent", "expires_in": "1h"})).json()
    office = client(made["key"])
    assert (await office.get("/api/me")).status_code == 200
    clock.advance(3_600_000)
    late = await office.get("/api/me")
    assert late.status_code == 401
    assert late.json()["message"].startswith("This key has expired. Ask an admin for another: interlock keys create")


async def test_a_rotated_key_takes_over(ada: httpx2.AsyncClient, client: ClientFactory, clock: Clock) -> None:
    made = (await ada.post("/api/keys", json={"name": "office", "role": "agent", "agents": ["office"]})).json()
    rotated = await ada.post(f"/api/keys/{made['id']}/rotate", json={"overlap": "1h"})
    assert rotated.status_code == 201, rotated.text
    told = rotated.json()
    assert (told["rotated_from"], told["agents"]) == (made["id"], ["office"])
    assert [(await client(each["key"]).get("/api/me")).status_code for each in (made, told)] == [200, 200]
    clock.advance(3_600_000)
    assert [(await client(each["key"]).get("/api/me")).status_code for each in (made, told)] == [401, 200]
    assert (await ada.post("/api/keys/ilk_aaaaaaaa/rotate")).status_code == 404


async def test_one_rotates_ones_own_key_and_nobody_elses(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    bob = client(keys["reviewer"])
    theirs = {key.person: key.id for key in await state.accounts.keys("default")}
    assert (await bob.post(f"/api/me/keys/{theirs['ada']}/rotate")).status_code == 404
    mine = await bob.post(f"/api/me/keys/{theirs['bob']}/rotate", json={"overlap": "0s"})
    assert (mine.status_code, mine.json()["user"]) == (201, "bob")
    assert (await client(mine.json()["key"]).get("/api/me")).json()["role"] == "reviewer"


def key(browser: httpx2.AsyncClient) -> Awaitable[httpx2.Response]:
    return browser.post("/api/me/keys", json={"name": "mine"})


LONG_LIVED: dict[str, Ask] = {
    "a key": key,
    "a key of an agent": lambda browser: browser.post("/api/keys", json={"name": "office", "role": "agent"}),
    "a person": lambda browser: browser.post("/api/users", json={"name": "eve", "role": "admin"}),
    "a role": lambda browser: browser.put("/api/users/bob", json={"role": "admin"}),
    "a link": lambda browser: browser.post("/api/users/ada/link"),
    "a policy": lambda browser: browser.put("/api/policy", json={"version": 1}),
    "a grant": lambda browser: browser.post(
        "/api/grants", json={"tool": "delete_file", "expires_in": "1h", "reason": "often"}
    ),
}


@pytest.mark.parametrize("what", LONG_LIVED)
async def test_a_session_makes_nothing_lasting_without_a_recent_sign_in(
    what: str, state: ServerState, client: ClientFactory, keys: dict[str, str], clock: Clock
) -> None:
    call = {"tool": "delete_file", "args": {}, "run_id": "run", "call_id": "call", "effect": "write"}
    await client(keys["agent"]).post("/api/calls", json=call)
    browser = await sign_in(state, client)
    clock.advance(RECENT_SIGN_IN + 1)
    refused = await LONG_LIVED[what](browser)
    assert (refused.status_code, refused.json()["error"]) == (403, "recent_sign_in_required")
    assert "Sign in again" in refused.json()["message"]
    assert (await browser.post("/api/session", json={"name": "ada", "password": PASSWORD})).status_code == 200
    assert (await LONG_LIVED[what](browser)).status_code in (200, 201)


async def test_keys_are_never_asked_for_a_recent_sign_in(ada: httpx2.AsyncClient, clock: Clock) -> None:
    clock.advance(DAY)
    assert (await key(ada)).status_code == 201


@pytest.mark.usefixtures("keys")
async def test_what_ends_something_needs_no_recent_sign_in(
    state: ServerState, client: ClientFactory, clock: Clock
) -> None:
    browser = await sign_in(state, client)
    made = (await key(browser)).json()
    await state.accounts.add_user("default", "eve", "viewer", "test")
    clock.advance(RECENT_SIGN_IN + 1)
    assert (await browser.delete(f"/api/me/keys/{made['id']}")).status_code == 200
    assert (await browser.delete("/api/users/eve")).status_code == 200


async def test_removing_somebody_lists_what_ends_before_and_after(
    ada: httpx2.AsyncClient, client: ClientFactory, keys: dict[str, str]
) -> None:
    call = {"tool": "delete_file", "args": {}, "run_id": "run", "call_id": "call", "effect": "write"}
    await client(keys["agent"]).post("/api/calls", json=call)
    grant = {"tool": "delete_file", "expires_in": "1h", "reason": "often"}
    made = (await client(keys["reviewer"]).post("/api/grants", json=grant)).json()
    told = (await ada.get("/api/users/bob/removal")).json()
    assert told["grants"] == [{"id": made["id"], "name": "delete_file"}]
    assert [each["name"] for each in told["keys"]] == ["bob-key"]
    smaller = (await ada.get("/api/users/bob/removal", params={"role": "viewer"})).json()
    assert (smaller["grants"], smaller["keys"]) == (told["grants"], [])
    assert (await ada.get("/api/users/bob")).json()["role"] == "reviewer", "nothing changed"
    removed = (await ada.delete("/api/users/bob")).json()
    assert removed["ended"] == told
    assert (await ada.get("/api/grants")).json()["items"] == []
    assert (await ada.get("/api/users/bob/removal")).status_code == 404


async def test_the_ledger_names_the_credential_of_a_decision(
    state: ServerState, client: ClientFactory, keys: dict[str, str], clock: Clock
) -> None:
    call = {"tool": "delete_file", "args": {}, "run_id": "run", "call_id": "call", "effect": "write"}
    told = (await client(keys["agent"]).post("/api/calls", json=call)).json()
    bob = await sign_in(state, client, "bob")
    body = {"kind": "approve", "args_sha256": told["args_sha256"]}
    answer = await bob.post(f"/api/approvals/{told['approval_id']}/decision", json=body)
    assert answer.status_code == 200, answer.text
    entries = [entry async for page in state.store.entries("default") for entry in page]
    content = next(json.loads(entry.content or b"{}") for entry in entries if entry.kind == "approved")
    who = await state.accounts.authenticate_session(bob.cookies["interlock"])
    assert (content["via"], content["credential"], content["address"]) == ("web", who.credential, "127.0.0.1")
    signed = next(json.loads(entry.content or b"{}") for entry in entries if entry.kind == "signed_in")
    assert (signed["credential"], signed["address"]) == (who.credential, "127.0.0.1")
