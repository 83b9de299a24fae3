"""Rare failures between Slack and the server; none of them decides anything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from interlock.core.call import ToolSpec
from interlock.core.errors import StoreUnavailable
from interlock.notify.service import InboundHandler
from tests.channels.slack_scenario import SlackScenario, open_slack_scenario, socket_mode_settings
from tests.databases import SqliteFile
from tests.fakes.slack import Refused, buttons
from tests.support import Clock

FREE = ToolSpec("send_text", "write", describe="Send")


@pytest.fixture
async def scenario(tmp_path: Path, clock: Clock) -> AsyncIterator[SlackScenario]:
    async with open_slack_scenario(SqliteFile(tmp_path / "interlock.db"), clock) as made:
        yield made


async def test_malformed_response_is_retried(scenario: SlackScenario) -> None:
    scenario.slack.failures = [Refused("a page of somebody in between", 202)]
    await scenario.ask()
    [due] = await scenario.services.store.deliveries.list_deliveries("default", "due")
    assert due.error == "Slack sent an unexpected response."


async def test_what_slack_cannot_show_is_decided_on_the_page(scenario: SlackScenario) -> None:
    approval_id = await scenario.ask(spec=FREE, args={"text": "a\u202eb"})
    await scenario.click("bob", "edit")
    assert scenario.ephemeral_texts == ["Slack cannot show the whole form. Open the page to edit it."]
    assert await scenario.status(approval_id) == "pending"


async def test_more_warnings_than_a_message_holds_are_looked_at_on_the_page(scenario: SlackScenario) -> None:
    await scenario.ask(spec=FREE, args={f"n{number}": f"a\u202e{number}" for number in range(41)})
    [message] = scenario.slack.all_messages
    assert [each["text"]["text"] for each in buttons(message)] == ["Open to review", "Answer", "Reject"]
    assert scenario.slack.refusals == []


async def test_twenty_warnings_are_within_what_slack_takes(scenario: SlackScenario) -> None:
    args = {f"n{number}": f"a\u202e{number}" for number in range(20)}
    approval_id = await scenario.ask(spec=FREE, args=args)
    form = await scenario.open_form("bob", "approve")
    assert await scenario.submit(form, {"Checked": "all"}) == {}
    assert await scenario.status(approval_id) == "approved"


async def test_failed_ephemeral_message_is_no_failure(scenario: SlackScenario) -> None:
    approval_id = await scenario.ask()
    await scenario.click("vic", "reject")  # from here on the team is known
    scenario.slack.ephemerals.clear()
    payload = scenario.slack.click(scenario.users["vic"], "approve")
    scenario.slack.channels["C1"].archived = True
    answer = await scenario.post(scenario.slack.sign(payload))
    assert (answer.status_code, scenario.slack.ephemerals) == (200, [])
    assert await scenario.status(approval_id) == "pending"


async def test_a_kind_of_decision_that_the_rule_does_not_allow_is_refused(scenario: SlackScenario) -> None:
    policy = "version: 1\nrules: [{name: yes or no, tools: [pay_out], then: ask, decisions: [approve, reject]}]"
    await scenario.services.put_policy("default", policy, "ada", {})
    approval_id = await scenario.ask()
    payload = scenario.slack.click(scenario.users["bob"], "approve")
    payload["actions"][0]["action_id"] = "edit"
    await scenario.post(scenario.slack.sign(payload))
    assert scenario.ephemeral_texts == ["This call cannot be answered by edit; allowed: approve, reject."]
    assert (await scenario.status(approval_id), scenario.slack.views) == ("pending", {})


@pytest.mark.parametrize("user", [{}, {"id": "U9"}, None, {"id": "U2", "profile": None}, []])
async def test_an_odd_answer_about_somebody_makes_them_nobody(scenario: SlackScenario, user: Any) -> None:
    approval_id = await scenario.ask()
    scenario.slack.users[scenario.users["bob"]] |= {"shown": user}
    scenario.slack._find_user = lambda _: user  # type: ignore[method-assign]
    await scenario.click("bob", "approve")
    assert scenario.ephemeral_texts == ["Slack did not say who you are. Nothing was decided."]
    assert await scenario.status(approval_id) == "pending"


async def test_a_form_that_slack_has_to_wait_for_says_so_and_goes_on(
    scenario: SlackScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval_id = await scenario.ask()
    form = await scenario.open_form("bob", "reject")
    monkeypatch.setattr("interlock.notify.channels.slack.channel.RESPONSE_TIMEOUT", 0.01)
    monkeypatch.setattr("interlock.notify.channels.slack.channel.USER_LOOKUP_TIMEOUT", 60)
    scenario.slack.slow = asyncio.Event()
    said = await scenario.submit(form, {"Reason": "no"})
    assert said["Reason"].startswith("This is taking longer than Slack waits. It continues in the background")
    scenario.slack.slow.set()
    await scenario.state.notifications.channels["slack"].close()
    assert await scenario.decision(approval_id) == ("reject", "bob", "slack")


async def test_a_form_about_a_message_that_nobody_knows_says_so(scenario: SlackScenario) -> None:
    await scenario.ask()
    form = await scenario.open_form("bob", "reject")
    form.view["private_metadata"] = "default.nothing " + "0" * 64
    assert (await scenario.submit(form))["Reason"].startswith("This message is no longer known to Interlock.")


async def test_database_failure_is_shown_to_the_clicking_user(
    scenario: SlackScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval_id = await scenario.ask()
    form = await scenario.open_form("bob", "reject")

    async def broken(*_: object) -> None:
        raise StoreUnavailable("The database is away. Try again.")

    with monkeypatch.context() as patched:
        patched.setattr(InboundHandler, "get_approval_view", broken)
        assert await scenario.submit(form, {"Reason": "no"}) == {"Reason": "The database is away. Try again."}
        await scenario.click("bob", "approve")
    assert scenario.ephemeral_texts == ["The database is away. Try again."]
    assert await scenario.submit(form, {"Reason": "no"}) == {}
    assert await scenario.status(approval_id) == "rejected"


async def test_what_is_too_much_for_the_arguments_is_said_and_not_sent(scenario: SlackScenario) -> None:
    await scenario.ask(spec=FREE, args={"many": [1], "text": "x"})
    form = await scenario.open_form("bob", "edit")
    deep = "[" * 63 + "]" * 63
    said = await scenario.submit(form, {"many (JSON)": f"[{deep}]"})
    assert len(said) == 1
    assert form.id in scenario.slack.views


async def test_a_mistake_of_ours_does_not_end_the_connection(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_slack_scenario(SqliteFile(tmp_path / "interlock.db"), clock, **socket_mode_settings()) as scenario:
        stop, told = asyncio.Event(), asyncio.Event()
        asyncio.get_running_loop().set_exception_handler(lambda _, __: told.set())
        channel: Any = scenario.state.notifications.channels["slack"]
        listening = asyncio.create_task(channel.listen(InboundHandler(scenario.state.notifications, "slack"), stop))
        approval_id = await scenario.ask()

        async def broken(*_: object) -> None:
            raise RuntimeError("a mistake")

        with monkeypatch.context() as patched:
            patched.setattr(InboundHandler, "run_once", broken)
            lost = asyncio.create_task(scenario.slack.deliver(scenario.slack.click(scenario.users["bob"], "approve")))
            await asyncio.wait_for(told.wait(), 30)
        lost.cancel()
        assert await scenario.slack.deliver(scenario.slack.click(scenario.users["bob"], "approve")) == {}
        assert await scenario.status(approval_id) == "approved"
        stop.set()
        await listening


async def test_refused_form_is_reported_to_the_clicking_user(scenario: SlackScenario) -> None:
    approval_id = await scenario.ask()
    await scenario.click("vic", "approve")
    scenario.slack.ephemerals.clear()
    payload = scenario.slack.click(scenario.users["bob"], "reject")
    scenario.slack.failures = []
    scenario.slack._triggers.clear()
    await scenario.post(scenario.slack.sign(payload))
    assert scenario.ephemeral_texts == ["Slack rejected the request."]
    assert await scenario.status(approval_id) == "pending"


async def test_nothing_that_slack_says_is_repeated(scenario: SlackScenario) -> None:
    scenario.slack.failures = [Refused("xoxb-a-secret that Slack repeats")]
    await scenario.ask()
    [parked] = await scenario.services.store.deliveries.list_deliveries("default", "parked")
    assert json.dumps(parked.error) == '"Slack rejected the request."'
