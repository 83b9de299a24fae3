"""Channels and deliveries over HTTP: health, dead deliveries, and no secrets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.config.models import ChannelSettings, RoutingSettings, Settings
from interlock.core.errors import DeliveryFailed
from interlock.core.notify.delivery import Notification
from interlock.notify.channel import ChannelGone, DeliveryDelayed, DeliveryRejected
from interlock.notify.dispatcher import Dispatcher
from interlock.server.state import ServerState
from tests.server.conftest import ClientFactory
from tests.server.test_calls import propose
from tests.support import Clock

HOOK = "http://127.66.66.66/hunter2"
KEY = "hunter2hunter2hunter2hunter2hunt"
NOWHERE = {"routing_key": KEY, "url": HOOK, "allow_private": True}
QUIET = {
    "personal": False,
    "answers": False,
    "off": None,
    "due": 0,
    "due_since": None,
    "parked": 0,
    "last_sent_at": None,
    "error": None,
}


class FakeChannel:
    """A channel that records its messages and can be made to fail."""

    def __init__(self) -> None:
        self.messages: list[Notification] = []
        self.failure: DeliveryFailed | None = None

    async def send(self, message: Notification) -> str:
        if self.failure:
            raise self.failure
        self.messages.append(message)
        return message.id

    async def update(self, message: Notification, ref: str) -> str:
        await self.send(message)
        return ref

    async def close(self) -> None: ...


@pytest.fixture
def settings() -> Settings:
    channels = {"ops": ChannelSettings("pagerduty", NOWHERE), "night": ChannelSettings("pagerduty", NOWHERE)}
    routing = RoutingSettings("ops", {"high": ("night", "ops")}, {"finance": ("ops",)})
    return Settings(channels=channels, routing=routing)


@pytest.fixture
def fake_channel(state: ServerState) -> FakeChannel:
    """At the other end of `ops`."""
    fake_channel = FakeChannel()
    state.notifications = replace(state.notifications, channels={**state.notifications.channels, "ops": fake_channel})
    return fake_channel


@pytest.fixture
async def dispatcher(state: ServerState, fake_channel: FakeChannel, keys: dict[str, str]) -> Dispatcher:
    """From here on people are told."""
    dispatcher = state.notifications.make_dispatcher()
    await dispatcher.sweep()
    return dispatcher


# R44
async def test_channels_are_listed_by_name_and_kind_without_addresses_and_secrets(
    client: ClientFactory, keys: dict[str, str]
) -> None:
    answer = await client(keys["viewer"]).get("/api/channels")
    told = {item.pop("name"): item for item in answer.json()["items"]}
    assert told == {
        "dashboard": {
            **QUIET,
            "kind": "dashboard",
            "is_default": False,
            "priorities": [],
            "teams": [],
            "answers": True,
        },
        "ops": {**QUIET, "kind": "pagerduty", "is_default": True, "priorities": ["high"], "teams": ["finance"]},
        "night": {**QUIET, "kind": "pagerduty", "is_default": False, "priorities": ["high"], "teams": []},
    }
    assert "hunter2" not in answer.text
    assert (await client(keys["agent"]).get("/api/channels")).status_code == 403


# R25
async def test_a_test_that_fails_says_why_in_words_without_addresses(
    client: ClientFactory, keys: dict[str, str]
) -> None:
    failed = await client(keys["admin"]).post("/api/channels/ops/test")
    assert (failed.status_code, failed.json()["error"]) == (502, "delivery_failed")
    assert failed.json()["message"] == "PagerDuty cannot be reached."
    unknown = await client(keys["admin"]).post("/api/channels/slack/test")
    assert unknown.status_code == 404
    assert "Configured are: ops, night." in unknown.json()["message"]


# R25
async def test_a_test_that_arrives_says_where(
    client: ClientFactory, keys: dict[str, str], fake_channel: FakeChannel
) -> None:
    answer = await client(keys["admin"]).post("/api/channels/ops/test")
    assert (answer.status_code, answer.json()) == (200, {"channel": "ops", "person": ""})
    assert [(message.purpose, message.requested_by) for message in fake_channel.messages] == [("test", "ada")]
    await client(keys["admin"]).post("/api/channels/ops/test")
    assert len({message.id for message in fake_channel.messages}) == 2, (
        "a receiver would take the second one for the first"
    )


async def test_who_is_nobody_does_not_learn_which_channels_there_are(client: ClientFactory) -> None:
    known, unknown = [await client().post(f"/channels/{name}/callback", content=b"{}") for name in ("ops", "slack")]
    assert known.status_code == unknown.status_code == 404
    assert known.text == unknown.text


# R25
async def test_what_waits_and_what_went_wrong_is_shown_and_the_cause_to_admins(
    client: ClientFactory, keys: dict[str, str], fake_channel: FakeChannel, dispatcher: Dispatcher, clock: Clock
) -> None:
    fake_channel.failure = DeliveryDelayed("It is down.")
    await propose(client(keys["agent"]))
    await dispatcher.sweep()
    clock.advance(5_000)
    for role, error in (("admin", "It is down."), ("viewer", None)):
        ops = (await client(keys[role]).get("/api/channels")).json()["items"][1]
        assert (ops["due"], ops["parked"], ops["error"], ops["last_sent_at"]) == (1, 0, error, None)
        assert ops["due_since"] is not None
    fake_channel.failure = None
    clock.advance(60_000)
    await dispatcher.sweep()
    ops = (await client(keys["admin"]).get("/api/channels")).json()["items"][1]
    assert (ops["due"], ops["due_since"], ops["error"]) == (0, None, None)
    assert ops["last_sent_at"] is not None


# R25
async def test_a_channel_whose_other_side_is_gone_is_off_until_an_admin_switches_it_on(
    client: ClientFactory, keys: dict[str, str], fake_channel: FakeChannel, dispatcher: Dispatcher, state: ServerState
) -> None:
    fake_channel.failure = ChannelGone("The room said that it is gone (410).")
    await propose(client(keys["agent"]))
    await dispatcher.sweep()
    ops = (await client(keys["viewer"]).get("/api/channels")).json()["items"][1]
    assert ops["off"]["why"] == "The room said that it is gone (410)."
    assert (await client(keys["reviewer"]).post("/api/channels/ops/enable")).status_code == 403
    assert (await client(keys["admin"]).post("/api/channels/slack/enable")).status_code == 404
    for _ in range(2):
        answer = await client(keys["admin"]).post("/api/channels/ops/enable")
        assert (answer.status_code, answer.json()["off"]) == (200, None)
    told = [event["kind"] for event in (await client(keys["viewer"]).get("/api/audit")).json()["items"]]
    assert told.count("channel_on") == 1


# R25
async def test_dead_deliveries_are_listed_and_retried_by_an_admin(
    client: ClientFactory, keys: dict[str, str], fake_channel: FakeChannel, dispatcher: Dispatcher
) -> None:
    fake_channel.failure = DeliveryRejected("The room refused it (400).")
    approval_id = (await propose(client(keys["agent"])))["approval_id"]
    await dispatcher.sweep()
    admin = client(keys["admin"])
    [parked] = (await admin.get("/api/deliveries")).json()["items"]
    assert (parked["approval_id"], parked["channel"], parked["status"]) == (approval_id, "ops", "parked")
    assert (parked["error"], parked["attempts"]) == ("The room refused it (400).", 1)
    [seen] = (await client(keys["viewer"]).get("/api/deliveries")).json()["items"]
    assert seen == {**parked, "error": None}
    fake_channel.failure = None
    assert (await client(keys["reviewer"]).post(f"/api/deliveries/{parked['id']}/retry")).status_code == 403
    assert (await admin.post(f"/api/deliveries/{parked['id']}/retry")).json()["status"] == "due"
    await dispatcher.sweep()
    assert [message.purpose for message in fake_channel.messages] == ["ask"]
    again = await admin.post(f"/api/deliveries/{parked['id']}/retry")
    assert (again.status_code, again.json()["error"]) == (409, "conflict")
    [sent] = (await client(keys["viewer"]).get(f"/api/approvals/{approval_id}/deliveries")).json()["items"]
    assert (sent["id"], sent["status"], sent["due_at"]) == (parked["id"], "sent", None)


async def test_delivery_of_a_removed_channel_cannot_be_retried(
    client: ClientFactory, keys: dict[str, str], fake_channel: FakeChannel, dispatcher: Dispatcher, state: ServerState
) -> None:
    fake_channel.failure = DeliveryRejected("The room refused it (400).")
    await propose(client(keys["agent"]))
    await dispatcher.sweep()
    state.notifications = replace(state.notifications, channels={})
    [parked] = (await client(keys["admin"]).get("/api/deliveries")).json()["items"]
    answer = await client(keys["admin"]).post(f"/api/deliveries/{parked['id']}/retry")
    assert (answer.status_code, "channel ops no longer exists" in answer.json()["message"]) == (409, True)


@pytest.mark.postgres_smoke
async def test_deliveries_are_paged_by_status_and_channel(
    client: ClientFactory, keys: dict[str, str], dispatcher: Dispatcher, clock: Clock
) -> None:
    for call in range(5):
        await propose(client(keys["agent"]), call_id=str(call))
        await dispatcher.sweep()
        clock.advance(1_000)
    viewer, found, cursor = client(keys["viewer"]), [], ""
    while cursor is not None:
        query = {"status": "sent", "channel": "ops", "limit": "2", "cursor": cursor}
        page = (await viewer.get("/api/deliveries", params=query)).json()
        found += [item["created_at"] for item in page["items"]]
        cursor = page["next"]
    assert len(found) == 5
    assert found == sorted(found, reverse=True)
    assert (await viewer.get("/api/deliveries?status=sent&channel=night")).json()["items"] == []
    assert (await viewer.get("/api/deliveries?cursor=there")).status_code == 400
    assert (await viewer.get("/api/deliveries?status=lost")).status_code == 400


# R25
async def test_messages_are_counted_by_channel_and_by_what_became_of_them(
    client: ClientFactory, keys: dict[str, str], fake_channel: FakeChannel, dispatcher: Dispatcher, clock: Clock
) -> None:
    viewer = client(keys["viewer"])
    await viewer.get("/metrics")  # counters of a workspace begin with the first look
    await propose(client(keys["agent"]), call_id="1")
    await dispatcher.sweep()
    fake_channel.failure = DeliveryRejected("The room refused it (400).")
    await propose(client(keys["agent"]), call_id="2")
    await dispatcher.sweep()
    fake_channel.failure = DeliveryDelayed("It is down.")
    await propose(client(keys["agent"]), call_id="3")
    await dispatcher.sweep()
    clock.advance(7_000)
    lines = (await viewer.get("/metrics")).text.splitlines()
    told = {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in lines if "interlock_deliveries" in line}
    assert told['interlock_deliveries_total{channel="ops",result="sent",workspace="default"}'] == "1.0"
    assert told['interlock_deliveries_total{channel="ops",result="parked",workspace="default"}'] == "1.0"
    assert told['interlock_deliveries_total{channel="night",result="sent",workspace="default"}'] == "0.0"
    assert told['interlock_deliveries_due{channel="ops",workspace="default"}'] == "1.0"
    assert told['interlock_deliveries_parked{channel="ops",workspace="default"}'] == "1.0"
    assert told['interlock_deliveries_off{channel="ops",workspace="default"}'] == "0.0"
    assert float(told['interlock_deliveries_oldest_due_seconds{channel="ops",workspace="default"}']) >= 7


async def test_server_is_ready_while_channels_fail(
    client: ClientFactory, keys: dict[str, str], fake_channel: FakeChannel, dispatcher: Dispatcher
) -> None:
    fake_channel.failure = DeliveryDelayed("It is down.")
    await propose(client(keys["agent"]))
    await dispatcher.sweep()
    assert (await client().get("/readyz")).status_code == 200
