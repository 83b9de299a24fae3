"""Requests count only if Slack signed them recently, and each click counts once."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from interlock.core.errors import Misconfigured
from interlock.notify.channel import ChannelContext, InboundRequest
from interlock.notify.channels.slack.channel import connect
from interlock.notify.service import InboundHandler
from tests.channels.slack_scenario import SlackScenario, open_slack_scenario
from tests.databases import Database, SqliteFile
from tests.fakes.slack import BOT, SECRET, SignedRequest, sign
from tests.fakes.slack_validation import VENDOR
from tests.support import Clock

AT_ONCE = 50
DUPLICATES = (500, pytest.param(10_000, marks=pytest.mark.nightly))  # the second takes ten seconds


@pytest.fixture
async def scenario(database: Database, clock: Clock) -> AsyncIterator[SlackScenario]:
    async with open_slack_scenario(database, clock) as made:
        yield made


@pytest.fixture
async def small(tmp_path: Path, clock: Clock) -> AsyncIterator[SlackScenario]:
    """On SQLite alone, where the database is not what is looked at."""
    async with open_slack_scenario(SqliteFile(tmp_path / "interlock.db"), clock) as made:
        yield made


async def assert_unchanged(scenario: SlackScenario, approval_id: str) -> None:
    assert await scenario.events("approved", "decision_refused", "voted") == []
    assert await scenario.status(approval_id) == "pending"
    assert not scenario.slack.ephemerals


async def test_the_example_of_slack_s_documentation_holds(small: SlackScenario) -> None:  # R25
    vector = json.loads((VENDOR / "signature-vector.json").read_text())["slack"]
    settings = {"token": BOT, "signing_secret": vector["signing_secret"]}
    channel = connect(ChannelContext("slack", settings))
    small.clock.now = int(vector["timestamp"]) * 1000
    headers = {"x-slack-request-timestamp": vector["timestamp"], "x-slack-signature": vector["signature"]}
    desk = InboundHandler(small.state.notifications, "slack")
    taken = await channel.answer(InboundRequest(headers, vector["body"].encode()), desk)
    assert taken.status == 400  # it is Slack's, and no click
    broken = await channel.answer(InboundRequest(headers, vector["body"].encode() + b"&"), desk)
    assert broken.status == 401
    await channel.close()


def _changed_headers(**changed: str | None) -> Callable[[SignedRequest], SignedRequest]:
    def change(post: SignedRequest) -> SignedRequest:
        headers = {**post.headers, **{name.replace("_", "-"): value for name, value in changed.items()}}
        return SignedRequest({name: value for name, value in headers.items() if value is not None}, post.body)

    return change


def _signature(change: Callable[[str], str]) -> Callable[[SignedRequest], SignedRequest]:
    return lambda post: _changed_headers(x_slack_signature=change(post.headers["x-slack-signature"]))(post)


def _stamp(change: Callable[[str], str]) -> Callable[[SignedRequest], SignedRequest]:
    return lambda post: _changed_headers(x_slack_request_timestamp=change(post.headers["x-slack-request-timestamp"]))(
        post
    )


MUTATIONS: dict[str, Callable[[SignedRequest], SignedRequest]] = {
    "no signature": _changed_headers(x_slack_signature=None),
    "an empty signature": _signature(lambda _: ""),
    "the version alone": _signature(lambda _: "v0="),
    "another version": _signature(lambda text: "v1=" + text[3:]),
    "no version": _signature(lambda text: text[3:]),
    "one digit changed": _signature(lambda text: text[:-1] + ("0" if text[-1] != "0" else "1")),
    "the first digit changed": _signature(lambda text: text[:3] + ("0" if text[3] != "0" else "1") + text[4:]),
    "capital letters": _signature(lambda text: "v0=" + text[3:].upper() + "F"),
    "one digit less": _signature(lambda text: text[:-1]),
    "one digit more": _signature(lambda text: text + "0"),
    "twice": _signature(lambda text: f"{text},{text}"),
    "a space before": _signature(lambda text: f"v0= {text[3:]}"),
    "not ASCII": _signature(lambda text: text[:-1] + "\xe9"),
    "only noughts": _signature(lambda _: "v0=" + "0" * 64),
    "no time": _changed_headers(x_slack_request_timestamp=None),
    "a time that is no number": _stamp(lambda _: "yesterday"),
    "a time below nought": _stamp(lambda text: f"-{text}"),
    "a time with a sign": _stamp(lambda text: f"+{text}"),
    "a time with a point": _stamp(lambda text: f"{text}.0"),
    "a time of other digits": _stamp(lambda text: text[:-1] + "\xb2"),
    "a time of a thousand digits": _stamp(lambda text: text * 100),
    "another second": _stamp(lambda text: str(int(text) + 1)),
    "a changed body": lambda post: SignedRequest(post.headers, post.body.replace(b"U2", b"U1")),
    "a longer body": lambda post: SignedRequest(post.headers, post.body + b"&x=1"),
    "no body": lambda post: SignedRequest(post.headers, b""),
    "another secret": lambda post: sign(post.body, int(post.headers["x-slack-request-timestamp"]), SECRET + "x"),
    "an empty secret": lambda post: sign(post.body, int(post.headers["x-slack-request-timestamp"]), ""),
}


@pytest.mark.parametrize("name", MUTATIONS)
async def test_what_is_not_signed_by_slack_does_nothing(small: SlackScenario, name: str) -> None:  # R25 R47
    approval_id = await small.ask()
    post = small.slack.sign(small.slack.click(small.users["bob"], "approve"))
    answer = await small.post(MUTATIONS[name](post))
    assert answer.status_code == 401
    await assert_unchanged(small, approval_id)
    assert (await small.post(post)).status_code == 200
    assert await small.status(approval_id) == "approved"


@pytest.mark.parametrize(("seconds", "expected"), [(-301, 401), (-299, 200), (0, 200), (299, 200), (301, 401)])
async def test_five_minutes_count_in_both_directions(
    scenario: SlackScenario, seconds: int, expected: int
) -> None:  # R24 R25
    approval_id = await scenario.ask(expires_in=3_600_000)
    payload = scenario.slack.click(scenario.users["bob"], "approve")
    post = scenario.slack.sign(payload, scenario.clock() // 1000 - seconds)
    assert (await scenario.post(post)).status_code == expected
    assert (await scenario.status(approval_id) == "approved") is (expected == 200)


async def test_a_click_that_comes_again_after_five_minutes_is_refused(small: SlackScenario) -> None:  # R24
    approval_id = await small.ask()
    post = small.slack.sign(small.slack.click(small.users["bob"], "approve"))
    small.clock.advance(301_000)
    assert (await small.post(post)).status_code == 401
    await assert_unchanged(small, approval_id)


@pytest.mark.parametrize("body", [b"", b"payload", b"payload=%7B", b"payload=[]", b"x=1", b"payload=%ff", b"payload=1"])
async def test_what_slack_would_never_send_is_no_click(small: SlackScenario, body: bytes) -> None:
    answer = await small.post(sign(body, small.clock() // 1000, SECRET))
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "change",
    [
        {"type": "view_closed"},
        {"type": "shortcut"},
        {"actions": []},
        {"actions": [{"action_id": "approve", "value": "default.nothing " + "0" * 64}]},
        {"actions": [{"action_id": "approve", "value": "../x"}]},
        {"actions": [{"action_id": "approve"}]},
        {"actions": [{"action_id": "delete", "value": "x"}]},
        {"user": {}},
        {"user": {"id": "U1/../x", "team_id": "T1"}},
    ],
)
async def test_a_click_on_something_else_decides_nothing(small: SlackScenario, change: dict[str, Any]) -> None:
    approval_id = await small.ask()
    payload = {**small.slack.click(small.users["bob"], "approve"), **change}
    answer = await small.post(small.slack.sign(payload))
    assert (answer.status_code, answer.content) == (200, b"")
    assert await small.status(approval_id) == "pending"


@pytest.mark.parametrize("duplicates", DUPLICATES)
async def test_duplicates_of_one_click_are_one_change_and_each_is_answered(
    small: SlackScenario, duplicates: int
) -> None:
    approval_id = await small.ask()  # R24
    post = small.slack.sign(small.slack.click(small.users["bob"], "approve"))
    gate = asyncio.Semaphore(AT_ONCE)

    async def send() -> tuple[int, bytes]:
        async with gate:
            answer = await small.post(post)
            return answer.status_code, answer.content

    answers = Counter(await asyncio.gather(*(send() for _ in range(duplicates))))
    assert answers == {(200, b""): duplicates}
    assert len(await small.events("approved", "voted", "decision_refused")) == 1
    assert await small.decision(approval_id) == ("approve", "bob", "slack")
    assert small.slack.ephemerals == []


@pytest.mark.postgres_smoke
async def test_duplicates_of_a_form_are_answered_alike(scenario: SlackScenario) -> None:  # R24
    await scenario.ask()
    form = await scenario.open_form("bob", "reject")
    post = scenario.slack.sign(scenario.slack.submit(form.id, {"Reason": "no"}))
    answers = await asyncio.gather(*(scenario.post(post) for _ in range(20)))
    assert {(each.status_code, each.content) for each in answers} == {(200, b"")}
    assert len(await scenario.events("rejected", "decision_refused")) == 1


async def test_without_a_secret_nothing_is_heard_and_there_are_no_buttons(tmp_path: Path, clock: Clock) -> None:
    async with open_slack_scenario(SqliteFile(tmp_path / "interlock.db"), clock, signing_secret=None) as scenario:
        approval_id = await scenario.ask()
        [message] = scenario.slack.all_messages
        assert [each["type"] for each in message["blocks"]].count("actions") == 0
        assert f"<https://interlock.example/a/{approval_id}|Review and decide>" in json.dumps(message)
        body = urlencode({"payload": json.dumps({"type": "block_actions"})}).encode()
        for secret in ("", "None", SECRET):
            assert (await scenario.post(sign(body, clock() // 1000, secret))).status_code == 401


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "token is missing"),
        ({"token": "xapp-1"}, "token begins with xoxb-"),
        ({"token": "xoxb-1\nx: y"}, "token begins with xoxb-"),
        ({"token": "xoxb-1", "app_token": "xoxb-2"}, "app_token with xapp-"),
        ({"token": "xoxb-1", "url": "http://127.0.0.1/api/"}, "url"),
        ({"token": "xoxb-1", "allow_private": "yes"}, "allow_private must be true or false"),
    ],
)
def test_settings_that_cannot_be_right_are_refused_at_the_start(settings: dict[str, object], said: str) -> None:
    with pytest.raises(Misconfigured, match=said):
        connect(ChannelContext("slack", settings))
