"""From the ledger to the channels: each message once, whoever is down, on both databases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.decision import Acknowledgement, Reject
from interlock.core.notify.routing import ChannelCapabilities, Routes
from interlock.core.policy.policy import People
from interlock.core.ports import User
from interlock.notify.channel import ChannelGone, DeliveryDelayed, DeliveryRejected
from tests.channels.told import Set, Told
from tests.support import BOB, Clock, approve, kinds, pending

MINUTE = 60_000


ROOM = Routes({"room": ChannelCapabilities()}, "room")


@pytest.fixture
async def room(parts: AppServices) -> Set:
    made = Set(parts, ROOM, room=Told())
    await parts.store.put_user("default", User("ada", "admin", email="ada@example.com"), "ada")
    await made.sweep()  # from here on people are told
    return made


async def test_a_call_is_told_once_and_changed_when_it_is_decided(room: Set, parts: AppServices) -> None:
    approval_id = await pending(parts)
    assert (await room.sweep(), await room.sweep()) == (1, 0)
    [(verb, message, _)] = room.channels["room"].heard
    assert (verb, message.purpose, message.link) == ("send", "ask", f"https://interlock.example/a/{approval_id}")
    assert message.approval_view is not None
    assert message.approval_view.card.sentence == "Delete /tmp/x"
    await approve(parts, approval_id)
    await room.sweep()
    assert room.channels["room"].said == [("send", "ask"), ("update", "ended")]
    assert room.channels["room"].heard[1][2] == "ref 1"
    assert (await kinds(parts)).count("delivered") == 2


async def test_what_was_decided_before_it_was_told_is_not_told(room: Set, parts: AppServices) -> None:
    await approve(parts, await pending(parts))
    await room.sweep()
    assert room.channels["room"].heard == []


async def test_what_waits_when_there_is_a_first_channel_is_told(parts: AppServices) -> None:
    await approve(parts, await pending(parts))
    await pending(parts, 2)
    late = Set(parts, ROOM, room=Told())
    assert (await late.sweep(), await late.sweep()) == (1, 0)


async def test_a_channel_that_is_down_is_tried_again_and_delays_no_other(parts: AppServices, clock: Clock) -> None:
    routes = Routes(
        {"room": ChannelCapabilities(), "hall": ChannelCapabilities()}, "room", priorities={"medium": ("room", "hall")}
    )
    both = Set(parts, routes, room=Told(), hall=Told())
    await both.sweep()
    both.channels["room"].trouble = DeliveryDelayed("It is down.")
    await pending(parts)
    await both.sweep()
    assert both.channels["hall"].said == [("send", "ask")]
    for _ in range(4):
        clock.forward(MINUTE)
        await both.sweep()
    [due] = await parts.store.deliveries.list_deliveries("default", "due")
    assert (due.target.channel, due.error, due.attempts) == ("room", "It is down.", 5)
    both.channels["room"].trouble = None
    clock.forward(MINUTE - 1)
    await both.sweep()
    assert both.channels["room"].said == [("send", "ask")]


@pytest.mark.parametrize(("trouble", "is_off"), [(DeliveryRejected("No."), False), (ChannelGone("Gone."), True)])
async def test_what_will_never_be_taken_is_parked_and_can_be_sent_again(
    room: Set, parts: AppServices, trouble: Exception, is_off: bool
) -> None:
    room.channels["room"].trouble = trouble
    await pending(parts)
    await room.sweep()
    [parked] = await parts.store.deliveries.list_deliveries("default", "parked")
    assert parked.error == trouble.message  # type: ignore[attr-defined]
    assert bool(await parts.store.deliveries.disabled_channels()) is is_off
    room.channels["room"].trouble = None
    await parts.store.deliveries.enable_channel("default", "room", "ada")
    await parts.store.deliveries.retry("default", parked.id, "ada")
    assert await room.sweep() == 1
    assert "delivery_parked" in await kinds(parts)


async def test_a_flood_becomes_one_message(room: Set, parts: AppServices, clock: Clock) -> None:
    for number in range(30):
        await pending(parts, number)
    assert await room.sweep() == 10
    said = [message for _, message, _ in room.channels["room"].heard]
    assert sorted(message.purpose for message in said) == ["ask"] * 9 + ["group"]
    assert sum(message.count for message in said) == 21
    clock.forward(MINUTE + 1)
    assert await room.sweep() == 0
    await pending(parts, "more")
    assert await room.sweep() == 1


async def test_somebody_else_who_claimed_it_sends_it(room: Set, parts: AppServices, clock: Clock) -> None:
    await pending(parts)
    await room.courier.route()
    [mine] = await parts.store.deliveries.lease("default", "room", "another", 8, 10)
    assert await room.sweep() == 0
    clock.forward(MINUTE + 1)
    assert await room.sweep() == 1
    assert room.channels["room"].heard[0][1].id == mine.message_id


async def test_a_rejection_that_is_taken_back_is_shown(room: Set, parts: AppServices) -> None:
    approval_id = await pending(parts)
    await room.sweep()
    stored = await parts.store.get("default", approval_id)
    seen = Acknowledgement(stored.approval.args_sha256)
    await parts.inbox.decide("default", approval_id, Reject("no", seen), BOB)
    await room.sweep()
    await parts.inbox.undo("default", approval_id, BOB)
    await room.sweep()
    assert room.channels["room"].said == [("send", "ask"), ("update", "ended"), ("update", "changed")]


async def test_people_are_told_one_by_one_and_who_stands_in_for_them(parts: AppServices, clock: Clock) -> None:
    routes = Routes({"mail": ChannelCapabilities(personal=True)}, "mail")
    mail = Set(parts, routes, mail=Told())
    for name in ("ada", "bob", "eve"):
        await parts.store.put_user("default", User(name, "reviewer", email=f"{name}@example.com"), "ada")
    stand_in = People(frozenset({"eve"}))
    away = User("bob", "reviewer", email="bob@example.com", away_until=clock() + MINUTE, away_to=stand_in)
    await parts.store.put_user("default", away, "ada")
    await mail.sweep()
    await pending(parts)
    await mail.sweep()
    told = sorted(message.to.person for _, message, _ in mail.channels["mail"].heard)
    assert told == ["ada", "eve"]
    link = mail.channels["mail"].heard[0][1].link.partition("?t=")[2]
    token = await mail.reach.verify_link_token(link)
    assert token.delivery.target.person in told
    assert replace(token.delivery, used_at=1).used_at == 1


ENGINE = Routes(
    {"room": ChannelCapabilities(), "flows": ChannelCapabilities(priorities=frozenset(), engine="restate")}, "room"
)


@pytest.fixture
async def engine(parts: AppServices) -> Set:
    made = Set(parts, ENGINE, room=Told(), flows=Told())
    await parts.store.put_user("default", User("ada", "admin", email="ada@example.com"), "ada")
    await made.sweep()
    return made


async def test_a_workflow_is_woken_also_if_it_was_decided_before_anybody_was_told(
    engine: Set, parts: AppServices
) -> None:
    await approve(parts, await pending(parts, 1, run_id="restate:inv_1"))
    await approve(parts, await pending(parts, 2, run_id="run-2"))
    assert (await engine.sweep(), await engine.sweep()) == (1, 0)
    [(verb, message, _)] = engine.channels["flows"].heard
    assert (verb, message.purpose) == ("send", "woken")
    assert message.approval_view is not None
    assert message.approval_view.approval.subject.run_id == "restate:inv_1"
    assert engine.channels["room"].heard == []


async def test_a_rejected_workflow_is_woken_when_the_rejection_stands(
    engine: Set, parts: AppServices, clock: Clock
) -> None:
    approval_id = await pending(parts, 1, run_id="restate:inv_1")
    await engine.sweep()
    stored = await parts.store.get("default", approval_id)
    await parts.inbox.decide("default", approval_id, Reject("No.", Acknowledgement(stored.approval.args_sha256)), BOB)
    await engine.sweep()
    assert engine.channels["flows"].heard == []
    clock.forward(8_000)
    await engine.sweep()
    assert engine.channels["flows"].said == [("send", "woken")]


async def test_an_engine_that_is_down_is_told_when_it_is_back(engine: Set, parts: AppServices, clock: Clock) -> None:
    engine.channels["flows"].trouble = DeliveryDelayed("It is down.")
    await approve(parts, await pending(parts, 1, run_id="restate:inv_1"))
    await engine.sweep()
    assert engine.channels["flows"].heard == []
    engine.channels["flows"].trouble = None
    clock.forward(MINUTE)
    await engine.sweep()
    assert engine.channels["flows"].said == [("send", "woken")]


async def test_a_rejection_that_was_taken_back_at_the_last_moment_wakes_nobody_and_the_next_decision_does(
    engine: Set, parts: AppServices, clock: Clock
) -> None:
    """The lane may be quicker than the one who follows the ledger, and find it due all the same."""
    approval_id = await pending(parts, 1, run_id="restate:inv_1")
    stored = await parts.store.get("default", approval_id)
    await parts.inbox.decide("default", approval_id, Reject("No.", Acknowledgement(stored.approval.args_sha256)), BOB)
    await engine.sweep()
    clock.forward(7_999)
    await parts.inbox.undo("default", approval_id, BOB)
    clock.forward(1)
    await engine.courier.queues["default", "flows"].sweep()
    assert engine.channels["flows"].heard == []
    await engine.sweep()
    await approve(parts, approval_id)
    clock.forward(2_000)
    await engine.sweep()
    assert engine.channels["flows"].said == [("send", "woken")]
