"""Deliveries: what they say, retries, dead letters, rate limits, and attempts whose outcome is unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.approval.approval import TimerProgress
from interlock.core.call import PRIORITIES
from interlock.core.card import make_card
from interlock.core.errors import Conflict
from interlock.core.notify import delivery
from interlock.core.notify import delivery as deliveries
from interlock.core.notify.delivery import (
    GIVE_UP_AFTER,
    LEASE,
    RETRY_DELAYS,
    ApprovalView,
    Delivery,
    DeliveryTarget,
    drop_obsolete,
    group_by_target,
    lease,
    make_batch_delivery,
    mark_failed,
    release,
    release_unconfirmed,
)
from interlock.runtime.durations import MINUTE
from tests.unit.builders import NOW, TWO_OF_FINANCE, approval_in_status, pending, replace_fields

ROOM = DeliveryTarget("room")
LATER = NOW + 3_600_000


def new_delivery(**more: Any) -> Delivery:
    return replace(deliveries.new_delivery(ROOM, "d1", pending(), "asked", NOW, NOW), **more)


def sent_delivery(**more: Any) -> Delivery:
    first = new_delivery()
    done = deliveries.lease(first, "r1", NOW)
    return replace(deliveries.mark_sent(done, done, "ref", NOW), **more)


def apply_changes(delivery: Delivery, escalation_step: int | None = 0, **changes: Any) -> Delivery:
    return deliveries.update_delivery(delivery, replace_fields(pending(), **changes), LATER, LATER + 1, escalation_step)


def test_a_new_one_is_loud_and_due() -> None:
    delivery = new_delivery()
    assert (delivery.is_notifying, delivery.status, delivery.due_at) == (True, "due", NOW)


def test_a_sent_delivery_is_not_due_until_something_changes() -> None:
    delivery = sent_delivery()
    assert (delivery.status, delivery.due_at, delivery.ref, delivery.sent_at) == ("sent", None, "ref", NOW)
    assert apply_changes(delivery) == delivery
    changed = apply_changes(delivery, delegations=("one",))
    assert (changed.status, changed.due_at, changed.is_notifying) == ("due", LATER, False)


def test_a_call_that_runs_looks_like_one_that_is_approved() -> None:
    approved = apply_changes(sent_delivery(), status="approved")
    assert (
        deliveries.update_delivery(approved, approval_in_status("running"), LATER, LATER, None).desired_state
        == approved.desired_state
    )


def test_every_try_to_say_the_same_has_the_same_id() -> None:  # R24
    delivery = sent_delivery()
    again = deliveries.mark_failed(deliveries.lease(apply_changes(delivery, reminded=1), "r2", LATER), "down", LATER)
    assert again.message_id == apply_changes(delivery, reminded=1).message_id != delivery.message_id


def test_each_reminder_counts_once() -> None:
    delivery = apply_changes(sent_delivery(), reminded=1)
    assert delivery.reminders == (1, 0)
    assert apply_changes(delivery, reminded=2).reminders == (2, 0)


@pytest.mark.parametrize(
    ("escalation_step", "changes"),
    [(0, {"reminded": 1}), (0, {"args_sha256": "f" * 64}), (1, {"escalated": 1})],
    ids=["a reminder", "other arguments", "a rung that names them"],
)
def test_a_sent_delivery_notifies_again_for(escalation_step: int, changes: dict[str, Any]) -> None:  # R28
    delivery = apply_changes(sent_delivery(), escalation_step, **changes)
    assert (delivery.is_notifying, delivery.status, delivery.due_at) == (True, "due", LATER + 1)
    done = deliveries.mark_sent(deliveries.lease(delivery, "r1", LATER + 1), delivery, "ref", LATER + 1)
    assert (done.status, done.is_notifying, done.sent_at) == ("sent", False, LATER + 1)


def test_edited_arguments_make_a_sent_delivery_due() -> None:
    assert deliveries.is_revised(apply_changes(sent_delivery(), args_sha256="f" * 64))
    assert not deliveries.is_revised(apply_changes(sent_delivery(), reminded=1))
    assert not deliveries.is_revised(new_delivery())
    assert not deliveries.is_revised(deliveries.make_test_delivery("default", "d1", ROOM, "ada", NOW))


def test_who_has_nothing_to_do_any_more_is_not_reminded() -> None:
    delivery = sent_delivery()
    assert apply_changes(delivery, None, reminded=1) == delivery
    waiting = apply_changes(delivery, reminded=1)
    assert apply_changes(waiting, None, reminded=1).is_notifying is False


def test_a_rung_that_names_somebody_else_changes_the_message_quietly() -> None:
    assert apply_changes(sent_delivery(), 0, escalated=1).is_notifying is False


@pytest.mark.parametrize(("escalation_step", "status"), [(None, "pending"), (0, "approved"), (0, "expired")])
def test_an_unsent_delivery_of_a_decided_approval_is_dropped(escalation_step: int | None, status: str) -> None:
    delivery = apply_changes(new_delivery(), escalation_step, status=status)
    assert (delivery.status, delivery.due_at) == ("dropped", None)
    assert apply_changes(delivery, escalation_step, status=status) == delivery


def test_a_dropped_delivery_is_due_when_the_approval_reopens() -> None:
    dropped = apply_changes(new_delivery(), status="rejected")
    again = apply_changes(dropped)
    assert (again.status, again.due_at, again.is_notifying) == ("due", LATER + 1, True)
    assert apply_changes(sent_delivery(status="dropped")).is_notifying is True


def test_one_of_many_gets_a_message_of_its_own_when_it_has_to_be_looked_at_again() -> None:
    one = deliveries.mark_batched(new_delivery())
    assert (one.status, one.due_at) == ("grouped", None)
    assert apply_changes(one, delegations=("one",)) == one
    assert apply_changes(one, status="approved") == one
    again = apply_changes(one, reminded=1)
    assert (again.status, again.sent_state, again.is_notifying) == ("due", "", True)


def test_a_delivery_in_flight_is_checked_afterwards() -> None:
    sending = deliveries.lease(new_delivery(), "r1", NOW)
    assert (sending.status, sending.due_at, sending.fence) == ("sending", NOW + LEASE, 1)
    changed = apply_changes(sending, status="approved")
    assert (changed.status, changed.due_at) == ("sending", NOW + LEASE)
    after = deliveries.mark_sent(changed, sending, "ref", LATER)
    assert (after.status, after.due_at, after.sent_state) == ("due", LATER, sending.desired_state)


def test_an_untried_delivery_is_due_again() -> None:
    released = deliveries.release(deliveries.lease(new_delivery(), "r1", NOW), LATER)
    assert (released.status, released.due_at, released.runner) == ("due", LATER, "")


def test_a_delivery_of_a_dead_runner_counts_as_sent() -> None:
    sending = deliveries.lease(new_delivery(), "r1", NOW)
    lost = deliveries.release_unconfirmed(sending, LATER)
    assert (lost.status, lost.due_at, lost.sent_at) == ("due", LATER, LATER)
    quiet = deliveries.lease(apply_changes(sent_delivery(), status="approved"), "r1", NOW)
    assert deliveries.release_unconfirmed(quiet, LATER).sent_at == NOW


def test_what_ended_while_it_could_not_be_sent_needs_no_other_try() -> None:
    sending = apply_changes(deliveries.lease(new_delivery(), "r1", NOW), status="approved")
    for reason in ("asked", "escalated"):
        assert deliveries.mark_failed(replace(sending, reason=reason), "down", LATER).status == "dropped"
    assert deliveries.mark_failed(replace(sending, reason="group", desired_state="3"), "down", LATER).status == "due"


def test_a_notice_does_not_change() -> None:
    notice = sent_delivery(reason="expired")
    assert apply_changes(notice, status="expired", reminded=3) == notice


def test_a_removed_recipient_gets_no_more_messages() -> None:
    assert deliveries.drop(new_delivery()).status == "dropped"
    assert deliveries.drop(sent_delivery()) == sent_delivery()
    sending = deliveries.lease(new_delivery(), "r1", NOW)
    assert deliveries.drop(sending) == sending


def test_a_failure_is_tried_again_later_and_later() -> None:
    delivery = new_delivery()
    waits = []
    for _ in range(len(RETRY_DELAYS) + 1):
        delivery = deliveries.mark_failed(delivery, "down", NOW)
        waits.append((delivery.due_at or 0) - NOW)
    assert waits == [1000 * wait for wait in (*RETRY_DELAYS, RETRY_DELAYS[-1])]
    assert deliveries.mark_failed(new_delivery(), "down", NOW, retry_after=90_000, jitter=0.5).due_at == NOW + 90_000
    assert deliveries.mark_failed(new_delivery(), "down", NOW, jitter=0.5).due_at == NOW + 500


def test_a_delivery_that_fails_for_a_day_is_dead_and_can_be_retried() -> None:
    parked = deliveries.mark_failed(new_delivery(), "", NOW + GIVE_UP_AFTER)
    assert (parked.status, parked.due_at, parked.error) == ("parked", None, "unknown")
    again = deliveries.retry(parked, LATER)
    assert (again.status, again.due_at, again.pending_since, again.attempts) == ("due", LATER, LATER, 0)
    with pytest.raises(Conflict, match="this one is sent"):
        deliveries.retry(sent_delivery(), LATER)


def test_a_channel_may_state_its_own_waits() -> None:
    first = deliveries.mark_failed(new_delivery(), "down", NOW, retry_delays=(5, 300))
    second = deliveries.mark_failed(first, "down", NOW, retry_delays=(5, 300))
    assert (first.due_at, second.due_at) == (NOW + 5_000, NOW + 300_000)
    assert deliveries.mark_failed(second, "down", NOW, retry_delays=(5, 300)).status == "parked"


def test_a_change_retries_a_dead_delivery() -> None:
    parked = deliveries.mark_dead(sent_delivery(), "no")
    assert apply_changes(parked, status="approved").status == "due"


def test_the_priority_is_that_of_the_terms() -> None:
    urgent = pending(replace(TWO_OF_FINANCE, priority="high"))
    assert deliveries.new_delivery(ROOM, "d", urgent, "asked", NOW, NOW).priority == "high"


def test_deliveries_of_one_target_are_grouped() -> None:
    other = new_delivery(target=DeliveryTarget("mail", person="ada"))
    assert group_by_target([new_delivery(), other, new_delivery()]) == {
        ("default", ROOM): [new_delivery(), new_delivery()],
        ("default", other.target): [other],
    }


def test_a_test_is_a_delivery_too() -> None:
    trial = deliveries.make_test_delivery("default", "t", ROOM, "ada", NOW)
    assert (trial.reason, trial.desired_state, trial.is_notifying) == ("test", "ada", True)


def test_a_retry_resets_the_attempts() -> None:
    tried = replace(deliveries.mark_failed(sent_delivery(), "down", NOW), runner="r1")
    changed = apply_changes(tried, status="approved")
    assert (changed.attempts, changed.pending_since, changed.desired_state.split("/")[0]) == (0, LATER, "approved")
    again = deliveries.retry(tried, LATER)
    assert (again.attempts, again.error, again.status) == (0, "", "due")
    with pytest.raises(Conflict, match=r"^Only due deliveries and dead letters"):
        deliveries.retry(sent_delivery(), LATER)
    assert deliveries.mark_dead(sent_delivery(), "no").attempts == 1
    assert deliveries.mark_batched(tried).runner == ""
    trial = deliveries.make_test_delivery("default", "t", ROOM, "ada", NOW)
    assert (trial.approval_id, trial.priority, trial.status, trial.due_at) == ("", "low", "due", NOW)


def test_a_sent_delivery_forgets_its_attempts() -> None:
    tried = deliveries.lease(
        deliveries.mark_failed(deliveries.lease(new_delivery(), "r1", NOW), "down", NOW), "r2", LATER
    )
    done = deliveries.mark_sent(tried, tried, "ref", LATER)
    assert (done.attempts, done.error, done.runner, done.ref, done.fence) == (0, "", "", "ref", 2)
    assert deliveries.mark_failed(tried, "down", LATER).runner == deliveries.mark_dead(tried, "no").runner == ""
    assert deliveries.drop(new_delivery()).due_at is None


def test_what_may_have_been_sent_is_put_right_when_it_ends_and_dropped_while_it_waits() -> None:  # R23
    perhaps = deliveries.release_unconfirmed(deliveries.lease(new_delivery(), "r1", NOW), NOW)
    ended = apply_changes(perhaps, status="approved")
    assert (ended.status, ended.desired_state.split("/")[0]) == ("due", "approved")
    assert apply_changes(perhaps, None).status == "dropped"


def test_a_reopened_delivery_resets_its_attempts() -> None:
    dropped = replace(apply_changes(new_delivery(), status="rejected"), attempts=3, error="down")
    assert dropped.desired_state.startswith("rejected/")
    assert apply_changes(dropped, status="rejected") == dropped
    back = apply_changes(dropped, reminded=1)
    assert back == replace(
        dropped,
        status="due",
        desired_state=deliveries.approval_fingerprint(replace(pending(), timers=TimerProgress(reminded=1))).text,
        attempts=0,
        error="",
        pending_since=LATER,
        due_at=LATER + 1,
    )
    assert apply_changes(sent_delivery(status="dropped")).reminders.due == 1


def test_a_wake_up_for_another_decision_starts_anew() -> None:
    rejected = approval_in_status("rejected")
    decided = deliveries.new_delivery(ROOM, "d1", rejected, "woken", NOW, NOW)
    dropped = apply_changes(deliveries.mark_failed(decided, "down", NOW))
    assert (dropped.status, dropped.attempts, dropped.error) == ("dropped", 1, "down")
    again = apply_changes(dropped, status="approved")
    assert [each.desired_state.split("/")[0] for each in (decided, dropped, again)] == [
        "rejected",
        "pending",
        "approved",
    ]
    assert (again.status, again.due_at, again.pending_since) == ("due", LATER, LATER)
    assert (again.attempts, again.error) == (0, "")


# How many at once


@pytest.mark.parametrize(
    ("asking", "notices", "lately", "went"),
    [(3, 0, 0, (3, 0, 0)), (4, 2, 0, (2, 2, 2)), (1, 3, 0, (3, 0, 1)), (1, 1, 3, (0, 0, 2)), (2, 0, 2, (0, 2, 0))],
    ids=["all fit", "too many", "notices fill what is left", "nothing is left", "one is left"],
)
def test_how_many_go(asking: int, notices: int, lately: int, went: tuple[int, int, int]) -> None:  # R44
    due = [new_delivery(id=f"a{n}") for n in range(asking)] + [
        new_delivery(id=f"n{n}", reason="expired") for n in range(notices)
    ]
    pace = deliveries.plan_rate_limit(due, lately, 3)
    assert (len(pace.send_now), len(pace.batch), len(pace.deferred)) == went


def test_the_most_urgent_and_then_the_oldest_goes_first() -> None:  # R44
    due = [
        new_delivery(id="old", pending_since=NOW),
        new_delivery(id="new", pending_since=NOW + 1),
        new_delivery(id="high", priority="high", pending_since=NOW + 2),
    ]
    pace = deliveries.plan_rate_limit(due, 0, 2)
    assert ([each.id for each in pace.send_now], [each.id for each in pace.batch]) == (["high"], ["old", "new"])


reasons = st.sampled_from(["asked", "escalated", "expired", "test"])
due_deliveries = st.lists(
    st.builds(
        lambda n, priority, reason, said, group: (
            new_delivery(id=f"d{n}", priority=priority, reason="group", desired_state=str(group))
            if group
            else new_delivery(
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


@given(due_deliveries, st.integers(0, 15), st.integers(1, 12))
def test_no_delivery_is_lost_and_limits_hold(due: list[Delivery], lately: int, most: int) -> None:  # R44
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


@given(due_deliveries.filter(bool))
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
        waiting += [new_delivery(id=f"{tick}.{n}") for n in range(floods[tick])] if tick < len(floods) else []
        lately = sum(1 for at, _ in heard if at > now - MINUTE)
        pace = deliveries.plan_rate_limit(waiting, lately, most)
        heard += [(now, 1) for _ in pace.send_now]
        heard += [(now, int(deliveries.make_batch_delivery(pace.batch, "g", now).desired_state))] if pace.batch else []
        waiting = list(pace.deferred)
        assert sum(1 for at, _ in heard if at > now - MINUTE) <= most
    assert sum(calls for _, calls in heard) == sum(floods)
    assert waiting == []


NOW = 1_000_000
WAITING = "pending/abc/0/0/0/0"
ENDED = "approved/abc/1/0/0/0"


def ask(**more: object) -> Delivery:
    made = Delivery(
        workspace="default",
        id="d1",
        approval_id="a1",
        target=DeliveryTarget("room"),
        reason="asked",
        priority="medium",
        status="due",
        desired_state=WAITING,
        created_at=NOW,
        pending_since=NOW,
        due_at=NOW,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def test_a_released_delivery_is_due_and_unsent() -> None:  # R24
    back = release(lease(ask(), "me", NOW), NOW + 5)
    assert (back.status, back.runner, back.due_at, back.fence) == ("due", "", NOW + 5, 1)
    assert not back.is_possibly_sent


def test_what_somebody_died_with_may_have_been_heard() -> None:  # R24
    back = release_unconfirmed(lease(ask(), "me", NOW), NOW + 5)
    assert back.is_possibly_sent
    assert (back.status, back.sent_at) == ("due", NOW + 5)


def test_who_takes_over_after_the_lease_knows_that_it_may_have_been_heard() -> None:  # R24
    first = lease(ask(), "me", NOW)
    second = lease(first, "another", NOW + LEASE)
    assert (second.fence, second.runner, second.sent_at) == (2, "another", NOW + LEASE)
    assert first.sent_at is None


def test_a_change_that_makes_no_noise_leaves_none_behind() -> None:
    quiet = ask(sent_state=WAITING, desired_state=ENDED, sent_at=NOW - 7)
    assert release_unconfirmed(quiet, NOW).sent_at == NOW - 7


@pytest.mark.parametrize(("sent_at", "status"), [(None, "dropped"), (NOW, "due")])
def test_a_failed_try_about_what_has_ended_is_repeated_only_if_somebody_may_have_heard(
    sent_at: int | None, status: str
) -> None:  # R24, R27
    after = mark_failed(ask(desired_state=ENDED, status="sending", sent_at=sent_at), "no answer", NOW)
    assert (after.status, after.error) == (status, "no answer")


def test_a_moot_delivery_is_leased_by_nobody() -> None:
    dropped = drop_obsolete(lease(ask(), "me", NOW))
    assert (dropped.status, dropped.runner, dropped.due_at) == ("dropped", "", None)


def test_a_group_that_was_not_sent_yet_counts_in_the_next_with_all_of_its_own() -> None:  # R28
    first = make_batch_delivery([ask(id=str(number)) for number in range(5)], "g1", NOW)
    second = make_batch_delivery([first, ask(id="x")], "g2", NOW)
    assert (first.desired_state, second.desired_state, second.reason) == ("5", "6", "group")
    assert delivery.mark_batched(first).status == "grouped"


CARD = make_card(tool="pay", sentence="Pay 1", risk="high", facts=[], args={}, findings=())


@pytest.mark.parametrize(("status", "is_open"), [("pending", True), ("approved", False), ("expired", False)])
def test_a_topic_is_open_while_people_can_decide(status: str, is_open: bool) -> None:
    assert ApprovalView(approval=pending(), status=status, card=CARD).is_open is is_open
