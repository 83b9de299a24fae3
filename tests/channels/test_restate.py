"""Restate: an awakeable is resolved when a decision stands, with nothing in it that could be believed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from interlock.core.errors import Misconfigured
from interlock.core.notify.delivery import ApprovalView, Notification, Purpose
from interlock.notify.channel import (
    Channel,
    ChannelContext,
    ChannelGone,
    DeliveryDelayed,
    DeliveryFailed,
    DeliveryRejected,
    open_channel,
)
from interlock.testing.channels import PURPOSES, make_notification, make_view
from tests.fakes.http_receiver import Receiver, Response, run_receiver

AWAKEABLE = "sign_18UoWG2NgNvYuk-7hK2KnIZ99GaOtl8DDAAAAEQ"


@pytest.fixture
async def ingress() -> AsyncIterator[Receiver]:
    """Answers as Restate 1.7 does: 202 also for the second time, for one that has ended and for one it never knew."""
    async with run_receiver(lambda heard: Response(405 if heard.path.endswith("health") else 202), "/base/") as made:
        yield made


@pytest.fixture
async def workflows(ingress: Receiver) -> AsyncIterator[Channel]:
    made = open_channel(
        "flows", "restate", ChannelContext("flows", {"url": ingress.url, "key": "planted", "allow_private": True})
    )[0]
    yield made
    await made.close()


async def test_an_awakeable_is_resolved_with_the_id_of_the_approval_and_nothing_else(
    workflows: Channel, ingress: Receiver
) -> None:  # R25
    assert await workflows.send(wake_notification()) == await workflows.update(wake_notification(), "ref") == "d1.woken"
    for heard in ingress.accepted:
        assert (heard.method, heard.path) == ("POST", f"/base/restate/awakeables/{AWAKEABLE}/resolve")
        assert heard.json == {"approval_id": "5a7d9c1e-0000-4000-8000-000000000001"}
        assert heard.headers["authorization"] == "Bearer planted"
    assert len(ingress.accepted) == 2


@pytest.mark.parametrize(
    "call_id",
    [
        "call_1",
        "",
        "../../clerk/pay/send?x=sign_1",
        "sign_1/../../x",
        "sign_1a/reject?",
        "sign_1a\n",
        "prom_1" + 200 * "a",
    ],
)
async def test_a_call_id_that_is_no_awakeable_leads_nowhere(
    workflows: Channel, ingress: Receiver, call_id: str
) -> None:  # R25
    with pytest.raises(DeliveryRejected, match="no awakeable"):
        await workflows.send(wake_notification(call_id))
    assert ingress.requests == []


@pytest.mark.parametrize("purpose", [each for each in PURPOSES if each != "test"])
async def test_what_is_for_people_is_not_said(workflows: Channel, ingress: Receiver, purpose: Purpose) -> None:
    await workflows.send(make_notification(purpose))
    assert ingress.requests == []


async def test_a_test_reaches_the_ingress_and_changes_nothing(workflows: Channel, ingress: Receiver) -> None:  # R25
    await workflows.send(make_notification("test"))
    assert [(heard.path, heard.body) for heard in ingress.requests] == [("/base/restate/health", b"")]
    ingress.override = Response(401, {}, b"planted words")
    with pytest.raises(DeliveryRejected, match=r"^Restate rejected the request \(401\)\.$"):
        await workflows.send(make_notification("test"))


@pytest.mark.parametrize("status", [404, 409])
async def test_one_that_nobody_waits_for_any_more_counts_as_woken(
    workflows: Channel, ingress: Receiver, status: int
) -> None:  # R25
    ingress.override = Response(status)
    assert await workflows.send(wake_notification()) == "d1.woken"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (500, DeliveryDelayed),
        (503, DeliveryDelayed),
        (429, DeliveryDelayed),
        (400, DeliveryRejected),
        (401, DeliveryRejected),
        (302, DeliveryRejected),
        (410, ChannelGone),
    ],
)
async def test_failure_is_retried_or_shown(
    workflows: Channel, ingress: Receiver, status: int, error: type[DeliveryFailed]
) -> None:  # R25
    ingress.override = Response(status, {}, b"planted words")
    with pytest.raises(error) as caught:
        await workflows.send(wake_notification())
    assert "planted" not in str(caught.value)


async def test_ingress_that_is_down_is_retried(workflows: Channel, ingress: Receiver) -> None:
    gone = open_channel(
        "flows", "restate", ChannelContext("flows", {"url": "http://127.0.0.1:1", "allow_private": True})
    )[0]
    with pytest.raises(DeliveryDelayed, match="cannot be reached"):
        await gone.send(wake_notification())
    await gone.close()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "url is missing"),
        ({"url": "http://restate.example"}, "https://"),
        ({"url": "https://restate.example", "key": 7}, "key must be text"),
        ({"url": "https://restate.example", "allow_private": "yes"}, "true or false"),
        ({"url": "https://restate.example", "keys": "x"}, 'did you mean "key"'),
        ({"url": "nonsense"}, "url"),
    ],
)
def test_settings_that_cannot_be_right_are_refused_in_words(settings: dict[str, object], words: str) -> None:  # R26
    with pytest.raises(Misconfigured, match=words):
        open_channel("flows", "restate", ChannelContext("flows", settings))


def wake_notification(call_id: str = AWAKEABLE) -> Notification:
    return make_notification("woken", wake_view(call_id))


def wake_view(call_id: str) -> ApprovalView:
    made = make_view(status="approved")
    subject = made.approval.subject._replace(run_id="restate:inv_1", call_id=call_id)
    return replace(made, approval=replace(made.approval, subject=subject))
