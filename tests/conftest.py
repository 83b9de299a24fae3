"""What every test shares: how hypothesis searches, and a real PostgreSQL for those who ask for one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.places import Base, File, Place, migrated
from tests.support import Clock

if TYPE_CHECKING:
    from tests.pooler import Pooler
    from tests.postgres import Server

settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One for each process that runs tests. A test that stops or restarts a server takes one of its own."""
    from tests.postgres import Server  # a run of the unit tests does not load the driver

    with Server(in_memory=True) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_pooler(postgres_server: Server) -> Iterator[Pooler]:
    """A pooler in transaction mode in front of that server."""
    from tests.pooler import MISSING, Pooler, find_pgbouncer

    if find_pgbouncer() is None:
        pytest.skip(MISSING)
    with Pooler(postgres_server) as pooler:
        yield pooler


@pytest.fixture
def postgres_database(postgres_server: Server) -> Iterator[str]:
    """The name of an empty database."""
    name = f"test_{uuid.uuid4().hex}"
    postgres_server.create_database(name)
    yield name
    postgres_server.drop_database(name)


@pytest.fixture
def postgres_url(postgres_server: Server, postgres_database: str) -> str:
    """The address of an empty database."""
    return postgres_server.url(postgres_database)


@pytest.fixture
def pooled_url(postgres_pooler: Pooler, postgres_database: str) -> str:
    """The same database, through the pooler."""
    return postgres_pooler.url(postgres_database)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A database that is ready: whoever asks for it runs on both kinds."""
    if request.param == "sqlite":
        yield File(tmp_path / "interlock.db")
        return
    server = request.getfixturevalue("postgres_server")
    name = f"test_{uuid.uuid4().hex}"
    server.create_database(name, migrated(server))
    yield Base(server, name)
    server.drop_database(name)


@pytest.fixture
def clock() -> Clock:
    return Clock()
