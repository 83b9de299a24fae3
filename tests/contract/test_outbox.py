"""The way from the ledger to the channels under stress: outages, floods, several couriers, and errors in between."""

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
from tests.contract.test_dispatcher import Set, Told
from tests.faults.points import FaultPoint, build_services_with_points, parse_fault_plan
from tests.places import Place
from tests.support import BOB, Clock, approve, faults, kinds, pending

MINUTE = 60_000
PATIENT = "version: 1\ndefaults: {expires_in: 1d}\n"
MANY = ChannelCapabilities(rate_per_minute=1000)
ROOM = Routes({"room": MANY}, "room")
BOTH = Routes({"room": MANY, "hall": MANY}, "room", priorities={"medium": ("room", "hall")})


class Tried(Told):
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
        return [message.approval_view.approval.id for _, message, _ in self.heard if message.approval_view is not None]


async def begun(parts: AppServices, routes: Routes = ROOM, **channels: Tried) -> Set:
    """People are told from here on."""
    made = Set(parts, routes, **(channels or {"room": Tried()}))
    await parts.store.put_user("default", User("ada", "admin", email="ada@example.com"), "ada")
    await made.sweep()
    return made


def room(of: Set) -> Tried:
    found = of.channels["room"]
    assert isinstance(found, Tried)
    return found


async def calls(parts: AppServices, count: int, **more: Any) -> list[str]:
    start = more.pop("start", 0)
    return list(await asyncio.gather(*(pending(parts, f"c{start + n}", **more) for n in range(count))))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  what is waited for is elsewhere
            await asyncio.sleep(0.005)


# A channel in trouble


async def test_a_channel_that_is_down_for_an_hour_is_not_pestered_and_then_told_all(
    parts: AppServices, clock: Clock
) -> None:  # R23, R24
    await parts.put_policy("default", PATIENT, "ada", {})
    both = await begun(parts, BOTH, room=Tried(), hall=Tried())
    room(both).trouble = DeliveryDelayed("It is down.")
    asked = await calls(parts, 40)
    await both.sweep()
    assert sorted(both.channels["hall"].asked) == sorted(asked), "the other channel is not delayed"  # type: ignore[attr-defined]
    for _ in range(120):
        clock.forward(MINUTE // 2)
        await both.sweep()
    assert room(both).tries <= MAX_CONCURRENT * 125
    room(both).trouble = None
    for _ in range(3):
        clock.forward(MINUTE)
        await both.sweep()
    assert sorted(room(both).asked) == sorted(asked)


async def test_a_channel_that_does_not_answer_holds_up_no_other(parts: AppServices) -> None:  # R24
    both = await begun(parts, BOTH, room=Tried(), hall=Tried())
    gate = room(both).gate = asyncio.Event()
    asked = await calls(parts, 3 * MAX_CONCURRENT)
    sweeping = asyncio.create_task(both.sweep())
    await until(lambda: len(both.channels["hall"].heard) == len(asked))
    assert (room(both).tries, room(both).heard) == (MAX_CONCURRENT, [])
    gate.set()
    assert await sweeping == 2 * len(asked)
    assert sorted(room(both).asked) == sorted(asked)


async def test_messages_that_are_never_taken_do_not_keep_others_from_being_told(
    parts: AppServices, clock: Clock
) -> None:  # R24
    there = await begun(parts)
    room(there).hates = set(await calls(parts, 20))
    await there.sweep()
    well: list[str] = []
    for number in range(20):
        clock.forward(3_000)
        well.append(await pending(parts, f"well{number}"))
        await there.sweep()
    clock.forward(MINUTE // 2)
    await there.sweep()
    assert sorted(room(there).asked) == sorted(well)


async def test_what_fails_together_is_one_failure_of_the_channel(parts: AppServices, clock: Clock) -> None:  # R24
    there = await begun(parts)
    room(there).trouble = DeliveryDelayed("It is down.")
    await calls(parts, MAX_CONCURRENT)
    await there.sweep()
    assert room(there).tries == MAX_CONCURRENT
    room(there).trouble = None
    clock.forward(1_000)
    assert await there.sweep() > 0


async def test_a_channel_that_is_gone_is_switched_off_once(parts: AppServices) -> None:  # R24
    there = await begun(parts)
    room(there).trouble = ChannelGone("It is gone.")
    await calls(parts, MAX_CONCURRENT)
    await there.sweep()
    assert (await kinds(parts)).count("channel_off") == 1


# Whether somebody was told is not always known


async def test_what_may_have_been_told_is_told_to_its_end(parts: AppServices, clock: Clock) -> None:  # R24, R27
    there = await begun(parts)
    room(there).trouble = DeliveryUnknown("It hung up.")
    approval_id = await pending(parts)
    await there.sweep()
    room(there).trouble = None
    await approve(parts, approval_id)
    clock.forward(MINUTE)
    await there.sweep()
    assert room(there).said == [("send", "ended")]


async def test_what_was_certainly_not_told_is_dropped_when_it_is_decided(
    parts: AppServices, clock: Clock
) -> None:  # R24
    there = await begun(parts)
    room(there).trouble = DeliveryDelayed("Nobody is there.")
    approval_id = await pending(parts)
    await there.sweep()
    room(there).trouble = None
    await approve(parts, approval_id)
    clock.forward(MINUTE)
    assert await there.sweep() == 0
    assert [each.status for each in await parts.store.deliveries.for_approval("default", approval_id)] == ["dropped"]


async def test_what_is_decided_between_the_claim_and_the_message_is_not_asked(parts: AppServices) -> None:  # R24
    there = await begun(parts)
    approval_id = await pending(parts)
    await there.courier.route()
    await approve(parts, approval_id)
    lane = there.courier.queues["default", "room"]
    assert (await lane.sweep(), room(there).heard) == (0, [])
    [left] = await parts.store.deliveries.for_approval("default", approval_id)
    assert left.status == "dropped"


async def test_a_call_that_waits_again_is_told_though_it_was_decided_before_anybody_heard(
    parts: AppServices,
) -> None:  # R23
    there = await begun(parts)
    approval_id = await pending(parts)
    await there.courier.route()
    stored = await parts.store.get("default", approval_id)
    await parts.inbox.decide("default", approval_id, Reject("no", Acknowledgement(stored.approval.args_sha256)), BOB)
    await there.sweep()
    assert room(there).heard == []
    await parts.inbox.undo("default", approval_id, BOB)
    await there.sweep()
    assert room(there).said == [("send", "ask")]


# Floods


async def test_of_a_flood_few_are_told_the_urgent_ones_first_and_the_rest_as_one(
    parts: AppServices, clock: Clock
) -> None:  # R23, R28
    flood = await begun(parts, Routes({"room": ChannelCapabilities(rate_per_minute=10)}, "room"))
    await calls(parts, 995)
    urgent = await calls(parts, 5, start=995, priority="high")
    assert await flood.sweep() == 10
    said = [message for _, message, _ in room(flood).heard]
    assert [message.count for message in said if message.purpose == "group"] == [991]
    assert set(urgent) <= set(room(flood).asked[: MAX_CONCURRENT + 1])
    clock.forward(MINUTE + 1)
    assert await flood.sweep() == 0
    assert (await parts.store.stats("default")).by_status["pending"] == 1000, "all are in the inbox"


async def test_what_comes_minute_by_minute_is_never_more_than_the_limit(
    parts: AppServices, clock: Clock
) -> None:  # R28
    flood = await begun(parts, Routes({"room": ChannelCapabilities(rate_per_minute=10)}, "room"))
    told = []
    for minute in range(3):
        for part in range(4):
            await calls(parts, 25, start=100 * minute + 25 * part)
            told.append(await flood.sweep())
            clock.forward(MINUTE // 4)
    assert [sum(told[start : start + 4]) <= 10 for start in range(9)] == [True] * 9
    for _ in range(2):
        clock.forward(MINUTE + 1)
        await flood.sweep()
    counted = sum(message.count or 1 for _, message, _ in room(flood).heard)
    assert counted == 300


async def test_a_start_with_5000_that_wait_makes_no_storm(parts: AppServices, clock: Clock) -> None:  # R24, R28
    await calls(parts, 5_000)
    routes = Routes({"room": ChannelCapabilities(rate_per_minute=10)}, "room")
    assert await (flood := await begun(parts, routes)).sweep() == 0
    assert len(room(flood).heard) == 10
    assert sum(message.count or 1 for _, message, _ in room(flood).heard) == 5_000
    clock.forward(MINUTE + 1)
    again = await begun(parts, routes)
    assert room(again).heard == []


# Several couriers


async def test_two_couriers_share_what_is_due_and_the_limit(parts: AppServices, clock: Clock) -> None:  # R24, R28
    one, two = await begun(parts), await begun(parts)
    asked = await calls(parts, 150)
    assert sum(await asyncio.gather(one.sweep(), two.sweep())) == 150
    assert sorted(room(one).asked + room(two).asked) == sorted(asked)
    clock.forward(MINUTE + 1)
    few = Routes({"room": ChannelCapabilities(rate_per_minute=10)}, "room")
    slow, quick = await begun(parts, few), await begun(parts, few)
    gate = room(slow).gate = asyncio.Event()
    await calls(parts, 10, start=1000)
    sweeping = asyncio.create_task(slow.sweep())
    await until(lambda: room(slow).tries == MAX_CONCURRENT)
    await calls(parts, 10, start=2000)
    assert await quick.sweep() == 0, "what is on its way counts"
    gate.set()
    assert await sweeping == 10


async def test_who_stood_still_for_longer_than_the_lease_records_nothing(
    parts: AppServices, clock: Clock
) -> None:  # R24
    still, awake = await begun(parts), await begun(parts)
    gate = room(still).gate = asyncio.Event()
    approval_id = await pending(parts)
    sweeping = asyncio.create_task(still.sweep())
    await until(lambda: room(still).tries == 1)
    clock.forward(MINUTE + 1)
    assert await awake.sweep() == 1
    gate.set()
    assert await sweeping == 0
    ids = {message.id for _, message, _ in (*room(still).heard, *room(awake).heard)}
    assert len(ids) == 1, "a duplicate has the id of the first"
    assert (await kinds(parts)).count("delivered") == 1
    [row] = await parts.store.deliveries.for_approval("default", approval_id)
    assert (row.status, row.fence) == ("sent", 2)


async def test_what_is_claimed_too_long_ago_is_given_back_and_not_sent(parts: AppServices, clock: Clock) -> None:  # R24
    there = await begun(parts)
    gate = room(there).gate = asyncio.Event()
    await calls(parts, CLAIM_BATCH)
    sweeping = asyncio.create_task(there.sweep())
    await until(lambda: room(there).tries == MAX_CONCURRENT)
    clock.forward(MINUTE - 1_000)
    gate.set()
    assert await sweeping == CLAIM_BATCH
    rows = await parts.store.deliveries.list_deliveries("default", "sent")
    assert sorted({each.fence for each in rows}) == [1, 2]


async def test_what_a_dead_runner_held_is_told_at_once(parts: AppServices) -> None:  # R24
    there = await begun(parts)
    await pending(parts)
    await there.courier.route()
    program = "from interlock.runtime.process_identity import make_runner_id; print(make_runner_id())"
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    await parts.store.deliveries.lease("default", "room", done.stdout.strip(), 8, 10)
    assert await there.sweep() == 0
    await there.courier.release()
    assert await there.sweep() == 1


async def test_a_workspace_with_much_to_say_does_not_silence_another(parts: AppServices, clock: Clock) -> None:  # R24
    store = parts.store.deliveries
    for workspace, count in (("default", 300), ("other", 3)):
        await parts.store.secret_key(workspace)
        await parts.store.put_user(workspace, User("ada", "admin"), "ada")
        for number in range(count):
            await store.add(
                make_test_delivery(workspace, f"{workspace}{number}", DeliveryTarget("room"), "ada", clock())
            )
        clock.forward(1)
    taken = {name: await store.lease(name, "room", "me", 8, 10) for name in ("default", "other")}
    assert {name: {each.workspace for each in found} for name, found in taken.items()} == {
        "default": {"default"},
        "other": {"other"},
    }
    assert len(taken["other"]) == 3


async def test_who_is_told_to_stop_gives_back_what_waits(parts: AppServices) -> None:  # R24
    there = await begun(parts)
    gate = room(there).gate = asyncio.Event()
    await calls(parts, CLAIM_BATCH)
    stop = asyncio.Event()
    running = asyncio.create_task(there.courier.run(stop))
    await until(lambda: room(there).tries == MAX_CONCURRENT)
    stop.set()
    gate.set()
    await running
    assert len(room(there).heard) == MAX_CONCURRENT
    assert len(await parts.store.deliveries.list_deliveries("default", "due")) == CLAIM_BATCH - MAX_CONCURRENT


# Errors in between


@pytest.mark.postgres_nightly
async def test_a_database_that_fails_at_any_statement_loses_and_doubles_nothing(
    place: Place, clock: Clock
) -> None:  # R24
    clock.lead(place)
    faulty = Faulty()
    parts = build_services_with_points(place.url, faulty.point, clock)
    await parts.store.open()
    try:
        await parts.put_policy("default", None, "ada", {})
        there = await begun(parts)
        names: list[str] = []
        await scene(there, faulty, clock, names.append)
        seen: Counter[str] = Counter()
        for name in list(names):
            seen[name] += 1
            where = f"{name}#{seen[name]}"
            await scene(there, faulty, clock, parse_fault_plan(f"raise:{where}"), where)
        assert len(names) > 20
        assert await faults(parts) == []
        assert (await kinds(parts)).count("delivered") == 2 * (len(names) + 1)
    finally:
        await parts.store.close()


class Faulty:
    """Where the database fails, which a test can change while it is open."""

    def __init__(self) -> None:
        self.plan: FaultPoint | None = None

    def point(self, name: str) -> None:
        if self.plan is not None:
            self.plan(name)


async def scene(there: Set, faulty: Faulty, clock: Clock, plan: FaultPoint | None, where: str = "") -> None:
    """A call is told while the database fails at one point, and decided when it is well again."""
    approval_id = await pending(there.parts, f"{clock()}")
    faulty.plan = plan
    for _ in range(2):
        with suppress(Error):
            await there.sweep()
    faulty.plan = None
    clock.forward(2 * MINUTE)
    await there.sweep()
    heard = [message for _, message, _ in room(there).heard if message.approval_view is not None]
    assert (
        len({each.id for each in heard if each.approval_view and each.approval_view.approval.id == approval_id}) == 1
    ), where
    await approve(there.parts, approval_id)
    await there.sweep()
    [row] = await there.parts.store.deliveries.for_approval("default", approval_id)
    assert row.status == "sent"
