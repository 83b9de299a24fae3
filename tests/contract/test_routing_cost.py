"""What a minute costs depends on what is due in it, and not on what is stored. Counted in steps of SQLite's machine."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.notify.routing import ChannelCapabilities, Routes
from interlock.core.ports import User
from tests.channels.told import Set, Told
from tests.places import File
from tests.support import Clock, pending

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
FEW, MANY = 1_000, 100_000
DUE = 20  # approvals whose time comes within the minute
UNIT = 10  # steps of the machine
POLICY = """
version: 1
defaults:
  expires_in: 2d
  remind: 1m
  escalate: [{after: 1h, to: {users: [eve]}, channels: [pager]}]
"""
FILL = """
with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ?)
insert into approvals
select workspace, 'copy' || n, run_id, 'copy' || n, tool, effect, agent, agent_path, thread_id, requester, priority,
    idempotent, spec_sha256, nonce, proposed, created_at - n, expires_at, terms_sha256, args_sha256, binding, status,
    version, progress, decision, release_at, start_by, fence, lease_until, runner, grant_id, ? + n,
    owner, known
from approvals, numbers where id = ?
"""
TELL = """
with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ?)
insert into deliveries
select workspace, 'copy' || n, 'copy' || n, channel, place, person, reason, priority,
    case when n % 5 = 0 then 'due' else 'sent' end, wanted, said, nudge, nudged, ref, attempts, fence, runner, error,
    created_at - n, since, case when n % 5 = 0 then ? + n end, created_at - ? - n, spent_at
from deliveries, numbers where approval_id = ? and channel = 'room'
"""


class Steps:
    """Counts what every connection does that is opened from now on."""

    def __init__(self) -> None:
        self.units = 0

    def __call__(self) -> int:
        self.units += 1
        return 0

    def since(self, before: int) -> int:
        return (self.units - before) * UNIT


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    counted, connect = Steps(), sqlite3.connect

    def counting(*args: Any, **more: Any) -> sqlite3.Connection:
        connection = connect(*args, **more)
        connection.set_progress_handler(counted, UNIT)
        return connection

    monkeypatch.setattr(sqlite3, "connect", counting)
    return counted


async def test_a_minute_costs_what_is_due_in_it(tmp_path: Path, clock: Clock, steps: Steps) -> None:  # R23, R28
    few = await a_minute(tmp_path / "few.db", clock, steps, FEW)
    many = await a_minute(tmp_path / "many.db", clock, steps, MANY)
    print(f"\nsteps of SQLite's machine (idle, {DUE} due): {FEW:,} stored {few}, {MANY:,} stored {many}")
    assert few[1] > few[0] > 0
    assert many[0] <= 1.2 * few[0]
    assert many[1] <= 1.2 * few[1]


async def a_minute(path: Path, clock: Clock, steps: Steps, stored: int) -> tuple[int, int]:
    """Steps of a look that finds nothing, and of one that reminds people of a few calls."""
    place = File(path)
    parts = build_services(place.url, clock, retention=DAY)
    await parts.store.open()
    try:
        people = await furnished(parts, place, clock, stored)
        idle = await look(parts, people, steps)
        clock.forward(MINUTE)
        busy = await look(parts, people, steps)
        assert [why for _, _, why in people.loud()] == ["remind"] * DUE
        return idle, busy
    finally:
        await parts.store.close()


async def furnished(parts: AppServices, place: File, clock: Clock, stored: int) -> Set:
    await parts.put_policy("default", POLICY, "ada", {})
    await parts.store.put_user("default", User("eve", "reviewer", email="eve@example.com"), "ada")
    routes = Routes(
        {"room": ChannelCapabilities(rate_per_minute=1_000), "pager": ChannelCapabilities()}, "room", escalation="pager"
    )
    people = Set(parts, routes, room=Told(), pager=Told())
    await people.sweep()
    first = await pending(parts, "first")
    for number in range(DUE - 1):
        await pending(parts, number)
    await people.sweep()
    people.loud()
    place.forced(FILL, stored, clock() + HOUR, first)
    place.sql(TELL, stored, clock() + HOUR, HOUR, first)
    await look(parts, people, Steps())
    return people


async def look(parts: AppServices, people: Set, steps: Steps) -> int:
    before = steps.units
    await parts.worker.sweep()
    await people.sweep()
    return steps.since(before)
