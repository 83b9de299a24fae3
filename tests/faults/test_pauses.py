"""A run that pauses and resumes, killed before and after each statement: no run is lost, all resume."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from interlock.app.bootstrap import build_services
from interlock.runtime.process_identity import is_dead
from interlock.storage.tables.pauses import LeaseHolder
from tests.databases import Database
from tests.faults.pause_program import SCOPE

REPOSITORY = Path(__file__).resolve().parents[2]
CHANGES = ("write_pause", "hold_pause", "drop_pause", "commit")
ANSWERED = "after all is answered"  # PostgreSQL commits between what was sent and its answer


@pytest.mark.smoke
async def test_a_run_whose_process_is_killed_anywhere_goes_on_and_is_over_once_it_is_over(
    database: Database, tmp_path: Path
) -> None:  # R9
    services = build_services(database.url)
    await services.store.open()
    ends = dict.fromkeys(("", "paused", "went on", "over"), 0)
    try:
        for number, fault in enumerate(await _plans(database, tmp_path / "points")):
            run_id = f"run{number}"
            said = await _run_and_kill(database, run_id, fault)
            ends[said[-1] if said else ""] += 1
            taken = await services.store.pauses.wait_ready(SCOPE, LeaseHolder("survivor", 60_000), 0, 10, is_dead)
            assert [pause.state for pause in taken] in ([], [run_id.encode()])
            assert taken or said[-1:] != ["paused"], "what is paused goes on"
            assert not (taken and said[-1:] == ["over"]), "what is over does not go on again"
            for pause in taken:
                assert await services.store.pauses.complete(SCOPE, pause.short_id, pause.fence)
            assert (await services.store.pauses.list_paused(SCOPE)).items == []
    finally:
        await services.store.close()
    assert (ends[""], ends["paused"], ends["went on"]) >= (2, 2, 2), "it was killed in every part of its way"


async def _plans(database: Database, points: Path) -> list[str]:
    """Before and after every change and every commit."""
    assert await _run_and_kill(database, "whole", f"record:{points}") == ["paused", "went on", "over"]
    return _sample(points)


def _sample(points: Path) -> list[str]:
    names, seen, found = points.read_text().splitlines(), Counter[str](), list[str]()
    for place_of, name in enumerate(names):
        seen[name] += 1
        sent = name == ANSWERED and any("commit" in each for each in names[max(0, place_of - 5) : place_of])
        if sent or name.endswith(CHANGES):
            found.append(f"kill:{name}#{seen[name]}")
    return found


async def _run_and_kill(database: Database, run_id: str, fault: str) -> list[str]:
    """What it had said before."""
    command = [sys.executable, "-m", "tests.faults.pause_program", database.url, run_id, fault]
    other = await asyncio.create_subprocess_exec(*command, cwd=REPOSITORY, stdout=asyncio.subprocess.PIPE)
    try:
        out, _ = await other.communicate()
    finally:
        if other.returncode is None:
            other.kill()
            await other.wait()
    assert other.returncode in (0, -signal.SIGKILL)
    return out.decode().splitlines()
