"""Signing in through a provider that is certified for OpenID Connect."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from interlock.app.bootstrap import wall_clock
from interlock.config.models import OidcSettings, ServerSettings, Settings
from interlock.server.state import ServerState
from tests.fakes.openid_provider import CLIENT, SECRET
from tests.node_packages import PROVIDER
from tests.oidc_provider import run_provider, sign_in
from tests.server.conftest import ClientFactory
from tests.support import Clock

pytestmark = pytest.mark.skipif(not PROVIDER.is_installed(), reason=PROVIDER.missing)


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with run_provider("http://127.0.0.1:8321/auth/oidc/callback") as address:
        yield address


@pytest.fixture
def clock() -> Clock:
    """The provider's tokens count by the time of the day."""
    return Clock(wall_clock())


@pytest.fixture
def settings(issuer: str) -> Settings:
    return Settings(
        server=ServerSettings(
            oidc=OidcSettings(
                issuer=issuer, client_id=CLIENT, client_secret=SECRET, role="reviewer", teams_claim="groups"
            )
        )
    )


@pytest.fixture
def browser(client: ClientFactory) -> httpx2.AsyncClient:
    return client()


async def sign_in_at_provider(browser: httpx2.AsyncClient, login: str) -> httpx2.Response:
    left = await browser.get("/auth/oidc", params={"next": "/approvals"})
    assert left.status_code == 303, left.text
    return await browser.get(await sign_in(left.headers["location"], login))


async def test_somebody_new_signs_in(browser: httpx2.AsyncClient, state: ServerState) -> None:
    answer = await sign_in_at_provider(browser, "ann")
    assert (answer.status_code, answer.headers["location"]) == (303, "/approvals"), answer.text
    me = (await browser.get("/api/me")).json()
    assert (me["name"], me["role"], me["teams"]) == ("ann@example.com", "reviewer", ["finance"])
    await sign_in_at_provider(browser, "ann")
    assert [user.name for user in await state.accounts.users("default")] == ["ann@example.com"]


async def test_somebody_whose_address_is_not_verified_stays_out(browser: httpx2.AsyncClient) -> None:
    answer = await sign_in_at_provider(browser, "mallory")
    assert (answer.status_code, answer.json()["error"]) == (401, "unauthenticated")


async def test_a_code_of_the_provider_is_used_once(browser: httpx2.AsyncClient, client: ClientFactory) -> None:
    left = await browser.get("/auth/oidc")
    cookie = browser.cookies["interlock-oidc"]
    back = await sign_in(left.headers["location"], "ann")
    assert (await browser.get(back)).status_code == 303
    again = await client(cookie=f"interlock-oidc={cookie}").get(back)
    assert (again.status_code, again.json()["error"]) == (401, "unauthenticated")
