"""Pages of other sites: those that are named may read answers, and they need a key. All others get nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from interlock.server.app import build_app
from interlock.server.middleware import RequestMiddleware
from interlock.server.state import ServerState
from tests.databases import File
from tests.server.asgi_request import Got, ask

INBOX = "https://inbox.example.com"
ASKS = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,x-api-key"}


@pytest.fixture
def place(tmp_path: Path) -> File:
    """One kind of database is enough: pages are told apart before anything comes to it."""
    return File(tmp_path / "interlock.db")


@pytest.fixture
def open_to(site: ServerState) -> RequestMiddleware:
    server = replace(site.settings.server, origins=(INBOX,))
    return build_app(replace(site, settings=replace(site.settings, server=server)))


def allowed(got: Got) -> str:
    return got.headers.get("access-control-allow-origin", "")


async def test_a_page_that_is_named_may_ask_with_a_key_and_read_the_answer(
    open_to: RequestMiddleware, keys: dict[str, str]
) -> None:
    before = await ask(open_to, "OPTIONS", "/api/me", {"origin": INBOX, **ASKS})
    assert (before.status, allowed(before)) == (204, INBOX)
    assert before.headers["access-control-allow-headers"] == "authorization,x-api-key"
    assert "access-control-allow-credentials" not in before.headers
    got = await ask(open_to, "GET", "/api/me", {"origin": INBOX, "authorization": f"Bearer {keys['reviewer']}"})
    assert (got.status, allowed(got), got.headers["vary"]) == (200, INBOX, "origin")
    refused = await ask(open_to, "GET", "/api/me", {"origin": INBOX})
    assert (refused.status, allowed(refused)) == (401, INBOX)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", f"{INBOX}.evil.example", INBOX.upper()])
async def test_all_other_pages_may_not(
    open_to: RequestMiddleware, app: RequestMiddleware, keys: dict[str, str], origin: str
) -> None:
    key = {"authorization": f"Bearer {keys['reviewer']}"}
    for which, name in ((open_to, origin), (app, INBOX)):
        before = await ask(which, "OPTIONS", "/api/me", {"origin": name, **ASKS})
        assert before.status in (404, 405)
        assert allowed(before) == ""
        assert allowed(await ask(which, "GET", "/api/me", {"origin": name, **key})) == ""


async def test_a_session_of_our_own_page_does_not_count_from_there(open_to: RequestMiddleware) -> None:
    headers = {"origin": INBOX, "cookie": "interlock=whatever", "content-type": "application/json"}
    got = await ask(open_to, "POST", "/api/approvals/bulk", headers, b'{"decisions":[]}')
    assert (got.status, got.error) == (403, "forbidden")


async def test_a_preflight_with_odd_names_allows_none_of_them(open_to: RequestMiddleware) -> None:
    odd = {"origin": INBOX, **ASKS, "access-control-request-headers": "x-a: b\t"}
    assert (await ask(open_to, "OPTIONS", "/api/me", odd)).headers["access-control-allow-headers"] == ""
