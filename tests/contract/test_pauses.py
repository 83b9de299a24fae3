"""Paused runs in the store: kept until resumed, leased by one holder, and ready once nothing is pending."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.decision import Acknowledgement, Reject
from interlock.core.errors import Conflict, LeaseLost
from interlock.core.run import MAX_STATE, Pause
from interlock.storage.tables.pauses import LeaseHolder, PauseScope
from tests.databases import Database
from tests.support import BOB, Clock, approve, open_services, propose_pending

SCOPE = PauseScope("default", "mailer")
FIRST_HOLDER, SECOND_HOLDER = LeaseHolder("runner:one", 60_000), LeaseHolder("runner:two", 60_000)
UNDO = "version: 1\ndefaults: {undo_window: 10s}\n"


async def pause_run(
    services: AppServices, run_id: str = "run", state: bytes = b"state", whose: PauseScope = SCOPE
) -> Pause:
    return await services.store.pauses.pause(whose, run_id, run_id, state)


async def acquire(
    services: AppServices, holder: LeaseHolder = FIRST_HOLDER, whose: PauseScope = SCOPE, limit: int = 10
) -> list[Pause]:
    return list(await services.store.pauses.acquire(whose, holder, limit))


async def paused_run_ids(services: AppServices, whose: PauseScope = SCOPE) -> list[str]:
    return [pause.run_id for pause in (await services.store.pauses.list_paused(whose)).items]


async def start_waiting(services: AppServices, look_again: float) -> asyncio.Future[Sequence[Pause]]:
    """Comes back when somebody waits, and has found nothing."""
    services.store.pauses.poll_interval = look_again
    waiting = asyncio.ensure_future(services.store.pauses.wait_ready(SCOPE, FIRST_HOLDER, None))
    await asyncio.sleep(0)
    assert await acquire(services) == []
    assert services.store._database.watch_registry.workspaces()
    return waiting


# What is kept


async def test_a_pause_outlives_the_program(database: Database, clock: Clock) -> None:  # R9
    async with open_services(database, clock) as services:
        await pause_run(services, state=b"\x00\xff what the framework needs")
    async with open_services(database, clock) as services:
        (pause,) = await acquire(services)
    assert (pause.run_id, pause.agent, pause.state) == ("run", "mailer", b"\x00\xff what the framework needs")
    assert pause.paused_at == clock()


async def test_the_newest_pause_of_a_run_takes_the_place_of_the_older_one(services: AppServices) -> None:  # R9
    first = await pause_run(services, state=b"old")
    second = await pause_run(services, state=b"new")
    (pause,) = await acquire(services)
    assert pause.state == b"new"
    assert first.fence < second.fence < pause.fence
    assert await paused_run_ids(services) == ["run"]


async def test_a_run_that_went_on_is_over_and_one_that_paused_again_is_not(services: AppServices) -> None:  # R9
    await pause_run(services, "ends")
    await pause_run(services, "again")
    ends, again = sorted(await acquire(services), key=lambda pause: pause.run_id, reverse=True)
    await pause_run(services, "again", b"further")
    assert await services.store.pauses.complete(SCOPE, ends.run_id, ends.fence)
    assert not await services.store.pauses.complete(SCOPE, again.run_id, again.fence)
    assert await paused_run_ids(services) == ["again"]


async def test_a_fence_is_never_used_twice_even_if_the_run_was_over_meanwhile(
    services: AppServices, clock: Clock
) -> None:
    old = await pause_run(services)
    await services.store.pauses.complete(SCOPE, "run", old.fence)
    clock.advance(1)
    assert (await pause_run(services)).fence > old.fence


async def test_what_the_framework_calls_a_run_comes_back_however_long_it_is(services: AppServices) -> None:
    called = "thread " * 100
    await services.store.pauses.pause(SCOPE, "sha256:short", called, b"")
    assert await paused_run_ids(services) == [called]
    assert [pause.run_id for pause in await acquire(services)] == [called]


async def test_a_large_state_is_kept(services: AppServices) -> None:
    state = bytes(range(256)) * (MAX_STATE // 256)
    await pause_run(services, state=state)
    (pause,) = await acquire(services)
    assert pause.state == state


# When a run is ready


async def test_a_run_without_approvals_is_ready_at_once(services: AppServices) -> None:  # R9
    await pause_run(services)
    assert [pause.run_id for pause in await acquire(services)] == ["run"]


async def test_a_run_waits_for_all_of_its_approvals(services: AppServices) -> None:  # R9
    first, second = await propose_pending(services, 1), await propose_pending(services, 2)
    await pause_run(services)
    await approve(services, first)
    assert await acquire(services) == []
    await approve(services, second)
    assert [pause.run_id for pause in await acquire(services)] == ["run"]


async def test_the_clock_alone_makes_a_run_ready_when_its_approval_expires(
    services: AppServices, clock: Clock
) -> None:  # R9
    approval_id = await propose_pending(services)
    await pause_run(services)
    expires = (await services.store.get("default", approval_id)).approval.deadlines.expires_at
    clock.now = expires - 1
    assert await acquire(services) == []
    clock.now = expires
    assert [pause.run_id for pause in await acquire(services)] == ["run"]


async def test_a_rejection_that_can_be_undone_is_waited_for(database: Database, clock: Clock) -> None:  # R9
    async with open_services(database, clock, UNDO) as services:
        approval_id = await propose_pending(services)
        await pause_run(services)
        digest = (await services.store.get("default", approval_id)).approval.args_sha256
        await services.inbox.decide("default", approval_id, Reject("no", seen=Acknowledgement(digest)), BOB)
        clock.advance(9_999)
        assert await acquire(services) == []
        clock.advance(1)
        assert [pause.run_id for pause in await acquire(services)] == ["run"]


async def test_other_agents_and_other_keys_get_nothing(services: AppServices) -> None:  # R9
    await pause_run(services, whose=SCOPE._replace(owner="key:a"))
    assert await acquire(services, whose=PauseScope("default", "other")) == []
    assert await acquire(services, whose=SCOPE._replace(owner="key:b")) == []
    assert await paused_run_ids(services, SCOPE._replace(owner="key:b")) == []
    with pytest.raises(Conflict, match="another key"):
        await pause_run(services, whose=SCOPE._replace(owner="key:b"))
    assert [pause.run_id for pause in await acquire(services, whose=SCOPE._replace(owner="key:a"))] == ["run"]


# Who goes on with it


async def test_of_two_who_claim_at_once_each_run_goes_to_one(database: Database, clock: Clock) -> None:  # R9
    async with open_services(database, clock) as services, open_services(database, clock) as others:
        for number in range(20):
            await pause_run(services, f"run{number}")
        runs: list[str] = []
        while len(runs) < 20:
            both = ((services, FIRST_HOLDER), (others, SECOND_HOLDER))
            taken = await asyncio.gather(*(acquire(each, holder, limit=3) for _ in range(3) for each, holder in both))
            runs += [pause.run_id for each in taken for pause in each]
        assert [await acquire(each) for each in (services, others)] == [[], []]
    assert sorted(runs) == sorted(f"run{number}" for number in range(20))


async def test_a_lease_that_lapsed_gives_the_run_to_the_next(services: AppServices, clock: Clock) -> None:  # R9
    await pause_run(services)
    (first,) = await acquire(services)
    clock.advance(59_999)
    assert await acquire(services, SECOND_HOLDER) == []
    clock.advance(1)
    (second,) = await acquire(services, SECOND_HOLDER)
    assert second.fence > first.fence
    assert second.attempts == 2
    with pytest.raises(LeaseLost):
        await services.store.pauses.renew(SCOPE, "run", first.fence, 60_000)
    assert not await services.store.pauses.complete(SCOPE, "run", first.fence)


async def test_the_holder_keeps_the_run_by_renewing_its_lease(services: AppServices, clock: Clock) -> None:  # R9
    await pause_run(services)
    (pause,) = await acquire(services)
    for _ in range(3):
        clock.advance(40_000)
        await services.store.pauses.renew(SCOPE, "run", pause.fence, 60_000)
        assert await acquire(services, SECOND_HOLDER) == []
    assert await services.store.pauses.complete(SCOPE, "run", pause.fence)


async def test_a_run_in_the_hands_of_a_dead_process_is_free_at_once(services: AppServices) -> None:  # R9
    await pause_run(services)
    await acquire(services)
    dead = {"runner:one"}.__contains__
    (pause,) = await services.store.pauses.wait_ready(SCOPE, SECOND_HOLDER, 0, 10, dead)
    assert pause.run_id == "run"
    assert list(await services.store.pauses.wait_ready(SCOPE, SECOND_HOLDER, 0, 10, dead)) == []


async def test_a_run_that_failed_is_left_alone_for_longer_each_time(services: AppServices, clock: Clock) -> None:  # R9
    await pause_run(services)
    waits = []
    for _ in range(12):
        (pause,) = await acquire(services)
        waits.append(await services.store.pauses.release_lease(SCOPE, "run", pause.fence, failed=True))
        clock.advance(waits[-1] - 1)
        assert await acquire(services) == []
        clock.advance(1)
    assert waits[:4] == [1_000, 2_000, 4_000, 8_000]
    assert waits[-1] == 300_000
    await pause_run(services)
    (pause,) = await acquire(services)
    assert pause.attempts == 1


async def test_a_lease_without_a_waiter_is_released(services: AppServices) -> None:  # R9
    await pause_run(services)
    claiming = asyncio.ensure_future(services.store.pauses.acquire(SCOPE, FIRST_HOLDER))
    await asyncio.sleep(0)
    claiming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await claiming
    assert [pause.run_id for pause in await acquire(services, SECOND_HOLDER)] == ["run"]


# Waiting


async def test_a_waiter_is_woken_by_the_decision(database: Database, clock: Clock) -> None:  # R9
    """Looking by itself would take longer than the test may."""
    async with open_services(database, clock) as services:
        approval_id = await propose_pending(services)
        await pause_run(services)
        waiting = await start_waiting(services, look_again=3_600)
        await approve(services, approval_id)
        async with asyncio.timeout(60):
            (pause,) = await waiting
    assert pause.state == b"state"


async def test_a_pause_wakes_those_who_wait_for_one(services: AppServices) -> None:  # R9
    waiting = await start_waiting(services, look_again=3_600)
    await pause_run(services)
    async with asyncio.timeout(60):
        assert [pause.run_id for pause in await waiting] == ["run"]


async def test_what_the_clock_decides_is_seen_without_a_wake_up(services: AppServices, clock: Clock) -> None:  # R9
    approval_id = await propose_pending(services)
    await pause_run(services)
    waiting = await start_waiting(services, look_again=0.01)
    clock.now = (await services.store.get("default", approval_id)).approval.deadlines.expires_at
    async with asyncio.timeout(60):
        assert [pause.run_id for pause in await waiting] == ["run"]


async def test_a_wait_ends_at_its_timeout(services: AppServices) -> None:
    assert list(await services.store.pauses.wait_ready(SCOPE, FIRST_HOLDER, 0.01)) == []


# Lists


async def test_a_thousand_paused_runs_are_listed_in_one_query(services: AppServices, clock: Clock) -> None:  # R9
    for number in range(10):
        await propose_pending(services, number)
    await pause_run(services)
    clock.advance(1)
    await asyncio.gather(*(pause_run(services, f"run{number:04}", bytes(10_000)) for number in range(999)))
    queries: list[str] = []
    fetch = services.store._database.fetch

    async def counted(name: str, *values: object) -> list[tuple[object, ...]]:
        queries.append(name)
        return await fetch(name, *values)

    services.store.pauses._database = CountingConnection(counted, clock)  # type: ignore[assignment]
    begun = time.perf_counter()
    listed = await services.store.pauses.list_paused(SCOPE, limit=1_000)
    print(f"1,000 paused runs listed in {(time.perf_counter() - begun) * 1000:.1f} ms")
    assert len(listed.items) == 1_000
    assert queries == ["paused_runs_of"]
    assert (listed.items[0].run_id, listed.items[0].waiting, listed.items[1].waiting) == ("run", 10, 0)
    assert {pause.state for pause in listed.items} == {b""}


async def test_pages_of_paused_runs_follow_each_other(services: AppServices) -> None:
    for number in range(5):
        await pause_run(services, f"run{number}")
    await pause_run(services, "another", whose=PauseScope("default", "other"))
    first = await services.store.pauses.list_paused(SCOPE, limit=3)
    assert first.next is not None
    second = await services.store.pauses.list_paused(SCOPE, first.next, limit=3)
    assert [pause.run_id for pause in (*first.items, *second.items)] == [f"run{number}" for number in range(5)]
    assert second.next is None
    assert len((await services.store.pauses.list_paused(PauseScope("default", ""))).items) == 6


class CountingConnection:
    def __init__(self, fetch: object, clock: Clock) -> None:
        self.fetch = fetch
        self.clock = clock


async def test_the_bytes_of_an_owner_are_counted_without_those_of_one_run(services: AppServices) -> None:
    pauses, mine = services.store.pauses, PauseScope("default", "bot", "key")
    for run_id, whose in (("a", mine), ("b", mine), ("c", mine._replace(owner="other"))):
        await pauses.pause(whose, run_id, run_id, bytes(1_000))
    assert await pauses.stored_bytes(mine, "") == 2 * (1_000 + 1_024)
    assert await pauses.stored_bytes(mine, "a") == 1_000 + 1_024
    assert await pauses.stored_bytes(mine._replace(workspace="elsewhere"), "") == 0
