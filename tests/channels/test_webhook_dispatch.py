"""Webhooks through the dispatcher on both databases: down for an hour, slow, gone for good."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator

import pytest

from interlock.app.bootstrap import AppServices
from interlock.config.models import ChannelSettings
from tests.channels.configured_channels import ConfiguredChannels
from tests.fakes.http_receiver import FAILURES, Receiver, run_receiver
from tests.support import OK, Clock, approve, event_kinds, propose_pending

MINUTE = 60_000
SECRET = f"whsec_{base64.b64encode(b'of the test, and of nobody else!').decode()}"
PATIENT = 'version: 1\nrules: [{name: ask, tools: ["*"], then: ask, expires_in: 1d}]'


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with run_receiver() as made:
        yield made


@pytest.fixture
async def channels(services: AppServices, receiver: Receiver) -> AsyncIterator[ConfiguredChannels]:
    await services.put_policy("default", PATIENT, "ada", {})
    settings = {"url": receiver.url, "secret": SECRET, "allow_private": True}
    made = ConfiguredChannels(services, {"hook": ChannelSettings("webhook", settings)})
    await made.sweep()
    yield made
    await made.close()


@pytest.mark.parametrize("trouble", ["500", "503", "429 with seconds", "429 with a date"])
async def test_what_could_not_be_said_for_an_hour_is_said_once_within_minutes(
    channels: ConfiguredChannels, receiver: Receiver, services: AppServices, clock: Clock, trouble: str
) -> None:  # R23 R25
    await propose_pending(services)
    receiver.override = FAILURES[trouble]
    for _ in range(60):
        await channels.sweep()
        clock.advance(MINUTE)
    assert len(receiver.requests) >= 10
    receiver.override = None
    for _ in range(7):
        await channels.sweep()
        clock.advance(MINUTE)
    assert [heard.json["type"] for heard in receiver.accepted] == ["approval.pending"]
    assert len({heard.headers["webhook-id"] for heard in receiver.requests}) == 1  # R24
    assert len({heard.headers["webhook-timestamp"] for heard in receiver.requests}) == len(receiver.requests)


async def test_call_that_ended_during_an_outage_is_not_sent(
    channels: ConfiguredChannels, receiver: Receiver, services: AppServices, clock: Clock
) -> None:  # R25
    approval_id = await propose_pending(services)
    receiver.override = FAILURES["503"]
    await channels.sweep()
    await approve(services, approval_id)
    receiver.override = None
    clock.advance(MINUTE)
    await channels.sweep()
    assert receiver.accepted == []


@pytest.mark.postgres_smoke
async def test_gone_receiver_gets_nothing_until_it_is_enabled(
    channels: ConfiguredChannels, receiver: Receiver, services: AppServices, clock: Clock
) -> None:  # R25
    deliveries = services.store.deliveries
    receiver.override = FAILURES["410"]
    await propose_pending(services)
    await channels.sweep()
    receiver.override = None
    await propose_pending(services, 2)
    clock.advance(MINUTE)
    await channels.sweep()
    assert [switch.channel for switch in await deliveries.disabled_channels()] == ["hook"]
    assert (len(receiver.requests), receiver.accepted) == (1, [])
    assert "channel_off" in await event_kinds(services)
    [parked] = await deliveries.list_deliveries("default", "parked")
    await deliveries.enable_channel("default", "hook", "ada")
    await deliveries.retry("default", parked.id, "ada")
    await channels.sweep()
    assert len({heard.json["data"]["id"] for heard in receiver.accepted}) == 2


async def test_a_program_hears_every_step(
    channels: ConfiguredChannels, receiver: Receiver, services: AppServices
) -> None:  # R25
    approval_id = await propose_pending(services)
    await channels.sweep()
    await approve(services, approval_id)
    await channels.sweep()
    fence = (await services.gate.start("default", approval_id, "runner")).fence
    await channels.sweep()
    await services.gate.finish("default", approval_id, fence, ok=True, payload=OK)
    await channels.sweep()
    told = [(heard.json["type"], heard.json["data"]["status"]) for heard in receiver.accepted]
    assert told == [("approval.pending", "pending"), ("approval.ended", "approved"), ("approval.ended", "succeeded")]
    assert receiver.accepted[1].json["data"]["decision"]["by"] == "bob"
