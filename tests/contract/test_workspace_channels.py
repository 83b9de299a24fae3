"""Channels of workspaces: each workspace notifies through its own, on both databases."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from interlock.app.bootstrap import AppServices
from interlock.config.models import ChannelSettings, Settings
from interlock.core.errors import Conflict, NotFound
from interlock.core.notify.delivery import DeliveryTarget, make_test_delivery
from interlock.core.notify.routing import ChannelCapabilities, Routes
from interlock.core.ports import User
from interlock.notify.channel import ChannelGone, DeliveryDelayed, InboundPort
from interlock.notify.dispatcher import Dispatcher
from interlock.notify.service import NotificationService
from interlock.notify.status import requeue_delivery
from interlock.notify.workspace_channels import WorkspaceChannels
from interlock.server.logs import JsonLogger
from tests.channels.fake_channels import FakeChannel, FakeChannels
from tests.support import Clock, approve, event_kinds, propose_pending

MINUTE = 60_000
ROOM = Routes({"room": ChannelCapabilities()}, "room")


class TwoWorkspaces:
    """Two workspaces, each with a room of its own under the same name."""

    def __init__(self, services: AppServices) -> None:
        self.ours, self.theirs = FakeChannel(), FakeChannel()
        made = FakeChannels(services, ROOM, room=self.ours)
        self.reach: NotificationService = replace(
            made.notifications, others={"zebra": WorkspaceChannels({"room": self.theirs}, ROOM)}
        )
        self.courier: Dispatcher = self.reach.make_dispatcher()

    @property
    def said(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        return self.ours.purposes, self.theirs.purposes


@pytest.fixture
async def two_workspaces(services: AppServices) -> TwoWorkspaces:
    await services.store.secret_key("zebra")
    await services.store.put_user("zebra", User("zoe", "admin", email="zoe@example.com"), "zoe")
    made = TwoWorkspaces(services)
    await made.courier.sweep()
    return made


async def test_a_call_of_a_workspace_without_channels_is_not_sent(services: AppServices) -> None:  # R60
    room = FakeChannels(services, ROOM, room=FakeChannel())
    await services.store.secret_key("zebra")
    await services.store.put_user("zebra", User("zoe", "admin", email="zoe@example.com"), "zoe")
    await room.sweep()
    await propose_pending(services, workspace="zebra")
    assert (await room.sweep(), room.channels["room"].messages) == (0, [])
    await propose_pending(services, 2)
    assert await room.sweep() == 1


async def test_pending_calls_of_a_workspace_are_sent_when_it_gets_its_first_channel(
    services: AppServices,
) -> None:  # R60
    """Its ledger was not followed until then, unlike those of other workspaces."""
    room = FakeChannels(services, ROOM, room=FakeChannel())
    await services.store.secret_key("zebra")
    await services.store.put_user("zebra", User("zoe", "admin"), "zoe")
    await propose_pending(services, workspace="zebra")
    await room.sweep()
    two = TwoWorkspaces(services)
    assert await two.courier.sweep() == 1
    assert two.said == ([], [("send", "ask")])


async def test_each_workspace_is_told_through_its_own_channel_of_the_same_name(
    two_workspaces: TwoWorkspaces, services: AppServices
) -> None:  # R60
    theirs = await propose_pending(services, workspace="zebra")
    await two_workspaces.courier.sweep()
    assert two_workspaces.said == ([], [("send", "ask")])
    ours = await propose_pending(services, 2)
    await approve(services, theirs, workspace="zebra")
    await two_workspaces.courier.sweep()
    assert two_workspaces.said == ([("send", "ask")], [("send", "ask"), ("update", "ended")])
    assert [message.workspace for _, message, _ in two_workspaces.ours.messages] == ["default"]
    assert two_workspaces.ours.messages[0][1].link.endswith(ours)


async def test_a_channel_that_is_down_or_off_in_one_workspace_works_in_another(
    two_workspaces: TwoWorkspaces, services: AppServices, clock: Clock
) -> None:  # R60
    two_workspaces.theirs.failure = ChannelGone("It is gone.")
    await propose_pending(services, workspace="zebra")
    await propose_pending(services, 2)
    assert await two_workspaces.courier.sweep() == 1
    [switch] = await services.store.deliveries.disabled_channels()
    assert (switch.workspace, switch.channel) == ("zebra", "room")
    assert await services.store.deliveries.enable_channel("default", "room", "ada") is False
    assert len(await services.store.deliveries.disabled_channels()) == 1
    assert await services.store.deliveries.enable_channel("zebra", "room", "zoe") is True
    two_workspaces.theirs.failure = DeliveryDelayed("It is down.")
    await propose_pending(services, 3, workspace="zebra")
    await propose_pending(services, 4)
    assert await two_workspaces.courier.sweep() == 1


async def test_what_is_queued_for_a_channel_that_its_workspace_lost_is_parked_and_sent_nowhere_else(
    two_workspaces: TwoWorkspaces, services: AppServices, clock: Clock
) -> None:  # R60
    """Not at once: a process that was started earlier, with an older configuration, must not park what is new."""
    two_workspaces.theirs.failure = DeliveryDelayed("It is down.")
    await services.store.deliveries.add(make_test_delivery("zebra", "one", DeliveryTarget("room"), "zoe", clock()))
    await two_workspaces.courier.sweep()
    left = FakeChannels(services, ROOM, room=FakeChannel())
    clock.advance(4 * MINUTE)
    await left.dispatcher.release()
    assert await services.store.deliveries.list_deliveries("zebra", "parked") == []
    clock.advance(4 * MINUTE)
    await left.dispatcher.release()
    assert (await left.sweep(), left.channels["room"].messages) == (0, [])
    [parked] = await services.store.deliveries.list_deliveries("zebra", "parked")
    assert parked.error.startswith("The workspace zebra has no channel room. Add it to the channels of the workspace")
    assert "delivery_parked" in await event_kinds(services, "zebra")
    with pytest.raises(Conflict, match="The channel room no longer exists"):
        await requeue_delivery(left.notifications.for_workspace("zebra"), parked.id, "zoe")
    two_workspaces.theirs.failure = None
    await requeue_delivery(two_workspaces.reach.for_workspace("zebra"), parked.id, "zoe")
    assert await two_workspaces.courier.sweep() == 1


async def test_what_is_queued_for_channels_that_are_there_is_never_parked(
    two_workspaces: TwoWorkspaces, services: AppServices, clock: Clock
) -> None:  # R60
    two_workspaces.theirs.failure = DeliveryDelayed("It is down.")
    await services.store.deliveries.add(make_test_delivery("zebra", "one", DeliveryTarget("room"), "zoe", clock()))
    await two_workspaces.courier.sweep()
    clock.advance(8 * MINUTE)
    await two_workspaces.courier.release()
    assert await services.store.deliveries.list_deliveries("zebra", "parked") == []
    two_workspaces.theirs.failure = None
    assert await two_workspaces.courier.sweep() == 1


async def test_workspaces_that_have_their_inbox_only_are_told_to_the_log_and_stop_nothing(
    services: AppServices,
) -> None:  # R60
    lines: list[str] = []
    made = FakeChannels(services, ROOM, room=FakeChannel()).notifications
    for workspace in ("default", "zebra"):
        await services.store.secret_key(workspace)
    pager = {"room": ChannelSettings("pagerduty", {})}
    for settings, result in ((Settings(), []), (Settings(channels=pager), ["zebra"])):
        log = JsonLogger(services.clock, "problems", lines.append)
        async with replace(made, settings=settings, log=log).open():
            assert [json.loads(line)["workspace"] for line in lines] == result
    assert "workspace_without_channels" in lines[0]


class ListeningChannel(FakeChannel):
    """A channel with a connection of its own."""

    heard_for = ""

    async def listen(self, reception: InboundPort, stop: asyncio.Event) -> None:
        self.heard_for = reception.workspace
        assert await reception.member(self.heard_for, "zoe" if self.heard_for == "zebra" else "ada") is not None
        assert await reception.member("default" if self.heard_for == "zebra" else "zebra", "ada") is None


async def test_a_connection_of_a_channel_is_for_its_own_workspace(services: AppServices) -> None:  # R60
    for workspace, names in (("default", ("ada",)), ("zebra", ("ada", "zoe"))):
        await services.store.secret_key(workspace)
        for name in names:
            await services.store.put_user(workspace, User(name, "admin"), "ada")
    ours, theirs = ListeningChannel(), ListeningChannel()
    made = FakeChannels(services, ROOM, room=ours).notifications
    both = replace(made, others={"zebra": WorkspaceChannels({"room": theirs}, ROOM)})
    for chore in both.background_tasks[1:]:
        await chore(asyncio.Event())
    assert (ours.heard_for, theirs.heard_for) == ("default", "zebra")


async def test_a_workspace_knows_its_own_channels_alone(two_workspaces: TwoWorkspaces) -> None:  # R60
    more = replace(
        two_workspaces.reach,
        others={"zebra": WorkspaceChannels({"hall": FakeChannel()}, Routes({"hall": ChannelCapabilities()}, "hall"))},
    )
    for workspace, name in (("default", "hall"), ("zebra", "room"), ("nobodys", "room")):
        with pytest.raises(NotFound):
            await more.send_test(workspace, name, "ada")
    assert (await more.send_test("zebra", "hall", "zoe")).workspace == "zebra"
    assert two_workspaces.ours.messages == []
