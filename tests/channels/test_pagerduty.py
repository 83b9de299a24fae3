"""PagerDuty: one incident for each call, which ends when there is nothing left to decide. Acknowledging is nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest
from pagerduty import Error as PagerDutyError
from pagerduty import EventsApiV2Client

from interlock.app.bootstrap import AppServices
from interlock.config.models import ChannelSettings as Configured
from interlock.core.decision import Acknowledgement, Reject, Respond
from interlock.core.errors import Misconfigured, NotFound
from interlock.notify.channel import (
    Channel,
    ChannelContext,
    DeliveryDelayed,
    DeliveryRejected,
    InboundChannel,
    open_channel,
)
from interlock.notify.channels import pagerduty as channel
from interlock.testing.channels import END_STATUSES, HOSTILE, make_notification, make_view
from tests.channels.configured_channels import ConfiguredChannels
from tests.fakes.http_receiver import FAILURES
from tests.fakes.pagerduty import MAX_BYTES, PagerDuty, pagerduty
from tests.support import BOB, Clock, approve, propose_pending

MINUTE = 60_000
ESCALATION = """
version: 1
rules:
  - name: ask
    tools: ["*"]
    then: ask
    expires_in: 10m
    on_expiry: escalate
    priority: high
    escalate: [{after: 2m, to: {users: [bob]}, channels: [pager]}]
"""


@pytest.fixture
async def duty() -> AsyncIterator[PagerDuty]:
    async with pagerduty() as made:
        yield made


@pytest.fixture
async def pager(duty: PagerDuty) -> AsyncIterator[Channel]:
    made = open_channel("pager", "pagerduty", ChannelContext("pager", settings(duty), "https://interlock.example"))[0]
    yield made
    await made.close()


def settings(duty: PagerDuty) -> dict[str, object]:
    return {"routing_key": duty.routing_key, "url": duty.url, "allow_private": True}


@pytest.mark.parametrize(("priority", "severity"), [("high", "critical"), ("medium", "warning"), ("low", "info")])
async def test_the_priority_is_the_severity(pager: Channel, duty: PagerDuty, priority: str, severity: str) -> None:
    await pager.send(make_notification("ask", make_view(priority=priority)))
    assert [(each.severity, each.is_open) for each in duty.incidents] == [(severity, True)]  # R25


async def test_reminders_changes_and_escalation_are_one_incident(pager: Channel, duty: PagerDuty) -> None:  # R25
    ref = await pager.send(make_notification("ask"))
    assert await pager.send(make_notification("escalate")) == ref
    for purpose in ("remind", "changed"):
        assert await pager.update(make_notification(purpose), ref) == ref
    assert [len(each.summaries) for each in duty.incidents] == [4]
    assert duty.receiver.refused == []


@pytest.mark.parametrize("status", [each for each in END_STATUSES if each != "unknown"])
async def test_every_end_resolves_it(pager: Channel, duty: PagerDuty, status: str) -> None:  # R25
    ref = await pager.send(make_notification())
    await pager.update(make_notification("ended", make_view(status=status)), ref)
    assert (len(duty.incidents), duty.open) == (1, [])


async def test_a_call_of_which_nobody_knows_whether_it_ran_wakes_somebody(pager: Channel, duty: PagerDuty) -> None:
    ref = await pager.send(make_notification())
    await pager.update(make_notification("ended", make_view(status="approved")), ref)
    assert duty.open == []
    await pager.update(make_notification("ended", make_view(status="unknown")), ref)
    assert [each.summaries for each in duty.open] == [["Outcome unknown: Delete /tmp/x"]]  # R25
    await pager.update(make_notification("ended", make_view(status="failed")), ref)
    assert duty.open == []


@pytest.mark.parametrize("purpose", ["test", "expired", "group"])
async def test_what_nobody_comes_back_to_stays_open_nowhere(pager: Channel, duty: PagerDuty, purpose: str) -> None:
    await pager.send(make_notification(purpose))  # type: ignore[arg-type]
    assert (len(duty.incidents), duty.open) == (1, [])  # R25 R28


async def test_hostile_and_endless_texts_fit(pager: Channel, duty: PagerDuty) -> None:  # R25
    args = {f"{number} {HOSTILE}" * 20: HOSTILE * 50 for number in range(30)}
    await pager.send(make_notification("ask", make_view(args, sentence=HOSTILE * 50), workspace="w" * 300))
    [heard] = duty.receiver.accepted
    assert len(heard.body) < MAX_BYTES / 8
    assert "\n" not in heard.json["payload"]["summary"]


@pytest.mark.parametrize(
    ("trouble", "error", "after"),
    [("429 with seconds", DeliveryDelayed, 120), ("500", DeliveryDelayed, 0), ("400", DeliveryRejected, 0)],
)
async def test_what_pagerduty_refuses_is_said_without_the_key(
    pager: Channel, duty: PagerDuty, trouble: str, error: type[Exception], after: int
) -> None:  # R25
    duty.receiver.override = FAILURES[trouble]
    with pytest.raises(error) as caught:
        await pager.send(make_notification())
    assert getattr(caught.value, "retry_after", 0) == after
    assert duty.routing_key not in str(caught.value)


async def test_a_wrong_key_is_refused_for_good(duty: PagerDuty) -> None:
    duty.routing_key = "b" * 32
    kit = ChannelContext("pager", {**settings(duty), "routing_key": "c" * 32})
    pager = open_channel("pager", "pagerduty", kit)[0]
    with pytest.raises(DeliveryRejected, match=r"rejected the request \(400\)"):
        await pager.send(make_notification())
    await pager.close()
    assert duty.receiver.refused != []


class RedirectTransport(httpx2.HTTPTransport):
    """Leads to the fake: their client speaks to https addresses only."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = httpx2.URL(url)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.url = request.url.copy_with(scheme="http", host=self._url.host, port=self._url.port)
        return super().handle_request(request)


async def test_pagerdutys_own_client_finds_what_it_expects(duty: PagerDuty) -> None:
    """What their library does works at the fake, and what it must not do is refused there."""
    client = EventsApiV2Client(duty.routing_key, transport=RedirectTransport(duty.url))
    key = await asyncio.to_thread(client.trigger, "It is down", "example.com", "one", "warning")
    again = await asyncio.to_thread(client.trigger, "Still down", "example.com", "one", "warning")
    await asyncio.to_thread(client.acknowledge, "one")
    assert (key, again, [each.summaries for each in duty.open]) == ("one", "one", [["It is down", "Still down"]])
    await asyncio.to_thread(client.resolve, "one")
    assert duty.open == []
    with pytest.raises(PagerDutyError):
        await asyncio.to_thread(client.trigger, "x" * 1_025, "example.com", "two", "warning")
    client.close()
    assert len(duty.incidents) == 1


def test_a_key_has_32_characters() -> None:
    with pytest.raises(Misconfigured, match="32 characters") as caught:
        open_channel("pager", "pagerduty", ChannelContext("pager", {"routing_key": "planted"}))
    assert "planted" not in str(caught.value)


def test_nothing_comes_back_from_pagerduty() -> None:
    assert not isinstance(channel.PagerDutyChannel, InboundChannel)  # R25


# Through the dispatcher, on both databases
@pytest.mark.postgres_smoke
async def test_routing_and_escalation_of_a_call_are_one_incident_that_ends_with_it(
    services: AppServices, duty: PagerDuty, clock: Clock
) -> None:  # R25 R28
    channels = await _configured_channels(services, duty, ESCALATION)
    approval_id = await propose_pending(services)
    await channels.sweep()
    clock.advance(3 * MINUTE)
    await services.worker.sweep()
    await channels.sweep()
    assert len(duty.incidents) == 1
    await approve(services, approval_id)
    await channels.sweep()
    assert (len(duty.incidents), duty.open, duty.receiver.refused) == (1, [], [])
    with pytest.raises(NotFound, match="does not accept requests"):
        channels.notifications.get_inbound_channel("pager")
    await channels.close()


@pytest.mark.parametrize("end", ["reject", "respond", "expire", "cancel"])
async def test_no_incident_stays_open_after_the_call_ended(
    services: AppServices, duty: PagerDuty, clock: Clock, end: str
) -> None:  # R25
    channels = await _configured_channels(services, duty)
    approval_id = await propose_pending(services)
    await channels.sweep()
    assert len(duty.open) == 1
    seen = Acknowledgement((await services.store.get("default", approval_id)).approval.args_sha256)
    match end:
        case "reject":
            await services.inbox.decide("default", approval_id, Reject("no", seen), BOB)
        case "respond":
            await services.inbox.decide("default", approval_id, Respond("no", seen=seen), BOB)
        case "expire":
            clock.advance(86_400_000)
            await services.worker.sweep()
        case _:
            await services.gate.cancel("default", approval_id, "bot")
    await channels.sweep()
    assert (len(duty.incidents), duty.open) == (1, [])
    await channels.close()


async def test_an_hour_of_silence_loses_nothing_and_wakes_once(
    services: AppServices, duty: PagerDuty, clock: Clock
) -> None:
    channels = await _configured_channels(services, duty, ESCALATION.replace("10m", "3h").replace("2m", "2h"))
    await propose_pending(services)
    duty.receiver.override = FAILURES["503"]
    for _ in range(60):
        await channels.sweep()
        clock.advance(MINUTE)
    tries = len(duty.receiver.requests)
    duty.receiver.override = None
    await channels.sweep()
    assert (tries > 10, len(duty.incidents), len(duty.open)) == (True, 1, 1)  # R23 R25
    assert len({heard.json["dedup_key"] for heard in duty.receiver.requests}) == 1
    await channels.close()


async def _configured_channels(services: AppServices, duty: PagerDuty, policy: str = "") -> ConfiguredChannels:
    if policy:
        await services.put_policy("default", policy, "ada", {})
    channels = ConfiguredChannels(services, {"pager": Configured("pagerduty", settings(duty))}, "pager")
    await channels.sweep()
    return channels
