"""Signing in and out, and one-time links."""

from __future__ import annotations

from dataclasses import replace

import httpx2
import pytest

from interlock.config.models import ServerSettings, Settings
from interlock.server.app import build_app
from interlock.server.state import ServerState
from tests.server.conftest import ClientFactory
from tests.support import Clock

OURS = "http://127.0.0.1:8321"
PASSWORD = "a long enough password"


@pytest.fixture
async def people(state: ServerState, keys: dict[str, str]) -> ServerState:
    """Those of the keys, of whom bob can sign in."""
    assert keys
    await state.accounts.set_password("default", "bob", PASSWORD, "test")
    return state


@pytest.fixture
def browser(client: ClientFactory) -> httpx2.AsyncClient:
    return client(origin=OURS)


async def sign_in(browser: httpx2.AsyncClient, name: str = "bob", **more: str) -> httpx2.Response:
    return await browser.post("/api/session", json={"name": name, "password": PASSWORD, **more})


@pytest.mark.postgres_smoke
async def test_somebody_signs_in_and_out(people: ServerState, browser: httpx2.AsyncClient) -> None:
    answer = await sign_in(browser)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["name"], body["role"], body["teams"], body["workspace"]) == ("bob", "reviewer", ["finance"], "default")
    assert (await browser.get("/api/me")).json() == {key: body[key] for key in body if key != "next"}
    assert (await browser.delete("/api/session")).status_code == 204
    assert "interlock" not in browser.cookies
    assert (await browser.get("/api/me")).status_code == 401


async def test_a_token_is_worth_nothing_after_its_sign_out(people: ServerState, browser: httpx2.AsyncClient) -> None:
    await sign_in(browser)
    token = browser.cookies["interlock"]
    await browser.delete("/api/session")
    browser.cookies.set("interlock", token)
    assert (await browser.get("/api/me")).status_code == 401


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(
    people: ServerState, browser: httpx2.AsyncClient
) -> None:
    cookie = (await sign_in(browser)).headers["set-cookie"]
    flags = {part.strip() for part in cookie.split(";")[1:]}
    assert flags == {"Path=/", "HttpOnly", "SameSite=Lax", "Max-Age=604800"}
    assert "Domain" not in cookie


async def test_behind_https_the_cookie_is_bound_to_it(people: ServerState, settings: Settings) -> None:
    server = ServerSettings(public_url="https://interlock.example")
    app = build_app(replace(people, settings=replace(settings, server=server)))
    transport = httpx2.ASGITransport(app=app)
    ours = {"origin": "https://interlock.example"}
    async with httpx2.AsyncClient(transport=transport, base_url=server.public_url, headers=ours) as browser:
        cookie = (await sign_in(browser)).headers["set-cookie"]
        assert cookie.startswith("__Host-interlock=")
        assert "Secure" in cookie
        assert (await browser.get("/api/me")).json()["name"] == "bob"


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://127.0.0.1:8322"])
async def test_no_other_site_signs_anybody_in(people: ServerState, client: ClientFactory, origin: str) -> None:
    other = client(origin=origin) if origin else client()
    for path, body in [
        ("/api/session", {"name": "bob", "password": PASSWORD}),
        ("/api/session/link", {"token": "x" * 43}),
        ("/api/session/link/inspect", {"token": "x" * 43}),
    ]:
        answer = await other.post(path, json=body)
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
        assert "set-cookie" not in answer.headers


async def test_no_other_site_can_use_a_session(people: ServerState, browser: httpx2.AsyncClient) -> None:
    await sign_in(browser)
    answer = await browser.delete("/api/session", headers={"origin": "http://evil.example"})
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    assert (await browser.get("/api/me")).status_code == 200


async def test_each_sign_in_has_a_token_of_its_own_and_ends_the_one_before(
    people: ServerState, browser: httpx2.AsyncClient
) -> None:
    """A session that somebody planted in the browser is never the one that is used."""
    await sign_in(browser)
    first = browser.cookies["interlock"]
    await sign_in(browser)
    assert browser.cookies["interlock"] != first
    browser.cookies.clear()
    assert (await browser.get("/api/me", headers={"cookie": f"interlock={first}"})).status_code == 401


async def test_a_planted_token_does_not_become_a_session(people: ServerState, browser: httpx2.AsyncClient) -> None:
    planted = "A" * 43
    answer = await browser.post(
        "/api/session", json={"name": "bob", "password": PASSWORD}, headers={"cookie": f"interlock={planted}"}
    )
    assert answer.status_code == 200
    assert planted not in answer.headers["set-cookie"]


async def test_signing_out_everywhere_ends_all_sessions_and_ones_own_keys(
    people: ServerState, keys: dict[str, str], client: ClientFactory
) -> None:
    one, two = client(origin=OURS), client(origin=OURS)
    await sign_in(one)
    await sign_in(two)
    assert (await one.delete("/api/sessions")).json() == {"sessions": 2, "keys": 1}
    bobs = client(keys["reviewer"])
    assert [(await each.get("/api/me")).status_code for each in (one, two, bobs)] == [401, 401, 401]
    assert (await client(keys["agent"]).get("/api/me")).status_code == 200


async def test_wrong_names_and_wrong_passwords_are_told_alike(people: ServerState, browser: httpx2.AsyncClient) -> None:
    answers = [
        await browser.post("/api/session", json={"name": name, "password": "wrong and long", "workspace": place})
        for name, place in [("bob", "default"), ("nobody", "default"), ("bob", "elsewhere"), ("vic", "default")]
    ]
    assert {(each.status_code, each.text) for each in answers} == {(401, answers[0].text)}
    assert "set-cookie" not in answers[0].headers


async def test_guessing_a_password_is_slowed_down(
    people: ServerState, browser: httpx2.AsyncClient, clock: Clock
) -> None:
    for _ in range(5):
        await browser.post("/api/session", json={"name": "bob", "password": "wrong and long"})
    answer = await sign_in(browser)
    assert (answer.status_code, answer.json()["error"]) == (429, "too_many_requests")
    assert int(answer.headers["retry-after"]) > 0
    clock.advance(120_000)
    assert (await sign_in(browser)).status_code == 200


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("/approvals?x=1", "/approvals?x=1"),
        ("", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/a\\b", "/"),
        ("https://evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/\t/evil.example", "/"),
        ("/a\nb", "/"),
        (" //evil.example", "/"),
        ("/" + "a" * 3_000, "/"),
    ],
)
async def test_a_sign_in_leads_to_a_path_of_ours(
    people: ServerState, browser: httpx2.AsyncClient, asked: str, told: str
) -> None:
    assert (await sign_in(browser, next=asked)).json()["next"] == told


async def test_the_first_admin_comes_in_by_a_link_once(state: ServerState, browser: httpx2.AsyncClient) -> None:
    token = await state.accounts.create_link("default", "interlock", role="admin")
    for method in ("GET", "HEAD"):
        await browser.request(method, "/welcome")
    about = (await browser.post("/api/session/link/inspect", json={"token": token})).json()
    assert about == {"workspace": "default", "name": "", "role": "admin", "new": True}
    used = {"token": token, "name": "ann", "password": PASSWORD}
    body = (await browser.post("/api/session/link", json=used)).json()
    assert (body["name"], body["role"], body["next"]) == ("ann", "admin", "/")
    assert (await browser.get("/api/me")).json()["name"] == "ann"
    again = await browser.post("/api/session/link", json={**used, "name": "eve"})
    assert (again.status_code, again.json()["error"]) == (401, "unauthenticated")


async def test_a_link_without_a_password_for_somebody_new_is_not_spent(
    state: ServerState, browser: httpx2.AsyncClient
) -> None:
    token = await state.accounts.create_link("default", "interlock", role="admin")
    answer = await browser.post("/api/session/link", json={"token": token, "name": "ann"})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert (await state.accounts.inspect_link(token)).role == "admin"


async def test_a_password_in_a_wrong_body_is_not_told_back(people: ServerState, browser: httpx2.AsyncClient) -> None:
    answer = await browser.post("/api/session", json={"name": "bob", "password": ["hunter2"], "extra": "hunter2"})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert "hunter2" not in answer.text
