"""Servers with an agent that chats, for the clients of other protocols."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.databases import File
from tests.journeys.chat_client import models_beside
from tests.protocols.ag_ui_scenario import Client, client_of, ground_for_two


@pytest.fixture(scope="session")
def ag_ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One server and one client for all of its tests; at the end the ledger is checked."""
    folder = tmp_path_factory.mktemp("ag_ui")
    with models_beside() as models, ground_for_two(File(folder / "interlock.db"), folder, models) as ground:
        with client_of(ground, tmp_path_factory.mktemp("node")) as client:
            yield client
        ground.assert_valid_ledger()


@pytest.fixture
def client(ag_ui: Client) -> Client:
    ag_ui.begin()
    return ag_ui
