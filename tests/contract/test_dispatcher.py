"""The dispatcher: from the ledger to the channels, each message once, on both databases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.decision import Acknowledgement, Reject
from interlock.core.notify.delivery import Notification
from interlock.core.notify.routing import ChannelCapabilities, Routes
from interlock.core.policy.policy import People
from interlock.core.ports import User
from interlock.notify.channel import ChannelGone, DeliveryDelayed, DeliveryRejected
from tests.channels.fake_channels import FakeChannel, FakeChannels
from tests.support import BOB, Clock, approve, event_kinds, propose_pending

MINUTE = 60_000


ROOM = Routes({"room": ChannelCapabilities()}, "room")


@pytest.fixture
async def room_channel(services: AppServices) -> FakeChannels:
    made = FakeChannels(services, ROOM, room=FakeChannel())
    await services.store.put_user("default", User("ada", "admin", email="ada@example.com"), "ada")
    await made.sweep()  # notifications start here
    return made


async def test_a_call_is_sent_once_and_updated_when_it_is_decided(
    room_channel: FakeChannels, services: AppServices
) -> None:
    approval_id = await propose_pending(services)
    assert (await room_channel.sweep(), await room_channel.sweep()) == (1, 0)
    [(verb, message, _)] = room_channel.channels["room"].messages
    assert (verb, message.purpose, message.link) == ("send", "ask", f"https://interlock.example/a/{approval_id}")
    assert message.approval_view is not None
    assert message.approval_view.card.sentence == "Delete /tmp/x"
    await approve(services, approval_id)
    await room_channel.sweep()
    assert room_channel.channels["room"].purposes == [("send", "ask"), ("update", "ended")]
    assert room_channel.channels["room"].messages[1][2] == "ref 1"
    assert (await event_kinds(services)).count("delivered") == 2


class ForgetfulChannel(FakeChannel):
    """A channel from outside whose `send` returns nothing."""

    async def send(self, message: Notification) -> str:
        await super().send(message)
        return None  # type: ignore[return-value]


async def test_a_channel_that_returns_no_reference_is_told_once_and_updated(services: AppServices) -> None:
    room = FakeChannels(services, ROOM, room=ForgetfulChannel())
    await room.sweep()
    approval_id = await propose_pending(services)
    assert (await room.sweep(), await room.sweep()) == (1, 0)
    await approve(services, approval_id)
    await room.sweep()
    assert [(verb, ref) for verb, _, ref in room.channels["room"].messages] == [("send", ""), ("update", "")]


async def test_a_call_decided_before_its_delivery_is_not_sent(
    room_channel: FakeChannels, services: AppServices
) -> None:
    await approve(services, await propose_pending(services))
    await room_channel.sweep()
    assert room_channel.channels["room"].messages == []


async def test_pending_calls_are_sent_when_the_first_channel_appears(services: AppServices) -> None:
    await approve(services, await propose_pending(services))
    await propose_pending(services, 2)
    late = FakeChannels(services, ROOM, room=FakeChannel())
    assert (await late.sweep(), await late.sweep()) == (1, 0)


async def test_a_channel_that_is_down_is_tried_again_and_delays_no_other(services: AppServices, clock: Clock) -> None:
    routes = Routes(
        {"room": ChannelCapabilities(), "hall": ChannelCapabilities()}, "room", priorities={"medium": ("room", "hall")}
    )
    both = FakeChannels(services, routes, room=FakeChannel(), hall=FakeChannel())
    await both.sweep()
    both.channels["room"].failure = DeliveryDelayed("It is down.")
    await propose_pending(services)
    await both.sweep()
    assert both.channels["hall"].purposes == [("send", "ask")]
    for _ in range(4):
        clock.advance(MINUTE)
        await both.sweep()
    [due] = await services.store.deliveries.list_deliveries("default", "due")
    assert (due.target.channel, due.error, due.attempts) == ("room", "It is down.", 5)
    both.channels["room"].failure = None
    clock.advance(MINUTE - 1)
    await both.sweep()
    assert both.channels["room"].purposes == [("send", "ask")]


@pytest.mark.parametrize(("trouble", "is_off"), [(DeliveryRejected("No."), False), (ChannelGone("Gone."), True)])
async def test_what_will_never_be_taken_is_parked_and_can_be_sent_again(
    room_channel: FakeChannels, services: AppServices, trouble: Exception, is_off: bool
) -> None:
    room_channel.channels["room"].failure = trouble
    await propose_pending(services)
    await room_channel.sweep()
    [parked] = await services.store.deliveries.list_deliveries("default", "parked")
    assert parked.error == trouble.message  # type: ignore[attr-defined]
    assert bool(await services.store.deliveries.disabled_channels()) is is_off
    room_channel.channels["room"].failure = None
    await services.store.deliveries.enable_channel("default", "room", "ada")
    await services.store.deliveries.retry("default", parked.id, "ada")
    assert await room_channel.sweep() == 1
    assert "delivery_parked" in await event_kinds(services)


async def test_a_flood_becomes_one_message(room_channel: FakeChannels, services: AppServices, clock: Clock) -> None:
    for number in range(30):
        await propose_pending(services, number)
    assert await room_channel.sweep() == 10
    said = [message for _, message, _ in room_channel.channels["room"].messages]
    assert sorted(message.purpose for message in said) == ["ask"] * 9 + ["group"]
    assert sum(message.count for message in said) == 21
    clock.advance(MINUTE + 1)
    assert await room_channel.sweep() == 0
    await propose_pending(services, "more")
    assert await room_channel.sweep() == 1


async def test_somebody_else_who_claimed_it_sends_it(
    room_channel: FakeChannels, services: AppServices, clock: Clock
) -> None:
    await propose_pending(services)
    await room_channel.dispatcher.route()
    [mine] = await services.store.deliveries.lease("default", "room", "another", 8, 10)
    assert await room_channel.sweep() == 0
    clock.advance(MINUTE + 1)
    assert await room_channel.sweep() == 1
    assert room_channel.channels["room"].messages[0][1].id == mine.message_id


async def test_a_rejection_that_is_taken_back_is_shown(room_channel: FakeChannels, services: AppServices) -> None:
    approval_id = await propose_pending(services)
    await room_channel.sweep()
    stored = await services.store.get("default", approval_id)
    seen = Acknowledgement(stored.approval.args_sha256)
    await services.inbox.decide("default", approval_id, Reject("no", seen), BOB)
    await room_channel.sweep()
    await services.inbox.undo("default", approval_id, BOB)
    await room_channel.sweep()
    assert room_channel.channels["room"].purposes == [("send", "ask"), ("update", "ended"), ("update", "changed")]


async def test_people_and_their_delegates_are_notified_one_by_one(services: AppServices, clock: Clock) -> None:
    routes = Routes({"mail": ChannelCapabilities(personal=True)}, "mail")
    mail = FakeChannels(services, routes, mail=FakeChannel())
    for name in ("ada", "bob", "eve"):
        await services.store.put_user("default", User(name, "reviewer", email=f"{name}@example.com"), "ada")
    stand_in = People(frozenset({"eve"}))
    away = User("bob", "reviewer", email="bob@example.com", away_until=clock() + MINUTE, away_to=stand_in)
    await services.store.put_user("default", away, "ada")
    await mail.sweep()
    await propose_pending(services)
    await mail.sweep()
    result = sorted(message.to.person for _, message, _ in mail.channels["mail"].messages)
    assert result == ["ada", "eve"]
    link = mail.channels["mail"].messages[0][1].link.partition("?t=")[2]
    token = await mail.notifications.verify_link_token(link)
    assert token.delivery.target.person in result
    assert replace(token.delivery, used_at=1).used_at == 1


ENGINE = Routes(
    {"room": ChannelCapabilities(), "flows": ChannelCapabilities(priorities=frozenset(), engine="restate")}, "room"
)


@pytest.fixture
async def engine_channel(services: AppServices) -> FakeChannels:
    made = FakeChannels(services, ENGINE, room=FakeChannel(), flows=FakeChannel())
    await services.store.put_user("default", User("ada", "admin", email="ada@example.com"), "ada")
    await made.sweep()
    return made


async def test_a_workflow_is_woken_also_if_it_was_decided_before_anybody_was_told(
    engine_channel: FakeChannels, services: AppServices
) -> None:
    await approve(services, await propose_pending(services, 1, run_id="restate:inv_1"))
    await approve(services, await propose_pending(services, 2, run_id="run-2"))
    assert (await engine_channel.sweep(), await engine_channel.sweep()) == (1, 0)
    [(verb, message, _)] = engine_channel.channels["flows"].messages
    assert (verb, message.purpose) == ("send", "woken")
    assert message.approval_view is not None
    assert message.approval_view.approval.subject.run_id == "restate:inv_1"
    assert engine_channel.channels["room"].messages == []


async def test_a_rejected_workflow_is_woken_when_the_rejection_is_final(
    engine_channel: FakeChannels, services: AppServices, clock: Clock
) -> None:
    approval_id = await propose_pending(services, 1, run_id="restate:inv_1")
    await engine_channel.sweep()
    stored = await services.store.get("default", approval_id)
    await services.inbox.decide(
        "default", approval_id, Reject("No.", Acknowledgement(stored.approval.args_sha256)), BOB
    )
    await engine_channel.sweep()
    assert engine_channel.channels["flows"].messages == []
    clock.advance(8_000)
    await engine_channel.sweep()
    assert engine_channel.channels["flows"].purposes == [("send", "woken")]


async def test_an_engine_that_was_down_is_notified_when_it_is_back(
    engine_channel: FakeChannels, services: AppServices, clock: Clock
) -> None:
    engine_channel.channels["flows"].failure = DeliveryDelayed("It is down.")
    await approve(services, await propose_pending(services, 1, run_id="restate:inv_1"))
    await engine_channel.sweep()
    assert engine_channel.channels["flows"].messages == []
    engine_channel.channels["flows"].failure = None
    clock.advance(MINUTE)
    await engine_channel.sweep()
    assert engine_channel.channels["flows"].purposes == [("send", "woken")]


async def test_a_rejection_that_was_taken_back_at_the_last_moment_wakes_nobody_and_the_next_decision_does(
    engine_channel: FakeChannels, services: AppServices, clock: Clock
) -> None:
    """The channel queue may find a delivery due before the ledger follower has seen the decision."""
    approval_id = await propose_pending(services, 1, run_id="restate:inv_1")
    stored = await services.store.get("default", approval_id)
    await services.inbox.decide(
        "default", approval_id, Reject("No.", Acknowledgement(stored.approval.args_sha256)), BOB
    )
    await engine_channel.sweep()
    clock.advance(7_999)
    await services.inbox.undo("default", approval_id, BOB)
    clock.advance(1)
    await engine_channel.dispatcher.queues["default", "flows"].sweep()
    assert engine_channel.channels["flows"].messages == []
    await engine_channel.sweep()
    await approve(services, approval_id)
    clock.advance(2_000)
    await engine_channel.sweep()
    assert engine_channel.channels["flows"].purposes == [("send", "woken")]
