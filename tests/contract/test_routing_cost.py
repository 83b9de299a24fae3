"""The cost of a sweep depends on what is due, not on what is stored; counted in steps of SQLite's VM."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.notify.routing import ChannelCapabilities, Routes
from interlock.core.ports import User
from tests.channels.fake_channels import FakeChannel, FakeChannels
from tests.databases import SqliteFile
from tests.support import Clock, propose_pending

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
FEW, MANY = 1_000, 100_000
DUE = 20  # approvals whose time comes within the minute
STEPS_PER_CALLBACK = 10  # steps of the machine
POLICY = """
version: 1
defaults:
  expires_in: 2d
  remind: 1m
  escalate: [{after: 1h, to: {users: [eve]}, channels: [pager]}]
"""
ADD_APPROVALS = """
with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ?)
insert into approvals
select workspace, 'copy' || n, run_id, 'copy' || n, tool, effect, agent, agent_path, thread_id, requester, priority,
    idempotent, spec_sha256, nonce, proposed, created_at - n, expires_at, terms_sha256, args_sha256, binding, status,
    version, progress, decision, release_at, start_by, fence, lease_until, runner, grant_id, ? + n,
    owner, known
from approvals, numbers where id = ?
"""
ADD_DELIVERIES = """
with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ?)
insert into deliveries
select workspace, 'copy' || n, 'copy' || n, channel, place, person, reason, priority,
    case when n % 5 = 0 then 'due' else 'sent' end, wanted, said, nudge, nudged, ref, attempts, fence, runner, error,
    created_at - n, since, case when n % 5 = 0 then ? + n end, created_at - ? - n, spent_at
from deliveries, numbers where approval_id = ? and channel = 'room'
"""


class StepCounter:
    """Counts what every connection does that is opened from now on."""

    def __init__(self) -> None:
        self.units = 0

    def __call__(self) -> int:
        self.units += 1
        return 0

    def since(self, before: int) -> int:
        return (self.units - before) * STEPS_PER_CALLBACK


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> StepCounter:
    counted, connect = StepCounter(), sqlite3.connect

    def counting(*args: Any, **more: Any) -> sqlite3.Connection:
        connection = connect(*args, **more)
        connection.set_progress_handler(counted, STEPS_PER_CALLBACK)
        return connection

    monkeypatch.setattr(sqlite3, "connect", counting)
    return counted


async def test_a_minute_costs_what_is_due_in_it(tmp_path: Path, clock: Clock, steps: StepCounter) -> None:  # R23, R28
    few = await count_steps_of_a_minute(tmp_path / "few.db", clock, steps, FEW)
    many = await count_steps_of_a_minute(tmp_path / "many.db", clock, steps, MANY)
    print(f"\nsteps of SQLite's machine (idle, {DUE} due): {FEW:,} stored {few}, {MANY:,} stored {many}")
    assert few[1] > few[0] > 0
    assert many[0] <= 1.2 * few[0]
    assert many[1] <= 1.2 * few[1]


async def count_steps_of_a_minute(path: Path, clock: Clock, steps: StepCounter, stored: int) -> tuple[int, int]:
    """Steps of a look that finds nothing, and of one that reminds people of a few calls."""
    database = SqliteFile(path)
    services = build_services(database.url, clock, retention=DAY)
    await services.store.open()
    try:
        people = await fill_database(services, database, clock, stored)
        idle = await count_sweep_steps(services, people, steps)
        clock.advance(MINUTE)
        busy = await count_sweep_steps(services, people, steps)
        assert [why for _, _, why in people.take_notifying()] == ["remind"] * DUE
        return idle, busy
    finally:
        await services.store.close()


async def fill_database(services: AppServices, database: SqliteFile, clock: Clock, stored: int) -> FakeChannels:
    await services.put_policy("default", POLICY, "ada", {})
    await services.store.put_user("default", User("eve", "reviewer", email="eve@example.com"), "ada")
    routes = Routes(
        {"room": ChannelCapabilities(rate_per_minute=1_000), "pager": ChannelCapabilities()}, "room", escalation="pager"
    )
    people = FakeChannels(services, routes, room=FakeChannel(), pager=FakeChannel())
    await people.sweep()
    first = await propose_pending(services, "first")
    for number in range(DUE - 1):
        await propose_pending(services, number)
    await people.sweep()
    people.take_notifying()
    database.sql_without_triggers(ADD_APPROVALS, stored, clock() + HOUR, first)
    database.sql(ADD_DELIVERIES, stored, clock() + HOUR, HOUR, first)
    await count_sweep_steps(services, people, StepCounter())
    return people


async def count_sweep_steps(services: AppServices, people: FakeChannels, steps: StepCounter) -> int:
    before = steps.units
    await services.worker.sweep()
    await people.sweep()
    return steps.since(before)
