"""Fixtures of the contract tests: every test runs on both databases unless it is about one of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from interlock.app.bootstrap import AppServices, build_services
from tests.databases import Place
from tests.interlock_server import make_keys, serving_here
from tests.support import Clock, opened


@pytest.fixture
async def services(place: Place, clock: Clock) -> AsyncIterator[AppServices]:
    async with opened(place, clock) as opened_services:
        yield opened_services


@pytest.fixture
async def people_services(place: Place) -> AsyncIterator[AppServices]:
    """Services of the people, directly on the database of the tested programs."""
    services = build_services(place.url)
    await services.store.open()
    await services.put_policy("default", "version: 1\ndefaults: {undo_window: 0s}\n", "ada", {})
    yield services
    await services.store.close()


@pytest.fixture(params=["database", "server"])
async def connection_options(
    request: pytest.FixtureRequest, place: Place, people_services: AppServices
) -> AsyncIterator[dict[str, Any]]:
    """URL and key of a database, then of a server over it."""
    if request.param == "database":
        yield {"url": place.url}
        return
    keys = await make_keys(people_services)
    with serving_here(place.url) as url:
        yield {"url": url, "key": keys["agent"]}
