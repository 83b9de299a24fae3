"""What somebody might try, from another site, with half a key or with odd bytes: refused, and nothing has changed.

Cookie flags, session fixation, sign-in from elsewhere and where a sign-in leads to are in test_session.py; what only a
socket can do is in test_wire.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from interlock.app.bootstrap import AppServices
from interlock.config.models import ServerSettings, Settings
from interlock.server.app import build_app
from interlock.server.serve import make_server_state
from tests.databases import SqliteFile
from tests.server import access_matrix
from tests.server.access_matrix import OURS, Target, TwoWorkspaces, assert_nothing_changes, fill_path
from tests.server.asgi_request import HOST, Response, send_request
from tests.support import Clock, status

JSON = {"content-type": "application/json"}
# What nobody outside is to learn of the inside.
INNER = re.compile(
    rb"Traceback|site-packages|/src/|\.py\b|sqlite|psycopg|select |insert into|File \"|0x[0-9a-f]{8}", re.I
)


@pytest.fixture
def database(tmp_path: Path) -> SqliteFile:
    """One kind of database is enough: what is refused here never comes to it."""
    return SqliteFile(tmp_path / "interlock.db")


def decision(target: Target, kind: str = "approve", **more: object) -> bytes:
    return json.dumps({"kind": kind, **target.more, **more}).encode()


def path_of(target: Target) -> str:
    return f"/api/approvals/{target.id}/decision"


# Pages of other sites


@pytest.mark.parametrize(
    "origin",
    [None, "null", "", "http://evil.example", "https://127.0.0.1:8321", "http://127.0.0.1:8322", "http://127.0.0.1",
     "http://127.0.0.1:8321.evil.example", "http://evil.example/http://127.0.0.1:8321", "HTTP://127.0.0.1:8321"],
)  # fmt: skip
async def test_no_page_of_another_site_decides(two_workspaces: TwoWorkspaces, origin: str | None) -> None:  # R21
    """A browser sends the cookie along, and the origin of the page, or none."""
    target = await access_matrix.approval(two_workspaces, OURS, "")
    headers = {**await two_workspaces.headers(OURS, "reviewer"), **JSON}
    headers.pop("origin")
    headers |= {} if origin is None else {"origin": origin}
    async with assert_nothing_changes(two_workspaces):
        got = await send_request(two_workspaces.app, "POST", path_of(target), headers, decision(target))
    assert (got.status, got.error_code) == (403, "forbidden")


async def test_our_own_page_decides(two_workspaces: TwoWorkspaces) -> None:
    """So that the tests around are about the origin, and not about something else that is wrong."""
    target = await access_matrix.approval(two_workspaces, OURS, "")
    headers = {**await two_workspaces.headers(OURS, "reviewer"), **JSON}
    assert (await send_request(two_workspaces.app, "POST", path_of(target), headers, decision(target))).status == 200
    assert await status(two_workspaces.services, target.id) == "approved"


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "text/plain; application/json", "application/x-www-form-urlencoded", "multipart/form-data",
     "application/jsonp", "", None],
)  # fmt: skip
async def test_what_a_form_can_send_is_no_json(two_workspaces: TwoWorkspaces, kind: str | None) -> None:
    """Another site's page can send these kinds without being asked for leave first."""
    target = await access_matrix.approval(two_workspaces, OURS, "")
    headers = await two_workspaces.headers(OURS, "reviewer") | ({} if kind is None else {"content-type": kind})
    async with assert_nothing_changes(two_workspaces):
        got = await send_request(two_workspaces.app, "POST", path_of(target), headers, decision(target))
    assert (got.status, got.error_code) == (415, "unsupported_media_type")


async def test_no_route_takes_a_body_of_another_kind(two_workspaces: TwoWorkspaces) -> None:
    wrong = []
    for operation, role, target in await access_matrix.allowed_exchanges(two_workspaces, ("POST", "PUT")):
        body = access_matrix.body_of(two_workspaces.document, operation, target)
        if body is None or list(operation.spec.get("requestBody", {}).get("content", JSON)) != ["application/json"]:
            continue
        for kind in ("text/plain", "application/x-www-form-urlencoded"):
            headers = {**await two_workspaces.headers(OURS, role), "content-type": kind}
            async with assert_nothing_changes(two_workspaces):
                got = await send_request(
                    two_workspaces.app, operation.method, fill_path(operation, target), headers, body
                )
            wrong += [] if got.status in (400, 415) else [f"{operation.name} as {kind}: {got.status} {got.text[:100]}"]
    assert wrong == []


async def test_foreign_origin_gets_no_cors_headers(two_workspaces: TwoWorkspaces) -> None:
    asked = {"origin": "http://evil.example", "access-control-request-method": "POST",
             "access-control-request-headers": "authorization"}  # fmt: skip
    for operation in access_matrix.operations(two_workspaces.document):
        path = fill_path(operation, Target(access_matrix.NOTHING))
        for method in ("OPTIONS", operation.method):
            got = await send_request(two_workspaces.app, method, path, asked)
            assert not [name for name in got.headers if name.startswith("access-control-")], operation.name
            assert method != "OPTIONS" or got.status in (401, 404, 405), operation.name


async def test_every_answer_says_that_it_is_not_to_be_framed_sniffed_or_kept(two_workspaces: TwoWorkspaces) -> None:
    for path in ("/", "/signin", "/welcome", "/docs", "/openapi.json", "/api/me", "/healthz", "/nowhere"):
        got = await send_request(two_workspaces.app, "GET", path)
        assert "frame-ancestors 'none'" in got.headers["content-security-policy"], path
        assert (got.headers["x-frame-options"], got.headers["x-content-type-options"]) == ("DENY", "nosniff"), path
        assert got.headers["cache-control"] == "no-store", path
        assert "strict-transport-security" not in got.headers, path


async def test_https_responses_carry_hsts(services: AppServices) -> None:
    state = await make_server_state(
        Settings(server=ServerSettings(public_url="https://interlock.example.com")), services
    )
    app = build_app(state)
    for path in ("/signin", "/api/me", "/nowhere"):
        got = await send_request(app, "GET", path, {"host": "interlock.example.com"})
        assert got.headers["strict-transport-security"] == "max-age=31536000", path
        assert "camera=()" in got.headers["permissions-policy"], path


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example:8321", "2130706433", "",
     "0x7f.1", "localhost:80:8321", "user@localhost", "localhost/", "localhost\t"],
)  # fmt: skip
async def test_a_name_that_leads_here_is_not_ours(two_workspaces: TwoWorkspaces, host: str) -> None:  # R21
    """Else a page of that name could read what is meant for ours, once the name points at this machine."""
    for path in ("/", "/api/me", "/healthz"):
        got = await send_request(two_workspaces.app, "GET", path, {"host": host})
        assert (got.status, got.error_code) == (421, "wrong_host"), path


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8321", "localhost", "localhost:8321", "LOCALHOST:9000", "[::1]:8321", "192.0.2.7:8321"]
)
async def test_a_number_cannot_be_pointed_elsewhere(two_workspaces: TwoWorkspaces, host: str) -> None:
    assert (await send_request(two_workspaces.app, "GET", "/healthz", {"host": host})).status == 200


# Looking never decides


async def test_looking_changes_nothing_on_any_route(two_workspaces: TwoWorkspaces) -> None:  # R21
    """Browsers, proxies and messengers fetch what is linked, before anybody has read it."""
    for operation in access_matrix.operations(two_workspaces.document):
        for role in ("admin", "agent"):
            target = await two_workspaces.target(operation, "own", role)
            for method in ("GET", "HEAD"):
                headers = {**await two_workspaces.headers(OURS, role), "purpose": "prefetch", "sec-purpose": "prefetch"}
                async with assert_nothing_changes(two_workspaces):
                    got = await send_request(two_workspaces.app, method, fill_path(operation, target), headers)
                assert got.status < 500, (operation.name, got.text)


@pytest.mark.parametrize(
    "name", ["x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url"]
)
async def test_a_header_makes_no_other_request_of_it(two_workspaces: TwoWorkspaces, name: str) -> None:
    target = await access_matrix.approval(two_workspaces, OURS, "")
    value = path_of(target) if name.endswith("url") else "POST"
    headers = {**await two_workspaces.headers(OURS, "reviewer"), **JSON, name: value}
    async with assert_nothing_changes(two_workspaces):
        got = await send_request(
            two_workspaces.app, "GET", f"{path_of(target)}?_method=POST", headers, decision(target)
        )
        assert got.status in (404, 405)
        assert (await send_request(two_workspaces.app, "GET", "/api/me", headers)).json()["name"] == "bob"


# Keys and sessions


@pytest.mark.parametrize("name", ["key", "access_token", "authorization", "token", "api_key", "interlock"])
async def test_a_key_in_an_address_does_not_count(two_workspaces: TwoWorkspaces, name: str) -> None:
    """Addresses stand in logs, histories and referrers."""
    for key in two_workspaces.keys[OURS].values():
        assert (await send_request(two_workspaces.app, "GET", f"/api/me?{name}={key}")).status == 401
        assert (await send_request(two_workspaces.app, "GET", "/api/me", {"x-api-key": key})).status == 401
        assert (await send_request(two_workspaces.app, "GET", "/api/me", {"cookie": f"interlock={key}"})).status == 401


async def test_a_key_has_to_be_given_whole_once_and_plainly(two_workspaces: TwoWorkspaces) -> None:
    key = two_workspaces.keys[OURS]["admin"]
    for given in ("Basic KEY", "KEY", "Bearer KEYx", "Bearer KEY,KEY", "Bearer", "Bearer ", "Bearer Bearer KEY"):
        headers = {"authorization": given.replace("KEY", key)}
        assert (await send_request(two_workspaces.app, "GET", "/api/me", headers)).status == 401, given
    for given in (key[:-1], key[:12], key.upper(), "\xff"):
        assert (
            await send_request(two_workspaces.app, "GET", "/api/me", {"authorization": f"Bearer {given}"})
        ).status == 401, given
    twice = [("authorization", f"Bearer {key}"), ("authorization", f"Bearer {key}")]
    assert (await send_request(two_workspaces.app, "GET", "/api/me", twice)).status == 400
    assert (await send_request(two_workspaces.app, "GET", "/api/me", {"authorization": f"Bearer {key}"})).status == 200


async def test_a_key_that_does_not_count_is_not_made_up_for_by_a_session(two_workspaces: TwoWorkspaces) -> None:
    headers = {**await two_workspaces.headers(OURS, "admin"), "authorization": "Bearer ilk_aaaaaaaa_" + "a" * 43}
    assert (await send_request(two_workspaces.app, "GET", "/api/me", headers)).status == 401


async def test_two_cookies_of_one_name_are_none(two_workspaces: TwoWorkspaces) -> None:
    """Whoever can plant a cookie for a wider path must not choose as whom somebody acts."""
    ours, planted = [(await two_workspaces.headers(OURS, role))["cookie"] for role in ("viewer", "admin")]
    assert (await send_request(two_workspaces.app, "GET", "/api/me", {"cookie": f"{ours}; {planted}"})).status == 401
    assert (
        await send_request(two_workspaces.app, "GET", "/api/me", [("cookie", ours), ("cookie", planted)])
    ).status in (400, 401)


async def test_what_was_taken_away_is_gone_with_the_next_request(
    two_workspaces: TwoWorkspaces, clock: Clock
) -> None:  # R21
    accounts = two_workspaces.services.accounts
    for role, take in {
        "viewer": lambda: accounts.remove_user(OURS, "vic", "ada"),
        "reviewer": lambda: accounts.sign_out_everywhere(OURS, "bob", "ada"),
        "admin": lambda: expire(clock),
    }.items():
        headers = await two_workspaces.headers(OURS, role)
        assert (await send_request(two_workspaces.app, "GET", "/api/me", headers)).status == 200
        await take()
        assert (await send_request(two_workspaces.app, "GET", "/api/me", headers)).status == 401, role
    key, secret = await accounts.create_key(OURS, "short", "agent", "ada")
    headers = {"authorization": f"Bearer {secret}"}
    assert (await send_request(two_workspaces.app, "GET", "/api/me", headers)).status == 200
    await accounts.revoke_key(OURS, key.id, "ada")
    assert (await send_request(two_workspaces.app, "GET", "/api/me", headers)).status == 401
    assert (
        await send_request(
            two_workspaces.app, "GET", "/api/me", {"authorization": f"Bearer {two_workspaces.keys[OURS]['viewer']}"}
        )
    ).status == 401


async def test_somebody_whose_role_was_taken_away_decides_nothing_from_then_on(two_workspaces: TwoWorkspaces) -> None:
    target = await access_matrix.approval(two_workspaces, OURS, "")
    headers = {**await two_workspaces.headers(OURS, "reviewer"), **JSON}
    assert (await send_request(two_workspaces.app, "GET", "/api/me", headers)).json()["role"] == "reviewer"
    await two_workspaces.services.accounts.change_user(OURS, "bob", "ada", role="viewer")
    got = await send_request(two_workspaces.app, "POST", path_of(target), headers, decision(target))
    assert (got.status, got.error_code) == (403, "forbidden")
    assert await status(two_workspaces.services, target.id) == "pending"


# Paths


@pytest.mark.parametrize(
    "path",
    ["/api/users/..%2f..%2fkeys", "/api/./keys", "/api//keys", "//api/keys", "/api/keys/", "/api/keys/%2e%2e/me/keys",
     "/API/KEYS", "/api/keys;a=b", "/api/keys%00", "/api/keys%20", "/api%2fkeys", "/api/approvals/%2e%2e/keys",
     "/api/calls/..%2fkeys", "/%2e%2e/%2e%2e/etc/passwd", "/assets/../../app.py", "/assets/..%2f..%2fapp.py",
     "/.git/config", "/assets/%2e%2e%2f.built", "/assets/.built", "/assets/index.html", "/assets/",
     "/assets//etc/passwd",
     "/api/approvals/a%2fb", "/api/approvals/%0d%0aset-cookie:x", "/api/approvals/" + "a" * 5_000],
)  # fmt: skip
async def test_a_path_is_what_it_says_and_leads_nowhere_else(two_workspaces: TwoWorkspaces, path: str) -> None:
    for role in ("nobody", "viewer", "agent"):
        for method in ("GET", "POST", "DELETE"):
            headers = {**await two_workspaces.headers(OURS, role), **JSON}
            async with assert_nothing_changes(two_workspaces):
                got = await send_request(two_workspaces.app, method, path, headers, b"{}")
            assert got.status in (307, 400, 401, 403, 404, 405), (method, path, got)
            assert local_addresses(got), (method, path, got.headers)
            assert not INNER.search(got.body)


@pytest.mark.parametrize(
    "path", ["//evil.example", "//evil.example/", "///evil.example/", "/\\evil.example/", "/%5cevil.example/",
             "/api/me//evil.example/", "/http://evil.example/", "/signin?next=//evil.example", "//evil.example/api/me/"]
)  # fmt: skip
async def test_nobody_is_led_elsewhere(two_workspaces: TwoWorkspaces, path: str) -> None:
    got = await send_request(two_workspaces.app, "GET", path)
    assert local_addresses(got), got.headers
    assert "evil.example" not in got.headers.get("location", "")


# What is told when something is wrong


async def test_internal_error_is_answered_without_details(two_workspaces: TwoWorkspaces, database: SqliteFile) -> None:
    database.sql_without_triggers("drop table payloads")
    headers = await two_workspaces.headers(OURS, "reviewer")
    target = Target(access_matrix.NOTHING)
    for method, path, body in (("GET", "/api/approvals", b""), ("GET", f"/api/approvals/{target.id}", b"")):
        got = await send_request(two_workspaces.app, method, path, {**headers, **JSON}, body)
        assert not INNER.search(got.body), got.text
        assert "payloads" not in got.text
        assert got.status in (404, 500, 503)


def local_addresses(got: Response) -> bool:
    location = got.headers.get("location", "")
    return location == "" or bool(re.match(rf"(http://{re.escape(HOST)})?/(?![/\\])", location))


async def expire(clock: Clock) -> None:
    clock.advance(8 * 24 * 3_600_000)
