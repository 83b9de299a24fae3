"""What a run needs to go on is forgotten with what it is about; on both databases."""

from __future__ import annotations

from interlock.app import audit
from interlock.app.bootstrap import AppServices
from interlock.core.decision import Reject
from interlock.core.ledger.erasure import Erasure
from interlock.storage.tables.pauses import LeaseHolder, PauseScope
from tests.places import Place
from tests.support import ADA, BOB, Clock, approve, pending

DAY = 86_400_000
MINE = PauseScope("default", "mailer")


async def paused(parts: AppServices, run_id: str = "run", called: str = "") -> None:
    await parts.store.pauses.pause(MINE, run_id, called or run_id, b"what ann wrote")


async def ended(parts: AppServices, number: int = 1, **more: object) -> str:
    approval_id = await pending(parts, number, **more)
    await parts.inbox.decide("default", approval_id, Reject("Not now."), BOB)
    return approval_id


async def erase(parts: AppServices, erasure: Erasure, *, dry_run: bool = False) -> None:
    async for _ in parts.inbox.erase("default", erasure, ADA, dry_run=dry_run):
        pass


async def forget(parts: AppServices) -> None:
    while await parts.store.apply_retention(DAY):
        pass


def kept(place: Place) -> list[str]:
    return [run_id for (run_id,) in place.sql("select run_id from pauses order by run_id")]


async def test_a_pause_goes_with_an_approval_of_its_run(parts: AppServices, place: Place, clock: Clock) -> None:  # R41
    approval_id = await ended(parts)
    await paused(parts)
    await paused(parts, "other")
    clock.forward(DAY)
    await erase(parts, Erasure("approval", approval_id, "asked for"), dry_run=True)
    assert kept(place) == ["other", "run"]
    await erase(parts, Erasure("approval", approval_id, "asked for"))
    assert kept(place) == ["other"]
    assert not (await audit.verify(parts.store, "default")).violations


async def test_pauses_go_with_a_thread_by_either_of_its_names(
    parts: AppServices, place: Place, clock: Clock
) -> None:  # R41
    await ended(parts, 1, thread_id="talk")
    await ended(parts, 2, thread_id="talk")
    await paused(parts)  # by its approvals
    await paused(parts, "talk")  # by its own name
    await paused(parts, "sha256:1", called="a long talk")
    clock.forward(DAY)
    await erase(parts, Erasure("thread", "talk"))
    assert kept(place) == ["sha256:1"]
    await erase(parts, Erasure("thread", "a long talk"))
    assert kept(place) == []


async def test_pauses_go_with_the_person_whose_calls_they_wait_for(
    parts: AppServices, place: Place, clock: Clock
) -> None:  # R41
    await ended(parts, requester="ann")
    await paused(parts)
    await paused(parts, "bobs")
    clock.forward(DAY)
    await erase(parts, Erasure("person", "ann"))
    assert kept(place) == ["bobs"]


async def test_a_pause_is_forgotten_by_age_when_nothing_of_its_run_is_left(
    parts: AppServices, place: Place, clock: Clock
) -> None:  # R41
    await ended(parts)
    await paused(parts)
    await paused(parts, "without approvals")
    clock.forward(DAY - 1)
    await forget(parts)
    assert kept(place) == ["run", "without approvals"]
    clock.forward(DAY)
    await forget(parts)
    assert kept(place) == []


async def test_a_pause_is_kept_while_people_may_decide_or_somebody_goes_on_with_it(
    parts: AppServices, place: Place, clock: Clock
) -> None:  # R41
    await ended(parts, 1)
    await approve(parts, await pending(parts, 2))  # it may still be started
    await paused(parts)
    await paused(parts, "under way")
    for _ in range(3):
        (pause,) = await parts.store.pauses.acquire(MINE, LeaseHolder("runner:one", 2 * DAY), 1)
        clock.forward(DAY)
        await parts.store.pauses.renew(MINE, pause.short_id, pause.fence, 2 * DAY)
        await forget(parts)
        assert "under way" in kept(place)
        await parts.store.pauses.release_lease(MINE, pause.short_id, pause.fence, failed=False)
        await paused(parts, "under way")
        await paused(parts)
    clock.forward(3 * DAY)
    await parts.worker.sweep()  # what was approved has lapsed
    clock.forward(3 * DAY)
    await forget(parts)
    assert kept(place) == []
