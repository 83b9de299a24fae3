"""Fixtures of the contract tests: every test runs on both databases unless it is about one of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from interlock.app.bootstrap import AppServices, build_services
from tests.databases import Database
from tests.interlock_server import make_keys, run_server_in_thread
from tests.support import Clock, open_services


@pytest.fixture
async def services(database: Database, clock: Clock) -> AsyncIterator[AppServices]:
    async with open_services(database, clock) as opened_services:
        yield opened_services


@pytest.fixture
async def people_services(database: Database) -> AsyncIterator[AppServices]:
    """Services of the people, directly on the database of the tested programs."""
    services = build_services(database.url)
    await services.store.open()
    await services.put_policy("default", "version: 1\ndefaults: {undo_window: 0s}\n", "ada", {})
    yield services
    await services.store.close()


@pytest.fixture(params=["database", "server"])
async def connection_options(
    request: pytest.FixtureRequest, database: Database, people_services: AppServices
) -> AsyncIterator[dict[str, Any]]:
    """URL and key of a database, then of a server over it."""
    if request.param == "database":
        yield {"url": database.url}
        return
    keys = await make_keys(people_services)
    with run_server_in_thread(database.url) as url:
        yield {"url": url, "key": keys["agent"]}
