"""Inngest: a function is woken by one event when a decision stands; what the event says is for people to read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from interlock.core.errors import Misconfigured
from interlock.core.notify.delivery import Notification, Purpose
from interlock.notify.channel import (
    Channel,
    ChannelContext,
    ChannelGone,
    DeliveryDelayed,
    DeliveryFailed,
    DeliveryRejected,
    InboundChannel,
    open_channel,
)
from interlock.notify.channels.inngest import InngestChannel as Kind
from interlock.testing.channels import END_STATUSES, HOSTILE, PURPOSES, make_notification, make_view
from tests.fakes.http_receiver import Receiver, Response, run_receiver

KEY = "planted key/with a slash"
GIVEN = {"approved", "succeeded", "failed", "unknown"}
START = {"event_key": KEY, "allow_private": True}


@pytest.fixture
async def fake() -> AsyncIterator[Receiver]:
    async with run_receiver(lambda _: Response(200, {}, b'{"ids":["x"],"status":200}'), "") as made:
        yield made


@pytest.fixture
async def flows(fake: Receiver) -> AsyncIterator[Channel]:
    made = open_channel("flows", "inngest", ChannelContext("flows", {**START, "url": fake.url}))[0]
    yield made
    await made.close()


def wake_notification(status: str = "approved", **more: Any) -> Notification:
    made = make_view({"amount": HOSTILE}, status=status, sentence=HOSTILE)
    subject = made.approval.subject._replace(run_id="inngest:01RUN")
    return make_notification("woken", replace(made, approval=replace(made.approval, subject=subject)), **more)


async def test_the_event_names_the_approval_and_is_known_by_its_id(fake: Receiver, flows: Channel) -> None:  # R25 R33
    await flows.send(wake_notification())
    await flows.update(wake_notification(), "")
    for heard in fake.accepted:
        assert (heard.method, heard.path) == ("POST", "/e/planted key/with a slash")  # as the server reads %20 and %2F
        (event,) = heard.json
        assert (event["id"], event["name"]) == ("d1.woken", "hitl.approval.resolved")
        assert event["data"] == {
            "eventId": "5a7d9c1e-0000-4000-8000-000000000001",
            "approved": True,
            "userId": "bob",
            "status": "approved",
            "workspace": "default",
            "runId": "01RUN",
        }
    assert len(fake.accepted) == 2


@pytest.mark.parametrize("status", END_STATUSES)
async def test_approved_is_true_or_false_and_nothing_else(fake: Receiver, flows: Channel, status: str) -> None:
    await flows.send(wake_notification(status))
    assert fake.accepted[0].json[0]["data"]["approved"] is (status in GIVEN)


@pytest.mark.parametrize("purpose", [each for each in PURPOSES if each != "test"])
async def test_what_is_for_people_is_not_said(fake: Receiver, flows: Channel, purpose: Purpose) -> None:
    await flows.send(make_notification(purpose))
    assert fake.requests == []


async def test_a_test_sends_an_event_that_nothing_waits_for(fake: Receiver, flows: Channel) -> None:
    await flows.send(make_notification("test"))
    assert [heard.json[0]["name"] for heard in fake.accepted] == ["interlock.test"]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (500, DeliveryDelayed),
        (503, DeliveryDelayed),
        (429, DeliveryDelayed),
        (401, DeliveryRejected),
        (400, DeliveryRejected),
        (302, DeliveryRejected),
        (410, ChannelGone),
    ],
)
async def test_failure_is_retried_or_shown_without_the_key(
    fake: Receiver, flows: Channel, status: int, error: type[DeliveryFailed]
) -> None:  # R25
    fake.override = Response(status, {}, b"planted words")
    with pytest.raises(error) as caught:
        await flows.send(wake_notification())
    assert "planted" not in str(caught.value)


async def test_server_that_is_down_is_retried() -> None:
    away = open_channel("flows", "inngest", ChannelContext("flows", {**START, "url": "http://127.0.0.1:1"}))[0]
    with pytest.raises(DeliveryDelayed, match="cannot be reached") as caught:
        await away.send(wake_notification())
    assert "planted" not in str(caught.value)
    await away.close()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "event_key is missing"),
        ({"event_key": ""}, "event_key must be text"),
        ({"event_key": KEY, "url": "http://inngest.example"}, "https://"),
        ({"event_key": KEY, "url": "https://inn.gs/e/mine"}, "the address alone"),
        ({"event_key": KEY, "url": "https://inn.gs?x=1"}, "the address alone"),
        ({"event_key": KEY, "allow_private": "yes"}, "true or false"),
        ({"event_key": KEY, "urls": "x"}, 'did you mean "url"'),
    ],
)
def test_settings_that_cannot_be_right_are_refused_in_words(settings: dict[str, object], words: str) -> None:  # R26
    with pytest.raises(Misconfigured, match=words) as caught:
        open_channel("flows", "inngest", ChannelContext("flows", settings))
    assert "planted" not in str(caught.value)


def test_inngest_itself_is_the_default() -> None:
    assert isinstance(open_channel("flows", "inngest", ChannelContext("flows", {"event_key": KEY}))[0], Kind)
    assert not isinstance(Kind, InboundChannel)  # R25
