"""Every test of the contract runs on both databases; the few that are about one of them say so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from interlock.app.bootstrap import AppServices, build_services
from tests.places import Place
from tests.serving import make_keys, serving_here
from tests.support import Clock, opened


@pytest.fixture
async def parts(place: Place, clock: Clock) -> AsyncIterator[AppServices]:
    async with opened(place, clock) as doors:
        yield doors


@pytest.fixture
async def desk(place: Place) -> AsyncIterator[AppServices]:
    """Where people sit: the database itself, beside the programs that are tested."""
    parts = build_services(place.url)
    await parts.store.open()
    await parts.put_policy("default", "version: 1\ndefaults: {undo_window: 0s}\n", "ada", {})
    yield parts
    await parts.store.close()


@pytest.fixture(params=["database", "server"])
async def where(request: pytest.FixtureRequest, place: Place, desk: AppServices) -> AsyncIterator[dict[str, Any]]:
    """The address and what goes with it: over a database and over a server everything is the same."""
    if request.param == "database":
        yield {"url": place.url}
        return
    keys = await make_keys(desk)
    with serving_here(place.url) as url:
        yield {"url": url, "key": keys["agent"]}
