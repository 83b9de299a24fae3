"""A folder with a database of its own, and the command that works on it; and servers with an agent that chats."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import Database, ServerDatabase, SqliteFile, migrated_template
from tests.fakes.model_server import ModelServer
from tests.journeys.chat_client import WIRE_FORMATS, ChatScenario, ChatServer, ScriptedModel, run_models_in_thread
from tests.journeys.chat_server import run_chat_server
from tests.journeys.shell import Shell

NUMBERS = itertools.count(1)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.end_programs()


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServer]:
    with run_models_in_thread() as model_server:
        yield model_server


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def chat_database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database for as long as the tests run: what is in it grows, as in life."""
    if request.param == "sqlite":
        yield SqliteFile(tmp_path_factory.mktemp("chat") / "interlock.db")
        return
    server = request.getfixturevalue("postgres_server")
    name = f"test_{uuid.uuid4().hex}"
    server.create_database(name, migrated_template(server))
    yield ServerDatabase(server, name)
    server.drop_database(name)


@pytest.fixture(scope="session")
def shared_server(
    chat_database: Database, model_server: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ChatServer]:
    with run_chat_server(chat_database, tmp_path_factory.mktemp("serve"), model_server) as ground:
        yield ground


@pytest.fixture(scope="module")
def server(shared_server: ChatServer) -> Iterator[ChatServer]:
    """After each module the ledger is checked by the command that people use for it."""
    yield shared_server
    shared_server.assert_valid_ledger()


@pytest.fixture(params=WIRE_FORMATS)
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def scenario(server: ChatServer, wire: str) -> Iterator[ChatScenario]:
    mind = ScriptedModel()
    server.models.reply = mind
    server.models.pause = 0.0
    server.models.faults.clear()
    scenario = ChatScenario(server, wire, f"{wire}-{next(NUMBERS)}", mind, started=len(server.models.turns))
    yield scenario
    scenario.assert_sound()
