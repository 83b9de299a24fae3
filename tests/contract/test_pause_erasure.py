"""Erasure of paused runs, on both databases."""

from __future__ import annotations

from interlock.app import audit
from interlock.app.bootstrap import AppServices
from interlock.core.decision import Reject
from interlock.core.ledger.erasure import Erasure
from interlock.storage.tables.pauses import LeaseHolder, PauseScope
from tests.databases import Database
from tests.support import ADA, BOB, Clock, approve, propose_pending

DAY = 86_400_000
SCOPE = PauseScope("default", "mailer")


async def pause_run(services: AppServices, run_id: str = "run", called: str = "") -> None:
    await services.store.pauses.pause(SCOPE, run_id, called or run_id, b"what ann wrote")


async def rejected_call(services: AppServices, number: int = 1, **more: object) -> str:
    approval_id = await propose_pending(services, number, **more)
    await services.inbox.decide("default", approval_id, Reject("Not now."), BOB)
    return approval_id


async def erase(services: AppServices, erasure: Erasure, *, dry_run: bool = False) -> None:
    async for _ in services.inbox.erase("default", erasure, ADA, dry_run=dry_run):
        pass


async def apply_retention(services: AppServices) -> None:
    while await services.store.apply_retention(DAY):
        pass


def paused_run_ids(database: Database) -> list[str]:
    return [run_id for (run_id,) in database.sql("select run_id from pauses order by run_id")]


async def test_a_pause_goes_with_an_approval_of_its_run(
    services: AppServices, database: Database, clock: Clock
) -> None:  # R41
    approval_id = await rejected_call(services)
    await pause_run(services)
    await pause_run(services, "other")
    clock.advance(DAY)
    await erase(services, Erasure("approval", approval_id, "asked for"), dry_run=True)
    assert paused_run_ids(database) == ["other", "run"]
    await erase(services, Erasure("approval", approval_id, "asked for"))
    assert paused_run_ids(database) == ["other"]
    assert not (await audit.verify(services.store, "default")).violations


async def test_pauses_go_with_a_thread_by_either_of_its_names(
    services: AppServices, database: Database, clock: Clock
) -> None:  # R41
    await rejected_call(services, 1, thread_id="talk")
    await rejected_call(services, 2, thread_id="talk")
    await pause_run(services)  # by its approvals
    await pause_run(services, "talk")  # by its own name
    await pause_run(services, "sha256:1", called="a long talk")
    clock.advance(DAY)
    await erase(services, Erasure("thread", "talk"))
    assert paused_run_ids(database) == ["sha256:1"]
    await erase(services, Erasure("thread", "a long talk"))
    assert paused_run_ids(database) == []


async def test_pauses_go_with_the_person_whose_calls_they_wait_for(
    services: AppServices, database: Database, clock: Clock
) -> None:  # R41
    await rejected_call(services, requester="ann")
    await pause_run(services)
    await pause_run(services, "bobs")
    clock.advance(DAY)
    await erase(services, Erasure("person", "ann"))
    assert paused_run_ids(database) == ["bobs"]


async def test_a_pause_is_forgotten_by_age_when_nothing_of_its_run_is_left(
    services: AppServices, database: Database, clock: Clock
) -> None:  # R41
    await rejected_call(services)
    await pause_run(services)
    await pause_run(services, "without approvals")
    clock.advance(DAY - 1)
    await apply_retention(services)
    assert paused_run_ids(database) == ["run", "without approvals"]
    clock.advance(DAY)
    await apply_retention(services)
    assert paused_run_ids(database) == []


async def test_a_pause_is_kept_while_people_may_decide_or_somebody_goes_on_with_it(
    services: AppServices, database: Database, clock: Clock
) -> None:  # R41
    await rejected_call(services, 1)
    await approve(services, await propose_pending(services, 2))  # it may still be started
    await pause_run(services)
    await pause_run(services, "under way")
    for _ in range(3):
        (pause,) = await services.store.pauses.acquire(SCOPE, LeaseHolder("runner:one", 2 * DAY), 1)
        clock.advance(DAY)
        await services.store.pauses.renew(SCOPE, pause.short_id, pause.fence, 2 * DAY)
        await apply_retention(services)
        assert "under way" in paused_run_ids(database)
        await services.store.pauses.release_lease(SCOPE, pause.short_id, pause.fence, failed=False)
        await pause_run(services, "under way")
        await pause_run(services)
    clock.advance(3 * DAY)
    await services.worker.sweep()  # what was approved has lapsed
    clock.advance(3 * DAY)
    await apply_retention(services)
    assert paused_run_ids(database) == []
