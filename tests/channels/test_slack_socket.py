"""Socket Mode: the same clicks for those without a public address, over a connection that we open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from interlock.notify.channel import ListeningChannel
from interlock.notify.service import InboundHandler
from tests.channels.slack_scenario import Scene, staged, with_socket
from tests.databases import Place
from tests.fakes.slack import TICKET, buttons
from tests.support import Clock


@pytest.fixture
async def scene(place: Place, clock: Clock) -> AsyncIterator[Scene]:
    async with staged(place, clock, **with_socket()) as made:
        stop = asyncio.Event()
        channel = made.site.notifications.channels["slack"]
        assert isinstance(channel, ListeningChannel)
        listening = asyncio.create_task(channel.listen(InboundHandler(made.site.notifications, "slack"), stop))
        await made.slack.until(lambda: made.slack.connections == 1)
        yield made
        stop.set()
        await listening


async def test_a_click_comes_through_the_connection(scene: Scene) -> None:  # R25
    approval_id = await scene.ask()
    assert len(list(buttons(scene.slack.shown[0]))) == 5
    assert await scene.slack.deliver(scene.slack.click(scene.users["bob"], "approve")) == {}
    assert await scene.decision(approval_id) == ("approve", "bob", "slack")


async def test_a_form_is_answered_with_its_acknowledgement(scene: Scene) -> None:
    approval_id = await scene.ask()
    await scene.slack.deliver(scene.slack.click(scene.users["bob"], "edit"))
    [form] = scene.slack.views.values()
    said = await scene.slack.deliver(scene.slack.submit(form.id, {"amount": "many"}))
    assert said == {"response_action": "errors", "errors": {"edit0": "This is not a number."}}
    assert await scene.slack.deliver(scene.slack.submit(form.id, {"amount": "5"})) == {}
    assert await scene.decision(approval_id) == ("edit", "bob", "slack")


@pytest.mark.postgres_smoke
async def test_an_envelope_that_comes_twice_changes_nothing(scene: Scene) -> None:  # R24
    await scene.ask()
    payload = scene.slack.click(scene.users["bob"], "approve")
    for envelope in ("e1", "e1", "e2"):
        assert await scene.slack.deliver(payload, envelope) == {}
    assert len(await scene.events("approved", "decision_refused")) == 1
    assert scene.slack.whispers == []


@pytest.mark.parametrize("is_told", [True, False])
async def test_a_connection_that_slack_ends_is_opened_again(scene: Scene, is_told: bool) -> None:
    approval_id = await scene.ask()
    await (scene.slack.disconnect() if is_told else scene.slack.hang_up())
    await scene.slack.until(lambda: scene.slack.connections == 2)
    await scene.slack.deliver(scene.slack.click(scene.users["bob"], "approve"))
    assert await scene.status(approval_id) == "approved"


async def test_a_stranger_is_told_alone_here_too(scene: Scene) -> None:
    approval_id = await scene.ask()
    stranger = scene.slack.add_user("bob", "mallory@example.com")
    await scene.slack.deliver(scene.slack.click(stranger, "approve"))
    assert len(scene.slack.whispers) == 1
    assert await scene.status(approval_id) == "pending"


async def test_what_is_no_click_is_acknowledged_and_ignored(scene: Scene) -> None:
    approval_id = await scene.ask()
    payload = scene.slack.click(scene.users["bob"], "approve")
    assert await scene.slack.deliver(payload, kind="events_api") == {}
    assert await scene.slack.deliver({}, kind="slash_commands") == {}
    assert await scene.status(approval_id) == "pending"


async def test_a_request_over_http_is_refused_where_there_is_no_secret(scene: Scene) -> None:
    await scene.ask()
    post = scene.slack.signed(scene.slack.click(scene.users["bob"], "approve"))
    assert (await scene.post(post)).status_code == 401


async def test_what_opens_the_connection_is_in_no_log(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await scene.slack.disconnect()
    await scene.slack.until(lambda: scene.slack.connections == 2)
    assert [each for each in caplog.messages if TICKET in each or "xapp-" in each] == []


async def test_without_an_app_token_there_is_nothing_to_listen_to(place: Place, clock: Clock) -> None:
    async with staged(place, clock) as made:
        channel, stop = made.site.notifications.channels["slack"], asyncio.Event()
        assert isinstance(channel, ListeningChannel)
        stop.set()
        await channel.listen(InboundHandler(made.site.notifications, "slack"), stop)
        assert made.slack.connections == 0
