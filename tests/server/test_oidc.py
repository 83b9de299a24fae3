"""Signing in through an OpenID provider, and everything that must not work."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from interlock.config.models import OidcSettings, ServerSettings, Settings
from interlock.server.state import ServerState
from tests.fakes import openid_provider
from tests.fakes.openid_provider import CLIENT, SECRET, OpenIdProvider, new_key, run_openid_provider
from tests.server.conftest import ClientFactory
from tests.support import Clock


@pytest.fixture(scope="module")
def key() -> RSAKey:
    """Of every test's provider: to make one takes longer than to sign in."""
    return new_key()


@pytest.fixture
def provider(clock: Clock, key: RSAKey, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenIdProvider]:
    monkeypatch.setattr(openid_provider, "new_key", lambda: key)
    with run_openid_provider() as made:
        made.claims = lambda nonce, now=None: OpenIdProvider.claims(made, nonce, clock() // 1000)  # type: ignore[method-assign]
        yield made


@pytest.fixture
def settings(provider: OpenIdProvider) -> Settings:
    return Settings(
        server=ServerSettings(oidc=OidcSettings(issuer=provider.url, client_id=CLIENT, client_secret=SECRET))
    )


@pytest.fixture
async def ann(state: ServerState) -> str:
    """Somebody whom an admin added with an address."""
    await state.accounts.add_user("default", "ann", "reviewer", "test", email="ann@example.com")
    return "ann"


@pytest.fixture
def browser(client: ClientFactory) -> httpx2.AsyncClient:
    return client()


async def start_sign_in(browser: httpx2.AsyncClient, path: str = "") -> str:
    answer = await browser.get("/auth/oidc", params={"next": path} if path else {})
    assert answer.status_code == 303, answer.text
    address: str = answer.headers["location"]
    return address


async def finish_sign_in(browser: httpx2.AsyncClient, query: dict[str, str]) -> httpx2.Response:
    return await browser.get("/auth/oidc/callback", params=query)


async def assert_refused(browser: httpx2.AsyncClient, query: dict[str, str]) -> None:
    answer = await finish_sign_in(browser, query)
    assert (answer.status_code, answer.json()["error"]) == (401, "unauthenticated")
    assert (await browser.get("/api/me")).status_code == 401


@pytest.mark.postgres_smoke
async def test_somebody_signs_in_through_the_provider(
    browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str, state: ServerState
) -> None:
    address = await start_sign_in(browser, "/approvals")
    answer = await finish_sign_in(browser, provider.sign_in(address))
    assert (answer.status_code, answer.headers["location"]) == (303, "/approvals")
    assert (await browser.get("/api/me")).json()["name"] == ann
    assert "interlock-oidc" not in browser.cookies
    await state.accounts.change_user("default", ann, "test", email="other@example.com")
    again = provider.sign_in(await start_sign_in(browser), email="new@example.com", email_verified=False)
    assert (await finish_sign_in(browser, again)).status_code == 303  # known by the subject from now on
    assert (await browser.get("/api/me")).json()["name"] == ann


async def test_the_page_offers_the_way_to_the_provider(browser: httpx2.AsyncClient) -> None:
    assert '<meta name="provider" content="oidc" />' in (await browser.get("/signin")).text


async def test_what_was_begun_is_kept_out_of_reach(browser: httpx2.AsyncClient, ann: str) -> None:
    answer = await browser.get("/auth/oidc")
    flags = {part.strip() for part in answer.headers["set-cookie"].split(";")[1:]}
    assert flags == {"Path=/", "HttpOnly", "SameSite=Lax", "Max-Age=600"}
    assert ann


async def test_the_provider_is_asked_about_itself_once(
    browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str
) -> None:
    for _ in range(3):
        await finish_sign_in(browser, provider.sign_in(await start_sign_in(browser)))
    assert provider.request_counts.count("/.well-known/openid-configuration") == 1
    assert provider.request_counts.count("/jwks") == 1
    assert ann


async def test_a_provider_may_change_its_keys(
    browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str, clock: Clock
) -> None:
    await finish_sign_in(browser, provider.sign_in(await start_sign_in(browser)))
    provider.keys.insert(0, new_key())
    clock.advance(61_000)
    assert (await finish_sign_in(browser, provider.sign_in(await start_sign_in(browser)))).status_code == 303
    assert ann


async def test_a_wrong_state_is_refused(browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str) -> None:
    back = provider.sign_in(await start_sign_in(browser))
    await assert_refused(browser, {**back, "state": "x" * 43})
    assert ann


async def test_what_another_browser_began_is_refused(
    browser: httpx2.AsyncClient, client: ClientFactory, provider: OpenIdProvider, ann: str
) -> None:
    theirs = provider.sign_in(await start_sign_in(client()))
    await assert_refused(browser, theirs)
    await start_sign_in(browser)
    await assert_refused(browser, theirs)
    assert ann


async def test_a_code_is_used_once(
    browser: httpx2.AsyncClient, client: ClientFactory, provider: OpenIdProvider, ann: str
) -> None:
    back = provider.sign_in(await start_sign_in(browser))
    cookie = browser.cookies["interlock-oidc"]
    assert (await finish_sign_in(browser, back)).status_code == 303
    other = client(cookie=f"interlock-oidc={cookie}")
    answer = await finish_sign_in(other, back)
    assert (answer.status_code, answer.json()["error"]) == (401, "unauthenticated")
    assert "set-cookie" not in answer.headers
    assert ann


async def test_what_was_begun_long_ago_is_refused(
    browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str, clock: Clock
) -> None:
    address = await start_sign_in(browser)
    clock.advance(600_000)
    await assert_refused(browser, provider.sign_in(address))
    assert ann


async def test_a_cookie_that_was_changed_is_refused(
    browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str
) -> None:
    back = provider.sign_in(await start_sign_in(browser))
    body, _, seal = browser.cookies["interlock-oidc"].partition(".")
    began = json.loads(base64.urlsafe_b64decode(body + "=="))
    forged = base64.urlsafe_b64encode(json.dumps([*began[:3], "/evil", began[4]]).encode()).decode().rstrip("=")
    browser.cookies.clear()
    answer = await browser.get(
        "/auth/oidc/callback", params=back, headers={"cookie": f"interlock-oidc={forged}.{seal}"}
    )
    assert (answer.status_code, answer.json()["error"]) == (401, "unauthenticated")
    assert ann


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another client"},
        {"aud": None},
        {"aud": [CLIENT, "another client"]},
        {"azp": "another client"},
        {"exp": 1},
        {"exp": None},
        {"iat": 4_000_000_000},
        {"iss": "https://another.example"},
        {"iss": None},
        {"sub": None},
        {"sub": ""},
    ],
    ids=str,
)
async def test_claims_that_are_not_for_this_sign_in_are_refused(
    browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str, claims: dict[str, Any]
) -> None:
    await assert_refused(browser, provider.sign_in(await start_sign_in(browser), **claims))
    assert ann


def unsigned(claims: dict[str, Any]) -> str:
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


@pytest.mark.parametrize(
    "how", ["none", "another key", "the client's secret", "the public key as a secret", "nonsense"]
)
async def test_what_the_provider_did_not_sign_is_refused(
    browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str, how: str
) -> None:
    address = await start_sign_in(browser)
    nonce = address.partition("nonce=")[2].partition("&")[0]
    claims = provider.claims(nonce)
    stranger = new_key()
    stranger_named = type(stranger).import_key({**stranger.as_dict(private=True), "kid": provider.keys[0].kid})
    public = provider.keys[0].as_pem(private=False)
    tokens = {
        "none": lambda: unsigned(claims),
        "another key": lambda: provider.sign(claims, stranger_named),
        "the client's secret": lambda: jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(SECRET + "x" * 20)),
        "the public key as a secret": lambda: hmac_signed(claims, public),
        "nonsense": lambda: "a.b.c",
    }
    await assert_refused(browser, provider.sign_in(address, token=tokens[how]()))
    assert ann


def hmac_signed(claims: dict[str, Any], secret: bytes) -> str:
    head = [json.dumps(part).encode() for part in ({"alg": "HS256"}, claims)]
    text = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in head)
    seal = base64.urlsafe_b64encode(hmac.new(secret, text, hashlib.sha256).digest()).rstrip(b"=")
    return (text + b"." + seal).decode()


@pytest.mark.parametrize("verified", [False, None, "true", 1])
async def test_an_address_that_is_not_verified_leads_to_nobody(
    browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str, verified: object
) -> None:
    await assert_refused(browser, provider.sign_in(await start_sign_in(browser), email_verified=verified))
    assert ann


async def test_the_subject_of_another_issuer_is_somebody_else(
    browser: httpx2.AsyncClient, provider: OpenIdProvider, state: ServerState
) -> None:
    await state.accounts.add_user("default", "ann", "admin", "test", email="ann@example.com")
    await state.accounts.sign_in_by_subject(
        "default", "https://other.example ann-at-the-provider", "ann@example.com", "ann"
    )
    await assert_refused(browser, provider.sign_in(await start_sign_in(browser), email=None))
    await assert_refused(browser, provider.sign_in(await start_sign_in(browser)))


async def test_nobody_comes_in_whom_nobody_added(
    browser: httpx2.AsyncClient, provider: OpenIdProvider, state: ServerState
) -> None:
    await assert_refused(browser, provider.sign_in(await start_sign_in(browser)))
    assert await state.accounts.users("default") == []


async def test_somebody_who_was_removed_stays_out(
    browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str, state: ServerState
) -> None:
    await finish_sign_in(browser, provider.sign_in(await start_sign_in(browser)))
    await state.accounts.remove_user("default", ann, "test")
    browser.cookies.clear()
    await assert_refused(browser, provider.sign_in(await start_sign_in(browser)))


async def test_userinfo_counts_for_the_same_subject(
    browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str
) -> None:
    provider.userinfo = {"sub": "somebody else", "email": "ann@example.com", "email_verified": True}
    await assert_refused(browser, provider.sign_in(await start_sign_in(browser), email=None, email_verified=None))
    provider.userinfo["sub"] = "ann-at-the-provider"
    back = provider.sign_in(await start_sign_in(browser), email=None, email_verified=None)
    assert (await finish_sign_in(browser, back)).status_code == 303
    assert (await browser.get("/api/me")).json()["name"] == ann


async def test_userinfo_does_not_overrule_signed_claims(
    browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str
) -> None:
    provider.userinfo = {"sub": "ann-at-the-provider", "email": "ann@example.com", "email_verified": True}
    back = provider.sign_in(await start_sign_in(browser), email="eve@example.com", email_verified=None)
    await assert_refused(browser, back)
    assert ann


async def test_a_token_that_is_not_of_this_access_is_refused(
    browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str
) -> None:
    await assert_refused(browser, provider.sign_in(await start_sign_in(browser), at_hash="AAAAAAAAAAAAAAAAAAAAAA"))
    assert ann


async def test_provider_refusal_is_shown(browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str) -> None:
    back = provider.sign_in(await start_sign_in(browser))
    await assert_refused(browser, {"error": "access_denied", "state": back["state"]})
    await assert_refused(browser, {**back, "iss": "https://another.example"})
    assert ann


@pytest.mark.parametrize("path", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:1"])
async def test_nobody_is_led_elsewhere(
    browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str, path: str
) -> None:
    answer = await finish_sign_in(browser, provider.sign_in(await start_sign_in(browser, path)))
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert ann


async def test_a_provider_by_another_name_is_not_used(browser: httpx2.AsyncClient, provider: OpenIdProvider) -> None:
    provider.issuer = "https://another.example"
    answer = await browser.get("/auth/oidc")
    assert (answer.status_code, answer.json()["error"]) == (503, "provider_unavailable")


class TestWithMore:
    """A provider that may bring new people, of some domains, and says who is in which team."""

    @pytest.fixture
    def settings(self, provider: OpenIdProvider) -> Settings:
        oidc = OidcSettings(
            issuer=provider.url,
            client_id=CLIENT,
            client_secret=SECRET,
            role="reviewer",
            teams_claim="groups",
            allowed_domains=("example.com",),
        )
        return replace(Settings(), server=ServerSettings(oidc=oidc))

    async def test_new_people_come_in_with_the_role_that_is_set(
        self, browser: httpx2.AsyncClient, provider: OpenIdProvider
    ) -> None:
        back = provider.sign_in(await start_sign_in(browser), groups=["finance", 3, ""])
        assert (await finish_sign_in(browser, back)).status_code == 303
        me = (await browser.get("/api/me")).json()
        assert (me["name"], me["role"], me["teams"]) == ("ann@example.com", "reviewer", ["finance"])

    async def test_teams_are_what_the_provider_says_at_each_sign_in(
        self, browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str
    ) -> None:
        await finish_sign_in(browser, provider.sign_in(await start_sign_in(browser), groups=["finance"]))
        assert (await browser.get("/api/me")).json()["teams"] == ["finance"]
        await finish_sign_in(browser, provider.sign_in(await start_sign_in(browser), groups=[]))
        assert (await browser.get("/api/me")).json()["teams"] == []
        assert ann

    async def test_an_address_is_not_verified_by_what_is_said_of_another(
        self, browser: httpx2.AsyncClient, provider: OpenIdProvider, ann: str
    ) -> None:
        provider.userinfo = {"sub": "ann-at-the-provider", "email": "eve@example.com", "email_verified": True}
        back = provider.sign_in(await start_sign_in(browser), email_verified=None)
        answer = await finish_sign_in(browser, back)
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
        assert "/userinfo" in provider.request_counts
        assert ann

    @pytest.mark.parametrize(
        "claims",
        [
            {"email": "eve@evil.example"},
            {"email": "eve@example.com.evil.example"},
            {"email": "eve@example.com", "email_verified": False},
            {"email": None},
        ],
        ids=str,
    )
    async def test_other_domains_stay_out(
        self, browser: httpx2.AsyncClient, provider: OpenIdProvider, state: ServerState, claims: dict[str, Any]
    ) -> None:
        answer = await finish_sign_in(browser, provider.sign_in(await start_sign_in(browser), **claims))
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
        assert await state.accounts.users("default") == []


class TestWithout:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings()

    async def test_without_a_provider_there_is_no_way_to_one(self, browser: httpx2.AsyncClient) -> None:
        for path in ("/auth/oidc", "/auth/oidc/callback"):
            assert (await browser.get(path)).status_code == 404
        assert '<meta name="provider" content="" />' in (await browser.get("/signin")).text
