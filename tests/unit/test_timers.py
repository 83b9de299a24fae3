"""Timers of an approval: reminders, escalation and expiry."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.approval.approval import Approval, TimerProgress
from interlock.core.approval.timers import Timer, fire_next_timer, next_timer_at, pending_timers
from interlock.core.ledger.event import SYSTEM_ACTOR, Change
from interlock.core.policy.policy import HALF_TIME, Ask, EscalationStep
from tests.unit.builders import FINANCE, LEASE, NOW, approval_in_status, at, pending, users

ESCALATION_STEPS = (EscalationStep(20, users("zoe", "ann"), ("pager",)), EscalationStep(40, FINANCE))
FULL = Ask("r", expires_in=100, escalation_steps=ESCALATION_STEPS, remind=(10, 20, 30))


# R28
def test_a_pending_call_is_reminded_of_escalated_and_ended_in_order() -> None:
    assert [(due.at - NOW, due.action) for due in pending_timers(pending(FULL))] == [
        (10, "remind"),
        (20, "escalate"),
        (20, "remind"),
        (30, "remind"),
        (40, "escalate"),
        (100, "expire"),
    ]


# R28
def test_what_would_come_at_the_deadline_or_later_does_not_come() -> None:
    terms = Ask(expires_in=30, escalation_steps=(EscalationStep(30, FINANCE),), remind=(29, 30, 31))
    assert pending_timers(pending(terms)) == (Timer(NOW + 29, "remind"), Timer(NOW + 30, "expire"))


@pytest.mark.parametrize(
    ("approval", "due"),
    [
        (approval_in_status("approved"), (Timer(NOW + 3_600_000, "expire_start"),)),
        (approval_in_status("approved", start_by=None), (Timer(0, "expire_start"),)),
        (approval_in_status("running"), (Timer(NOW + LEASE, "lease_expired"),)),
        (approval_in_status("running", until=None), (Timer(0, "lease_expired"),)),
        (approval_in_status("running", idempotent=True), (Timer(NOW + 3_600_000, "lease_expired"),)),
        (approval_in_status("running", idempotent=True, start_by=NOW), (Timer(NOW + LEASE, "lease_expired"),)),
        *(
            (approval_in_status(status), ())
            for status in ("rejected", "responded", "expired", "cancelled", "failed", "unknown")
        ),
    ],
)
def test_what_time_will_do(approval: Approval, due: tuple[Timer, ...]) -> None:
    assert pending_timers(approval) == due
    assert next_timer_at(approval) == (due[0].at if due else None)


@given(
    st.lists(st.integers(0, 120), max_size=4),
    st.lists(st.integers(0, 120), max_size=3),
    st.integers(0, 4),
    st.integers(0, 3),
    st.integers(0, 50),
)
def test_what_is_due_first_is_the_first_of_the_timetable(
    remind: list[int], steps: list[int], reminded: int, escalated: int, deferred: int
) -> None:
    terms = Ask(expires_in=100, remind=tuple(remind), escalation_steps=tuple(EscalationStep(after) for after in steps))
    new = pending(terms)
    deadlines = new.deadlines._replace(deferred=deferred)
    approval = replace(new, timers=TimerProgress(reminded=reminded, escalated=escalated), deadlines=deadlines)
    assert next_timer_at(approval) == pending_timers(approval)[0].at


# R28, R44
def test_a_reminder_is_counted_and_told() -> None:
    change = fire_next_timer(pending(FULL), at(NOW + 10))
    assert (change.state.timers.reminded, change.state.timers.escalated, change.state.version) == (1, 0, 2)
    (event,) = change.events
    assert (event.kind, event.actor, event.content) == ("reminded", SYSTEM_ACTOR, None)
    assert event.data == {"status": "pending", "binding": change.state.binding, "reminder": 1}


# R28, R44
def test_an_escalation_says_whom_it_reaches() -> None:
    change = fire_next_timer(replace(pending(FULL), timers=TimerProgress(reminded=1)), at(NOW + 20))
    assert (change.state.timers.reminded, change.state.timers.escalated, change.state.version) == (1, 1, 2)
    (event,) = change.events
    assert (event.kind, event.data["rung"], event.data["status"]) == ("escalated", 1, "pending")
    assert event.content == {"users": ["ann", "zoe"], "teams": [], "channels": ["pager"]}


@pytest.mark.parametrize(
    ("approval", "first"),
    [
        (pending(Ask(expires_in=50)), NOW + 50),
        (approval_in_status("approved"), NOW + 3_600_000),
        (approval_in_status("running"), NOW + LEASE),
        (approval_in_status("running", idempotent=True), NOW + 3_600_000),
    ],
)
def test_nothing_happens_a_millisecond_too_early(approval: Approval, first: int) -> None:
    assert fire_next_timer(approval, at(first - 1)) == Change(approval)
    assert fire_next_timer(approval, at(first)).state.status in {"expired", "unknown"}


# R5, R28
@pytest.mark.parametrize("window", [600_000, 86_400_000])
def test_people_are_reminded_once_when_half_of_the_time_has_passed(window: int) -> None:
    waiting = pending(Ask(expires_in=window, remind=(HALF_TIME,)))
    assert [(due.at - NOW, due.action) for due in pending_timers(waiting)] == [
        (window // 2, "remind"),
        (window, "expire"),
    ]
    reminded = fire_next_timer(waiting, at(NOW + window // 2))
    assert [event.kind for event in reminded.events] == ["reminded"]
    assert [due.action for due in pending_timers(reminded.state)] == ["expire"]


# R28
def test_time_ends_what_nobody_ended() -> None:
    assert fire_next_timer(pending(), at(NOW + Ask().expires_in)).events[0].kind == "expired"
    assert fire_next_timer(approval_in_status("approved"), at(NOW + 3_600_000)).events[0].kind == "lapsed"
    assert fire_next_timer(approval_in_status("running"), at(NOW + LEASE)).events[0].kind == "lost"
    assert fire_next_timer(pending(Ask(on_expiry="approve")), at(NOW + Ask().expires_in)).state.status == "approved"


# R46
def test_a_dead_runner_is_noticed_before_its_lease_ends() -> None:
    assert fire_next_timer(approval_in_status("running"), at(NOW), runner_is_dead=True).state.status == "unknown"
    again = approval_in_status("running", idempotent=True)
    assert fire_next_timer(again, at(NOW), runner_is_dead=True) == Change(again), "it waits to be started again"
    waiting = pending()
    assert fire_next_timer(waiting, at(NOW), runner_is_dead=True) == Change(waiting)


@pytest.mark.parametrize("status", ["rejected", "responded", "expired", "cancelled", "succeeded", "failed", "unknown"])
def test_time_leaves_alone_what_has_ended(status: str) -> None:
    approval = approval_in_status(status)
    assert fire_next_timer(approval, at(NOW + 10**12)) == Change(approval)


# R28
@given(st.lists(st.integers(1, 60), unique=True, max_size=4), st.lists(st.integers(1, 60), unique=True, max_size=3))
def test_ticking_to_the_end_does_each_thing_once_and_in_time(remind: list[int], steps: list[int]) -> None:
    escalation_steps = tuple(EscalationStep(after, users(str(after))) for after in sorted(steps))
    approval = pending(Ask(expires_in=50, remind=tuple(sorted(remind)), escalation_steps=escalation_steps))
    done: list[tuple[int, str]] = []
    while (due := next_timer_at(approval)) is not None:
        change = fire_next_timer(approval, at(due))
        assert change.state.version == approval.version + 1
        done.append((due - NOW, change.events[0].kind))
        approval = change.state
    expected = [(t, "reminded") for t in remind if t < 50] + [(t, "escalated") for t in steps if t < 50]
    assert sorted(done[:-1]) == sorted(expected)
    assert done == sorted(done, key=lambda each: each[0])
    assert done[-1] == (50, "expired")
