"""The fake Slack works with Slack's own SDK, and refuses what Slack refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.models.blocks import ActionsBlock, ButtonElement, HeaderBlock, SectionBlock
from slack_sdk.models.views import View
from slack_sdk.signature import Clock as Time
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack import APP, BOT, SECRET, FakeSlack, Refused, run_slack
from tests.fakes.slack_validation import VENDOR, message_error, view_error
from tests.support import Clock

SAMPLES = json.loads((VENDOR / "outgoing-samples.json").read_text())


@pytest.fixture
async def slack(clock: Clock) -> AsyncIterator[FakeSlack]:
    async with run_slack(FakeSlack(clock)) as made:
        made.add_channel("approvals")
        yield made


@pytest.fixture
def sdk(slack: FakeSlack) -> AsyncWebClient:
    return AsyncWebClient(BOT, base_url=f"{slack.url}/api/")


def section(text: str = "x") -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def press(action: str = "a", **more: Any) -> dict[str, Any]:
    return {"type": "button", "action_id": action, "text": {"type": "plain_text", "text": "x"}, **more}


def row(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "actions", "elements": list(elements)}


async def test_the_vendor_s_sdk_posts_changes_and_whispers(slack: FakeSlack, sdk: AsyncWebClient) -> None:
    blocks = [
        HeaderBlock(text="Hi"),
        SectionBlock(text="*x*"),
        ActionsBlock(elements=[ButtonElement(text="Go", action_id="a")]),
    ]
    posted = await sdk.chat_postMessage(channel="#approvals", text="Hi", blocks=blocks)
    await sdk.chat_update(channel=posted["channel"], ts=posted["ts"], text="Bye", blocks=[SectionBlock(text="Bye")])
    user = slack.add_user("ada", "ada@example.com")
    await sdk.chat_postEphemeral(channel=posted["channel"], user=user, text="psst")
    info = await sdk.users_info(user=user)
    assert info["user"]["profile"]["email"] == "ada@example.com"
    assert (await sdk.auth_test())["team_id"] == "T1"
    assert slack.all_messages[0]["text"] == "Bye"
    assert slack.ephemerals[0]["text"] == "psst"
    assert slack.refusals == []


async def test_the_older_sdk_without_async_works_too(slack: FakeSlack) -> None:
    client = WebClient(BOT, base_url=f"{slack.url}/api/")
    posted = await asyncio.to_thread(client.chat_postMessage, channel="approvals", text="Hi")
    assert slack.messages[posted["ts"]]["text"] == "Hi"


async def test_a_trigger_opens_one_form_within_three_seconds(
    slack: FakeSlack, sdk: AsyncWebClient, clock: Clock
) -> None:
    user = slack.add_user("ada")
    posted = await sdk.chat_postMessage(channel="approvals", text="x", blocks=[row(press("approve", value="v"))])
    view = View(**SAMPLES["views.open"]["view"])
    first = slack.click(user, "approve", slack.messages[posted["ts"]])["trigger_id"]
    await sdk.views_open(trigger_id=first, view=view)
    with pytest.raises(SlackApiError, match="exchanged_trigger_id"):
        await sdk.views_open(trigger_id=first, view=view)
    late = slack.click(user, "approve")["trigger_id"]
    clock.advance(3_001)
    with pytest.raises(SlackApiError, match="expired_trigger_id"):
        await sdk.views_open(trigger_id=late, view=view)
    assert len(slack.views) == 1


@pytest.mark.parametrize(
    ("blocks", "code"),
    [
        ([section()] * 51, "invalid_blocks"),
        ([section("x" * 3_001)], "invalid_blocks"),
        ([section("")], "invalid_blocks"),
        ([section("x" * 2_999)] * 4, "msg_blocks_too_long"),
        ([row(press(), press())], "invalid_blocks"),
        ([row(press(value="x" * 2_001))], "invalid_blocks"),
        ([row()], "invalid_blocks"),
        ([row(*(press(f"a{n}") for n in range(26)))], "invalid_blocks"),
        ([{"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}], "invalid_blocks"),
        ([{"type": "header", "text": {"type": "mrkdwn", "text": "x"}}], "invalid_blocks"),
        ([{"type": "nothing"}], "invalid_blocks"),
        ([{**section(), "block_id": "a"}] * 2, "invalid_blocks"),
        ([{"type": "context", "elements": []}], "invalid_blocks"),
    ],
)
async def test_a_message_that_slack_would_refuse_is_refused(
    slack: FakeSlack, sdk: AsyncWebClient, blocks: list[dict[str, Any]], code: str
) -> None:
    with pytest.raises(SlackApiError, match=code):
        await sdk.chat_postMessage(channel="approvals", text="x", blocks=blocks)
    assert slack.messages == {}


def changed(**more: Any) -> dict[str, Any]:
    return {"trigger_id": "t", "view": {**SAMPLES["views.open"]["view"], **more}}


def field(**element: Any) -> dict[str, Any]:
    made = {"type": "input", "block_id": "b", "label": {"type": "plain_text", "text": "L"}, "element": element}
    return changed(blocks=[made])


def option(number: int, size: int = 1) -> dict[str, Any]:
    return {"text": {"type": "plain_text", "text": "x" * size}, "value": str(number)}


@pytest.mark.parametrize(
    "body",
    [
        changed(title={"type": "plain_text", "text": "x" * 25}),
        changed(private_metadata="x" * 3_001),
        changed(callback_id="x" * 256),
        changed(blocks=[section()] * 101),
        field(type="plain_text_input", action_id="a", initial_value="x" * 3_001),
        field(type="plain_text_input", action_id="a", max_length=3_001),
        field(type="radio_buttons", action_id="a", options=[option(n) for n in range(11)]),
        field(type="checkboxes", action_id="a", options=[option(1), option(1)]),
        field(type="static_select", action_id="a", options=[option(n) for n in range(101)]),
        field(type="static_select", action_id="a", options=[option(1, 76)]),
        field(type="static_select", action_id="a", options=[option(1)], initial_option=option(2)),
        {"trigger_id": "t", "view": {k: v for k, v in SAMPLES["views.open"]["view"].items() if k != "submit"}},
    ],
)
def test_a_form_that_slack_would_refuse_is_refused(body: dict[str, Any]) -> None:
    assert view_error(body) == "invalid_arguments"


def test_what_slack_takes_is_taken() -> None:
    assert message_error("ChatPostMessage", SAMPLES["chat.postMessage"]) == ""
    assert view_error({"trigger_id": "t", "view": SAMPLES["views.open"]["view"]}) == ""


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda sdk: sdk.chat_postMessage(channel="#nowhere", text="x"), "channel_not_found"),
        (lambda sdk: sdk.chat_postMessage(channel="#private", text="x"), "not_in_channel"),
        (lambda sdk: sdk.chat_update(channel="#approvals", ts="1", text="x"), "channel_not_found"),
        (lambda sdk: sdk.chat_update(channel="C1", ts="1", text="x"), "message_not_found"),
        (lambda sdk: sdk.chat_postMessage(channel="C1", text="x", thread_ts="1"), "thread_not_found"),
        (lambda sdk: sdk.users_info(user="U99"), "user_not_found"),
        (lambda sdk: sdk.apps_connections_open(app_token=BOT), "not_allowed_token_type"),
        (lambda sdk: sdk.api_call("users.info", json={"user": "U1"}), "user_not_found"),
        (lambda sdk: sdk.api_call("chat.delete", json={}), "unknown_method"),
    ],
)
async def test_what_is_not_there_or_not_allowed_is_refused(
    slack: FakeSlack, sdk: AsyncWebClient, ask: Callable[[AsyncWebClient], Any], code: str
) -> None:
    slack.add_channel("private", joined=False)
    slack.add_user("ada", id="U1")
    with pytest.raises(SlackApiError, match=code):
        await ask(sdk)


async def test_a_wrong_token_and_a_limit_are_told_as_slack_tells_them(slack: FakeSlack, sdk: AsyncWebClient) -> None:
    with pytest.raises(SlackApiError, match="invalid_auth"):
        await AsyncWebClient("xoxb-wrong", base_url=f"{slack.url}/api/").auth_test()
    assert (await sdk.apps_connections_open(app_token=APP))["url"].startswith("ws://127.0.0.1")
    slack.failures = [Refused("wait", 429, Retry_After="7")]
    with pytest.raises(SlackApiError) as limited:
        await sdk.auth_test()
    assert (limited.value.response.status_code, limited.value.response.headers["Retry-After"]) == (429, "7")


async def test_what_it_signs_the_vendor_s_verifier_takes(slack: FakeSlack, clock: Clock) -> None:
    class Now(Time):
        def now(self) -> float:
            return clock() / 1000

    verifier = SignatureVerifier(SECRET, Now())
    post = slack.sign({"type": "block_actions"})
    assert verifier.is_valid_request(post.body, dict(post.headers))
    assert not verifier.is_valid_request(post.body + b"x", dict(post.headers))
