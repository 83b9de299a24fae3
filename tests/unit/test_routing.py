"""Time's part, as a timetable."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.approval.approval import Approval
from interlock.core.approval.timers import Due, due_at, tick, timetable
from interlock.core.ledger.event import TIME, Change
from interlock.core.policy.policy import HALF_TIME, Ask, Rung
from tests.unit.builders import FINANCE, LEASE, NOW, at, in_status, pending, users

LADDER = (Rung(20, users("zoe", "ann"), ("pager",)), Rung(40, FINANCE))
FULL = Ask("r", expires_in=100, ladder=LADDER, remind=(10, 20, 30))


# R28
def test_a_pending_call_is_reminded_of_escalated_and_ended_in_order() -> None:
    assert [(due.at - NOW, due.what) for due in timetable(pending(FULL))] == [
        (10, "remind"),
        (20, "escalate"),
        (20, "remind"),
        (30, "remind"),
        (40, "escalate"),
        (100, "expire"),
    ]


# R28
def test_what_would_come_at_the_deadline_or_later_does_not_come() -> None:
    terms = Ask(expires_in=30, ladder=(Rung(30, FINANCE),), remind=(29, 30, 31))
    assert timetable(pending(terms)) == (Due(NOW + 29, "remind"), Due(NOW + 30, "expire"))


@pytest.mark.parametrize(
    ("approval", "due"),
    [
        (in_status("approved"), (Due(NOW + 3_600_000, "lapse"),)),
        (in_status("approved", start_by=None), (Due(0, "lapse"),)),
        (in_status("running"), (Due(NOW + LEASE, "lose"),)),
        (in_status("running", lease_until=None), (Due(0, "lose"),)),
        (in_status("running", idempotent=True), (Due(NOW + 3_600_000, "lose"),)),
        (in_status("running", idempotent=True, start_by=NOW), (Due(NOW + LEASE, "lose"),)),
        *((in_status(status), ()) for status in ("rejected", "responded", "expired", "cancelled", "failed", "unknown")),
    ],
)
def test_what_time_will_do(approval: Approval, due: tuple[Due, ...]) -> None:
    assert timetable(approval) == due
    assert due_at(approval) == (due[0].at if due else None)


@given(
    st.lists(st.integers(0, 120), max_size=4),
    st.lists(st.integers(0, 120), max_size=3),
    st.integers(0, 4),
    st.integers(0, 3),
    st.integers(0, 50),
)
def test_what_is_due_first_is_the_first_of_the_timetable(
    remind: list[int], rungs: list[int], reminded: int, escalated: int, deferred: int
) -> None:
    terms = Ask(expires_in=100, remind=tuple(remind), ladder=tuple(Rung(after) for after in rungs))
    approval = replace(pending(terms), reminded=reminded, escalated=escalated, deferred=deferred)
    assert due_at(approval) == timetable(approval)[0].at


# R28, R44
def test_a_reminder_is_counted_and_told() -> None:
    change = tick(pending(FULL), at(NOW + 10))
    assert (change.state.reminded, change.state.escalated, change.state.version) == (1, 0, 2)
    (event,) = change.events
    assert (event.kind, event.actor, event.content) == ("reminded", TIME, None)
    assert event.data == {"status": "pending", "binding": change.state.binding, "reminder": 1}


# R28, R44
def test_an_escalation_says_whom_it_reaches() -> None:
    change = tick(replace(pending(FULL), reminded=1), at(NOW + 20))
    assert (change.state.reminded, change.state.escalated, change.state.version) == (1, 1, 2)
    (event,) = change.events
    assert (event.kind, event.data["rung"], event.data["status"]) == ("escalated", 1, "pending")
    assert event.content == {"users": ["ann", "zoe"], "teams": [], "channels": ["pager"]}


@pytest.mark.parametrize(
    ("approval", "first"),
    [
        (pending(Ask(expires_in=50)), NOW + 50),
        (in_status("approved"), NOW + 3_600_000),
        (in_status("running"), NOW + LEASE),
        (in_status("running", idempotent=True), NOW + 3_600_000),
    ],
)
def test_nothing_happens_a_millisecond_too_early(approval: Approval, first: int) -> None:
    assert tick(approval, at(first - 1)) == Change(approval)
    assert tick(approval, at(first)).state.status in {"expired", "unknown"}


# R5, R28
@pytest.mark.parametrize("window", [600_000, 86_400_000])
def test_people_are_reminded_once_when_half_of_the_time_has_passed(window: int) -> None:
    waiting = pending(Ask(expires_in=window, remind=(HALF_TIME,)))
    assert [(due.at - NOW, due.what) for due in timetable(waiting)] == [(window // 2, "remind"), (window, "expire")]
    reminded = tick(waiting, at(NOW + window // 2))
    assert [event.kind for event in reminded.events] == ["reminded"]
    assert [due.what for due in timetable(reminded.state)] == ["expire"]


# R28
def test_time_ends_what_nobody_ended() -> None:
    assert tick(pending(), at(NOW + Ask().expires_in)).events[0].kind == "expired"
    assert tick(in_status("approved"), at(NOW + 3_600_000)).events[0].kind == "lapsed"
    assert tick(in_status("running"), at(NOW + LEASE)).events[0].kind == "lost"
    assert tick(pending(Ask(on_expiry="approve")), at(NOW + Ask().expires_in)).state.status == "approved"


# R46
def test_a_dead_runner_is_noticed_before_its_lease_ends() -> None:
    assert tick(in_status("running"), at(NOW), runner_is_dead=True).state.status == "unknown"
    again = in_status("running", idempotent=True)
    assert tick(again, at(NOW), runner_is_dead=True) == Change(again), "it waits to be started again"
    waiting = pending()
    assert tick(waiting, at(NOW), runner_is_dead=True) == Change(waiting)


@pytest.mark.parametrize("status", ["rejected", "responded", "expired", "cancelled", "succeeded", "failed", "unknown"])
def test_time_leaves_alone_what_has_ended(status: str) -> None:
    approval = in_status(status)
    assert tick(approval, at(NOW + 10**12)) == Change(approval)


# R28
@given(st.lists(st.integers(1, 60), unique=True, max_size=4), st.lists(st.integers(1, 60), unique=True, max_size=3))
def test_ticking_to_the_end_does_each_thing_once_and_in_time(remind: list[int], rungs: list[int]) -> None:
    ladder = tuple(Rung(after, users(str(after))) for after in sorted(rungs))
    approval = pending(Ask(expires_in=50, remind=tuple(sorted(remind)), ladder=ladder))
    done: list[tuple[int, str]] = []
    while (due := due_at(approval)) is not None:
        change = tick(approval, at(due))
        assert change.state.version == approval.version + 1
        done.append((due - NOW, change.events[0].kind))
        approval = change.state
    expected = [(t, "reminded") for t in remind if t < 50] + [(t, "escalated") for t in rungs if t < 50]
    assert sorted(done[:-1]) == sorted(expected)
    assert done == sorted(done, key=lambda each: each[0])
    assert done[-1] == (50, "expired")
