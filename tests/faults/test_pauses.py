"""A run that pauses and goes on, its process killed before and after each statement: none is lost, all go on."""

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
from tests.faults.pause_program import MINE
from tests.places import Place

TOP = Path(__file__).resolve().parents[2]
CHANGES = ("write_pause", "hold_pause", "drop_pause", "commit")
ANSWERED = "after all is answered"  # PostgreSQL commits between what was sent and its answer


@pytest.mark.smoke
async def test_a_run_whose_process_is_killed_anywhere_goes_on_and_is_over_once_it_is_over(
    place: Place, tmp_path: Path
) -> None:  # R9
    parts = build_services(place.url)
    await parts.store.open()
    ends = dict.fromkeys(("", "paused", "went on", "over"), 0)
    try:
        for number, fault in enumerate(await _plans(place, tmp_path / "points")):
            run_id = f"run{number}"
            said = await _killed(place, run_id, fault)
            ends[said[-1] if said else ""] += 1
            taken = await parts.store.pauses.wait_ready(MINE, LeaseHolder("survivor", 60_000), 0, 10, is_dead)
            assert [pause.state for pause in taken] in ([], [run_id.encode()])
            assert taken or said[-1:] != ["paused"], "what is paused goes on"
            assert not (taken and said[-1:] == ["over"]), "what is over does not go on again"
            for pause in taken:
                assert await parts.store.pauses.complete(MINE, pause.short_id, pause.fence)
            assert (await parts.store.pauses.list_paused(MINE)).items == []
    finally:
        await parts.store.close()
    assert (ends[""], ends["paused"], ends["went on"]) >= (2, 2, 2), "it was killed in every part of its way"


async def _plans(place: Place, points: Path) -> list[str]:
    """Before and after every change and every commit."""
    assert await _killed(place, "whole", f"record:{points}") == ["paused", "went on", "over"]
    return _chosen(points)


def _chosen(points: Path) -> list[str]:
    names, seen, found = points.read_text().splitlines(), Counter[str](), list[str]()
    for place_of, name in enumerate(names):
        seen[name] += 1
        sent = name == ANSWERED and any("commit" in each for each in names[max(0, place_of - 5) : place_of])
        if sent or name.endswith(CHANGES):
            found.append(f"kill:{name}#{seen[name]}")
    return found


async def _killed(place: Place, run_id: str, fault: str) -> list[str]:
    """What it had said before."""
    command = [sys.executable, "-m", "tests.faults.pause_program", place.url, run_id, fault]
    other = await asyncio.create_subprocess_exec(*command, cwd=TOP, stdout=asyncio.subprocess.PIPE)
    try:
        out, _ = await other.communicate()
    finally:
        if other.returncode is None:
            other.kill()
            await other.wait()
    assert other.returncode in (0, -signal.SIGKILL)
    return out.decode().splitlines()
