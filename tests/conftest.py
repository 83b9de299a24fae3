"""Fixtures of all tests: hypothesis profiles, a test clock, and a database of each kind."""

from __future__ import annotations

import os
import shutil
import signal
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.databases import Database, ServerDatabase, SqliteFile, migrated_template
from tests.hypothesis_profiles import register_profiles
from tests.levels import fail_unforeseen_skip, mark_nightly
from tests.server_process import MEMORY_FOLDER, MIN_FREE_BYTES
from tests.support import Clock
from tests.workload import Workload

if TYPE_CHECKING:
    from tests.pooler import Pooler
    from tests.postgres import Server

register_profiles()


# In memory no commit waits for the disk. No test can tell the difference, since none cuts the power.
if MEMORY_FOLDER.is_dir() and shutil.disk_usage(MEMORY_FOLDER).free > MIN_FREE_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_FOLDER))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workload", metavar="FILE", help="write what each test costs to this file, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Workload(config.getoption("--workload")))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_nightly(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fail_unforeseen_skip(report)
    return report


@pytest.fixture(scope="session", autouse=True)
def programs_can_be_interrupted() -> Iterator[None]:
    """Let programs that tests start receive Ctrl-C when the tests run in the background.

    A signal that is caught is not inherited as ignored: so the tests go on ignoring it, and their programs do not.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: None)
    yield
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One server for each test process. A test that stops or restarts a server starts its own."""
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
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A migrated database; a test that asks for it runs on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        yield SqliteFile(tmp_path / "interlock.db")
        return
    server = request.getfixturevalue("postgres_server")
    name = f"test_{uuid.uuid4().hex}"
    server.create_database(name, migrated_template(server))
    database = ServerDatabase(server, name)
    yield database
    database.close()
    server.drop_database(name)


@pytest.fixture
def clock() -> Clock:
    return Clock()
