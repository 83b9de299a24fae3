"""Runs that stand still: kept until they went on, taken by one at a time, and ready when nobody is waited for."""

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
from tests.places import Place
from tests.support import BOB, Clock, approve, opened, pending

MINE = PauseScope("default", "mailer")
ONE, TWO = LeaseHolder("runner:one", 60_000), LeaseHolder("runner:two", 60_000)
UNDO = "version: 1\ndefaults: {undo_window: 10s}\n"


async def paused(parts: AppServices, run_id: str = "run", state: bytes = b"state", whose: PauseScope = MINE) -> Pause:
    return await parts.store.pauses.pause(whose, run_id, run_id, state)


async def claimed(
    parts: AppServices, holder: LeaseHolder = ONE, whose: PauseScope = MINE, limit: int = 10
) -> list[Pause]:
    return list(await parts.store.pauses.acquire(whose, holder, limit))


async def names(parts: AppServices, whose: PauseScope = MINE) -> list[str]:
    return [pause.run_id for pause in (await parts.store.pauses.list_paused(whose)).items]


async def waits(parts: AppServices, look_again: float) -> asyncio.Future[Sequence[Pause]]:
    """Comes back when somebody waits, and has found nothing."""
    parts.store.pauses.poll_interval = look_again
    waiting = asyncio.ensure_future(parts.store.pauses.wait_ready(MINE, ONE, None))
    await asyncio.sleep(0)
    assert await claimed(parts) == []
    assert parts.store._database.watch_registry.workspaces()
    return waiting


# What is kept


async def test_a_pause_outlives_the_program(place: Place, clock: Clock) -> None:  # R9
    async with opened(place, clock) as parts:
        await paused(parts, state=b"\x00\xff what the framework needs")
    async with opened(place, clock) as parts:
        (pause,) = await claimed(parts)
    assert (pause.run_id, pause.agent, pause.state) == ("run", "mailer", b"\x00\xff what the framework needs")
    assert pause.paused_at == clock()


async def test_the_newest_pause_of_a_run_takes_the_place_of_the_older_one(parts: AppServices) -> None:  # R9
    first = await paused(parts, state=b"old")
    second = await paused(parts, state=b"new")
    (pause,) = await claimed(parts)
    assert pause.state == b"new"
    assert first.fence < second.fence < pause.fence
    assert await names(parts) == ["run"]


async def test_a_run_that_went_on_is_over_and_one_that_paused_again_is_not(parts: AppServices) -> None:  # R9
    await paused(parts, "ends")
    await paused(parts, "again")
    ends, again = sorted(await claimed(parts), key=lambda pause: pause.run_id, reverse=True)
    await paused(parts, "again", b"further")
    assert await parts.store.pauses.complete(MINE, ends.run_id, ends.fence)
    assert not await parts.store.pauses.complete(MINE, again.run_id, again.fence)
    assert await names(parts) == ["again"]


async def test_a_fence_is_never_used_twice_even_if_the_run_was_over_meanwhile(parts: AppServices, clock: Clock) -> None:
    old = await paused(parts)
    await parts.store.pauses.complete(MINE, "run", old.fence)
    clock.forward(1)
    assert (await paused(parts)).fence > old.fence


async def test_what_the_framework_calls_a_run_comes_back_however_long_it_is(parts: AppServices) -> None:
    called = "thread " * 100
    await parts.store.pauses.pause(MINE, "sha256:short", called, b"")
    assert await names(parts) == [called]
    assert [pause.run_id for pause in await claimed(parts)] == [called]


async def test_a_large_state_is_kept(parts: AppServices) -> None:
    state = bytes(range(256)) * (MAX_STATE // 256)
    await paused(parts, state=state)
    (pause,) = await claimed(parts)
    assert pause.state == state


# When a run is ready


async def test_a_run_without_approvals_is_ready_at_once(parts: AppServices) -> None:  # R9
    await paused(parts)
    assert [pause.run_id for pause in await claimed(parts)] == ["run"]


async def test_a_run_waits_for_all_of_its_approvals(parts: AppServices) -> None:  # R9
    first, second = await pending(parts, 1), await pending(parts, 2)
    await paused(parts)
    await approve(parts, first)
    assert await claimed(parts) == []
    await approve(parts, second)
    assert [pause.run_id for pause in await claimed(parts)] == ["run"]


async def test_the_clock_alone_makes_a_run_ready_when_its_approval_expires(
    parts: AppServices, clock: Clock
) -> None:  # R9
    approval_id = await pending(parts)
    await paused(parts)
    expires = (await parts.store.get("default", approval_id)).approval.deadlines.expires_at
    clock.now = expires - 1
    assert await claimed(parts) == []
    clock.now = expires
    assert [pause.run_id for pause in await claimed(parts)] == ["run"]


async def test_a_rejection_that_can_be_undone_is_waited_for(place: Place, clock: Clock) -> None:  # R9
    async with opened(place, clock, UNDO) as parts:
        approval_id = await pending(parts)
        await paused(parts)
        digest = (await parts.store.get("default", approval_id)).approval.args_sha256
        await parts.inbox.decide("default", approval_id, Reject("no", seen=Acknowledgement(digest)), BOB)
        clock.forward(9_999)
        assert await claimed(parts) == []
        clock.forward(1)
        assert [pause.run_id for pause in await claimed(parts)] == ["run"]


async def test_other_agents_and_other_keys_get_nothing(parts: AppServices) -> None:  # R9
    await paused(parts, whose=MINE._replace(owner="key:a"))
    assert await claimed(parts, whose=PauseScope("default", "other")) == []
    assert await claimed(parts, whose=MINE._replace(owner="key:b")) == []
    assert await names(parts, MINE._replace(owner="key:b")) == []
    with pytest.raises(Conflict, match="another key"):
        await paused(parts, whose=MINE._replace(owner="key:b"))
    assert [pause.run_id for pause in await claimed(parts, whose=MINE._replace(owner="key:a"))] == ["run"]


# Who goes on with it


async def test_of_two_who_claim_at_once_each_run_goes_to_one(place: Place, clock: Clock) -> None:  # R9
    async with opened(place, clock) as parts, opened(place, clock) as others:
        for number in range(20):
            await paused(parts, f"run{number}")
        runs: list[str] = []
        while len(runs) < 20:
            both = ((parts, ONE), (others, TWO))
            taken = await asyncio.gather(*(claimed(each, holder, limit=3) for _ in range(3) for each, holder in both))
            runs += [pause.run_id for each in taken for pause in each]
        assert [await claimed(each) for each in (parts, others)] == [[], []]
    assert sorted(runs) == sorted(f"run{number}" for number in range(20))


async def test_a_lease_that_lapsed_gives_the_run_to_the_next(parts: AppServices, clock: Clock) -> None:  # R9
    await paused(parts)
    (first,) = await claimed(parts)
    clock.forward(59_999)
    assert await claimed(parts, TWO) == []
    clock.forward(1)
    (second,) = await claimed(parts, TWO)
    assert second.fence > first.fence
    assert second.attempts == 2
    with pytest.raises(LeaseLost):
        await parts.store.pauses.renew(MINE, "run", first.fence, 60_000)
    assert not await parts.store.pauses.complete(MINE, "run", first.fence)


async def test_whoever_goes_on_keeps_the_run_by_giving_signs_of_life(parts: AppServices, clock: Clock) -> None:  # R9
    await paused(parts)
    (pause,) = await claimed(parts)
    for _ in range(3):
        clock.forward(40_000)
        await parts.store.pauses.renew(MINE, "run", pause.fence, 60_000)
        assert await claimed(parts, TWO) == []
    assert await parts.store.pauses.complete(MINE, "run", pause.fence)


async def test_a_run_in_the_hands_of_a_dead_process_is_free_at_once(parts: AppServices) -> None:  # R9
    await paused(parts)
    await claimed(parts)
    dead = {"runner:one"}.__contains__
    (pause,) = await parts.store.pauses.wait_ready(MINE, TWO, 0, 10, dead)
    assert pause.run_id == "run"
    assert list(await parts.store.pauses.wait_ready(MINE, TWO, 0, 10, dead)) == []


async def test_a_run_that_failed_is_left_alone_for_longer_each_time(parts: AppServices, clock: Clock) -> None:  # R9
    await paused(parts)
    waits = []
    for _ in range(12):
        (pause,) = await claimed(parts)
        waits.append(await parts.store.pauses.release_lease(MINE, "run", pause.fence, failed=True))
        clock.forward(waits[-1] - 1)
        assert await claimed(parts) == []
        clock.forward(1)
    assert waits[:4] == [1_000, 2_000, 4_000, 8_000]
    assert waits[-1] == 300_000
    await paused(parts)
    (pause,) = await claimed(parts)
    assert pause.attempts == 1


async def test_a_claim_that_nobody_waits_for_any_more_is_given_back(parts: AppServices) -> None:  # R9
    await paused(parts)
    claiming = asyncio.ensure_future(parts.store.pauses.acquire(MINE, ONE))
    await asyncio.sleep(0)
    claiming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await claiming
    assert [pause.run_id for pause in await claimed(parts, TWO)] == ["run"]


# Waiting


async def test_whoever_waits_is_woken_by_the_decision(place: Place, clock: Clock) -> None:  # R9
    """Looking by itself would take longer than the test may."""
    async with opened(place, clock) as parts:
        approval_id = await pending(parts)
        await paused(parts)
        waiting = await waits(parts, look_again=3_600)
        await approve(parts, approval_id)
        async with asyncio.timeout(60):
            (pause,) = await waiting
    assert pause.state == b"state"


async def test_a_pause_wakes_those_who_wait_for_one(parts: AppServices) -> None:  # R9
    waiting = await waits(parts, look_again=3_600)
    await paused(parts)
    async with asyncio.timeout(60):
        assert [pause.run_id for pause in await waiting] == ["run"]


async def test_what_the_clock_decides_is_seen_without_a_wake_up(parts: AppServices, clock: Clock) -> None:  # R9
    approval_id = await pending(parts)
    await paused(parts)
    waiting = await waits(parts, look_again=0.01)
    clock.now = (await parts.store.get("default", approval_id)).approval.deadlines.expires_at
    async with asyncio.timeout(60):
        assert [pause.run_id for pause in await waiting] == ["run"]


async def test_nobody_waits_longer_than_they_want(parts: AppServices) -> None:
    assert list(await parts.store.pauses.wait_ready(MINE, ONE, 0.01)) == []


# Lists


async def test_a_thousand_paused_runs_are_listed_in_one_query(parts: AppServices, clock: Clock) -> None:  # R9
    for number in range(10):
        await pending(parts, number)
    await paused(parts)
    clock.forward(1)
    await asyncio.gather(*(paused(parts, f"run{number:04}", bytes(10_000)) for number in range(999)))
    queries: list[str] = []
    fetch = parts.store._database.fetch

    async def counted(name: str, *values: object) -> list[tuple[object, ...]]:
        queries.append(name)
        return await fetch(name, *values)

    parts.store.pauses._database = Counted(counted, clock)  # type: ignore[assignment]
    begun = time.perf_counter()
    listed = await parts.store.pauses.list_paused(MINE, limit=1_000)
    print(f"1,000 paused runs listed in {(time.perf_counter() - begun) * 1000:.1f} ms")
    assert len(listed.items) == 1_000
    assert queries == ["paused_runs_of"]
    assert (listed.items[0].run_id, listed.items[0].waiting, listed.items[1].waiting) == ("run", 10, 0)
    assert {pause.state for pause in listed.items} == {b""}


async def test_pages_of_paused_runs_follow_each_other(parts: AppServices) -> None:
    for number in range(5):
        await paused(parts, f"run{number}")
    await paused(parts, "another", whose=PauseScope("default", "other"))
    first = await parts.store.pauses.list_paused(MINE, limit=3)
    assert first.next is not None
    second = await parts.store.pauses.list_paused(MINE, first.next, limit=3)
    assert [pause.run_id for pause in (*first.items, *second.items)] == [f"run{number}" for number in range(5)]
    assert second.next is None
    assert len((await parts.store.pauses.list_paused(PauseScope("default", ""))).items) == 6


class Counted:
    def __init__(self, fetch: object, clock: Clock) -> None:
        self.fetch = fetch
        self.clock = clock


async def test_the_bytes_of_an_owner_are_counted_without_those_of_one_run(parts: AppServices) -> None:
    pauses, mine = parts.store.pauses, PauseScope("default", "bot", "key")
    for run_id, whose in (("a", mine), ("b", mine), ("c", mine._replace(owner="other"))):
        await pauses.pause(whose, run_id, run_id, bytes(1_000))
    assert await pauses.stored_bytes(mine, "") == 2 * (1_000 + 1_024)
    assert await pauses.stored_bytes(mine, "a") == 1_000 + 1_024
    assert await pauses.stored_bytes(mine._replace(workspace="elsewhere"), "") == 0
