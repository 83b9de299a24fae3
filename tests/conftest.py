"""What every test shares: how hypothesis searches, and a real PostgreSQL for those who ask for one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.postgres import Server

settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One for each process that runs tests. A test that stops or restarts a server takes one of its own."""
    from tests.postgres import Server  # a run of the unit tests does not load the driver

    with Server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: Server) -> Iterator[str]:
    """The address of an empty database."""
    name = f"test_{uuid.uuid4().hex}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)
