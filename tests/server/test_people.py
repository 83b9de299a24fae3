"""People and keys: what admins change, and what everybody changes for themselves."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.runtime.durations import rfc3339
from interlock.server.state import ServerState
from tests.interlock_server import make_keys
from tests.server.conftest import ClientFactory
from tests.support import Clock

OURS = "http://127.0.0.1:8321"
PASSWORD = "a long enough password"
HOUR = 3_600_000


@pytest.fixture
def ada(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["admin"])


@pytest.fixture
def bob(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["reviewer"])


async def kinds(state: ServerState) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (entry.kind, entry.actor, json.loads(entry.data))
        async for page in state.store.entries("default")
        for entry in page
    ]


async def test_an_admin_adds_changes_and_removes_somebody(ada: httpx2.AsyncClient, state: ServerState) -> None:
    new = {"name": "eve", "role": "reviewer", "teams": ["finance"], "email": "eve@example.com"}
    added = await ada.post("/api/users", json=new)
    assert added.status_code == 201, added.text
    assert added.json() == {**new, "away": None}
    again = await ada.post("/api/users", json=new)
    assert (again.status_code, again.json()["error"]) == (409, "conflict")
    changed = await ada.put("/api/users/eve", json={"role": "viewer"})
    told = changed.json()
    assert told.pop("ended")["grants"] == []
    assert told == {"name": "eve", "role": "viewer", "teams": [], "email": "", "away": None}
    names = [user["name"] for user in (await ada.get("/api/users")).json()["items"]]
    assert names == ["ada", "bob", "eve", "vic"]
    removed = await ada.delete("/api/users/eve")
    assert (removed.status_code, removed.json()["name"]) == (200, "eve")
    assert (await ada.get("/api/users/eve")).status_code == 404
    authors = {actor for kind, actor, data in await kinds(state) if data.get("user") == "eve"}
    assert authors == {"ada"}


@pytest.mark.postgres_smoke
async def test_what_was_changed_meanwhile_is_not_changed_again(ada: httpx2.AsyncClient) -> None:
    seen = (await ada.get("/api/users/bob")).headers["etag"]
    body = {"role": "reviewer", "teams": ["legal"]}
    first = await ada.put("/api/users/bob", json=body, headers={"if-match": seen})
    assert first.status_code == 200
    assert first.headers["etag"] != seen
    late = await ada.put("/api/users/bob", json={"role": "viewer"}, headers={"if-match": seen})
    assert (late.status_code, late.json()["error"]) == (409, "stale")
    gone = await ada.delete("/api/users/bob", headers={"if-match": seen})
    assert (gone.status_code, gone.json()["error"]) == (409, "stale")
    wrong = await ada.put("/api/users/bob", json=body, headers={"if-match": "bob"})
    assert (wrong.status_code, wrong.json()["error"]) == (400, "invalid_request")
    assert (await ada.get("/api/users/bob")).json()["teams"] == ["legal"]


async def test_the_last_admin_stays_one(ada: httpx2.AsyncClient) -> None:
    for answer in (await ada.put("/api/users/ada", json={"role": "viewer"}), await ada.delete("/api/users/ada")):
        assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    await ada.put("/api/users/bob", json={"role": "admin"})
    assert (await ada.put("/api/users/ada", json={"role": "viewer"})).status_code == 200


async def test_others_see_everybody_without_addresses(ada: httpx2.AsyncClient, bob: httpx2.AsyncClient) -> None:
    await ada.put("/api/users/vic", json={"role": "viewer", "email": "vic@example.com"})
    await ada.put("/api/users/bob", json={"role": "reviewer", "email": "bob@example.com"})
    told = {user["name"]: user["email"] for user in (await bob.get("/api/users")).json()["items"]}
    assert told == {"ada": None, "bob": "bob@example.com", "vic": None}


async def test_a_link_lets_somebody_in_once_with_a_new_password(ada: httpx2.AsyncClient, client: ClientFactory) -> None:
    made = await ada.post("/api/users/bob/link", json={"expires_in": "2h"})
    assert made.status_code == 201, made.text
    page, _, token = made.json()["url"].partition("#")
    assert page == f"{OURS}/welcome"
    browser = client(origin=OURS)
    body = {"token": token, "password": PASSWORD}
    assert (await browser.post("/api/session/link", json=body)).json()["name"] == "bob"
    assert (await browser.post("/api/session/link", json=body)).status_code == 401
    assert (await browser.post("/api/session", json={"name": "bob", "password": PASSWORD})).status_code == 200
    assert (await ada.post("/api/users/nobody/link")).status_code == 404


async def test_one_changes_ones_own_password_by_the_old_one(
    client: ClientFactory, state: ServerState, keys: dict[str, str]
) -> None:
    await state.accounts.set_password("default", "bob", PASSWORD, "test")
    here, there = client(origin=OURS), client(origin=OURS)
    for browser in (here, there):
        await browser.post("/api/session", json={"name": "bob", "password": PASSWORD})
    wrong = await here.put("/api/me/password", json={"old": "not this one at all", "new": "another long password"})
    assert wrong.status_code == 401
    right = await here.put("/api/me/password", json={"old": PASSWORD, "new": "another long password"})
    assert right.status_code == 204, right.text
    assert (await here.get("/api/me")).status_code == 200
    assert (await there.get("/api/me")).status_code == 401
    assert (await client(keys["reviewer"]).get("/api/me")).status_code == 401, "one's own keys end too"
    by_key = await client(keys["viewer"]).put("/api/me/password", json={"old": PASSWORD, "new": PASSWORD})
    assert (by_key.status_code, by_key.json()["error"]) == (403, "forbidden")


# R40
async def test_somebody_who_is_away_names_a_stand_in(
    ada: httpx2.AsyncClient, bob: httpx2.AsyncClient, clock: Clock
) -> None:
    until = rfc3339(clock() + HOUR)
    told = (await bob.put("/api/me/away", json={"until": until, "users": ["ada"]})).json()
    assert told["away"] == {"until": until, "users": ["ada"], "teams": []}
    assert (await ada.get("/api/users/bob")).json()["away"] == told["away"]
    assert (await ada.put("/api/users/bob/away", json={"until": None})).json()["away"] is None
    for wrong in ({"until": "tomorrow"}, {"until": "2020-01-01T00:00:00Z"}, {"until": "2030-01-01T00:00:00"}):
        assert (await bob.put("/api/me/away", json=wrong)).status_code == 400


async def test_a_key_is_shown_once_and_can_be_ended(ada: httpx2.AsyncClient, client: ClientFactory) -> None:
    made = await ada.post("/api/keys", json={"name": "robot", "role": "agent"})
    assert made.status_code == 201, made.text
    key = made.json()
    assert key["key"].startswith(key["id"])
    assert (key["user"], key["created_by"]) == (None, "ada")
    robot = client(key["key"])
    assert (await robot.get("/api/me")).json()["role"] == "agent"
    assert key["key"] not in (await ada.get("/api/keys")).text
    ended = (await ada.delete(f"/api/keys/{key['id']}")).json()
    assert ended["revoked_at"] is not None
    assert (await robot.get("/api/me")).status_code == 401


async def test_a_personal_key_has_at_most_the_role_of_the_person(
    bob: httpx2.AsyncClient, client: ClientFactory
) -> None:
    made = (await bob.post("/api/me/keys", json={"name": "laptop"})).json()
    assert (made["role"], made["user"]) == ("reviewer", "bob")
    more = await bob.post("/api/me/keys", json={"name": "laptop", "role": "admin"})
    assert (more.status_code, more.json()["error"]) == (403, "forbidden")
    less = (await bob.post("/api/me/keys", json={"name": "reader", "role": "viewer"})).json()
    reader = client(less["key"])
    raised = await reader.post("/api/me/keys", json={"name": "up", "role": "reviewer"})
    assert (raised.status_code, raised.json()["error"]) == (403, "forbidden")
    assert (await bob.post("/api/me/keys", json={"name": "bot", "role": "agent"})).status_code == 400
    listed = {key["name"] for key in (await bob.get("/api/me/keys")).json()["items"]}
    assert listed == {"bob-key", "laptop", "reader"}
    assert (await bob.delete(f"/api/me/keys/{less['id']}")).status_code == 200
    assert (await reader.get("/api/me")).status_code == 401


async def test_nobody_ends_the_key_of_somebody_else_as_ones_own(
    ada: httpx2.AsyncClient, bob: httpx2.AsyncClient
) -> None:
    theirs = [key for key in (await ada.get("/api/keys")).json()["items"] if key["user"] != "bob"]
    answers = [(await bob.delete(f"/api/me/keys/{key['id']}")).status_code for key in theirs]
    assert set(answers) == {404}


# R48
@pytest.mark.parametrize("role", ["agent", "viewer", "reviewer"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/users", {"name": "eve", "role": "admin"}),
        ("PUT", "/api/users/vic", {"role": "admin"}),
        ("DELETE", "/api/users/ada", None),
        ("DELETE", "/api/users/ada/sessions", None),
        ("POST", "/api/users/ada/link", {}),
        ("PUT", "/api/users/ada/away", {"until": None}),
        ("GET", "/api/keys", None),
        ("POST", "/api/keys", {"name": "x", "role": "admin"}),
        ("DELETE", "/api/keys/ilk_aaaaaaaa", None),
    ],
)
async def test_only_admins_change_people(
    client: ClientFactory, keys: dict[str, str], role: str, method: str, path: str, body: dict[str, object] | None
) -> None:
    answer = await client(keys[role]).request(method, path, json=body)
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")


async def test_an_admin_of_another_workspace_reaches_nobody_here(
    client: ClientFactory, keys: dict[str, str], services: AppServices, state: ServerState
) -> None:
    await state.accounts.add_workspace("other")
    strange = client((await make_keys(services, "other"))["admin"])
    await state.accounts.add_user("default", "eve", "viewer", "test")
    mine = (await client(keys["admin"]).get("/api/keys")).json()["items"][0]["id"]
    answers = [
        await strange.get("/api/users/eve"),
        await strange.put("/api/users/eve", json={"role": "admin"}),
        await strange.delete("/api/users/eve"),
        await strange.post("/api/users/eve/link"),
        await strange.delete(f"/api/keys/{mine}"),
    ]
    assert {(each.status_code, each.json()["error"]) for each in answers} == {(404, "not_found")}
    assert (await strange.get("/api/workspaces/current")).json()["name"] == "other"
