"""What seldom happens between Slack and us, and decides nothing when it does."""

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
from tests.channels.slack_scenario import Scene, staged, with_socket
from tests.databases import File
from tests.fakes.slack import Refused, buttons
from tests.support import Clock

FREE = ToolSpec("send_text", "write", describe="Send")


@pytest.fixture
async def scene(tmp_path: Path, clock: Clock) -> AsyncIterator[Scene]:
    async with staged(File(tmp_path / "interlock.db"), clock) as made:
        yield made


async def test_an_answer_that_is_none_is_tried_again(scene: Scene) -> None:
    scene.slack.trouble = [Refused("a page of somebody in between", 202)]
    await scene.ask()
    [due] = await scene.parts.store.deliveries.list_deliveries("default", "due")
    assert due.error == "Slack answered something that is not an answer of its API."


async def test_what_slack_cannot_show_is_decided_on_the_page(scene: Scene) -> None:
    approval_id = await scene.ask(spec=FREE, args={"text": "a\u202eb"})
    await scene.click("bob", "edit")
    assert scene.whispered == ["Slack cannot show all that this takes. Open the page to edit it."]
    assert await scene.status(approval_id) == "pending"


async def test_more_warnings_than_a_message_holds_are_looked_at_on_the_page(scene: Scene) -> None:
    await scene.ask(spec=FREE, args={f"n{number}": f"a\u202e{number}" for number in range(41)})
    [message] = scene.slack.shown
    assert [each["text"]["text"] for each in buttons(message)] == ["Open to review", "Answer", "Reject"]
    assert scene.slack.refusals == []


async def test_twenty_warnings_are_within_what_slack_takes(scene: Scene) -> None:
    args = {f"n{number}": f"a\u202e{number}" for number in range(20)}
    approval_id = await scene.ask(spec=FREE, args=args)
    form = await scene.form("bob", "approve")
    assert await scene.submit(form, {"I have looked at": "all"}) == {}
    assert await scene.status(approval_id) == "approved"


async def test_that_nobody_can_be_told_is_no_reason_to_fail(scene: Scene) -> None:
    approval_id = await scene.ask()
    await scene.click("vic", "reject")  # from here on the team is known
    scene.slack.whispers.clear()
    payload = scene.slack.click(scene.users["vic"], "approve")
    scene.slack.rooms["C1"].archived = True
    answer = await scene.post(scene.slack.signed(payload))
    assert (answer.status_code, scene.slack.whispers) == (200, [])
    assert await scene.status(approval_id) == "pending"


async def test_a_kind_of_decision_that_the_rule_does_not_allow_is_refused(scene: Scene) -> None:
    policy = "version: 1\nrules: [{name: yes or no, tools: [pay_out], then: ask, decisions: [approve, reject]}]"
    await scene.parts.put_policy("default", policy, "ada", {})
    approval_id = await scene.ask()
    payload = scene.slack.click(scene.users["bob"], "approve")
    payload["actions"][0]["action_id"] = "edit"
    await scene.post(scene.slack.signed(payload))
    assert scene.whispered == ["This call cannot be answered by edit; allowed: approve, reject."]
    assert (await scene.status(approval_id), scene.slack.views) == ("pending", {})


@pytest.mark.parametrize("user", [{}, {"id": "U9"}, None, {"id": "U2", "profile": None}, []])
async def test_an_odd_answer_about_somebody_makes_them_nobody(scene: Scene, user: Any) -> None:
    approval_id = await scene.ask()
    scene.slack.users[scene.users["bob"]] |= {"shown": user}
    scene.slack._known = lambda _: user  # type: ignore[method-assign]
    await scene.click("bob", "approve")
    assert scene.whispered == ["Slack did not say who you are. Nothing was decided."]
    assert await scene.status(approval_id) == "pending"


async def test_a_form_that_slack_has_to_wait_for_says_so_and_goes_on(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval_id = await scene.ask()
    form = await scene.form("bob", "reject")
    monkeypatch.setattr("interlock.notify.channels.slack.channel.RESPONSE_TIMEOUT", 0.01)
    monkeypatch.setattr("interlock.notify.channels.slack.channel.USER_LOOKUP_TIMEOUT", 60)
    scene.slack.slow = asyncio.Event()
    said = await scene.submit(form, {"Reason": "no"})
    assert said["Reason"].startswith("This takes longer than Slack waits, and goes on.")
    scene.slack.slow.set()
    await scene.site.notifications.channels["slack"].close()
    assert await scene.decision(approval_id) == ("reject", "bob", "slack")


async def test_a_form_about_a_message_that_nobody_knows_says_so(scene: Scene) -> None:
    await scene.ask()
    form = await scene.form("bob", "reject")
    form.view["private_metadata"] = "default.nothing " + "0" * 64
    assert (await scene.submit(form))["Reason"].startswith("Interlock does not know this message any more.")


async def test_a_database_in_trouble_is_told_to_whoever_clicked(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    approval_id = await scene.ask()
    form = await scene.form("bob", "reject")

    async def broken(*_: object) -> None:
        raise StoreUnavailable("The database is away. Try again.")

    with monkeypatch.context() as patched:
        patched.setattr(InboundHandler, "get_approval_view", broken)
        assert await scene.submit(form, {"Reason": "no"}) == {"Reason": "The database is away. Try again."}
        await scene.click("bob", "approve")
    assert scene.whispered == ["The database is away. Try again."]
    assert await scene.submit(form, {"Reason": "no"}) == {}
    assert await scene.status(approval_id) == "rejected"


async def test_what_is_too_much_for_the_arguments_is_said_and_not_sent(scene: Scene) -> None:
    await scene.ask(spec=FREE, args={"many": [1], "text": "x"})
    form = await scene.form("bob", "edit")
    deep = "[" * 63 + "]" * 63
    said = await scene.submit(form, {"many (JSON)": f"[{deep}]"})
    assert len(said) == 1
    assert form.id in scene.slack.views


async def test_a_mistake_of_ours_does_not_end_the_connection(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(File(tmp_path / "interlock.db"), clock, **with_socket()) as scene:
        stop, told = asyncio.Event(), asyncio.Event()
        asyncio.get_running_loop().set_exception_handler(lambda _, __: told.set())
        channel: Any = scene.site.notifications.channels["slack"]
        listening = asyncio.create_task(channel.listen(InboundHandler(scene.site.notifications, "slack"), stop))
        approval_id = await scene.ask()

        async def broken(*_: object) -> None:
            raise RuntimeError("a mistake")

        with monkeypatch.context() as patched:
            patched.setattr(InboundHandler, "run_once", broken)
            lost = asyncio.create_task(scene.slack.deliver(scene.slack.click(scene.users["bob"], "approve")))
            await asyncio.wait_for(told.wait(), 30)
        lost.cancel()
        assert await scene.slack.deliver(scene.slack.click(scene.users["bob"], "approve")) == {}
        assert await scene.status(approval_id) == "approved"
        stop.set()
        await listening


async def test_when_slack_takes_no_form_the_one_who_clicked_is_told(scene: Scene) -> None:
    approval_id = await scene.ask()
    await scene.click("vic", "approve")
    scene.slack.whispers.clear()
    payload = scene.slack.click(scene.users["bob"], "reject")
    scene.slack.trouble = []
    scene.slack._triggers.clear()
    await scene.post(scene.slack.signed(payload))
    assert scene.whispered == ["Slack refused it."]
    assert await scene.status(approval_id) == "pending"


async def test_nothing_that_slack_says_is_repeated(scene: Scene) -> None:
    scene.slack.trouble = [Refused("xoxb-a-secret that Slack repeats")]
    await scene.ask()
    [parked] = await scene.parts.store.deliveries.list_deliveries("default", "parked")
    assert json.dumps(parked.error) == '"Slack refused it."'
