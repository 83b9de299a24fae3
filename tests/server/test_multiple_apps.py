"""Several apps in one process share the routes and nothing else."""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from interlock.config.models import ServerSettings, Settings
from interlock.server.app import build_app
from interlock.server.middleware import RequestMiddleware
from interlock.server.serve import make_server_state
from tests.interlock_server import make_keys
from tests.server.asgi_request import send_request
from tests.support import Clock, open_services

Site = tuple[RequestMiddleware, dict[str, str]]


@pytest.fixture
async def sites(tmp_path: Path, clock: Clock) -> AsyncIterator[list[Site]]:
    """Two with the same people and other settings, each with a database of its own."""
    async with open_services(tmp_path / "one.db", clock) as one, open_services(tmp_path / "two.db", clock) as two:
        settings = Settings(), Settings(server=ServerSettings(public_url="https://interlock.example.com"))
        yield [
            (build_app(await make_server_state(given, parts)), await make_keys(parts))
            for given, parts in zip(settings, (one, two), strict=True)
        ]


async def test_a_request_is_served_by_the_site_that_it_came_to(sites: list[Site]) -> None:
    (first, keys), (second, others) = sites
    admin = {"authorization": f"Bearer {keys['admin']}", "content-type": "application/json"}
    assert (await send_request(first, "POST", "/api/users", admin, b'{"name":"zoe","role":"viewer"}')).status == 201
    here, there = [
        (
            await send_request(app, "GET", "/api/users", {"authorization": f"Bearer {given['admin']}", "host": host})
        ).json()
        for app, given, host in ((first, keys, "127.0.0.1:8321"), (second, others, "interlock.example.com"))
    ]
    assert {each["name"] for each in here["items"]} - {each["name"] for each in there["items"]} == {"zoe"}


async def test_a_key_of_one_site_opens_no_other(sites: list[Site]) -> None:
    (_, keys), (second, _) = sites
    asked = {"authorization": f"Bearer {keys['admin']}", "host": "interlock.example.com"}
    for path in ("/api/users", "/api/me", "/api/runs", "/humanlayer/v1/function_calls/x"):
        assert (await send_request(second, "GET", path, asked)).status == 401, path


async def test_the_routes_keep_no_site(tmp_path: Path, clock: Clock) -> None:
    async with open_services(tmp_path / "interlock.db", clock) as services:
        state = await make_server_state(Settings(), services)
        app = build_app(state)
        assert (await send_request(app, "GET", "/healthz")).status == 200
        gone = weakref.ref(state)
        del state, app
        gc.collect()
        assert gone() is None
