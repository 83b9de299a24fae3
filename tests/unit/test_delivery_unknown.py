"""Deliveries whose outcome is unknown: the message may have arrived."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.core.notify import delivery
from interlock.core.notify.delivery import (
    LEASE,
    Delivery,
    DeliveryTarget,
    drop_obsolete,
    lease,
    make_batch_delivery,
    mark_failed,
    release,
    release_unconfirmed,
)

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
