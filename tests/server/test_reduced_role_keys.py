"""What a key for less than its person can do of that person's: nothing that is for more, and nothing that lasts."""

from __future__ import annotations

import httpx2
import pytest

from interlock.runtime.durations import rfc3339
from interlock.server.state import ServerState
from tests.server.conftest import ClientFactory
from tests.support import Clock

HOUR = 3_600_000


@pytest.fixture
def ada(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["admin"])


async def make_key(state: ServerState, name: str, role: str, lasts: int | None = None) -> str:
    made = await state.accounts.create_key("default", f"{role} of {name}", role, "test", name, lifetime=lasts)
    return made[1]


@pytest.mark.parametrize("role", ["viewer", "reviewer"])
async def test_a_lesser_key_neither_rotates_nor_ends_a_greater_one(
    role: str, state: ServerState, ada: httpx2.AsyncClient, client: ClientFactory, keys: dict[str, str]
) -> None:
    lesser = client(await make_key(state, "ada", role))
    admin = keys["admin"][:12]
    for answer in (await lesser.post(f"/api/me/keys/{admin}/rotate"), await lesser.delete(f"/api/me/keys/{admin}")):
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
        assert "Sign in" in answer.json()["message"]
    assert (await ada.get("/api/me")).status_code == 200
    assert {key.role for key in await state.accounts.keys("default") if key.rotated_from} == set()


async def test_a_key_rotates_and_ends_those_of_its_own_role(state: ServerState, client: ClientFactory) -> None:
    one, two = await make_key(state, "bob", "viewer"), await make_key(state, "bob", "viewer")
    rotated = await client(one).post(f"/api/me/keys/{two[:12]}/rotate")
    assert (rotated.status_code, rotated.json()["role"]) == (201, "viewer")
    assert (await client(one).delete(f"/api/me/keys/{rotated.json()['id']}")).status_code == 200
    assert (await client(one).delete(f"/api/me/keys/{one[:12]}")).status_code == 200


@pytest.mark.usefixtures("keys")
async def test_what_a_key_makes_ends_with_it_at_the_latest(
    state: ServerState, client: ClientFactory, clock: Clock
) -> None:
    short, long = await make_key(state, "bob", "reviewer", HOUR), await make_key(state, "bob", "reviewer")
    end = rfc3339(clock() + HOUR)
    brief = client(short)
    for body in ({"name": "mine"}, {"name": "mine", "expires_in": "never"}, {"name": "mine", "expires_in": "90d"}):
        assert (await brief.post("/api/me/keys", json=body)).json()["expires_at"] == end
    sooner = await brief.post("/api/me/keys", json={"name": "mine", "expires_in": "10m"})
    assert sooner.json()["expires_at"] == rfc3339(clock() + HOUR // 6)
    for key in (long, short):
        rotated = await brief.post(f"/api/me/keys/{key[:12]}/rotate", json={"expires_in": "never", "overlap": "1m"})
        assert (rotated.status_code, rotated.json()["expires_at"]) == (201, end)


@pytest.mark.parametrize("role", ["viewer", "reviewer"])
async def test_a_lesser_key_does_not_sign_its_person_out(
    role: str, state: ServerState, ada: httpx2.AsyncClient, client: ClientFactory
) -> None:
    answer = await client(await make_key(state, "ada", role)).delete("/api/sessions")
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    assert (await ada.get("/api/me")).status_code == 200
    assert (await ada.delete("/api/sessions")).status_code == 200, "a key of the whole role can"


async def test_a_lesser_key_ends_no_account_elsewhere(
    state: ServerState, client: ClientFactory, keys: dict[str, str]
) -> None:
    assert (await client(await make_key(state, "bob", "viewer")).delete("/api/me/identities/x")).status_code == 403
    assert (await client(keys["reviewer"]).delete("/api/me/identities/x")).status_code == 404


@pytest.mark.parametrize(("name", "role"), [("bob", "viewer"), ("ada", "viewer"), ("ada", "reviewer")])
async def test_a_lesser_key_lends_no_seat(
    name: str, role: str, state: ServerState, ada: httpx2.AsyncClient, client: ClientFactory, clock: Clock
) -> None:
    lesser = client(await make_key(state, name, role))
    for body in ({"until": rfc3339(clock() + HOUR), "users": ["vic"]}, {"until": None}):
        answer = await lesser.put("/api/me/away", json=body)
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    assert (await ada.get(f"/api/users/{name}")).json()["away"] is None


async def test_viewers_have_no_stand_ins_and_those_that_a_key_names_end_with_it(
    state: ServerState, client: ClientFactory, keys: dict[str, str], clock: Clock
) -> None:
    vic, until = client(keys["viewer"]), rfc3339(clock() + HOUR)
    assert (await vic.put("/api/me/away", json={"until": until})).status_code == 200
    refused = await vic.put("/api/me/away", json={"until": until, "teams": ["finance"]})
    assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    brief = client(await make_key(state, "bob", "reviewer", HOUR))
    assert (await brief.put("/api/me/away", json={"until": until, "users": ["ada"]})).status_code == 200
    later = {"until": rfc3339(clock() + 2 * HOUR), "users": ["ada"]}
    assert (await brief.put("/api/me/away", json=later)).status_code == 403
