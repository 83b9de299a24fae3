"""Socket Mode: the same clicks for those without a public address, over a connection that we open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from interlock.notify.channel import ListeningChannel
from interlock.notify.service import InboundHandler
from tests.channels.slack_scenario import SlackScenario, open_slack_scenario, socket_mode_settings
from tests.databases import Database
from tests.fakes.slack import TICKET, buttons
from tests.support import Clock


@pytest.fixture
async def scenario(database: Database, clock: Clock) -> AsyncIterator[SlackScenario]:
    async with open_slack_scenario(database, clock, **socket_mode_settings()) as made:
        stop = asyncio.Event()
        channel = made.state.notifications.channels["slack"]
        assert isinstance(channel, ListeningChannel)
        listening = asyncio.create_task(channel.listen(InboundHandler(made.state.notifications, "slack"), stop))
        await made.slack.wait_until(lambda: made.slack.connections == 1)
        yield made
        stop.set()
        await listening


async def test_a_click_comes_through_the_connection(scenario: SlackScenario) -> None:  # R25
    approval_id = await scenario.ask()
    assert len(list(buttons(scenario.slack.all_messages[0]))) == 5
    assert await scenario.slack.deliver(scenario.slack.click(scenario.users["bob"], "approve")) == {}
    assert await scenario.decision(approval_id) == ("approve", "bob", "slack")


async def test_a_form_is_answered_with_its_acknowledgement(scenario: SlackScenario) -> None:
    approval_id = await scenario.ask()
    await scenario.slack.deliver(scenario.slack.click(scenario.users["bob"], "edit"))
    [form] = scenario.slack.views.values()
    said = await scenario.slack.deliver(scenario.slack.submit(form.id, {"amount": "many"}))
    assert said == {"response_action": "errors", "errors": {"edit0": "This is not a number."}}
    assert await scenario.slack.deliver(scenario.slack.submit(form.id, {"amount": "5"})) == {}
    assert await scenario.decision(approval_id) == ("edit", "bob", "slack")


@pytest.mark.postgres_smoke
async def test_an_envelope_that_comes_twice_changes_nothing(scenario: SlackScenario) -> None:  # R24
    await scenario.ask()
    payload = scenario.slack.click(scenario.users["bob"], "approve")
    for envelope in ("e1", "e1", "e2"):
        assert await scenario.slack.deliver(payload, envelope) == {}
    assert len(await scenario.events("approved", "decision_refused")) == 1
    assert scenario.slack.ephemerals == []


@pytest.mark.parametrize("is_told", [True, False])
async def test_a_connection_that_slack_ends_is_opened_again(scenario: SlackScenario, is_told: bool) -> None:
    approval_id = await scenario.ask()
    await (scenario.slack.disconnect() if is_told else scenario.slack.drop_connection())
    await scenario.slack.wait_until(lambda: scenario.slack.connections == 2)
    await scenario.slack.deliver(scenario.slack.click(scenario.users["bob"], "approve"))
    assert await scenario.status(approval_id) == "approved"


async def test_unknown_user_gets_an_ephemeral_message_here_too(scenario: SlackScenario) -> None:
    approval_id = await scenario.ask()
    stranger = scenario.slack.add_user("bob", "mallory@example.com")
    await scenario.slack.deliver(scenario.slack.click(stranger, "approve"))
    assert len(scenario.slack.ephemerals) == 1
    assert await scenario.status(approval_id) == "pending"


async def test_what_is_no_click_is_acknowledged_and_ignored(scenario: SlackScenario) -> None:
    approval_id = await scenario.ask()
    payload = scenario.slack.click(scenario.users["bob"], "approve")
    assert await scenario.slack.deliver(payload, kind="events_api") == {}
    assert await scenario.slack.deliver({}, kind="slash_commands") == {}
    assert await scenario.status(approval_id) == "pending"


async def test_a_request_over_http_is_refused_where_there_is_no_secret(scenario: SlackScenario) -> None:
    await scenario.ask()
    post = scenario.slack.sign(scenario.slack.click(scenario.users["bob"], "approve"))
    assert (await scenario.post(post)).status_code == 401


async def test_what_opens_the_connection_is_in_no_log(
    scenario: SlackScenario, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await scenario.slack.disconnect()
    await scenario.slack.wait_until(lambda: scenario.slack.connections == 2)
    assert [each for each in caplog.messages if TICKET in each or "xapp-" in each] == []


async def test_without_an_app_token_there_is_nothing_to_listen_to(database: Database, clock: Clock) -> None:
    async with open_slack_scenario(database, clock) as made:
        channel, stop = made.state.notifications.channels["slack"], asyncio.Event()
        assert isinstance(channel, ListeningChannel)
        stop.set()
        await channel.listen(InboundHandler(made.state.notifications, "slack"), stop)
        assert made.slack.connections == 0
