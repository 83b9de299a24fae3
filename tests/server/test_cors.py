"""Pages of other sites: those that are named may read answers, and they need a key. All others get nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from interlock.server.app import build_app
from interlock.server.middleware import RequestMiddleware
from interlock.server.state import ServerState
from tests.databases import SqliteFile
from tests.server.asgi_request import Response, send_request

INBOX = "https://inbox.example.com"
REQUESTS = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,x-api-key"}


@pytest.fixture
def database(tmp_path: Path) -> SqliteFile:
    """One kind of database is enough: pages are told apart before anything comes to it."""
    return SqliteFile(tmp_path / "interlock.db")


@pytest.fixture
def open_to(state: ServerState) -> RequestMiddleware:
    server = replace(state.settings.server, origins=(INBOX,))
    return build_app(replace(state, settings=replace(state.settings, server=server)))


def allowed_origin(got: Response) -> str:
    return got.headers.get("access-control-allow-origin", "")


async def test_a_page_that_is_named_may_ask_with_a_key_and_read_the_answer(
    open_to: RequestMiddleware, keys: dict[str, str]
) -> None:
    before = await send_request(open_to, "OPTIONS", "/api/me", {"origin": INBOX, **REQUESTS})
    assert (before.status, allowed_origin(before)) == (204, INBOX)
    assert before.headers["access-control-allow-headers"] == "authorization,x-api-key"
    assert "access-control-allow-credentials" not in before.headers
    got = await send_request(
        open_to, "GET", "/api/me", {"origin": INBOX, "authorization": f"Bearer {keys['reviewer']}"}
    )
    assert (got.status, allowed_origin(got), got.headers["vary"]) == (200, INBOX, "origin")
    refused = await send_request(open_to, "GET", "/api/me", {"origin": INBOX})
    assert (refused.status, allowed_origin(refused)) == (401, INBOX)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", f"{INBOX}.evil.example", INBOX.upper()])
async def test_all_other_pages_may_not(
    open_to: RequestMiddleware, app: RequestMiddleware, keys: dict[str, str], origin: str
) -> None:
    key = {"authorization": f"Bearer {keys['reviewer']}"}
    for which, name in ((open_to, origin), (app, INBOX)):
        before = await send_request(which, "OPTIONS", "/api/me", {"origin": name, **REQUESTS})
        assert before.status in (404, 405)
        assert allowed_origin(before) == ""
        assert allowed_origin(await send_request(which, "GET", "/api/me", {"origin": name, **key})) == ""


async def test_a_session_of_our_own_page_does_not_count_from_there(open_to: RequestMiddleware) -> None:
    headers = {"origin": INBOX, "cookie": "interlock=whatever", "content-type": "application/json"}
    got = await send_request(open_to, "POST", "/api/approvals/bulk", headers, b'{"decisions":[]}')
    assert (got.status, got.error_code) == (403, "forbidden")


async def test_a_preflight_with_odd_names_allows_none_of_them(open_to: RequestMiddleware) -> None:
    odd = {"origin": INBOX, **REQUESTS, "access-control-request-headers": "x-a: b\t"}
    assert (await send_request(open_to, "OPTIONS", "/api/me", odd)).headers["access-control-allow-headers"] == ""
