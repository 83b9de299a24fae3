"""A folder with a database of its own, and the command that works on it; and servers with an agent that chats."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import Base, File, Place, migrated
from tests.fakes.model_server import Models
from tests.journeys.chat_client import WIRES, Ground, Mind, World, models_beside
from tests.journeys.chat_server import ground_on
from tests.journeys.shell import Shell

NUMBERS = itertools.count(1)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.end_programs()


@pytest.fixture(scope="session")
def stand_in() -> Iterator[Models]:
    with models_beside() as stand_in:
        yield stand_in


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def chat_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A database for as long as the tests run: what is in it grows, as in life."""
    if request.param == "sqlite":
        yield File(tmp_path_factory.mktemp("chat") / "interlock.db")
        return
    server = request.getfixturevalue("postgres_server")
    name = f"test_{uuid.uuid4().hex}"
    server.create_database(name, migrated(server))
    yield Base(server, name)
    server.drop_database(name)


@pytest.fixture(scope="session")
def shared_ground(chat_place: Place, stand_in: Models, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with ground_on(chat_place, tmp_path_factory.mktemp("serve"), stand_in) as ground:
        yield ground


@pytest.fixture(scope="module")
def ground(shared_ground: Ground) -> Iterator[Ground]:
    """After each module the ledger is checked by the command that people use for it."""
    yield shared_ground
    shared_ground.assert_valid_ledger()


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def world(ground: Ground, wire: str) -> Iterator[World]:
    mind = Mind()
    ground.models.brain = mind
    ground.models.pause = 0.0
    ground.models.faults.clear()
    world = World(ground, wire, f"{wire}-{next(NUMBERS)}", mind, begun=len(ground.models.turns))
    yield world
    world.assert_sound()
