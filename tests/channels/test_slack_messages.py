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
from tests.channels.slack_scenario import PAY, Scene, staged
from tests.databases import File
from tests.fakes.slack import BOT, SECRET, Json, Refused, buttons, texts
from tests.support import BOB, Clock, approve, pending

MINUTE = 60_000
FREE = ToolSpec("send_text", "write", describe="Send {text}")
LINK = re.compile(r"<https://interlock\.example/[^<>|]+\|Look at it( and decide)?>")
DATE = re.compile(r"<!date\^[0-9]+\^\{date_short_pretty\} \{time\}\|[0-9: UTC-]+>")
CODE = re.compile(r"```[^`]+```|`[^`\n]+`")
OURS = re.compile(
    r"\*(Risk|Tool|Agent|Requester|Rule|What would happen)\*"
    r"|\*The agent('s description|'s preview| says), unverified\*"
    r"|_[0-9,]+ characters; all of it is on the page_"
)


@pytest.fixture
async def scene(tmp_path: Path, clock: Clock) -> AsyncIterator[Scene]:
    async with staged(File(tmp_path / "interlock.db"), clock) as made:
        yield made


def outside_of_code(message: Json) -> list[str]:
    """What Slack reads as markup, without what we write ourselves; all of it is words."""
    left = []
    for kind, text in texts(message):
        assert "<" not in LINK.sub("", DATE.sub("", text)), text
        assert "&" not in re.sub(r"&(amp|lt|gt);", "", text), text
        if kind == "mrkdwn":
            left.append(OURS.sub("", CODE.sub("", LINK.sub("", DATE.sub("", text)))))
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
async def test_no_argument_is_more_than_text(scene: Scene, text: str, where: str) -> None:  # R25
    if where == "name" and len(text) > 1_000:
        text = text[:1_000]
    args = {"value": {"text": text}, "name": {text: "x"}, "nested": {"text": "x", "in": [{"a": text}]}}[where]
    await scene.ask(spec=FREE, args=args, agent="<!channel>*a*`b`", requester="<@U1>`_r_`")
    [message] = scene.slack.shown
    assert scene.slack.refusals == []
    for left in outside_of_code(message):
        assert not re.search(r"[*_~`:]", left.replace("Decide by ", "")), left
    assert len(message["blocks"]) <= 50
    for action in {"reject", "edit"} & {each["action_id"] for each in buttons(message)}:
        await scene.click("bob", action)
    assert [each for each in scene.slack.refusals if each.startswith("views")] == []


async def test_a_long_value_says_how_long_it_is_and_where_all_of_it_is(scene: Scene) -> None:
    await scene.ask(spec=FREE, args={"text": "x" * 1_000_000})
    said = "\n".join(text for _, text in texts(scene.slack.shown[0]))
    assert "1,000,000 characters; all of it is on the page" in said
    assert len(said) < 9_000


async def test_many_arguments_are_within_what_slack_takes(scene: Scene) -> None:
    await scene.ask(spec=FREE, args={f"argument_{number}": "&<>" * 200 for number in range(200)})
    [message] = scene.slack.shown
    said = "\n".join(text for _, text in texts(message))
    assert "There is more than fits here: all of it is on the page." in said
    assert next(buttons(message))["action_id"] == "open"


async def test_secrets_are_in_nothing_that_slack_received(scene: Scene) -> None:  # R25
    secrets = {f"key_{number}": f"planted-{number}-hunter2" for number in range(19)}
    spec = ToolSpec("rotate", "write", describe="Rotate keys", secret=tuple(f"/{name}" for name in secrets))
    approval_id = await scene.ask(spec=spec, args={**secrets, "where": "prod"})
    form = await scene.form("bob", "edit")
    assert await scene.submit(form, {"where": "test"}) == {}
    await scene.sweep()
    assert await scene.decision(approval_id) == ("edit", "bob", "slack")
    heard = json.dumps([each.body for each in scene.slack.requests])
    assert len(heard) > 1_000
    assert [value for value in secrets.values() if value in heard] == []
    assert BOT not in heard
    assert SECRET not in heard
    stored = (await scene.parts.store.get("default", approval_id)).payload.args or b""
    assert all(value.encode() in stored for value in secrets.values())


async def test_a_reminder_is_a_reply_that_all_see_and_the_message_stays_the_one(scene: Scene) -> None:  # R28
    policy = "version: 1\nrules: [{name: two, tools: [pay_out], then: ask, quorum: 2, expires_in: 1h}]"
    await scene.parts.put_policy("default", policy, "ada", {})
    approval_id = await scene.ask()
    [delivery] = await scene.parts.store.deliveries.list_deliveries("default", "sent")
    await approve(scene.parts, approval_id)
    message = await scene.site.notifications.compose(delivery)
    [posted] = scene.slack.shown
    channel = scene.site.notifications.channels["slack"]
    assert await channel.update(replace(message, purpose="remind"), delivery.ref) == delivery.ref
    first, reply = scene.slack.shown
    assert (reply["thread_ts"], reply["reply_broadcast"], reply["text"][:9]) == (posted["ts"], True, "Reminder:")
    assert "1 of 2 have agreed." in json.dumps(first)
    assert "Reminder" not in json.dumps(first)
    assert list(buttons(first))
    assert scene.slack.refusals == []


async def test_a_rejection_that_is_taken_back_has_its_buttons_again(scene: Scene) -> None:
    approval_id = await scene.ask()
    digest = (await scene.parts.store.get("default", approval_id)).approval.args_sha256
    await scene.parts.inbox.decide("default", approval_id, Reject("<!here> *no*", Acknowledgement(digest)), BOB)
    await scene.sweep()
    [ended] = scene.slack.shown
    assert "They wrote: &lt;!here&gt; *no*" in json.dumps(ended)
    assert outside_of_code(ended)
    assert list(buttons(ended)) == []
    await scene.parts.inbox.undo("default", approval_id, BOB)
    await scene.sweep()
    assert len(list(buttons(scene.slack.shown[0]))) == 5


async def test_a_team_with_a_place_of_its_own_is_told_there(scene: Scene) -> None:  # R26
    room = scene.slack.add_room("finance-ops")
    await scene.ask(spec=ToolSpec("fund_transfer", "write", schema=PAY.schema), args={"amount": 1, "recipient": "ada"})
    assert [each["channel"] for each in scene.slack.shown] == [room.id]


async def test_a_message_that_was_deleted_is_posted_again_while_it_waits(scene: Scene) -> None:
    approval_id = await scene.ask()
    policy = "version: 1\nrules: [{name: two, tools: [pay_out], then: ask, quorum: 2}]"
    await scene.parts.put_policy("default", policy, "ada", {})
    other = await scene.ask(2)
    scene.slack.messages.clear()
    await approve(scene.parts, other)
    await scene.sweep()
    assert len(scene.slack.shown) == 1
    await scene.click("eve", "approve")
    assert await scene.status(other) == "approved"
    await approve(scene.parts, approval_id)
    scene.slack.messages.clear()
    await scene.sweep()
    assert scene.slack.shown == []  # what is over needs no new message


async def test_a_test_and_a_message_for_many_have_words_and_a_link(scene: Scene) -> None:
    await scene.site.notifications.send_test("default", "slack", "ada")
    assert "A test from Interlock, sent for ada" in json.dumps(scene.slack.shown[0])
    for number in range(14):
        await pending(scene.parts, f"b{number}", args={"path": str(number)})
    await scene.sweep()
    said = json.dumps(scene.slack.shown)
    assert "more calls wait for you" in said
    assert "<https://interlock.example/inbox|Look at it and decide>" in said


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("channel_not_found", "Slack shows the app no channel #approvals. Check the name, and invite the app to it."),
        ("not_in_channel", "The app is not in #approvals. Invite the app to #approvals in Slack."),
        ("is_archived", "#approvals is archived in Slack."),
        ("invalid_auth", "Slack does not take the token of the configuration."),
        ("token_revoked", "Slack does not take the token of the configuration."),
        ("missing_scope", "add the scope chat:write and reinstall."),
        ("something_xoxb_new", "Slack refused it."),
    ],
)
async def test_what_will_never_work_says_what_to_do_in_slack(scene: Scene, code: str, said: str) -> None:
    scene.slack.trouble = [Refused(code)]
    await scene.ask()
    [parked] = await scene.parts.store.deliveries.list_deliveries("default", "parked")
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
async def test_what_may_work_later_is_sent_later(scene: Scene, trouble: Refused, after: int) -> None:
    scene.slack.trouble = [trouble]
    await scene.ask()
    assert scene.slack.shown == []
    [due] = await scene.parts.store.deliveries.list_deliveries("default", "due")
    assert due.due_at is not None
    assert due.due_at - scene.clock() >= after
    scene.clock.forward(MINUTE)
    await scene.sweep()
    assert len(scene.slack.shown) == 1


async def test_nobody_is_sent_elsewhere(scene: Scene) -> None:
    scene.slack.trouble = [Refused("moved", 302, Location="http://127.0.0.1:9/")]
    await scene.ask()
    [parked] = await scene.parts.store.deliveries.list_deliveries("default", "parked")
    assert "redirects are not followed" in parked.error


async def test_a_slack_that_is_away_is_tried_later(clock: Clock, scene: Scene) -> None:
    settings = {"token": BOT, "url": "http://127.0.0.1:1/api/", "allow_private": True}
    channel = connect(ChannelContext("slack", settings))
    await scene.ask()
    [delivery] = await scene.parts.store.deliveries.list_deliveries("default", "sent")
    message = await scene.site.notifications.compose(delivery)
    with pytest.raises(DeliveryDelayed, match="cannot be reached"):
        await channel.send(message)
    await channel.close()


async def test_a_test_shows_that_an_app_token_is_wrong(tmp_path: Path, clock: Clock) -> None:
    async with staged(File(tmp_path / "b.db"), clock, app_token="xapp-wrong") as made:
        with pytest.raises(DeliveryRejected, match="app_token"):
            await made.site.notifications.send_test("default", "slack", "ada")


async def test_what_came_of_it_is_said_in_the_same_message(scene: Scene) -> None:  # R25
    approval_id = await scene.ask()
    await scene.click("bob", "approve")
    started = await scene.parts.gate.start("default", approval_id, "runner")
    failure = Payload(error="The bank said <!here> *no*")
    await scene.parts.gate.finish("default", approval_id, started.fence, ok=False, payload=failure)
    await scene.sweep()
    [message] = scene.slack.shown
    said = json.dumps(message)
    assert "Failed. bob approved it through slack." in said
    assert "The bank said &lt;!here&gt; *no*" in said
    assert outside_of_code(message)
