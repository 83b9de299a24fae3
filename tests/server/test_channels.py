"""The ways to people, as people see them: nothing that is secret, what waits, and what went wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.config.models import ChannelSettings, RoutingSettings, Settings
from interlock.core.errors import DeliveryFailed
from interlock.core.notify.delivery import Notification
from interlock.notify.channel import ChannelGone, DeliveryDelayed, DeliveryRejected
from interlock.notify.dispatcher import Dispatcher
from interlock.server.state import ServerState
from tests.server.conftest import As
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


class Room:
    """Somebody else's service, which can be in trouble."""

    def __init__(self) -> None:
        self.heard: list[Notification] = []
        self.trouble: DeliveryFailed | None = None

    async def send(self, message: Notification) -> str:
        if self.trouble:
            raise self.trouble
        self.heard.append(message)
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
def room(site: ServerState) -> Room:
    """At the other end of `ops`."""
    room = Room()
    site.notifications = replace(site.notifications, channels={**site.notifications.channels, "ops": room})
    return room


@pytest.fixture
async def courier(site: ServerState, room: Room, keys: dict[str, str]) -> Dispatcher:
    """From here on people are told."""
    courier = site.notifications.make_dispatcher()
    await courier.sweep()
    return courier


# R44
async def test_channels_are_listed_by_name_and_kind_without_addresses_and_secrets(
    client: As, keys: dict[str, str]
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
async def test_a_test_that_fails_says_why_in_words_without_addresses(client: As, keys: dict[str, str]) -> None:
    failed = await client(keys["admin"]).post("/api/channels/ops/test")
    assert (failed.status_code, failed.json()["error"]) == (502, "delivery_failed")
    assert failed.json()["message"] == "PagerDuty cannot be reached."
    unknown = await client(keys["admin"]).post("/api/channels/slack/test")
    assert unknown.status_code == 404
    assert "Configured are: ops, night." in unknown.json()["message"]


# R25
async def test_a_test_that_arrives_says_where(client: As, keys: dict[str, str], room: Room) -> None:
    answer = await client(keys["admin"]).post("/api/channels/ops/test")
    assert (answer.status_code, answer.json()) == (200, {"channel": "ops", "person": ""})
    assert [(message.purpose, message.requested_by) for message in room.heard] == [("test", "ada")]
    await client(keys["admin"]).post("/api/channels/ops/test")
    assert len({message.id for message in room.heard}) == 2, "a receiver would take the second one for the first"


async def test_who_is_nobody_does_not_learn_which_channels_there_are(client: As) -> None:
    known, unknown = [await client().post(f"/channels/{name}/callback", content=b"{}") for name in ("ops", "slack")]
    assert known.status_code == unknown.status_code == 404
    assert known.text == unknown.text


# R25
async def test_what_waits_and_what_went_wrong_is_shown_and_the_cause_to_admins(
    client: As, keys: dict[str, str], room: Room, courier: Dispatcher, clock: Clock
) -> None:
    room.trouble = DeliveryDelayed("It is down.")
    await propose(client(keys["agent"]))
    await courier.sweep()
    clock.forward(5_000)
    for role, error in (("admin", "It is down."), ("viewer", None)):
        ops = (await client(keys[role]).get("/api/channels")).json()["items"][1]
        assert (ops["due"], ops["parked"], ops["error"], ops["last_sent_at"]) == (1, 0, error, None)
        assert ops["due_since"] is not None
    room.trouble = None
    clock.forward(60_000)
    await courier.sweep()
    ops = (await client(keys["admin"]).get("/api/channels")).json()["items"][1]
    assert (ops["due"], ops["due_since"], ops["error"]) == (0, None, None)
    assert ops["last_sent_at"] is not None


# R25
async def test_a_channel_whose_other_side_is_gone_is_off_until_an_admin_switches_it_on(
    client: As, keys: dict[str, str], room: Room, courier: Dispatcher, site: ServerState
) -> None:
    room.trouble = ChannelGone("The room said that it is gone (410).")
    await propose(client(keys["agent"]))
    await courier.sweep()
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
async def test_what_was_given_up_is_listed_and_sent_again_by_an_admin(
    client: As, keys: dict[str, str], room: Room, courier: Dispatcher
) -> None:
    room.trouble = DeliveryRejected("The room refused it (400).")
    approval_id = (await propose(client(keys["agent"])))["approval_id"]
    await courier.sweep()
    admin = client(keys["admin"])
    [parked] = (await admin.get("/api/deliveries")).json()["items"]
    assert (parked["approval_id"], parked["channel"], parked["status"]) == (approval_id, "ops", "parked")
    assert (parked["error"], parked["attempts"]) == ("The room refused it (400).", 1)
    [seen] = (await client(keys["viewer"]).get("/api/deliveries")).json()["items"]
    assert seen == {**parked, "error": None}
    room.trouble = None
    assert (await client(keys["reviewer"]).post(f"/api/deliveries/{parked['id']}/retry")).status_code == 403
    assert (await admin.post(f"/api/deliveries/{parked['id']}/retry")).json()["status"] == "due"
    await courier.sweep()
    assert [message.purpose for message in room.heard] == ["ask"]
    again = await admin.post(f"/api/deliveries/{parked['id']}/retry")
    assert (again.status_code, again.json()["error"]) == (409, "conflict")
    [sent] = (await client(keys["viewer"]).get(f"/api/approvals/{approval_id}/deliveries")).json()["items"]
    assert (sent["id"], sent["status"], sent["due_at"]) == (parked["id"], "sent", None)


async def test_what_went_through_a_channel_that_is_not_there_any_more_cannot_be_sent_again(
    client: As, keys: dict[str, str], room: Room, courier: Dispatcher, site: ServerState
) -> None:
    room.trouble = DeliveryRejected("The room refused it (400).")
    await propose(client(keys["agent"]))
    await courier.sweep()
    site.notifications = replace(site.notifications, channels={})
    [parked] = (await client(keys["admin"]).get("/api/deliveries")).json()["items"]
    answer = await client(keys["admin"]).post(f"/api/deliveries/{parked['id']}/retry")
    assert (answer.status_code, "no channel ops any more" in answer.json()["message"]) == (409, True)


@pytest.mark.postgres_smoke
async def test_deliveries_are_paged_by_status_and_channel(
    client: As, keys: dict[str, str], courier: Dispatcher, clock: Clock
) -> None:
    for call in range(5):
        await propose(client(keys["agent"]), call_id=str(call))
        await courier.sweep()
        clock.forward(1_000)
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
    client: As, keys: dict[str, str], room: Room, courier: Dispatcher, clock: Clock
) -> None:
    viewer = client(keys["viewer"])
    await viewer.get("/metrics")  # counters of a workspace begin with the first look
    await propose(client(keys["agent"]), call_id="1")
    await courier.sweep()
    room.trouble = DeliveryRejected("The room refused it (400).")
    await propose(client(keys["agent"]), call_id="2")
    await courier.sweep()
    room.trouble = DeliveryDelayed("It is down.")
    await propose(client(keys["agent"]), call_id="3")
    await courier.sweep()
    clock.forward(7_000)
    lines = (await viewer.get("/metrics")).text.splitlines()
    told = {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in lines if "interlock_deliveries" in line}
    assert told['interlock_deliveries_total{channel="ops",result="sent",workspace="default"}'] == "1.0"
    assert told['interlock_deliveries_total{channel="ops",result="parked",workspace="default"}'] == "1.0"
    assert told['interlock_deliveries_total{channel="night",result="sent",workspace="default"}'] == "0.0"
    assert told['interlock_deliveries_due{channel="ops",workspace="default"}'] == "1.0"
    assert told['interlock_deliveries_parked{channel="ops",workspace="default"}'] == "1.0"
    assert told['interlock_deliveries_off{channel="ops",workspace="default"}'] == "0.0"
    assert float(told['interlock_deliveries_oldest_due_seconds{channel="ops",workspace="default"}']) >= 7


async def test_a_server_is_ready_whatever_its_channels_do(
    client: As, keys: dict[str, str], room: Room, courier: Dispatcher
) -> None:
    room.trouble = DeliveryDelayed("It is down.")
    await propose(client(keys["agent"]))
    await courier.sweep()
    assert (await client().get("/readyz")).status_code == 200
