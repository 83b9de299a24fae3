"""Notification routing over time, on both databases: recipients, reminders, escalation and quiet hours."""

from __future__ import annotations

import asyncio
from datetime import time
from zoneinfo import ZoneInfo

import pytest

from interlock.app.bootstrap import AppServices, PolicyChannelSettings
from interlock.core.canonical import canonical
from interlock.core.decision import Acknowledgement, Edit, Reject, Reviewer
from interlock.core.errors import Forbidden, Misconfigured
from interlock.core.ledger.event import SYSTEM_ACTOR
from interlock.core.notify.routing import ChannelCapabilities, QuietPeriod, Routes
from interlock.core.outcome import Proceed, Refused
from interlock.core.policy.policy import People
from interlock.core.ports import User
from interlock.notify import message_text
from interlock.policy.explain import explain
from tests.channels.fake_channels import FakeChannel, FakeChannels
from tests.support import START, WRITE, Clock, approve, call, event_kinds, ledger_violations, propose_pending

MINUTE = 60_000
BOB = Reviewer("bob", "reviewer", teams=frozenset({"finance"}))
EVE = Reviewer("eve", "reviewer", teams=frozenset({"finance"}))
PEOPLE = {"ada": ("admin", "leads"), "bob": ("reviewer", "finance"), "eve": ("reviewer", "finance")}
ROUTES = Routes(
    {"mail": ChannelCapabilities(personal=True), "room": ChannelCapabilities(), "pager": ChannelCapabilities()},
    "mail",
    escalation="room",
)
LADDER = """
version: 1
rules:
  - name: climbs
    tools: [delete_file]
    then: ask
    approvers: {{users: [bob]}}
    expires_in: 1h
    remind: [10m, 50m]
    on_expiry: {end}
    escalate:
      - {{after: 20m, to: {{users: [eve]}}}}
      - {{after: 30m, to: {{teams: [leads]}}, channels: [pager]}}
"""


@pytest.fixture
async def all_channels(services: AppServices) -> FakeChannels:
    for name, (role, team) in PEOPLE.items():
        await services.store.put_user("default", person(name, role, team), "ada")
    await services.store.put_user("default", person("rita", "reviewer"), "ada")
    made = FakeChannels(services, ROUTES, mail=FakeChannel(), room=FakeChannel(), pager=FakeChannel())
    await made.sweep()
    return made


def person(name: str, role: str = "reviewer", *teams: str) -> User:
    return User(name, role, teams=frozenset(teams), email=f"{name}@example.com")


async def put_policy(services: AppServices, text: str) -> None:
    await services.put_policy("default", text, "ada", {})


async def run_for(
    services: AppServices, people: FakeChannels, clock: Clock, minutes: int = 61
) -> list[tuple[int, str, str, str]]:
    """Everything that disturbed somebody, with its minute."""
    heard = []
    for minute in range(minutes):
        await services.worker.sweep()
        await people.sweep()
        heard += [(minute, *each) for each in people.take_notifying()]
        clock.advance(MINUTE)
    return heard


ESCALATED = [
    (0, "mail", "bob", "ask"),
    (10, "mail", "bob", "remind"),
    (20, "mail", "eve", "escalate"),
    (20, "room", "", "escalate"),
    (30, "mail", "ada", "escalate"),
    (30, "pager", "", "escalate"),
    (50, "mail", "bob", "remind"),
    (50, "mail", "eve", "remind"),
    (50, "mail", "ada", "remind"),
    (50, "room", "", "remind"),
    (50, "pager", "", "remind"),
]


async def test_an_unanswered_call_escalates_and_expires(
    services: AppServices, all_channels: FakeChannels, clock: Clock
) -> None:  # R28, R43, R41
    await put_policy(services, LADDER.format(end="escalate"))
    approval_id = await propose_pending(services, requester="rita")
    agent = asyncio.ensure_future(services.gate.wait("default", approval_id))
    heard = await run_for(services, all_channels, clock)
    assert sorted(heard) == sorted([*ESCALATED, (60, "mail", "rita", "expired")])
    assert isinstance(await agent, Refused)
    entries = [entry async for chunk in services.store.entries("default") for entry in chunk]
    times = [(entry.kind, (entry.at - START) // MINUTE) for entry in entries if entry.actor == SYSTEM_ACTOR]
    assert [each for each in times if each[0] not in ("delivered",)] == [
        ("reminded", 10),
        ("escalated", 20),
        ("escalated", 30),
        ("reminded", 50),
        ("expired", 60),
    ]
    result = [minute for kind, minute in times if kind == "delivered"]
    assert [result.count(minute) >= 1 for minute in (0, 10, 20, 30, 50, 60)] == [True] * 6
    assert await ledger_violations(services) == []


async def test_an_unanswered_call_runs_only_if_the_rule_allows_it(
    services: AppServices, all_channels: FakeChannels, clock: Clock
) -> None:  # R28, R43
    await put_policy(services, LADDER.format(end="approve"))
    approval_id = await propose_pending(services, requester="rita")
    agent = asyncio.ensure_future(services.gate.wait("default", approval_id))
    heard = await run_for(services, all_channels, clock, 60)
    await services.worker.sweep()
    await all_channels.sweep()
    assert sorted(heard) == sorted(ESCALATED)
    assert isinstance(await agent, Proceed)
    ended = {
        name: [message.approval_view for _, message, _ in result.messages]
        for name, result in all_channels.channels.items()
    }
    shown = {topic.status for topics in ended.values() for topic in topics if topic is not None}
    assert (shown, len(ended["mail"])) == ({"approved"}, 3)
    assert await ledger_violations(services) == []


async def test_a_decision_ends_the_ladder_everywhere(
    services: AppServices, all_channels: FakeChannels, clock: Clock
) -> None:
    await put_policy(services, LADDER.format(end="escalate"))
    approval_id = await propose_pending(services)
    await run_for(services, all_channels, clock, 32)
    await approve(services, approval_id, EVE)
    await all_channels.sweep()
    said = {name: result.purposes for name, result in all_channels.channels.items()}
    assert said == {"mail": [("update", "ended")] * 3, "room": [("update", "ended")], "pager": [("update", "ended")]}
    assert await run_for(services, all_channels, clock) == []


# Approvers and recipients


TWO = """
version: 1
rules:
  - {name: two, tools: [delete_file], then: ask, quorum: 2, exclude: [requester, editors]}
"""


async def test_the_same_person_through_three_channels_counts_once(
    services: AppServices, all_channels: FakeChannels
) -> None:  # R48
    await put_policy(services, TWO)
    approval_id = await propose_pending(services, requester="rita")
    for channel in ("web", "slack", "mail"):
        assert (
            await approve(services, approval_id, Reviewer("bob", "reviewer", teams=BOB.teams, via=channel)) == "pending"
        )
    votes = (await services.store.get("default", approval_id)).approval.votes
    assert [(vote.by, vote.via) for vote in votes] == [("bob", "web")]
    assert await approve(services, approval_id, EVE) == "approved"
    assert (await event_kinds(services)).count("voted") == 1


async def test_requester_and_editor_are_not_notified_and_cannot_decide(
    services: AppServices, all_channels: FakeChannels
) -> None:  # R48
    await put_policy(services, TWO)
    approval_id = await propose_pending(services, requester="rita")
    await all_channels.sweep()
    assert sorted(each for _, each, _ in all_channels.take_notifying()) == ["ada", "bob", "eve"]
    seen = Acknowledgement((await services.store.get("default", approval_id)).approval.args_sha256)
    await services.inbox.decide("default", approval_id, Edit(canonical({"path": "/tmp/y"}), seen), BOB)
    await all_channels.sweep()
    assert sorted(each for _, each, _ in all_channels.take_notifying()) == ["ada", "eve"]
    for kept_out in (Reviewer("rita", "reviewer"), BOB):
        with pytest.raises(Forbidden):
            await approve(services, approval_id, kept_out)


async def test_an_edit_asks_those_again_whose_vote_is_void(
    services: AppServices, all_channels: FakeChannels
) -> None:  # R48
    await put_policy(services, TWO.replace(", exclude: [requester, editors]", ""))
    approval_id = await propose_pending(services, requester="rita")
    await all_channels.sweep()
    await approve(services, approval_id, EVE)
    await all_channels.sweep()
    all_channels.take_notifying()
    seen = Acknowledgement((await services.store.get("default", approval_id)).approval.args_sha256)
    await services.inbox.decide("default", approval_id, Edit(canonical({"path": "/tmp/y"}), seen), BOB)
    await all_channels.sweep()
    mails = [message for _, message, _ in all_channels.channels["mail"].messages if message.to.person == "eve"]
    assert ("mail", "eve", "remind") in all_channels.take_notifying()
    assert (mails[-1].revised, message_text.title(mails[-1])) == (True, "Changed: Delete /tmp/y")


async def test_the_second_stage_is_told_when_it_opens(services: AppServices, all_channels: FakeChannels) -> None:  # R48
    stages = "stages: [{approvers: {teams: [finance]}}, {approvers: {teams: [leads]}}]"
    await put_policy(services, f"version: 1\nrules:\n  - {{name: both, tools: [delete_file], then: ask, {stages}}}\n")
    approval_id = await propose_pending(services)
    await all_channels.sweep()
    assert sorted(all_channels.take_notifying()) == [("mail", "bob", "ask"), ("mail", "eve", "ask")]
    await approve(services, approval_id, BOB)
    await all_channels.sweep()
    assert all_channels.take_notifying() == [("mail", "ada", "ask")]


async def test_a_team_is_notified_for_an_absent_person(
    services: AppServices, all_channels: FakeChannels, clock: Clock
) -> None:  # R40
    await put_policy(services, LADDER.format(end="reject"))
    away = User(
        "bob",
        "reviewer",
        teams=BOB.teams,
        email="bob@example.com",
        away_until=clock() + MINUTE,
        away_to=People(teams=frozenset({"leads"})),
    )
    await services.store.put_user("default", away, "bob")
    approval_id = await propose_pending(services)
    await all_channels.sweep()
    assert all_channels.take_notifying() == [("mail", "ada", "ask")]
    ada = await services.inbox.reviewer("default", "ada", "mail")
    assert await approve(services, approval_id, ada) == "approved"
    [vote] = (await services.store.get("default", approval_id)).approval.votes
    assert (vote.by, vote.on_behalf_of) == ("ada", "bob")


async def test_a_delegation_tells_the_delegate(services: AppServices, all_channels: FakeChannels) -> None:  # R40
    await put_policy(services, LADDER.format(end="reject"))
    approval_id = await propose_pending(services)
    await all_channels.sweep()
    all_channels.take_notifying()
    await services.inbox.delegate("default", approval_id, People(frozenset({"eve"})), BOB)
    await all_channels.sweep()
    assert all_channels.take_notifying() == [("mail", "eve", "ask")]


async def test_who_was_removed_is_told_nothing_more(
    services: AppServices, all_channels: FakeChannels, clock: Clock
) -> None:
    await put_policy(services, LADDER.format(end="reject"))
    await propose_pending(services)
    await services.store.put_user(
        "default", User("bob", "reviewer", teams=BOB.teams, email="bob@example.com", removed_at=clock()), "ada"
    )
    assert await run_for(services, all_channels, clock, 15) == []
    assert await services.store.deliveries.list_deliveries("default", "parked") == []


# When

NIGHT = Routes(
    {"room": ChannelCapabilities()}, "room", quiet=QuietPeriod(time(7), time(9), ZoneInfo("UTC"))
)  # it is 8:00


@pytest.fixture
async def quiet_hours(services: AppServices) -> FakeChannels:
    await put_policy(services, "version: 1\ndefaults: {expires_in: 8h, remind: 10m}")
    made = FakeChannels(services, NIGHT, room=FakeChannel())
    await made.sweep()
    return made


async def test_at_night_only_what_is_urgent_disturbs(
    services: AppServices, quiet_hours: FakeChannels, clock: Clock
) -> None:  # R28
    for number, priority in enumerate(("low", "medium", "high")):
        await propose_pending(services, number, priority=priority)
    heard = await run_for(services, quiet_hours, clock, 62)
    asked = [(minute, why) for minute, _, _, why in heard]
    assert asked == [(0, "ask"), (10, "remind"), (60, "ask"), (60, "ask")]


async def test_what_was_decided_at_night_wakes_nobody_in_the_morning(
    services: AppServices, quiet_hours: FakeChannels, clock: Clock
) -> None:
    approval_id = await propose_pending(services)
    await quiet_hours.sweep()
    await approve(services, approval_id)
    assert await run_for(services, quiet_hours, clock, 62) == []
    assert quiet_hours.channels["room"].messages == []


async def test_a_rejection_taken_back_at_night_is_asked_in_the_morning(
    services: AppServices, quiet_hours: FakeChannels, clock: Clock
) -> None:
    approval_id = await propose_pending(services)
    await quiet_hours.sweep()
    seen = Acknowledgement((await services.store.get("default", approval_id)).approval.args_sha256)
    await services.inbox.decide("default", approval_id, Reject("no", seen), BOB)
    await quiet_hours.sweep()
    await services.inbox.undo("default", approval_id, BOB)
    assert [(minute, why) for minute, _, _, why in await run_for(services, quiet_hours, clock, 62)] == [(60, "ask")]


async def test_reminders_of_the_configuration_are_in_the_terms(services: AppServices, clock: Clock) -> None:  # R28
    room = FakeChannels(
        services,
        Routes({"room": ChannelCapabilities()}, "room"),
        PolicyChannelSettings((2 * MINUTE,)),
        room=FakeChannel(),
    )
    await room.sweep()
    doors = await room.workspaces.services("default")
    await doors.gate.check(call(), WRITE)
    heard = [(minute, why) for minute, _, _, why in await run_for(services, room, clock, 5)]
    assert heard == [(0, "ask"), (2, "remind")]
    verdict = explain(doors.loaded_policy.policy, call(), WRITE, doors.loaded_policy.rule_lines).verdict
    draft = await room.workspaces.draft("default", "version: 1")
    assert getattr(verdict, "remind", ()) == draft.policy.default_ask.remind == (2 * MINUTE,)


async def test_one_of_a_flood_is_reminded_by_itself(services: AppServices, clock: Clock) -> None:  # R44
    await put_policy(services, "version: 1\ndefaults: {remind: 2m}")
    room = FakeChannels(services, Routes({"room": ChannelCapabilities(rate_per_minute=2)}, "room"), room=FakeChannel())
    await room.sweep()
    for number in range(3):
        await propose_pending(services, number)
    assert await room.sweep() == 2
    [alone] = [
        message.approval_view.approval.id for _, message, _ in room.channels["room"].messages if message.approval_view
    ]
    assert sorted(why for _, _, why in room.take_notifying()) == ["ask", "group"]
    await approve(services, alone)
    heard = await run_for(services, room, clock, 5)
    assert [(minute, why) for minute, _, _, why in heard] == [(2, "ask"), (2, "ask")]


async def test_a_draft_names_channels_that_there_are(services: AppServices) -> None:  # R26, R30
    reaching = PolicyChannelSettings((), frozenset({"dashboard", "room"}), has_destinations=False)
    room = FakeChannels(services, Routes({"room": ChannelCapabilities()}, "room"), reaching, room=FakeChannel())
    rule = "version: 1\nrules: [{name: r, then: ask, channels: [%s]}]"
    with pytest.raises(Misconfigured, match='unknown channel "rom"; did you mean "room"'):
        await room.workspaces.draft("default", rule % "rom")
    loaded, _ = await room.workspaces.put_policy("default", rule % "room", "ada")
    assert loaded.policy.rules[0].ask.channels == ("room",)


async def test_a_rule_that_names_a_channel_which_is_gone_is_told_as_if_it_named_none(services: AppServices) -> None:
    await put_policy(services, "version: 1\nrules: [{name: r, then: ask, channels: [gone, '#nowhere']}]")
    room = FakeChannels(services, Routes({"room": ChannelCapabilities()}, "room"), room=FakeChannel())
    await room.sweep()
    await propose_pending(services)
    assert await room.sweep() == 1


async def test_what_ended_while_its_sender_died_is_told_as_ended(services: AppServices, clock: Clock) -> None:  # R23
    room = FakeChannels(services, Routes({"room": ChannelCapabilities()}, "room"), room=FakeChannel())
    await room.sweep()
    approval_id = await propose_pending(services)
    await room.dispatcher.route()
    assert len(await services.store.deliveries.lease("default", "room", "another", 8, 10)) == 1
    await approve(services, approval_id)
    await room.sweep()
    clock.advance(2 * MINUTE)
    await room.sweep()
    assert room.channels["room"].purposes == [("send", "ended")]
    assert (await room.sweep(), await services.store.deliveries.list_deliveries("default", "due")) == (0, [])
