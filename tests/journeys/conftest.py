"""A folder with a database of its own, and the command that works on it."""

from pathlib import Path

import pytest

from tests.journeys.programs import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)
