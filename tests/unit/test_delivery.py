"""A delivery: what it has to say, what became of it, and how many go at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.approval.approval import TimerProgress
from interlock.core.call import PRIORITIES
from interlock.core.errors import Conflict
from interlock.core.notify import delivery as deliveries
from interlock.core.notify.delivery import (
    GIVE_UP_AFTER,
    LEASE,
    RETRY_DELAYS,
    Delivery,
    DeliveryTarget,
    group_by_target,
)
from interlock.runtime.durations import MINUTE
from tests.unit.builders import NOW, TWO_OF_FINANCE, in_status, pending, with_fields

ROOM = DeliveryTarget("room")
LATER = NOW + 3_600_000


def made(**more: Any) -> Delivery:
    return replace(deliveries.new_delivery(ROOM, "d1", pending(), "asked", NOW, NOW), **more)


def told(**more: Any) -> Delivery:
    first = made()
    done = deliveries.lease(first, "r1", NOW)
    return replace(deliveries.mark_sent(done, done, "ref", NOW), **more)


def follow(delivery: Delivery, rung: int | None = 0, **changes: Any) -> Delivery:
    return deliveries.update_delivery(delivery, with_fields(pending(), **changes), LATER, LATER + 1, rung)


def test_a_new_one_is_loud_and_due() -> None:
    delivery = made()
    assert (delivery.is_notifying, delivery.status, delivery.due_at) == (True, "due", NOW)


def test_what_was_said_is_done_until_something_changes() -> None:
    delivery = told()
    assert (delivery.status, delivery.due_at, delivery.ref, delivery.sent_at) == ("sent", None, "ref", NOW)
    assert follow(delivery) == delivery
    changed = follow(delivery, delegations=("one",))
    assert (changed.status, changed.due_at, changed.is_notifying) == ("due", LATER, False)


def test_a_call_that_runs_looks_like_one_that_is_approved() -> None:
    approved = follow(told(), status="approved")
    assert (
        deliveries.update_delivery(approved, in_status("running"), LATER, LATER, None).desired_state
        == approved.desired_state
    )


def test_every_try_to_say_the_same_has_the_same_id() -> None:  # R24
    delivery = told()
    again = deliveries.mark_failed(deliveries.lease(follow(delivery, reminded=1), "r2", LATER), "down", LATER)
    assert again.message_id == follow(delivery, reminded=1).message_id != delivery.message_id


@pytest.mark.parametrize(
    ("rung", "changes"),
    [(0, {"reminded": 1}), (0, {"args_sha256": "f" * 64}), (1, {"escalated": 1})],
    ids=["a reminder", "other arguments", "a rung that names them"],
)
def test_who_was_told_is_disturbed_again_by(rung: int, changes: dict[str, Any]) -> None:  # R28
    delivery = follow(told(), rung, **changes)
    assert (delivery.is_notifying, delivery.status, delivery.due_at) == (True, "due", LATER + 1)
    done = deliveries.mark_sent(deliveries.lease(delivery, "r1", LATER + 1), delivery, "ref", LATER + 1)
    assert (done.status, done.is_notifying, done.sent_at) == ("sent", False, LATER + 1)


def test_other_arguments_than_those_that_were_told_are_noticed() -> None:
    assert deliveries.is_revised(follow(told(), args_sha256="f" * 64))
    assert not deliveries.is_revised(follow(told(), reminded=1))
    assert not deliveries.is_revised(made())
    assert not deliveries.is_revised(deliveries.make_test_delivery("default", "d1", ROOM, "ada", NOW))


def test_who_has_nothing_to_do_any_more_is_not_reminded() -> None:
    delivery = told()
    assert follow(delivery, None, reminded=1) == delivery
    waiting = follow(delivery, reminded=1)
    assert follow(waiting, None, reminded=1).is_notifying is False


def test_a_rung_that_names_somebody_else_changes_the_message_quietly() -> None:
    assert follow(told(), 0, escalated=1).is_notifying is False


@pytest.mark.parametrize(("rung", "status"), [(None, "pending"), (0, "approved"), (0, "expired")])
def test_what_nobody_heard_of_and_nobody_needs_is_dropped(rung: int | None, status: str) -> None:
    delivery = follow(made(), rung, status=status)
    assert (delivery.status, delivery.due_at) == ("dropped", None)
    assert follow(delivery, rung, status=status) == delivery


def test_what_was_dropped_is_told_when_it_is_open_again() -> None:
    dropped = follow(made(), status="rejected")
    again = follow(dropped)
    assert (again.status, again.due_at, again.is_notifying) == ("due", LATER + 1, True)
    assert follow(told(status="dropped")).is_notifying is True


def test_one_of_many_gets_a_message_of_its_own_when_it_has_to_be_looked_at_again() -> None:
    one = deliveries.mark_batched(made())
    assert (one.status, one.due_at) == ("grouped", None)
    assert follow(one, delegations=("one",)) == one
    assert follow(one, status="approved") == one
    again = follow(one, reminded=1)
    assert (again.status, again.sent_state, again.is_notifying) == ("due", "", True)


def test_what_is_being_sent_is_looked_at_afterwards() -> None:
    sending = deliveries.lease(made(), "r1", NOW)
    assert (sending.status, sending.due_at, sending.fence) == ("sending", NOW + LEASE, 1)
    changed = follow(sending, status="approved")
    assert (changed.status, changed.due_at) == ("sending", NOW + LEASE)
    after = deliveries.mark_sent(changed, sending, "ref", LATER)
    assert (after.status, after.due_at, after.sent_state) == ("due", LATER, sending.desired_state)


def test_what_nobody_tried_is_due_again() -> None:
    released = deliveries.release(deliveries.lease(made(), "r1", NOW), LATER)
    assert (released.status, released.due_at, released.runner) == ("due", LATER, "")


def test_what_a_dead_runner_had_counts_as_told() -> None:
    sending = deliveries.lease(made(), "r1", NOW)
    lost = deliveries.release_unconfirmed(sending, LATER)
    assert (lost.status, lost.due_at, lost.sent_at) == ("due", LATER, LATER)
    quiet = deliveries.lease(follow(told(), status="approved"), "r1", NOW)
    assert deliveries.release_unconfirmed(quiet, LATER).sent_at == NOW


def test_what_ended_while_it_could_not_be_sent_needs_no_other_try() -> None:
    sending = follow(deliveries.lease(made(), "r1", NOW), status="approved")
    for reason in ("asked", "escalated"):
        assert deliveries.mark_failed(replace(sending, reason=reason), "down", LATER).status == "dropped"
    assert deliveries.mark_failed(replace(sending, reason="group", desired_state="3"), "down", LATER).status == "due"


def test_a_notice_does_not_change() -> None:
    notice = told(reason="expired")
    assert follow(notice, status="expired", reminded=3) == notice


def test_who_is_gone_is_told_nothing_more() -> None:
    assert deliveries.drop(made()).status == "dropped"
    assert deliveries.drop(told()) == told()
    sending = deliveries.lease(made(), "r1", NOW)
    assert deliveries.drop(sending) == sending


def test_a_failure_is_tried_again_later_and_later() -> None:
    delivery = made()
    waits = []
    for _ in range(len(RETRY_DELAYS) + 1):
        delivery = deliveries.mark_failed(delivery, "down", NOW)
        waits.append((delivery.due_at or 0) - NOW)
    assert waits == [1000 * wait for wait in (*RETRY_DELAYS, RETRY_DELAYS[-1])]
    assert deliveries.mark_failed(made(), "down", NOW, retry_after=90_000, jitter=0.5).due_at == NOW + 90_000
    assert deliveries.mark_failed(made(), "down", NOW, jitter=0.5).due_at == NOW + 500


def test_what_could_not_be_said_for_a_day_is_parked_and_can_be_sent_again() -> None:
    parked = deliveries.mark_failed(made(), "", NOW + GIVE_UP_AFTER)
    assert (parked.status, parked.due_at, parked.error) == ("parked", None, "unknown")
    again = deliveries.retry(parked, LATER)
    assert (again.status, again.due_at, again.pending_since, again.attempts) == ("due", LATER, LATER, 0)
    with pytest.raises(Conflict, match="this is sent"):
        deliveries.retry(told(), LATER)


def test_a_channel_may_state_its_own_waits() -> None:
    first = deliveries.mark_failed(made(), "down", NOW, retry_delays=(5, 300))
    second = deliveries.mark_failed(first, "down", NOW, retry_delays=(5, 300))
    assert (first.due_at, second.due_at) == (NOW + 5_000, NOW + 300_000)
    assert deliveries.mark_failed(second, "down", NOW, retry_delays=(5, 300)).status == "parked"


def test_a_change_gives_what_was_parked_another_try() -> None:
    parked = deliveries.mark_dead(told(), "no")
    assert follow(parked, status="approved").status == "due"


def test_the_priority_is_that_of_the_terms() -> None:
    urgent = pending(replace(TWO_OF_FINANCE, priority="high"))
    assert deliveries.new_delivery(ROOM, "d", urgent, "asked", NOW, NOW).priority == "high"


def test_deliveries_of_one_way_lie_together() -> None:
    other = made(target=DeliveryTarget("mail", person="ada"))
    assert group_by_target([made(), other, made()]) == {
        ("default", ROOM): [made(), made()],
        ("default", other.target): [other],
    }


def test_a_test_is_a_delivery_too() -> None:
    trial = deliveries.make_test_delivery("default", "t", ROOM, "ada", NOW)
    assert (trial.reason, trial.desired_state, trial.is_notifying) == ("test", "ada", True)


def test_a_new_try_begins_anew() -> None:
    tried = replace(deliveries.mark_failed(told(), "down", NOW), runner="r1")
    changed = follow(tried, status="approved")
    assert (changed.attempts, changed.pending_since, changed.desired_state.split("/")[0]) == (0, LATER, "approved")
    again = deliveries.retry(tried, LATER)
    assert (again.attempts, again.error, again.status) == (0, "", "due")
    with pytest.raises(Conflict, match=r"^Only what waits or was given up"):
        deliveries.retry(told(), LATER)
    assert deliveries.mark_dead(told(), "no").attempts == 1
    assert deliveries.mark_batched(tried).runner == ""
    trial = deliveries.make_test_delivery("default", "t", ROOM, "ada", NOW)
    assert (trial.approval_id, trial.priority, trial.status, trial.due_at) == ("", "low", "due", NOW)


def test_what_was_sent_leaves_no_trace_of_its_tries() -> None:
    tried = deliveries.lease(deliveries.mark_failed(deliveries.lease(made(), "r1", NOW), "down", NOW), "r2", LATER)
    done = deliveries.mark_sent(tried, tried, "ref", LATER)
    assert (done.attempts, done.error, done.runner, done.ref, done.fence) == (0, "", "", "ref", 2)
    assert deliveries.mark_failed(tried, "down", LATER).runner == deliveries.mark_dead(tried, "no").runner == ""
    assert deliveries.drop(made()).due_at is None


def test_what_may_have_been_sent_is_put_right_when_it_ends_and_dropped_while_it_waits() -> None:  # R23
    perhaps = deliveries.release_unconfirmed(deliveries.lease(made(), "r1", NOW), NOW)
    ended = follow(perhaps, status="approved")
    assert (ended.status, ended.desired_state.split("/")[0]) == ("due", "approved")
    assert follow(perhaps, None).status == "dropped"


def test_what_comes_back_begins_anew() -> None:
    dropped = replace(follow(made(), status="rejected"), attempts=3, error="down")
    assert dropped.desired_state.startswith("rejected/")
    assert follow(dropped, status="rejected") == dropped
    back = follow(dropped, reminded=1)
    assert back == replace(
        dropped,
        status="due",
        desired_state=deliveries.approval_fingerprint(replace(pending(), timers=TimerProgress(reminded=1))).text,
        attempts=0,
        error="",
        pending_since=LATER,
        due_at=LATER + 1,
    )
    assert follow(told(status="dropped")).reminders.due == 1


# How many at once


@pytest.mark.parametrize(
    ("asking", "notices", "lately", "went"),
    [(3, 0, 0, (3, 0, 0)), (4, 2, 0, (2, 2, 2)), (1, 3, 0, (3, 0, 1)), (1, 1, 3, (0, 0, 2)), (2, 0, 2, (0, 2, 0))],
    ids=["all fit", "too many", "notices fill what is left", "nothing is left", "one is left"],
)
def test_how_many_go(asking: int, notices: int, lately: int, went: tuple[int, int, int]) -> None:  # R44
    due = [made(id=f"a{n}") for n in range(asking)] + [made(id=f"n{n}", reason="expired") for n in range(notices)]
    pace = deliveries.plan_rate_limit(due, lately, 3)
    assert (len(pace.send_now), len(pace.batch), len(pace.deferred)) == went


def test_the_most_urgent_and_then_the_oldest_goes_first() -> None:  # R44
    due = [
        made(id="old", pending_since=NOW),
        made(id="new", pending_since=NOW + 1),
        made(id="high", priority="high", pending_since=NOW + 2),
    ]
    pace = deliveries.plan_rate_limit(due, 0, 2)
    assert ([each.id for each in pace.send_now], [each.id for each in pace.batch]) == (["high"], ["old", "new"])


reasons = st.sampled_from(["asked", "escalated", "expired", "test"])
due_ones = st.lists(
    st.builds(
        lambda n, priority, reason, said, group: (
            made(id=f"d{n}", priority=priority, reason="group", desired_state=str(group))
            if group
            else made(
                id=f"d{n}", priority=priority, reason=reason, sent_state="x" if said else "", pending_since=NOW + n
            )
        ),
        st.integers(0, 50),
        st.sampled_from(PRIORITIES),
        reasons,
        st.booleans(),
        st.sampled_from([0, 0, 0, 7]),
    ),
    max_size=40,
)


@given(due_ones, st.integers(0, 15), st.integers(1, 12))
def test_nothing_is_lost_and_nobody_is_told_too_much(due: list[Delivery], lately: int, most: int) -> None:  # R44
    pace = deliveries.plan_rate_limit(due, lately, most)
    out = [*pace.send_now, *pace.batch, *pace.deferred]
    assert sorted(map(repr, out)) == sorted(map(repr, due))
    noisy = [each for each in pace.send_now if each.is_notifying and each.reason != "test"]
    assert len(noisy) + bool(pace.batch) <= max(0, most - lately)
    assert not any(each.reason == "expired" for each in pace.batch)
    rest = [each for each in pace.batch or pace.deferred if each.reason != "expired"]
    asked = [each for each in noisy if each.reason != "expired"]
    urgency = [PRIORITIES.index(each.priority) for each in (*asked, *rest)]
    assert not rest or urgency == sorted(urgency, reverse=True)


@given(due_ones.filter(bool))
def test_one_message_for_many_counts_them_all(due: list[Delivery]) -> None:
    group = deliveries.make_batch_delivery(due, "g", NOW)
    assert int(group.desired_state) == sum(7 if each.reason == "group" else 1 for each in due)
    assert (group.reason, group.status, group.approval_id) == ("group", "due", "")


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 10))
def test_a_person_hears_no_more_than_so_many_a_minute_and_of_everything(floods: list[int], most: int) -> None:  # R44
    waiting: list[Delivery] = []
    heard: list[tuple[int, int]] = []  # when, and how many calls the message was about
    for tick in range(len(floods) + 40):
        now = NOW + tick * MINUTE // 4
        waiting += [made(id=f"{tick}.{n}") for n in range(floods[tick])] if tick < len(floods) else []
        lately = sum(1 for at, _ in heard if at > now - MINUTE)
        pace = deliveries.plan_rate_limit(waiting, lately, most)
        heard += [(now, 1) for _ in pace.send_now]
        heard += [(now, int(deliveries.make_batch_delivery(pace.batch, "g", now).desired_state))] if pace.batch else []
        waiting = list(pace.deferred)
        assert sum(1 for at, _ in heard if at > now - MINUTE) <= most
    assert sum(calls for _, calls in heard) == sum(floods)
    assert waiting == []
