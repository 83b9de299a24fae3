"""What stands in Slack: nothing that an argument says can be more than text, and nothing that is secret is there."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from interlock.core.call import ToolSpec
from interlock.core.decision import Acknowledgement, Reject
from interlock.core.ledger.event import Payload
from interlock.notify.channel import ChannelContext, DeliveryDelayed, DeliveryRejected
from interlock.notify.channels.slack.channel import connect
from tests.channels.slack_scenario import PAY, SlackScenario, open_slack_scenario
from tests.databases import SqliteFile
from tests.fakes.slack import BOT, SECRET, Json, Refused, buttons, texts
from tests.support import BOB, Clock, approve, propose_pending

MINUTE = 60_000
FREE = ToolSpec("send_text", "write", describe="Send {text}")
LINK = re.compile(r"<https://interlock\.example/[^<>|]+\|(View it|Review and decide)>")
DATE = re.compile(r"<!date\^[0-9]+\^\{date_short_pretty\} \{time\}\|[0-9: UTC-]+>")
CODE = re.compile(r"```[^`]+```|`[^`\n]+`")
OWN_MARKUP = re.compile(
    r"\*(Risk|Tool|Agent|Requester|Rule|Preview)\*"
    r"|\*Agent's (description|preview|explanation) \(not verified\)\*"
    r"|_[0-9,]+ characters; shown in full on the page_"
)


@pytest.fixture
async def scenario(tmp_path: Path, clock: Clock) -> AsyncIterator[SlackScenario]:
    async with open_slack_scenario(SqliteFile(tmp_path / "interlock.db"), clock) as made:
        yield made


def text_outside_code(message: Json) -> list[str]:
    """What Slack reads as markup, without what we write ourselves; all of it is words."""
    left = []
    for kind, text in texts(message):
        assert "<" not in LINK.sub("", DATE.sub("", text)), text
        assert "&" not in re.sub(r"&(amp|lt|gt);", "", text), text
        if kind == "mrkdwn":
            left.append(OWN_MARKUP.sub("", CODE.sub("", LINK.sub("", DATE.sub("", text)))))
    return left


HOSTILE = [
    "<!channel> <!here> <!everyone>",
    "<@U1> <#C1> <!subteam^S1>",
    "<https://evil.example|https://interlock.example/a/1>",
    "`rm` ``` *bold* ```",
    "```\n*Risk*\n`low`\n```",
    "*bold* _slanted_ ~gone~ > quoted",
    ":white_check_mark: approved",
    "&lt;!channel&gt; &amp;lt;",
    "https://evil.example/?a=<b>&c",
    "line\nline\r\n• list\u2028x",
    "\u202egnp.exe",
    "@channel @here #general",
    "<mailto:x@evil.example|mail> <tel:1|call>",
    "x" * 1_048_000,
    "&" * 50_000,
    "`" * 50_000,
    "<" * 50_000,
    "\\" * 3_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("where", ["value", "name", "nested"])
async def test_no_argument_is_more_than_text(scenario: SlackScenario, text: str, where: str) -> None:  # R25
    if where == "name" and len(text) > 1_000:
        text = text[:1_000]
    args = {"value": {"text": text}, "name": {text: "x"}, "nested": {"text": "x", "in": [{"a": text}]}}[where]
    await scenario.ask(spec=FREE, args=args, agent="<!channel>*a*`b`", requester="<@U1>`_r_`")
    [message] = scenario.slack.all_messages
    assert scenario.slack.refusals == []
    for left in text_outside_code(message):
        assert not re.search(r"[*_~`:]", left.replace("Decide by ", "")), left
    assert len(message["blocks"]) <= 50
    for action in {"reject", "edit"} & {each["action_id"] for each in buttons(message)}:
        await scenario.click("bob", action)
    assert [each for each in scenario.slack.refusals if each.startswith("views")] == []


async def test_a_long_value_says_how_long_it_is_and_where_all_of_it_is(scenario: SlackScenario) -> None:
    await scenario.ask(spec=FREE, args={"text": "x" * 1_000_000})
    said = "\n".join(text for _, text in texts(scenario.slack.all_messages[0]))
    assert "1,000,000 characters; shown in full on the page" in said
    assert len(said) < 9_000


async def test_many_arguments_are_within_what_slack_takes(scenario: SlackScenario) -> None:
    await scenario.ask(spec=FREE, args={f"argument_{number}": "&<>" * 200 for number in range(200)})
    [message] = scenario.slack.all_messages
    said = "\n".join(text for _, text in texts(message))
    assert "This message shows only part of the call. Open the page to see all of it." in said
    assert next(buttons(message))["action_id"] == "open"


async def test_secrets_are_in_nothing_that_slack_received(scenario: SlackScenario) -> None:  # R25
    secrets = {f"key_{number}": f"planted-{number}-hunter2" for number in range(19)}
    spec = ToolSpec("rotate", "write", describe="Rotate keys", secret=tuple(f"/{name}" for name in secrets))
    approval_id = await scenario.ask(spec=spec, args={**secrets, "where": "prod"})
    form = await scenario.open_form("bob", "edit")
    assert await scenario.submit(form, {"where": "test"}) == {}
    await scenario.sweep()
    assert await scenario.decision(approval_id) == ("edit", "bob", "slack")
    heard = json.dumps([each.body for each in scenario.slack.requests])
    assert len(heard) > 1_000
    assert [value for value in secrets.values() if value in heard] == []
    assert BOT not in heard
    assert SECRET not in heard
    stored = (await scenario.services.store.get("default", approval_id)).payload.args or b""
    assert all(value.encode() in stored for value in secrets.values())


async def test_a_reminder_is_a_reply_that_all_see_and_the_message_stays_the_one(scenario: SlackScenario) -> None:  # R28
    policy = "version: 1\nrules: [{name: two, tools: [pay_out], then: ask, quorum: 2, expires_in: 1h}]"
    await scenario.services.put_policy("default", policy, "ada", {})
    approval_id = await scenario.ask()
    [delivery] = await scenario.services.store.deliveries.list_deliveries("default", "sent")
    await approve(scenario.services, approval_id)
    message = await scenario.state.notifications.compose(delivery)
    [posted] = scenario.slack.all_messages
    channel = scenario.state.notifications.channels["slack"]
    assert await channel.update(replace(message, purpose="remind"), delivery.ref) == delivery.ref
    first, reply = scenario.slack.all_messages
    assert (reply["thread_ts"], reply["reply_broadcast"], reply["text"][:9]) == (posted["ts"], True, "Reminder:")
    assert "1 of 2 have approved." in json.dumps(first)
    assert "Reminder" not in json.dumps(first)
    assert list(buttons(first))
    assert scenario.slack.refusals == []


async def test_a_rejection_that_is_taken_back_has_its_buttons_again(scenario: SlackScenario) -> None:
    approval_id = await scenario.ask()
    digest = (await scenario.services.store.get("default", approval_id)).approval.args_sha256
    await scenario.services.inbox.decide("default", approval_id, Reject("<!here> *no*", Acknowledgement(digest)), BOB)
    await scenario.sweep()
    [ended] = scenario.slack.all_messages
    assert "They wrote: &lt;!here&gt; *no*" in json.dumps(ended)
    assert text_outside_code(ended)
    assert list(buttons(ended)) == []
    await scenario.services.inbox.undo("default", approval_id, BOB)
    await scenario.sweep()
    assert len(list(buttons(scenario.slack.all_messages[0]))) == 5


async def test_team_with_its_own_channel_is_notified_there(scenario: SlackScenario) -> None:  # R26
    room = scenario.slack.add_channel("finance-ops")
    await scenario.ask(
        spec=ToolSpec("fund_transfer", "write", schema=PAY.schema), args={"amount": 1, "recipient": "ada"}
    )
    assert [each["channel"] for each in scenario.slack.all_messages] == [room.id]


async def test_a_message_that_was_deleted_is_posted_again_while_it_waits(scenario: SlackScenario) -> None:
    approval_id = await scenario.ask()
    policy = "version: 1\nrules: [{name: two, tools: [pay_out], then: ask, quorum: 2}]"
    await scenario.services.put_policy("default", policy, "ada", {})
    other = await scenario.ask(2)
    scenario.slack.messages.clear()
    await approve(scenario.services, other)
    await scenario.sweep()
    assert len(scenario.slack.all_messages) == 1
    await scenario.click("eve", "approve")
    assert await scenario.status(other) == "approved"
    await approve(scenario.services, approval_id)
    scenario.slack.messages.clear()
    await scenario.sweep()
    assert scenario.slack.all_messages == []  # what is over needs no new message


async def test_a_test_and_a_message_for_many_have_words_and_a_link(scenario: SlackScenario) -> None:
    await scenario.state.notifications.send_test("default", "slack", "ada")
    assert "Test message from Interlock, sent by ada" in json.dumps(scenario.slack.all_messages[0])
    for number in range(14):
        await propose_pending(scenario.services, f"b{number}", args={"path": str(number)})
    await scenario.sweep()
    said = json.dumps(scenario.slack.all_messages)
    assert "more calls need your decision" in said
    assert "<https://interlock.example/inbox|Review and decide>" in said


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "channel_not_found",
            "The Slack app cannot see the channel #approvals. Check the name, and invite the app to it.",
        ),
        ("not_in_channel", "The app is not in #approvals. Invite the app to #approvals in Slack."),
        ("is_archived", "#approvals is archived in Slack."),
        ("invalid_auth", "Slack rejected the token in the configuration."),
        ("token_revoked", "Slack rejected the token in the configuration."),
        ("missing_scope", "add the scope chat:write and reinstall it."),
        ("something_xoxb_new", "Slack rejected the request."),
    ],
)
async def test_what_will_never_work_says_what_to_do_in_slack(scenario: SlackScenario, code: str, said: str) -> None:
    scenario.slack.failures = [Refused(code)]
    await scenario.ask()
    [parked] = await scenario.services.store.deliveries.list_deliveries("default", "parked")
    assert said in parked.error
    assert "xoxb" not in parked.error


@pytest.mark.parametrize(
    ("trouble", "after"),
    [
        (Refused("slow down", 429, Retry_After="30"), 30_000),
        (Refused("ratelimited"), 0),
        (Refused("internal_error"), 0),
        (Refused("gateway", 502), 0),
    ],
)
async def test_what_may_work_later_is_sent_later(scenario: SlackScenario, trouble: Refused, after: int) -> None:
    scenario.slack.failures = [trouble]
    await scenario.ask()
    assert scenario.slack.all_messages == []
    [due] = await scenario.services.store.deliveries.list_deliveries("default", "due")
    assert due.due_at is not None
    assert due.due_at - scenario.clock() >= after
    scenario.clock.advance(MINUTE)
    await scenario.sweep()
    assert len(scenario.slack.all_messages) == 1


async def test_nobody_is_sent_elsewhere(scenario: SlackScenario) -> None:
    scenario.slack.failures = [Refused("moved", 302, Location="http://127.0.0.1:9/")]
    await scenario.ask()
    [parked] = await scenario.services.store.deliveries.list_deliveries("default", "parked")
    assert "redirects are not followed" in parked.error


async def test_a_slack_that_is_away_is_tried_later(clock: Clock, scenario: SlackScenario) -> None:
    settings = {"token": BOT, "url": "http://127.0.0.1:1/api/", "allow_private": True}
    channel = connect(ChannelContext("slack", settings))
    await scenario.ask()
    [delivery] = await scenario.services.store.deliveries.list_deliveries("default", "sent")
    message = await scenario.state.notifications.compose(delivery)
    with pytest.raises(DeliveryDelayed, match="cannot be reached"):
        await channel.send(message)
    await channel.close()


async def test_a_test_shows_that_an_app_token_is_wrong(tmp_path: Path, clock: Clock) -> None:
    async with open_slack_scenario(SqliteFile(tmp_path / "b.db"), clock, app_token="xapp-wrong") as made:
        with pytest.raises(DeliveryRejected, match="app_token"):
            await made.state.notifications.send_test("default", "slack", "ada")


async def test_what_came_of_it_is_said_in_the_same_message(scenario: SlackScenario) -> None:  # R25
    approval_id = await scenario.ask()
    await scenario.click("bob", "approve")
    started = await scenario.services.gate.start("default", approval_id, "runner")
    failure = Payload(error="The bank said <!here> *no*")
    await scenario.services.gate.finish("default", approval_id, started.fence, ok=False, payload=failure)
    await scenario.sweep()
    [message] = scenario.slack.all_messages
    said = json.dumps(message)
    assert "Failed. bob approved it through slack." in said
    assert "The bank said &lt;!here&gt; *no*" in said
    assert text_outside_code(message)
