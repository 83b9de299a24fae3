"""Identities in other systems: linked by a token made for the person, never by name."""

from __future__ import annotations

from dataclasses import replace

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.config.models import ChannelSettings, Settings
from interlock.notify.service import InboundHandler
from interlock.server.state import ServerState
from tests.server.conftest import ClientFactory
from tests.support import Clock

NOWHERE = {"routing_key": "0" * 32}
MINUTE = 60_000


@pytest.fixture
def settings() -> Settings:
    return Settings(channels={"ops": ChannelSettings("pagerduty", NOWHERE)})


@pytest.fixture
def desk(state: ServerState) -> InboundHandler:
    return InboundHandler(state.notifications, "ops")


async def sign_in(client: ClientFactory, services: AppServices, name: str) -> httpx2.AsyncClient:
    token = await services.accounts.create_link("default", "test", name)
    _, session = await services.accounts.use_link(token)
    return client(cookie=f"interlock={session}", origin="http://127.0.0.1:8321")


async def link(desk: InboundHandler, outside: str, workspace: str = "default") -> dict[str, str]:
    url = await replace(desk, notifications=desk.notifications.for_workspace(workspace)).make_identity_link(
        workspace, outside
    )
    base, _, token = url.partition("?link=")
    assert base == "http://127.0.0.1:8321/settings/me"
    return {"link": token}


# R25, R48
async def test_a_person_who_is_signed_in_says_that_this_is_them(
    client: ClientFactory, keys: dict[str, str], services: AppServices, desk: InboundHandler
) -> None:
    bob = await sign_in(client, services, "bob")
    body = await link(desk, "U0BOB")
    looked = (await bob.post("/api/me/identities/look", json=body)).json()
    assert (looked["channel"], looked["kind"], looked["outside"], looked["user"]) == ("ops", "pagerduty", "U0BOB", None)
    assert await desk.find_reviewer("default", "U0BOB") is None
    for _ in range(2):
        assert (await bob.post("/api/me/identities", json=body)).status_code == 201
    reviewer = await desk.find_reviewer("default", "U0BOB")
    assert reviewer is not None
    assert (reviewer.name, reviewer.via) == ("bob", "ops")
    [mine] = (await bob.get("/api/me/identities")).json()["items"]
    assert (mine["channel"], mine["outside"], mine["user"]) == ("ops", "U0BOB", "bob")
    assert (await client(keys["viewer"]).get("/api/me/identities")).json()["items"] == []
    assert (await bob.delete(f"/api/me/identities/{mine['id']}")).status_code == 204
    assert await desk.find_reviewer("default", "U0BOB") is None


# R48
@pytest.mark.postgres_smoke
async def test_somebody_elses_account_is_not_taken_over(
    client: ClientFactory, keys: dict[str, str], services: AppServices, desk: InboundHandler
) -> None:
    bob, vic = [await sign_in(client, services, name) for name in ("bob", "vic")]
    body = await link(desk, "U0BOB")
    assert (await bob.post("/api/me/identities", json=body)).status_code == 201
    refused = await vic.post("/api/me/identities", json=body)
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    assert (await vic.post("/api/me/identities/look", json=body)).json()["user"] == "bob"
    [theirs] = (await client(keys["admin"]).get("/api/identities")).json()["items"]
    assert (await vic.delete(f"/api/me/identities/{theirs['id']}")).status_code == 404
    assert (await client(keys["admin"]).delete(f"/api/identities/{theirs['id']}")).status_code == 204
    assert (await vic.post("/api/me/identities", json=body)).status_code == 201


# R47, R48
async def test_a_link_holds_for_a_quarter_of_an_hour_for_one_account_of_one_workspace(
    client: ClientFactory, keys: dict[str, str], services: AppServices, desk: InboundHandler, clock: Clock
) -> None:
    bob, body = await sign_in(client, services, "bob"), await link(desk, "U0BOB")
    other = await link(desk, "U0EVE")
    claim, _, proof = body["link"].partition(".")
    forged = [f"{other['link'].partition('.')[0]}.{proof}", claim, f"{claim}.", f"{claim}.{'0' * 64}", "", "é." + proof]
    forged += [body["link"][:-1], body["link"] + "0", (await link(desk, "U0BOB", "another"))["link"]]
    for text in forged:
        answer = await bob.post("/api/me/identities", json={"link": text})
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    clock.advance(15 * MINUTE - 1)
    assert (await bob.post("/api/me/identities/look", json=body)).status_code == 200
    clock.advance(1)
    bob = await sign_in(client, services, "bob")
    assert (await bob.post("/api/me/identities", json=body)).status_code == 404
    assert await desk.find_reviewer("default", "U0BOB") is None


# R48
async def test_a_key_cannot_say_who_its_owner_is_elsewhere(
    client: ClientFactory, keys: dict[str, str], desk: InboundHandler
) -> None:
    answer = await client(keys["viewer"]).post("/api/me/identities", json=await link(desk, "U0VIC"))
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")


# R48
async def test_removed_user_loses_their_links_and_a_new_user_of_that_name_inherits_none(
    client: ClientFactory, keys: dict[str, str], services: AppServices, desk: InboundHandler, state: ServerState
) -> None:
    bob = await sign_in(client, services, "bob")
    await bob.post("/api/me/identities", json=await link(desk, "U0BOB"))
    admin = client(keys["admin"])
    assert (await admin.delete("/api/users/bob")).status_code == 200
    assert (await admin.get("/api/identities")).json()["items"] == []
    assert (await admin.post("/api/users", json={"name": "bob", "role": "admin"})).status_code == 201
    assert await desk.find_reviewer("default", "U0BOB") is None
