"""Every test of the contract runs on both databases; the few that are about one of them say so."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from interlock.wiring import Parts
from tests.places import Base, File, Place, migrated
from tests.support import Clock, opened


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        yield File(tmp_path / "interlock.db")
        return
    server = request.getfixturevalue("postgres_server")
    name = f"test_{uuid.uuid4().hex}"
    server.create_database(name, migrated(server))
    yield Base(server, name)
    server.drop_database(name)


@pytest.fixture
async def parts(place: Place, clock: Clock) -> AsyncIterator[Parts]:
    async with opened(place, clock) as doors:
        yield doors
