from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from interlock.wiring import Parts
from tests.support import Clock, opened


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def parts(tmp_path: Path, clock: Clock) -> AsyncIterator[Parts]:
    async with opened(tmp_path / "interlock.db", clock) as doors:
        yield doors
