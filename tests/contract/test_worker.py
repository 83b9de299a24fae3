"""The worker: timers and recovery."""

import asyncio

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.decision import Reviewer
from interlock.core.errors import Forbidden
from interlock.core.outcome import Proceed
from interlock.runtime.process_identity import make_runner_id
from tests.databases import Database
from tests.support import (
    BOB,
    START,
    WRITE,
    Clock,
    approve,
    event_kinds,
    ledger_violations,
    open_services,
    propose_pending,
    status,
)

LADDER = """
version: 1
rules:
  - name: climbs
    tools: [delete_file]
    then: ask
    approvers: {users: [nobody]}
    expires_in: 30m
    on_expiry: escalate
    remind: [5m, 20m]
    escalate:
      - {after: 10m, to: {teams: [finance]}}
"""
MINUTE = 60_000


async def test_time_reminds_escalates_and_expires_in_order(database: Database, clock: Clock) -> None:  # R28, R43
    async with open_services(database, clock, LADDER) as services:
        approval_id = await propose_pending(services)
        for minutes, kind in ((5, "reminded"), (10, "escalated"), (20, "reminded"), (30, "expired")):
            clock.now = START + minutes * MINUTE - 1
            assert await services.worker.sweep() == 0
            clock.now += 1
            assert await services.worker.sweep() == 1
            assert (await event_kinds(services))[-1] == kind
        assert await status(services, approval_id) == "expired"
        assert await services.worker.sweep() == 0
        assert await ledger_violations(services) == []


async def test_a_worker_that_slept_does_everything_at_once(database: Database, clock: Clock) -> None:
    async with open_services(database, clock, LADDER) as services:
        await propose_pending(services)
        clock.advance(30 * MINUTE - 1)
        assert await services.worker.sweep() == 3
        assert (await event_kinds(services))[2:] == ["reminded", "escalated", "reminded"]


async def test_nobody_is_reminded_of_what_has_ended_while_the_worker_slept(
    database: Database, clock: Clock
) -> None:  # R5
    async with open_services(database, clock, LADDER) as services:
        await propose_pending(services)
        clock.advance(30 * MINUTE)
        assert await services.worker.sweep() == 1
        assert (await event_kinds(services))[2:] == ["expired"]


async def test_those_on_the_ladder_may_decide_once_it_is_climbed(database: Database, clock: Clock) -> None:
    async with open_services(database, clock, LADDER) as services:
        approval_id = await propose_pending(services)
        clock.advance(10 * MINUTE)
        await services.worker.sweep()
        assert await approve(services, approval_id, BOB) == "approved"


async def test_only_a_rule_that_says_so_approves_when_nobody_answers(database: Database, clock: Clock) -> None:  # R28
    rules = "version: 1\nrules:\n  - {name: silence is consent, then: ask, expires_in: 1m, on_expiry: approve}\n"
    async with open_services(database, clock, rules) as services:
        plain = await propose_pending(services, 1)
        odd = await propose_pending(services, 2, args={"path": "\u202ex"})
        clock.advance(MINUTE)
        assert await services.worker.sweep() == 2
        assert isinstance(await services.gate.get_outcome("default", plain), Proceed)
        assert await status(services, odd) == "expired"  # what may deceive is never approved by silence
        assert await ledger_violations(services) == []


async def test_two_workers_do_everything_once(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as one, open_services(database, clock) as two:
        for number in range(20):
            await propose_pending(one, number)
        clock.advance(86_400_000)
        await asyncio.gather(one.worker.sweep(), two.worker.sweep(), one.worker.sweep())
        assert (await event_kinds(one)).count("expired") == 20
        assert await ledger_violations(one) == []


async def test_calls_of_a_dead_runner_are_recovered_without_waiting_for_the_lease(services: AppServices) -> None:  # R46
    dead = make_runner_id().split(":")
    dead[3] = "1"  # this process number, at another time: somebody else, who is gone
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    await services.gate.start("default", approval_id, ":".join(dead))
    living = await propose_pending(services, 2)
    await approve(services, living)
    await services.gate.start("default", living, make_runner_id())
    assert await services.worker.sweep() == 1
    assert (await status(services, approval_id), await status(services, living)) == ("unknown", "running")


async def test_the_worker_sleeps_until_something_is_due_and_stops_when_told(
    services: AppServices, clock: Clock
) -> None:
    approval_id = await propose_pending(services, expires_in=1_000)
    stop = asyncio.Event()
    working = asyncio.create_task(services.worker.run(stop))
    async with services.store.watch("default", approval_id) as watch:
        clock.advance(1_000)
        while await status(services, approval_id) != "expired":
            await watch.wait(1)
    stop.set()
    await asyncio.wait_for(working, 10)
    assert (await event_kinds(services))[-1] == "expired"


async def test_a_clock_that_jumps_back_expires_nothing_and_nothing_is_lost(services: AppServices, clock: Clock) -> None:
    approval_id = await propose_pending(services)
    clock.advance(-10 * 365 * 24 * 3_600_000)
    assert await services.worker.sweep() == 0
    clock.now = START + 86_400_000
    assert await services.worker.sweep() == 1
    assert await status(services, approval_id) == "expired"


async def test_a_person_not_on_the_ladder_cannot_decide(database: Database, clock: Clock) -> None:
    async with open_services(database, clock, LADDER) as services:
        approval_id = await propose_pending(services, spec=WRITE)
        with pytest.raises(Forbidden):
            await approve(services, approval_id, Reviewer("x"))
        assert await status(services, approval_id) == "pending"
