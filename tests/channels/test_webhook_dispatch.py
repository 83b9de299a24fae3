"""A webhook through the courier, on both databases: down for an hour, slow, gone for good."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator

import pytest

from interlock.app.bootstrap import AppServices
from interlock.config.models import ChannelSettings
from tests.channels.configured_channels import Office
from tests.fakes.http_receiver import TROUBLES, Receiver, receiving
from tests.support import OK, Clock, approve, kinds, pending

MINUTE = 60_000
SECRET = f"whsec_{base64.b64encode(b'of the test, and of nobody else!').decode()}"
PATIENT = 'version: 1\nrules: [{name: ask, tools: ["*"], then: ask, expires_in: 1d}]'


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


@pytest.fixture
async def office(parts: AppServices, receiver: Receiver) -> AsyncIterator[Office]:
    await parts.put_policy("default", PATIENT, "ada", {})
    settings = {"url": receiver.url, "secret": SECRET, "allow_private": True}
    made = Office(parts, {"hook": ChannelSettings("webhook", settings)})
    await made.sweep()
    yield made
    await made.close()


@pytest.mark.parametrize("trouble", ["500", "503", "429 with seconds", "429 with a date"])
async def test_what_could_not_be_said_for_an_hour_is_said_once_within_minutes(
    office: Office, receiver: Receiver, parts: AppServices, clock: Clock, trouble: str
) -> None:  # R23 R25
    await pending(parts)
    receiver.instead = TROUBLES[trouble]
    for _ in range(60):
        await office.sweep()
        clock.forward(MINUTE)
    assert len(receiver.heard) >= 10
    receiver.instead = None
    for _ in range(7):
        await office.sweep()
        clock.forward(MINUTE)
    assert [heard.json["type"] for heard in receiver.taken] == ["approval.pending"]
    assert len({heard.headers["webhook-id"] for heard in receiver.heard}) == 1  # R24
    assert len({heard.headers["webhook-timestamp"] for heard in receiver.heard}) == len(receiver.heard)


async def test_what_is_over_when_it_is_back_is_not_told(
    office: Office, receiver: Receiver, parts: AppServices, clock: Clock
) -> None:  # R25
    approval_id = await pending(parts)
    receiver.instead = TROUBLES["503"]
    await office.sweep()
    await approve(parts, approval_id)
    receiver.instead = None
    clock.forward(MINUTE)
    await office.sweep()
    assert receiver.taken == []


@pytest.mark.postgres_smoke
async def test_who_is_gone_is_told_nothing_until_somebody_says_so(
    office: Office, receiver: Receiver, parts: AppServices, clock: Clock
) -> None:  # R25
    deliveries = parts.store.deliveries
    receiver.instead = TROUBLES["410"]
    await pending(parts)
    await office.sweep()
    receiver.instead = None
    await pending(parts, 2)
    clock.forward(MINUTE)
    await office.sweep()
    assert [switch.channel for switch in await deliveries.disabled_channels()] == ["hook"]
    assert (len(receiver.heard), receiver.taken) == (1, [])
    assert "channel_off" in await kinds(parts)
    [parked] = await deliveries.list_deliveries("default", "parked")
    await deliveries.enable_channel("default", "hook", "ada")
    await deliveries.retry("default", parked.id, "ada")
    await office.sweep()
    assert len({heard.json["data"]["id"] for heard in receiver.taken}) == 2


async def test_a_program_hears_every_step(office: Office, receiver: Receiver, parts: AppServices) -> None:  # R25
    approval_id = await pending(parts)
    await office.sweep()
    await approve(parts, approval_id)
    await office.sweep()
    fence = (await parts.gate.start("default", approval_id, "runner")).fence
    await office.sweep()
    await parts.gate.finish("default", approval_id, fence, ok=True, payload=OK)
    await office.sweep()
    told = [(heard.json["type"], heard.json["data"]["status"]) for heard in receiver.taken]
    assert told == [("approval.pending", "pending"), ("approval.ended", "approved"), ("approval.ended", "succeeded")]
    assert receiver.taken[1].json["data"]["decision"]["by"] == "bob"
