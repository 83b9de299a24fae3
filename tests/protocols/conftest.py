"""Servers with an agent that chats, for the clients of other protocols."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.databases import SqliteFile
from tests.journeys.chat_client import run_models_in_thread
from tests.protocols.ag_ui_scenario import AgUiClient, run_client, server_with_two_reviewers


@pytest.fixture(scope="session")
def ag_ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgUiClient]:
    """One server and one client for all of its tests; at the end the ledger is checked."""
    folder = tmp_path_factory.mktemp("ag_ui")
    with (
        run_models_in_thread() as models,
        server_with_two_reviewers(SqliteFile(folder / "interlock.db"), folder, models) as ground,
    ):
        with run_client(ground, tmp_path_factory.mktemp("node")) as client:
            yield client
        ground.assert_valid_ledger()


@pytest.fixture
def client(ag_ui: AgUiClient) -> AgUiClient:
    ag_ui.begin()
    return ag_ui
