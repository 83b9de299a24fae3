"""Notification routing: who is notified of an approval, through which channel and when."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from interlock.core.approval.approval import (
    Approval,
    ApprovalDeadlines,
    DecisionRecord,
    PreparedEdit,
    TimerProgress,
    decide,
    delegate,
    expire,
)
from interlock.core.approval.vote import Delegation
from interlock.core.notify import delivery
from interlock.core.notify.delivery import Delivery, DeliveryTarget
from interlock.core.notify.routing import (
    MAX_DELIVERIES,
    ChannelCapabilities,
    Contact,
    QuietPeriod,
    Routes,
    approval_channels,
    channel_origins,
    find_unreachable,
    missing_voters,
    plan_deliveries,
    quiet_end,
)
from interlock.core.policy.policy import Ask, EscalationStep, People, Stage
from tests.unit.builders import (
    ALICE,
    BOB,
    FINANCE,
    NOW,
    approval_in_status,
    approve,
    at,
    edit,
    pending,
    prepare_edit,
    users,
)

MAIL, SLACK, PAGER = (
    ChannelCapabilities(personal=True),
    ChannelCapabilities(has_destinations=True),
    ChannelCapabilities(priorities=frozenset({"high"})),
)
CAPABILITIES = {"mail": MAIL, "slack": SLACK, "pager": PAGER}
ALL = Routes(
    CAPABILITIES,
    "mail",
    priorities={"high": ("pager",)},
    channels_by_origin={"finance": ("#finance-ops",), "pay": ("slack",)},
    quiet=None,
    escalation="pager",
)
BY_MAIL = Routes({"mail": MAIL}, "mail")
PERSON = {
    "alice": Contact("alice", "reviewer", frozenset({"finance"})),
    "bob": Contact("bob", "reviewer", frozenset({"finance"})),
    "carol": Contact("carol", "reviewer", frozenset({"legal"})),
    "rita": Contact("rita", "reviewer", frozenset()),
    "vic": Contact("vic", "viewer", frozenset({"finance"})),
}
EVERYBODY = tuple(PERSON.values())
FINANCE_ONE = Ask("finance", (Stage(FINANCE),))
CHAT = "thread-0192f0c1-2b3d-7c4e-9f60-718293a4b5c8"
QUIET_HOURS = QuietPeriod(time(22), time(7), ZoneInfo("Europe/Berlin"))


def plan(approval: Approval, routes: Routes, known: tuple[Delivery, ...] = (), **more: Any) -> list[Delivery]:
    return list(plan_deliveries(approval, known, routes, more.get("people", EVERYBODY), more.get("now", NOW)))


def planned_targets(approval: Approval, routes: Routes, **more: Any) -> list[tuple[str, ...]]:
    return [tuple(filter(None, each.target)) for each in plan(approval, routes, **more)]


def mark_all_sent(found: list[Delivery]) -> tuple[Delivery, ...]:
    """The deliveries after all of them were sent."""
    named = [replace(each, id=f"d{number}") for number, each in enumerate(found)]
    return tuple(delivery.mark_sent(each, each, "ref", NOW) for each in named)


def chat(terms: Ask = FINANCE_ONE) -> Approval:
    made = pending(terms)
    return replace(made, subject=made.subject._replace(run_id=CHAT))


def expired_approval(terms: Ask = FINANCE_ONE) -> Approval:
    return expire(pending(terms), at(NOW + Ask().expires_in)).state


# Where


@pytest.mark.parametrize(
    ("terms", "found"),
    [
        (Ask(channels=("#ops",)), ("#ops",)),
        (FINANCE_ONE, ("slack", "#finance-ops")),
        (replace(FINANCE_ONE, priority="high"), ("slack", "#finance-ops", "pager")),
        (Ask(channels=("pager",)), ("slack",)),
    ],
    ids=["the rule first", "action and team", "with the priority", "a channel that does not take it gives way"],
)
def test_what_leads_to_a_channel(terms: Ask, found: tuple[str, ...]) -> None:  # R26
    assert approval_channels(pending(terms), ALL) == found


def test_what_nothing_leads_from_goes_to_the_default() -> None:  # R26
    assert approval_channels(pending(FINANCE_ONE), BY_MAIL) == ("mail",)
    assert planned_targets(pending(), Routes()) == []


def test_a_teams_destination_replaces_the_channels_default() -> None:
    assert planned_targets(pending(FINANCE_ONE), ALL) == [("slack", "#finance-ops")]
    assert planned_targets(pending(), ALL) == [("slack",)]
    two = replace(ALL, capabilities={**CAPABILITIES, "other": SLACK}, priorities={"medium": ("other",)})
    assert planned_targets(pending(FINANCE_ONE), two) == [("other",), ("slack", "#finance-ops")]


def test_a_place_that_no_channel_has_gives_way() -> None:
    lost = replace(BY_MAIL, channels_by_origin={"finance": ("#finance-ops",)})
    assert planned_targets(pending(FINANCE_ONE), lost) == [("mail", "alice"), ("mail", "bob")]
    both = replace(FINANCE_ONE, channels=("mail", "#ops"))
    assert planned_targets(pending(both), BY_MAIL) == [("mail", "alice"), ("mail", "bob")]


def test_the_priority_that_counts_is_that_of_the_terms() -> None:
    edited = replace(pending(FINANCE_ONE), terms=replace(FINANCE_ONE, priority="high"))
    assert ("pager",) in planned_targets(edited, ALL)


# Recipients


def test_those_are_told_who_may_decide_and_have_an_address() -> None:
    nobody_at_home = (*EVERYBODY[1:], replace(PERSON["alice"], has_email=False))
    assert planned_targets(pending(FINANCE_ONE), BY_MAIL, people=nobody_at_home) == [("mail", "bob")]


def test_requester_and_editor_are_not_told_where_the_rule_excludes_them() -> None:  # R48
    terms = replace(FINANCE_ONE, stages=(Stage(),), exclude=frozenset({"requester", "editor"}))
    approval = replace(pending(terms), editors=("bob",))
    assert [each.name for each in missing_voters(approval, EVERYBODY)] == ["alice", "carol"]


def test_who_voted_is_not_asked_again_and_the_next_stage_is_told_when_it_opens() -> None:  # R48
    terms = Ask("two", (Stage(FINANCE), Stage(People(teams=frozenset({"legal"})))))
    approval = pending(terms)
    first = plan(approval, BY_MAIL)
    assert [each.target.person for each in first] == ["alice", "bob"]
    voted = decide(approval, approve(approval), ALICE, at()).state
    more = plan(voted, BY_MAIL, mark_all_sent(first))
    assert [(each.target.person, each.is_notifying) for each in more] == [
        ("alice", False),
        ("bob", False),
        ("carol", True),
    ]
    done = decide(voted, approve(voted), replace(BOB, name="carol", teams=frozenset({"legal"})), at()).state
    assert missing_voters(done, EVERYBODY) == ()


def test_the_delegate_of_an_absent_person_is_notified() -> None:  # R40
    lent = Delegation("bob", frozenset({"finance"}), "reviewer", users("carol"))
    away = replace(PERSON["bob"], away=True)
    stand_in = replace(PERSON["carol"], delegations_to_me=(lent,))
    assert [each.name for each in missing_voters(pending(FINANCE_ONE), (away, stand_in))] == ["carol"]
    voted = decide(pending(Ask("", (Stage(FINANCE, 2),))), approve(pending()), BOB, at()).state
    assert missing_voters(voted, (away, stand_in)) == ()


def test_of_a_quorum_only_what_is_missing_counts() -> None:  # R40
    terms = Ask("", (Stage(FINANCE, 2),))
    voted = decide(pending(terms), approve(pending()), ALICE, at()).state
    away = replace(PERSON["alice"], name="dan", away=True)
    assert [each.name for each in missing_voters(voted, (PERSON["bob"], away))] == ["bob"]


def test_a_team_can_be_a_delegate() -> None:  # R40
    lent = Delegation("bob", frozenset({"finance"}), "reviewer", People(teams=frozenset({"legal"})))
    stand_in = replace(PERSON["carol"], delegations_to_me=(lent,))
    terms = Ask("", (Stage(users("bob")),))
    assert [each.name for each in missing_voters(pending(terms), (replace(PERSON["bob"], away=True), stand_in))] == [
        "carol"
    ]


def test_who_is_away_is_told_if_the_others_are_too_few() -> None:
    away = replace(PERSON["bob"], away=True)
    names = [each.name for each in missing_voters(pending(Ask("", (Stage(FINANCE, 2),))), (PERSON["alice"], away))]
    assert names == ["alice", "bob"]


def test_a_delegation_tells_the_delegate() -> None:  # R40
    approval = pending(FINANCE_ONE)
    first = mark_all_sent(plan(approval, BY_MAIL))
    passed = delegate(approval, users("carol"), ALICE, at()).state
    fresh = [each.target.person for each in plan(passed, BY_MAIL, first) if not each.sent_state]
    assert fresh == ["carol"]
    reminded = replace(passed, timers=passed.timers._replace(reminded=1))
    loud = [each.target.person for each in plan(reminded, BY_MAIL, first) if each.is_notifying]
    assert loud == ["bob", "carol"]


def test_those_whose_vote_is_void_after_an_edit_are_asked_again() -> None:
    approval = pending(replace(FINANCE_ONE, stages=(Stage(FINANCE, 2),)))
    first = mark_all_sent(plan(approval, BY_MAIL))
    voted = decide(approval, approve(approval), ALICE, at()).state
    second = mark_all_sent(plan(voted, BY_MAIL, first))
    change: PreparedEdit = prepare_edit(voted)
    edited = decide(voted, edit(voted), BOB, at(), change).state
    assert edited.votes[0].by == "bob"
    assert [(each.target.person, each.is_notifying) for each in plan(edited, BY_MAIL, second)] == [
        ("alice", True),
        ("bob", False),
    ]


def test_somebody_who_left_is_told_nothing_more() -> None:
    approval = pending(FINANCE_ONE)
    waiting = tuple(plan(approval, BY_MAIL))
    [gone] = plan(approval, BY_MAIL, waiting, people=EVERYBODY[1:])
    assert (gone.target.person, gone.status) == ("alice", "dropped")
    assert plan(approval, BY_MAIL, mark_all_sent(list(waiting)), people=EVERYBODY[1:]) == []


def test_what_concerns_very_many_is_told_to_some() -> None:
    crowd = tuple(Contact(f"p{number}", "reviewer", frozenset({"finance"})) for number in range(MAX_DELIVERIES + 5))
    first = plan(pending(FINANCE_ONE), BY_MAIL, people=crowd)
    assert len(first) == MAX_DELIVERIES
    assert plan(pending(FINANCE_ONE), BY_MAIL, tuple(first), people=crowd) == []


# In a chat


def test_a_chat_call_notifies_only_its_approvers() -> None:
    assert planned_targets(chat(Ask()), BY_MAIL) == []
    assert planned_targets(chat(), BY_MAIL) == [("mail", "alice"), ("mail", "bob")]
    assert planned_targets(chat(Ask(channels=("mail",))), BY_MAIL) == [
        ("mail", "alice"),
        ("mail", "bob"),
        ("mail", "carol"),
    ]
    assert len(planned_targets(chat(Ask("", (Stage(None, 2),))), BY_MAIL)) == 3
    assert len(planned_targets(chat(Ask(exclude=frozenset({"requester"}))), BY_MAIL)) == 3


def test_a_run_id_that_only_looks_like_a_chat_is_routed_normally() -> None:
    made = pending()
    posing = replace(made, subject=made.subject._replace(run_id="thread-7"))
    assert len(planned_targets(posing, BY_MAIL)) == 4


# Escalation


def escalated_approval(escalated: int, *steps: EscalationStep) -> Approval:
    return replace(pending(replace(FINANCE_ONE, escalation_steps=steps)), timers=TimerProgress(escalated=escalated))


def test_each_rung_tells_its_people_and_its_channels() -> None:  # R28
    steps = (EscalationStep(1, users("carol")), EscalationStep(2, People(teams=frozenset({"legal"})), ("#leads",)))
    routes = Routes({"mail": MAIL, "slack": SLACK}, "mail")
    first = plan(escalated_approval(0, *steps), routes)
    assert [each.target.person for each in first] == ["alice", "bob"]
    one = plan(escalated_approval(1, *steps), routes, mark_all_sent(first))
    assert [(each.target.person, each.reason) for each in one if not each.sent_state] == [("carol", "escalated")]
    two = plan(escalated_approval(2, *steps), routes, mark_all_sent([*first, one[-1]]))
    assert [each.target for each in two if not each.sent_state] == [DeliveryTarget("slack", "#leads")]
    assert [each.target.person for each in two if each.is_notifying] == ["carol", ""]


def test_every_rung_that_was_climbed_counts() -> None:
    steps = (
        EscalationStep(1, channels=("slack",)),
        EscalationStep(2, channels=("#leads",)),
        EscalationStep(3, channels=("pager",)),
    )
    assert planned_targets(escalated_approval(2, *steps), Routes(CAPABILITIES)) == [("slack",), ("slack", "#leads")]


def test_the_teams_of_the_stage_that_is_open_lead_the_way() -> None:  # R26
    terms = Ask("", (Stage(FINANCE), Stage(People(teams=frozenset({"legal"})))))
    voted = decide(pending(terms), approve(pending()), ALICE, at()).state
    by_team = Routes({"slack": SLACK}, channels_by_origin={"finance": ("#finance-ops",), "legal": ("#legal",)})
    assert (approval_channels(pending(terms), by_team), approval_channels(voted, by_team)) == (
        ("#finance-ops",),
        ("#legal",),
    )


def test_a_rung_without_channels_is_told_where_its_teams_and_escalations_are() -> None:
    leads = People(teams=frozenset({"legal"}))
    routes = replace(ALL, channels_by_origin={"legal": ("#legal",)}, escalation="slack", default="mail")
    found = planned_targets(escalated_approval(1, EscalationStep(1, leads)), routes)
    assert found == [("mail", "alice"), ("mail", "bob"), ("mail", "carol"), ("slack", "#legal")]
    assert planned_targets(escalated_approval(1, EscalationStep(1, leads)), BY_MAIL) == [
        ("mail", "alice"),
        ("mail", "bob"),
        ("mail", "carol"),
    ]


def test_a_rung_that_leads_where_it_was_told_already_makes_a_noise_there() -> None:
    room = Routes({"room": ChannelCapabilities()}, "room")
    escalation_step = EscalationStep(1, users("carol"))
    first = mark_all_sent(plan(escalated_approval(0, escalation_step), room))
    [again] = plan(escalated_approval(1, escalation_step), room, first)
    assert (again.is_notifying, again.target) == (True, DeliveryTarget("room"))


def test_a_rung_for_a_channel_alone_tells_everybody_whose_vote_is_missing() -> None:
    found = planned_targets(
        escalated_approval(1, EscalationStep(1, channels=("mail",))),
        replace(ALL, default="slack", channels_by_origin={}),
    )
    assert found == [("slack",), ("mail", "alice"), ("mail", "bob")]


# When time runs out


def test_the_escalation_channel_and_the_requester_hear_that_time_ran_out() -> None:  # R28
    routes = replace(BY_MAIL, capabilities={"mail": MAIL, "room": ChannelCapabilities()}, escalation="room")
    found = plan(expired_approval(), routes, mark_all_sent(plan(pending(FINANCE_ONE), routes)))
    notices = [(each.target.channel, each.target.person) for each in found if each.reason == "expired"]
    assert notices == [("room", ""), ("mail", "rita")]
    assert {each.id for each in found if each.reason == "expired"} == {""}
    unsaid = tuple(replace(each, id=f"d{number}") for number, each in enumerate(found))
    assert plan(expired_approval(), routes, unsaid) == []
    assert plan(expired_approval(), routes, mark_all_sent(found)) == []


def test_a_notice_by_mail_goes_to_those_who_could_have_decided() -> None:
    routes = replace(BY_MAIL, escalation="mail")
    assert planned_targets(expired_approval(), routes) == [("mail", "alice"), ("mail", "bob"), ("mail", "rita")]
    assert planned_targets(expired_approval(), replace(routes, notify_on_expiry=False)) == []


def test_who_was_not_told_while_it_waited_hears_that_time_ran_out() -> None:  # R28
    routes = replace(BY_MAIL, escalation="mail")
    waiting = tuple(plan(pending(FINANCE_ONE), routes))
    assert {each.id for each in waiting} == {""}
    found = [(each.target.person, each.reason, each.status) for each in plan(expired_approval(), routes, waiting)]
    assert found[:3] == [("alice", "asked", "dropped"), ("bob", "asked", "dropped"), ("alice", "expired", "due")]


def test_where_there_is_a_message_that_one_says_it() -> None:
    routes = Routes({"room": ChannelCapabilities()}, "room", escalation="room")
    [ended] = plan(expired_approval(), routes, mark_all_sent(plan(pending(FINANCE_ONE), routes)))
    assert (ended.reason, ended.is_notifying) == ("asked", False)


def test_no_notice_for_what_ended_otherwise_or_in_front_of_the_requester() -> None:
    routes = replace(BY_MAIL, escalation="mail")
    lapsed = approval_in_status("expired", decision=DecisionRecord("approve", "bob", NOW))
    by_rule = expire(pending(replace(FINANCE_ONE, on_expiry="approve")), at(NOW + Ask().expires_in)).state
    assert (by_rule.status, planned_targets(by_rule, routes), planned_targets(lapsed, routes)) == ("approved", [], [])
    assert planned_targets(approval_in_status("expired"), routes) == []
    ended = expire(chat(), at(NOW + Ask().expires_in)).state
    assert planned_targets(ended, BY_MAIL) == []


# Quiet hours


def local_time(text: str, zone: str = "Europe/Berlin", fold: int = 0) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp() * 1000)


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-06-01T21:59", None),
        ("2026-06-01T22:00", "2026-06-02T07:00"),
        ("2026-06-02T06:59", "2026-06-02T07:00"),
        ("2026-06-02T07:00", None),
        ("2026-03-28T23:00", "2026-03-29T07:00"),  # the night in which an hour is missing
        ("2026-10-24T23:00", "2026-10-25T07:00"),  # and the one in which an hour comes twice
    ],
)
def test_quiet_hours_over_midnight(now: str, end: str | None) -> None:
    assert quiet_end(QUIET_HOURS, local_time(now)) == (local_time(end) if end else None)


def test_quiet_hours_within_a_day() -> None:
    noon = QuietPeriod(time(12), time(13), ZoneInfo("UTC"))
    assert quiet_end(noon, local_time("2026-06-01T12:30", "UTC")) == local_time("2026-06-01T13:00", "UTC")
    assert quiet_end(noon, local_time("2026-06-01T12:00", "UTC")) == local_time("2026-06-01T13:00", "UTC")
    assert quiet_end(noon, local_time("2026-06-01T13:00", "UTC")) is None
    assert quiet_end(replace(noon, end=time(12)), local_time("2026-06-01T12:00", "UTC")) is None


def test_an_end_that_comes_twice_is_not_in_the_past() -> None:
    early = QuietPeriod(time(22), time(2, 30), ZoneInfo("Europe/Berlin"))
    first, again = local_time("2026-10-25T02:15"), local_time("2026-10-25T02:15", fold=1)
    assert quiet_end(early, first) == local_time("2026-10-25T02:30")
    assert quiet_end(early, again) == local_time("2026-10-25T02:30", fold=1)


@given(
    st.integers(0, 2**41),
    st.times().map(lambda each: each.replace(second=0, microsecond=0)),
    st.times().map(lambda each: each.replace(second=0, microsecond=0)),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]),
)
def test_quiet_hours_end_within_a_day_and_outside_of_them(now: int, start: time, end: time, zone: str) -> None:
    assume(start != end)
    found = quiet_end(QuietPeriod(start, end, ZoneInfo(zone)), now)
    here = datetime.fromtimestamp(now / 1000, UTC).astimezone(ZoneInfo(zone)).time()
    minutes = (here.hour * 60 + here.minute - start.hour * 60 - start.minute) % 1440
    length = (end.hour * 60 + end.minute - start.hour * 60 - start.minute) % 1440
    assert (found is not None) == (minutes < length)
    assert found is None or now < found <= now + 26 * 3_600_000


@pytest.mark.parametrize(
    ("terms", "escalated", "expires_at", "waits"),
    [
        ({"priority": "low"}, 0, "2026-06-03T00:00", True),
        ({"priority": "medium"}, 0, "2026-06-03T00:00", True),
        ({"priority": "high"}, 0, "2026-06-03T00:00", False),
        ({"priority": "low"}, 1, "2026-06-03T00:00", False),
        ({"priority": "low"}, 0, "2026-06-02T07:00", False),
    ],
    ids=["low", "medium", "high", "escalated", "over by then"],
)
def test_at_night_what_can_wait_waits(
    terms: dict[str, Any], escalated: int, expires_at: str, waits: bool
) -> None:  # R28
    routes = Routes({"room": ChannelCapabilities()}, "room", quiet=QUIET_HOURS)
    now = local_time("2026-06-01T23:00")
    approval = replace(
        pending(replace(FINANCE_ONE, escalation_steps=(EscalationStep(1, users("carol")),), **terms)),
        timers=TimerProgress(escalated=escalated),
        deadlines=ApprovalDeadlines(expires_at=local_time(expires_at)),
    )
    due = [each.due_at for each in plan(approval, routes, now=now)]
    assert due == [local_time("2026-06-02T07:00") if waits else now]
    reminded = plan(
        replace(approval, timers=approval.timers._replace(reminded=1)),
        routes,
        mark_all_sent(plan(approval, routes)),
        now=now,
    )
    assert [each.due_at for each in reminded] == due


def test_a_notice_waits_for_the_morning_too() -> None:
    routes = Routes({"room": ChannelCapabilities()}, "mail", quiet=QUIET_HOURS, escalation="room")
    [notice] = plan(expired_approval(), routes, now=local_time("2026-06-01T23:00"))
    assert notice.due_at == local_time("2026-06-02T07:00")


# At the start


def test_what_would_reach_nobody_is_a_gap() -> None:  # R26
    assert (find_unreachable(Routes()), find_unreachable(ALL)) == ([], [])
    pager = Routes(
        {"pager": PAGER},
        "pager",
        priorities={"low": ("pager", "#x")},
        channels_by_origin={"finance": ("pager",), "legal": ("#legal",)},
        quiet=None,
        escalation="#ops",
    )
    assert find_unreachable(pager) == [
        "no channel of pager, #x takes the priority low",
        "no channel of pager takes the priority medium",
        "no channel of finance takes the priority low, medium",
        "no channel of legal takes the priority low, medium, high",
        "the escalation leads to #ops, and no channel has such places",
    ]


def test_what_leads_to_each_channel_can_be_told() -> None:
    assert channel_origins(ALL) == {
        "mail": ["everything else"],
        "slack": ["finance (#finance-ops)", "pay"],
        "pager": ["the priority high", "escalation"],
    }
    assert channel_origins(Routes()) == {}


ENGINE_ROUTES = Routes({"mail": MAIL, "flows": ChannelCapabilities(priorities=frozenset(), engine="restate")}, "mail")


def workflow_approval(status: str = "approved", run_id: str = "restate:inv_1", **more: Any) -> Approval:
    approval = approval_in_status(status, **more)
    return replace(approval, subject=approval.subject._replace(run_id=run_id))


def planned_wakeups(
    approval: Approval, known: tuple[Delivery, ...] = (), routes: Routes = ENGINE_ROUTES
) -> list[Delivery]:
    return [each for each in plan(approval, routes, known) if each.reason == "woken"]


@pytest.mark.parametrize("status", ["approved", "responded", "expired", "cancelled", "succeeded", "unknown"])
def test_a_workflow_is_woken_once_when_its_call_is_decided(status: str) -> None:
    assert planned_wakeups(workflow_approval("pending")) == []
    [wake] = planned_wakeups(workflow_approval(status))
    assert (wake.target, wake.due_at, wake.is_notifying) == (DeliveryTarget("flows"), NOW, False)
    assert planned_wakeups(workflow_approval(status), (wake,)) == []


def test_a_rejection_wakes_when_it_stands_and_one_that_was_taken_back_does_not() -> None:
    [wake] = planned_wakeups(workflow_approval("rejected"))
    assert wake.due_at == NOW + 8_000
    [dropped] = planned_wakeups(workflow_approval("pending"), (wake,))
    assert (dropped.status, dropped.due_at) == ("dropped", None)
    [again] = planned_wakeups(workflow_approval("approved"), (dropped,))
    assert (again.status, again.due_at) == ("due", NOW)


def test_a_decision_after_one_that_was_taken_back_wakes_also_whoever_was_woken_too_soon() -> None:
    [wake] = planned_wakeups(workflow_approval("rejected"))
    sent = delivery.mark_sent(replace(wake, id="1", status="sending"), replace(wake, id="1"), "ref", NOW)
    [dropped] = planned_wakeups(workflow_approval("pending"), (sent,))
    [again] = planned_wakeups(workflow_approval("rejected"), (dropped,))
    assert (again.status, again.due_at) == ("due", NOW + 8_000)
    assert again.message_id != sent.message_id  # a channel that takes each message once takes this one too


def test_a_wake_up_in_somebodys_hands_is_sent_again_if_another_decision_came_meanwhile() -> None:
    [wake] = planned_wakeups(workflow_approval("rejected"))
    held = delivery.lease(replace(wake, id="1"), "runner", NOW)
    [taken_back] = planned_wakeups(workflow_approval("pending"), (held,))
    assert (taken_back.status, delivery.postpone_wakeup(taken_back, NOW).status) == ("sending", "dropped")
    [decided] = planned_wakeups(workflow_approval("approved"), (taken_back,))
    for after in (delivery.mark_sent(decided, held, "ref", NOW), delivery.postpone_wakeup(decided, NOW)):
        assert after.status == "due"
    assert planned_wakeups(workflow_approval("succeeded"), (held,)) == []


@pytest.mark.parametrize("run_id", ["run-1", "temporal:wf", "restate", "restated:x", ":restate", "thread-restate:x"])
def test_only_workflows_of_that_engine_are_woken(run_id: str) -> None:
    assert planned_wakeups(workflow_approval(run_id=run_id)) == []


def test_what_leads_to_a_channel_that_wakes_is_its_engine() -> None:
    assert channel_origins(ENGINE_ROUTES) == {
        "mail": ["everything else"],
        "flows": ["decisions that restate waits for"],
    }


def test_what_nobody_was_asked_about_wakes_nobody() -> None:
    for decided in (DecisionRecord("approve", "policy", NOW), DecisionRecord("approve", "ada", NOW, via="grant")):
        assert planned_wakeups(workflow_approval(decision=decided)) == []
