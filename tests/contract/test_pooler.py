"""A transaction-mode pooler: everything works except notifications, and the program says so."""

import asyncio

import pytest

from interlock.app.bootstrap import build_services
from interlock.core.errors import AlreadyDecided
from interlock.core.outcome import Proceed
from tests.support import OK, approve, ledger_violations, propose_pending, status


async def test_a_call_is_asked_about_decided_and_run_through_a_pooler(pooled_url: str) -> None:
    services = build_services(pooled_url)
    await services.store.open()
    try:
        approval_id = await propose_pending(services)
        await approve(services, approval_id)
        execution = await services.gate.start("default", approval_id, "r")
        await services.gate.finish("default", approval_id, execution.fence, ok=True, payload=OK)
        assert await status(services, approval_id) == "succeeded"
        assert await ledger_violations(services) == []
        warned = [check for check in await services.store.check_health() if check.what == "pooler"]
        assert [check.state for check in warned] == ["warn"]
    finally:
        await services.store.close()


async def test_a_decision_by_another_process_wakes_the_waiter_without_notifications(
    pooled_url: str, postgres_url: str
) -> None:
    here, there = build_services(pooled_url), build_services(postgres_url)
    await asyncio.gather(here.store.open(), there.store.open())
    try:
        approval_id = await propose_pending(here)
        async with here.store.watch("default", approval_id) as watch:
            await approve(there, approval_id)
            await asyncio.wait_for(watch.wait(None), 10)
        assert isinstance(await here.gate.get_outcome("default", approval_id), Proceed)
    finally:
        await asyncio.gather(here.store.close(), there.store.close())


async def test_one_wins_among_those_who_decide_on_both_sides_of_a_pooler(pooled_url: str, postgres_url: str) -> None:
    """Settings and locks of one transaction do not leak into another one's."""
    stores = [build_services(url) for url in (pooled_url, postgres_url, pooled_url, pooled_url)]
    await stores[0].store.open()
    await asyncio.gather(*(services.store.open() for services in stores[1:]))
    try:
        ids = [await propose_pending(stores[0], n) for n in range(20)]
        for approval_id in ids:
            result = await asyncio.gather(
                *(approve(services, approval_id) for services in stores), return_exceptions=True
            )
            assert sorted(type(each).__name__ for each in result) == ["AlreadyDecided"] * 3 + ["str"]
        assert await ledger_violations(stores[0]) == []
        with pytest.raises(AlreadyDecided):
            await approve(stores[2], ids[0])
    finally:
        await asyncio.gather(*(services.store.close() for services in stores))
