"""Time after a lock: a transaction that waited for a lock is judged by the time at which it gets it."""

import asyncio

import pytest

from interlock.app.bootstrap import build_services
from interlock.core.decision import Acknowledgement, Approve, Reviewer
from interlock.core.errors import Expired
from tests.places import Place
from tests.support import BOB, faults, pending, status


async def wait_until(condition) -> None:  # type: ignore[no-untyped-def]
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  a clock sets no event
            await asyncio.sleep(0.01)


async def test_a_decision_that_waited_for_a_lock_across_the_deadline_does_not_count(place: Place) -> None:
    """By the real clocks: the decision is made in time and gets its turn when the time is over."""
    services = build_services(place.url)
    await services.store.open()
    try:
        approval_id = await pending(services, expires_in=400)
        approval = (await services.store.get("default", approval_id)).approval
        with place.held():
            assert services.clock() < approval.deadlines.expires_at, "the machine was too slow to decide in time"
            decision = asyncio.create_task(
                services.inbox.decide("default", approval_id, Approve(Acknowledgement(approval.args_sha256)), BOB)
            )
            await wait_until(lambda: services.clock() > approval.deadlines.expires_at)
            assert not decision.done()
        with pytest.raises(Expired):
            await decision
        assert await status(services, approval_id) == "expired"
        assert await faults(services) == []
    finally:
        await services.store.close()


async def test_a_start_that_waited_for_a_lock_beyond_its_time_does_not_run(place: Place) -> None:
    services = build_services(place.url)
    await services.store.open()
    try:
        await services.put_policy("default", "version: 1\ndefaults: {start_within: 1s}\n", "ada", {})
        approval_id = await pending(services)
        seen = Acknowledgement((await services.store.get("default", approval_id)).approval.args_sha256)
        approval = await services.inbox.decide("default", approval_id, Approve(seen), Reviewer("bob"))
        with place.held():
            started = asyncio.create_task(services.gate.start("default", approval_id, "r"))
            await wait_until(lambda: services.clock() > (approval.deadlines.start_by or 0))
        with pytest.raises(Expired):
            await started
        assert await faults(services) == []
    finally:
        await services.store.close()
