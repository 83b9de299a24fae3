"""Every test of the contract runs on both databases; the few that are about one of them say so."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from interlock.wiring import Parts
from tests.places import Place
from tests.support import Clock, opened


@pytest.fixture
async def parts(place: Place, clock: Clock) -> AsyncIterator[Parts]:
    async with opened(place, clock) as doors:
        yield doors
