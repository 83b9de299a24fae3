"""The outbox under stress: outages, floods, several dispatchers, and database errors in between."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.decision import Acknowledgement, Reject
from interlock.core.errors import Error
from interlock.core.notify.delivery import DeliveryTarget, Notification, make_test_delivery
from interlock.core.notify.routing import ChannelCapabilities, Routes
from interlock.core.ports import User
from interlock.notify.channel import ChannelGone, DeliveryDelayed, DeliveryUnknown
from interlock.notify.channel_queue import CLAIM_BATCH, MAX_CONCURRENT
from tests.contract.test_dispatcher import FakeChannel, FakeChannels
from tests.databases import Database
from tests.faults.points import FaultPoint, build_services_with_points, parse_fault_plan
from tests.support import BOB, Clock, approve, event_kinds, ledger_violations, propose_pending

MINUTE = 60_000
RETRYING = "version: 1\ndefaults: {expires_in: 1d}\n"
MANY = ChannelCapabilities(rate_per_minute=1000)
ROOM = Routes({"room": MANY}, "room")
BOTH = Routes({"room": MANY, "hall": MANY}, "room", priorities={"medium": ("room", "hall")})


class RecordingChannel(FakeChannel):
    """Counts every try; `gate` lets nobody through until it is set; `hates` are approvals that it never takes."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0
        self.gate: asyncio.Event | None = None
        self.hates: set[str] = set()

    async def send(self, message: Notification) -> str:
        self.tries += 1
        if self.gate is not None:
            await self.gate.wait()
        if message.approval_view is not None and message.approval_view.approval.id in self.hates:
            raise DeliveryDelayed("It answered 500.")
        return await super().send(message)

    @property
    def asked(self) -> list[str]:
        return [
            message.approval_view.approval.id for _, message, _ in self.messages if message.approval_view is not None
        ]


async def start_notifications(
    services: AppServices, routes: Routes = ROOM, **channels: RecordingChannel
) -> FakeChannels:
    """Starts notifications."""
    made = FakeChannels(services, routes, **(channels or {"room": RecordingChannel()}))
    await services.store.put_user("default", User("ada", "admin", email="ada@example.com"), "ada")
    await made.sweep()
    return made


def room_channel(of: FakeChannels) -> RecordingChannel:
    found = of.channels["room"]
    assert isinstance(found, RecordingChannel)
    return found


async def calls(services: AppServices, count: int, **more: Any) -> list[str]:
    start = more.pop("start", 0)
    return list(await asyncio.gather(*(propose_pending(services, f"c{start + n}", **more) for n in range(count))))


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  what is waited for is elsewhere
            await asyncio.sleep(0.005)


# A channel in trouble


async def test_a_channel_that_was_down_for_an_hour_gets_every_message_after_few_retries(
    services: AppServices, clock: Clock
) -> None:  # R23, R24
    await services.put_policy("default", RETRYING, "ada", {})
    both = await start_notifications(services, BOTH, room=RecordingChannel(), hall=RecordingChannel())
    room_channel(both).failure = DeliveryDelayed("It is down.")
    asked = await calls(services, 40)
    await both.sweep()
    assert sorted(both.channels["hall"].asked) == sorted(asked), "the other channel is not delayed"  # type: ignore[attr-defined]
    for _ in range(120):
        clock.advance(MINUTE // 2)
        await both.sweep()
    assert room_channel(both).tries <= MAX_CONCURRENT * 125
    room_channel(both).failure = None
    for _ in range(3):
        clock.advance(MINUTE)
        await both.sweep()
    assert sorted(room_channel(both).asked) == sorted(asked)


async def test_a_channel_that_does_not_answer_holds_up_no_other(services: AppServices) -> None:  # R24
    both = await start_notifications(services, BOTH, room=RecordingChannel(), hall=RecordingChannel())
    gate = room_channel(both).gate = asyncio.Event()
    asked = await calls(services, 3 * MAX_CONCURRENT)
    sweeping = asyncio.create_task(both.sweep())
    await wait_until(lambda: len(both.channels["hall"].messages) == len(asked))
    assert (room_channel(both).tries, room_channel(both).messages) == (MAX_CONCURRENT, [])
    gate.set()
    assert await sweeping == 2 * len(asked)
    assert sorted(room_channel(both).asked) == sorted(asked)


async def test_messages_that_always_fail_do_not_block_others(services: AppServices, clock: Clock) -> None:  # R24
    there = await start_notifications(services)
    room_channel(there).hates = set(await calls(services, 20))
    await there.sweep()
    well: list[str] = []
    for number in range(20):
        clock.advance(3_000)
        well.append(await propose_pending(services, f"well{number}"))
        await there.sweep()
    clock.advance(MINUTE // 2)
    await there.sweep()
    assert sorted(room_channel(there).asked) == sorted(well)


async def test_what_fails_together_is_one_failure_of_the_channel(services: AppServices, clock: Clock) -> None:  # R24
    there = await start_notifications(services)
    room_channel(there).failure = DeliveryDelayed("It is down.")
    await calls(services, MAX_CONCURRENT)
    await there.sweep()
    assert room_channel(there).tries == MAX_CONCURRENT
    room_channel(there).failure = None
    clock.advance(1_000)
    assert await there.sweep() > 0


async def test_a_channel_that_is_gone_is_switched_off_once(services: AppServices) -> None:  # R24
    there = await start_notifications(services)
    room_channel(there).failure = ChannelGone("It is gone.")
    await calls(services, MAX_CONCURRENT)
    await there.sweep()
    assert (await event_kinds(services)).count("channel_off") == 1


# Deliveries with an unknown outcome


async def test_a_message_that_may_have_arrived_is_updated_to_its_end(
    services: AppServices, clock: Clock
) -> None:  # R24, R27
    there = await start_notifications(services)
    room_channel(there).failure = DeliveryUnknown("It hung up.")
    approval_id = await propose_pending(services)
    await there.sweep()
    room_channel(there).failure = None
    await approve(services, approval_id)
    clock.advance(MINUTE)
    await there.sweep()
    assert room_channel(there).purposes == [("send", "ended")]


async def test_an_unsent_message_is_dropped_when_the_call_is_decided(
    services: AppServices, clock: Clock
) -> None:  # R24
    there = await start_notifications(services)
    room_channel(there).failure = DeliveryDelayed("Nobody is there.")
    approval_id = await propose_pending(services)
    await there.sweep()
    room_channel(there).failure = None
    await approve(services, approval_id)
    clock.advance(MINUTE)
    assert await there.sweep() == 0
    assert [each.status for each in await services.store.deliveries.for_approval("default", approval_id)] == ["dropped"]


async def test_what_is_decided_between_the_claim_and_the_message_is_not_asked(services: AppServices) -> None:  # R24
    there = await start_notifications(services)
    approval_id = await propose_pending(services)
    await there.dispatcher.route()
    await approve(services, approval_id)
    lane = there.dispatcher.queues["default", "room"]
    assert (await lane.sweep(), room_channel(there).messages) == (0, [])
    [left] = await services.store.deliveries.for_approval("default", approval_id)
    assert left.status == "dropped"


async def test_a_call_that_waits_again_is_told_though_it_was_decided_before_anybody_heard(
    services: AppServices,
) -> None:  # R23
    there = await start_notifications(services)
    approval_id = await propose_pending(services)
    await there.dispatcher.route()
    stored = await services.store.get("default", approval_id)
    await services.inbox.decide("default", approval_id, Reject("no", Acknowledgement(stored.approval.args_sha256)), BOB)
    await there.sweep()
    assert room_channel(there).messages == []
    await services.inbox.undo("default", approval_id, BOB)
    await there.sweep()
    assert room_channel(there).purposes == [("send", "ask")]


# Floods


async def test_a_flood_is_sent_urgent_first_and_the_rest_as_one_batch(
    services: AppServices, clock: Clock
) -> None:  # R23, R28
    flood = await start_notifications(services, Routes({"room": ChannelCapabilities(rate_per_minute=10)}, "room"))
    await calls(services, 995)
    urgent = await calls(services, 5, start=995, priority="high")
    assert await flood.sweep() == 10
    said = [message for _, message, _ in room_channel(flood).messages]
    assert [message.count for message in said if message.purpose == "group"] == [991]
    assert set(urgent) <= set(room_channel(flood).asked[: MAX_CONCURRENT + 1])
    clock.advance(MINUTE + 1)
    assert await flood.sweep() == 0
    assert (await services.store.stats("default")).by_status["pending"] == 1000, "all are in the inbox"


async def test_what_comes_minute_by_minute_is_never_more_than_the_limit(
    services: AppServices, clock: Clock
) -> None:  # R28
    flood = await start_notifications(services, Routes({"room": ChannelCapabilities(rate_per_minute=10)}, "room"))
    result = []
    for minute in range(3):
        for part in range(4):
            await calls(services, 25, start=100 * minute + 25 * part)
            result.append(await flood.sweep())
            clock.advance(MINUTE // 4)
    assert [sum(result[start : start + 4]) <= 10 for start in range(9)] == [True] * 9
    for _ in range(2):
        clock.advance(MINUTE + 1)
        await flood.sweep()
    counted = sum(message.count or 1 for _, message, _ in room_channel(flood).messages)
    assert counted == 300


async def test_a_start_with_5000_that_wait_makes_no_storm(services: AppServices, clock: Clock) -> None:  # R24, R28
    await calls(services, 5_000)
    routes = Routes({"room": ChannelCapabilities(rate_per_minute=10)}, "room")
    assert await (flood := await start_notifications(services, routes)).sweep() == 0
    assert len(room_channel(flood).messages) == 10
    assert sum(message.count or 1 for _, message, _ in room_channel(flood).messages) == 5_000
    clock.advance(MINUTE + 1)
    again = await start_notifications(services, routes)
    assert room_channel(again).messages == []


# Several dispatchers


async def test_two_dispatchers_share_due_deliveries_and_the_rate_limit(
    services: AppServices, clock: Clock
) -> None:  # R24, R28
    one, two = await start_notifications(services), await start_notifications(services)
    asked = await calls(services, 150)
    assert sum(await asyncio.gather(one.sweep(), two.sweep())) == 150
    assert sorted(room_channel(one).asked + room_channel(two).asked) == sorted(asked)
    clock.advance(MINUTE + 1)
    few = Routes({"room": ChannelCapabilities(rate_per_minute=10)}, "room")
    slow, quick = await start_notifications(services, few), await start_notifications(services, few)
    gate = room_channel(slow).gate = asyncio.Event()
    await calls(services, 10, start=1000)
    sweeping = asyncio.create_task(slow.sweep())
    await wait_until(lambda: room_channel(slow).tries == MAX_CONCURRENT)
    await calls(services, 10, start=2000)
    assert await quick.sweep() == 0, "what is on its way counts"
    gate.set()
    assert await sweeping == 10


async def test_who_stood_still_for_longer_than_the_lease_records_nothing(
    services: AppServices, clock: Clock
) -> None:  # R24
    still, awake = await start_notifications(services), await start_notifications(services)
    gate = room_channel(still).gate = asyncio.Event()
    approval_id = await propose_pending(services)
    sweeping = asyncio.create_task(still.sweep())
    await wait_until(lambda: room_channel(still).tries == 1)
    clock.advance(MINUTE + 1)
    assert await awake.sweep() == 1
    gate.set()
    assert await sweeping == 0
    ids = {message.id for _, message, _ in (*room_channel(still).messages, *room_channel(awake).messages)}
    assert len(ids) == 1, "a duplicate has the id of the first"
    assert (await event_kinds(services)).count("delivered") == 1
    [row] = await services.store.deliveries.for_approval("default", approval_id)
    assert (row.status, row.fence) == ("sent", 2)


async def test_a_stale_lease_is_released_and_not_sent(services: AppServices, clock: Clock) -> None:  # R24
    there = await start_notifications(services)
    gate = room_channel(there).gate = asyncio.Event()
    await calls(services, CLAIM_BATCH)
    sweeping = asyncio.create_task(there.sweep())
    await wait_until(lambda: room_channel(there).tries == MAX_CONCURRENT)
    clock.advance(MINUTE - 1_000)
    gate.set()
    assert await sweeping == CLAIM_BATCH
    rows = await services.store.deliveries.list_deliveries("default", "sent")
    assert sorted({each.fence for each in rows}) == [1, 2]


async def test_deliveries_of_a_dead_runner_are_sent_at_once(services: AppServices) -> None:  # R24
    there = await start_notifications(services)
    await propose_pending(services)
    await there.dispatcher.route()
    program = "from interlock.runtime.process_identity import make_runner_id; print(make_runner_id())"
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    await services.store.deliveries.lease("default", "room", done.stdout.strip(), 8, 10)
    assert await there.sweep() == 0
    await there.dispatcher.release()
    assert await there.sweep() == 1


async def test_a_workspace_with_much_to_say_does_not_silence_another(
    services: AppServices, clock: Clock
) -> None:  # R24
    store = services.store.deliveries
    for workspace, count in (("default", 300), ("other", 3)):
        await services.store.secret_key(workspace)
        await services.store.put_user(workspace, User("ada", "admin"), "ada")
        for number in range(count):
            await store.add(
                make_test_delivery(workspace, f"{workspace}{number}", DeliveryTarget("room"), "ada", clock())
            )
        clock.advance(1)
    taken = {name: await store.lease(name, "room", "me", 8, 10) for name in ("default", "other")}
    assert {name: {each.workspace for each in found} for name, found in taken.items()} == {
        "default": {"default"},
        "other": {"other"},
    }
    assert len(taken["other"]) == 3


async def test_a_stopping_dispatcher_releases_its_leases(services: AppServices) -> None:  # R24
    there = await start_notifications(services)
    gate = room_channel(there).gate = asyncio.Event()
    await calls(services, CLAIM_BATCH)
    stop = asyncio.Event()
    running = asyncio.create_task(there.dispatcher.run(stop))
    await wait_until(lambda: room_channel(there).tries == MAX_CONCURRENT)
    stop.set()
    gate.set()
    await running
    assert len(room_channel(there).messages) == MAX_CONCURRENT
    assert len(await services.store.deliveries.list_deliveries("default", "due")) == CLAIM_BATCH - MAX_CONCURRENT


# Errors in between


@pytest.mark.postgres_nightly
async def test_a_database_that_fails_at_any_statement_loses_and_doubles_nothing(
    database: Database, clock: Clock
) -> None:  # R24
    clock.drive(database)
    faulty = FaultPlan()
    services = build_services_with_points(database.url, faulty.point, clock)
    await services.store.open()
    try:
        await services.put_policy("default", None, "ada", {})
        there = await start_notifications(services)
        names: list[str] = []
        await run_with_fault(there, faulty, clock, names.append)
        seen: Counter[str] = Counter()
        for name in list(names):
            seen[name] += 1
            where = f"{name}#{seen[name]}"
            await run_with_fault(there, faulty, clock, parse_fault_plan(f"raise:{where}"), where)
        assert len(names) > 20
        assert await ledger_violations(services) == []
        assert (await event_kinds(services)).count("delivered") == 2 * (len(names) + 1)
    finally:
        await services.store.close()


class FaultPlan:
    """Where the database fails, which a test can change while it is open."""

    def __init__(self) -> None:
        self.plan: FaultPoint | None = None

    def point(self, name: str) -> None:
        if self.plan is not None:
            self.plan(name)


async def run_with_fault(
    there: FakeChannels, faulty: FaultPlan, clock: Clock, plan: FaultPoint | None, where: str = ""
) -> None:
    """A call is delivered while the database fails at one point, and decided after it recovered."""
    approval_id = await propose_pending(there.services, f"{clock()}")
    faulty.plan = plan
    for _ in range(2):
        with suppress(Error):
            await there.sweep()
    faulty.plan = None
    clock.advance(2 * MINUTE)
    await there.sweep()
    heard = [message for _, message, _ in room_channel(there).messages if message.approval_view is not None]
    assert (
        len({each.id for each in heard if each.approval_view and each.approval_view.approval.id == approval_id}) == 1
    ), where
    await approve(there.services, approval_id)
    await there.sweep()
    [row] = await there.services.store.deliveries.for_approval("default", approval_id)
    assert row.status == "sent"
