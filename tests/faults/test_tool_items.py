"""A change of tool items, killed before and after each statement: a retry finds it done once, or does it."""

from __future__ import annotations

import asyncio
import signal
import sys
from itertools import count
from pathlib import Path

import pytest

from interlock.app.bootstrap import build_services
from tests.counter_program import increment
from tests.databases import Database

REPOSITORY = Path(__file__).resolve().parents[2]
LEAST = {"sqlite": 8, "postgres": 10}  # places to be killed at: fewer would mean that nothing was tried


@pytest.mark.smoke
async def test_a_change_that_is_killed_anywhere_is_made_once(database: Database) -> None:  # R7
    services = build_services(database.url)
    await services.store.open()
    items = services.store.tool_items("default")
    kept = killed = 0
    try:
        for number in count(1):
            died = await _run_and_kill(database, f"key{number}", f"kill:{number}")
            kept += database.sql("select count(*) from applied where key = ?", f"key{number}") == [(1,)]
            assert await items.change(f"key{number}", increment) == number, "once, by whoever did it"
            if not died:
                break
            killed += 1
    finally:
        await services.store.close()
    assert killed >= LEAST[database.kind]
    assert 1 < kept <= killed, "some died after it was done, and some before"


async def _run_and_kill(database: Database, key: str, fault: str) -> bool:
    command = [sys.executable, "-m", "tests.counter_program", database.url, key, fault]
    pipe = asyncio.subprocess.PIPE
    other = await asyncio.create_subprocess_exec(*command, cwd=REPOSITORY, stdin=pipe, stdout=pipe)
    try:
        await other.communicate(b"go\n")
    finally:
        if other.returncode is None:
            other.kill()
            await other.wait()
    assert other.returncode in (0, -signal.SIGKILL)
    return other.returncode != 0
