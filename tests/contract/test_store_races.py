"""Races that every store must handle: lost wake-ups, skipped events, reads that notify, and time after a lock."""

import asyncio
import threading
from typing import Any

import pytest

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.decision import Acknowledgement, Approve, Respond, Reviewer
from interlock.core.errors import Expired
from interlock.core.outcome import Answered, Proceed, Refused
from interlock.core.ports import Watch
from tests.databases import Database
from tests.support import BOB, WRITE, Clock, approve, call, ledger_violations, open_services, propose_pending, status


async def test_a_decision_between_look_and_wait_wakes_the_waiter(services: AppServices) -> None:
    approval_id = await propose_pending(services)
    async with services.store.watch("default", approval_id) as watch:
        stored = await services.store.get("default", approval_id)  # the look
        assert stored.approval.status == "pending"
        await services.inbox.decide("default", approval_id, Respond("hello"), BOB)  # lands before the wait
        await asyncio.wait_for(watch.wait(None), 10)
    assert await services.gate.get_outcome("default", approval_id) == Answered("hello", approval_id)


async def test_a_decision_by_another_process_wakes_the_waiter(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as here, open_services(database, clock) as there:
        approval_id = await propose_pending(here)
        async with here.store.watch("default", approval_id) as watch:
            await approve(there, approval_id)
            await asyncio.wait_for(watch.wait(None), 10)
        assert isinstance(await here.gate.get_outcome("default", approval_id), Proceed)


async def test_no_event_appears_behind_a_cursor(database: Database, clock: Clock) -> None:
    """Readers that follow the ledger while two writers race see every number once, in order."""
    async with open_services(database, clock) as one, open_services(database, clock) as two:
        seen: list[int] = []
        stop = threading.Event()

        async def follow() -> None:
            while not stop.is_set() or len(seen) < (await one.store.head("default")).seq:
                async for chunk in one.store.entries("default", seen[-1] if seen else 0):
                    seen.extend(entry.seq for entry in chunk)
                await asyncio.sleep(0)

        async def write(services: AppServices, name: str) -> None:
            for number in range(60):
                await propose_pending(services, f"{name}{number}")

        reader = asyncio.create_task(follow())
        await asyncio.gather(*(write(p, f"{n}{w}") for n, p in (("a", one), ("b", two)) for w in range(4)))
        stop.set()
        await reader
        assert seen == list(range(1, 481))


async def test_reading_announces_nothing(services: AppServices) -> None:
    approval_id = await propose_pending(services)

    async def quiet(watch: Watch) -> bool:
        """Whether nothing was announced for a while, although everything was read."""
        for _ in range(20):
            await services.store.get("default", approval_id)
            await services.inbox.show("default", approval_id)
        try:
            await asyncio.wait_for(watch.wait(None), 0.1)
        except TimeoutError:
            return True
        return False

    async with services.store.watch("default") as watch:
        # What was written before may be announced late, but only once: if reading announced, it would never be quiet.
        assert any([await quiet(watch) for _ in range(5)])
        woken = asyncio.create_task(watch.wait(None))
        await services.gate.check(call(2), WRITE)
        await asyncio.wait_for(woken, 10)


async def wait_until(condition) -> None:  # type: ignore[no-untyped-def]
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  a clock sets no event
            await asyncio.sleep(0.01)


async def test_a_decision_that_waited_for_a_lock_across_the_deadline_does_not_count(database: Database) -> None:
    """By the real clocks: the decision is made in time and gets its turn when the time is over."""
    services = build_services(database.url)
    await services.store.open()
    try:
        approval_id = await propose_pending(services, expires_in=400)
        approval = (await services.store.get("default", approval_id)).approval
        with database.hold_lock():
            assert services.clock() < approval.deadlines.expires_at, "the machine was too slow to decide in time"
            decision = asyncio.create_task(
                services.inbox.decide("default", approval_id, Approve(Acknowledgement(approval.args_sha256)), BOB)
            )
            await wait_until(lambda: services.clock() > approval.deadlines.expires_at)
            assert not decision.done()
        with pytest.raises(Expired):
            await decision
        assert await status(services, approval_id) == "expired"
        assert await ledger_violations(services) == []
    finally:
        await services.store.close()


async def test_a_start_that_waited_for_a_lock_beyond_its_time_does_not_run(database: Database) -> None:
    services = build_services(database.url)
    await services.store.open()
    try:
        await services.put_policy("default", "version: 1\ndefaults: {start_within: 1s}\n", "ada", {})
        approval_id = await propose_pending(services)
        seen = Acknowledgement((await services.store.get("default", approval_id)).approval.args_sha256)
        approval = await services.inbox.decide("default", approval_id, Approve(seen), Reviewer("bob"))
        with database.hold_lock():
            started = asyncio.create_task(services.gate.start("default", approval_id, "r"))
            await wait_until(lambda: services.clock() > (approval.deadlines.start_by or 0))
        with pytest.raises(Expired):
            await started
        assert await ledger_violations(services) == []
    finally:
        await services.store.close()


async def test_a_wait_reads_the_arguments_only_with_the_answer(
    services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1,500 long polls of a call with 1 MB of arguments stalled the event loop for seconds."""
    queries: list[str] = []
    looked_often = asyncio.Event()
    fetch = services.store._database.fetch

    async def counted(query: str, *values: Any) -> Any:
        queries.append(query)
        if len(queries) >= 5:
            looked_often.set()
        return await fetch(query, *values)

    pending, answered, cancelled = [await propose_pending(services, call_id) for call_id in ("p", "a", "c")]
    await services.inbox.decide("default", answered, Respond("use the other one"), BOB)
    await services.gate.cancel("default", cancelled, "agent", "changed my mind")
    monkeypatch.setattr(services.store._database, "fetch", counted)
    services.gate._poll_interval = 0.001
    waiting = asyncio.create_task(services.gate.wait("default", pending))
    await asyncio.wait_for(looked_often.wait(), 10)
    waiting.cancel()
    assert await services.gate.wait("default", cancelled) == Refused("changed my mind", "cancelled", cancelled)
    assert set(queries) <= {"approval", "terms"}
    assert await services.gate.wait("default", answered) == Answered("use the other one", answered)
    assert queries.count("stored") == 1
