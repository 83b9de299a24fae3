"""A framework's program, a database of its own, and a count of what really happened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frameworks.framework_program import EffectServer
from tests.journeys.shell import Shell

PATIENCE = (
    600  # seconds for a test: it starts several programs, and importing a framework takes long on a loaded machine
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Only a bound for what hangs; whoever sets one closer keeps it."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(PATIENCE))


@pytest.fixture
def effects() -> Iterator[EffectServer]:
    with EffectServer().serve() as counted:
        yield counted


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)
