"""The outcome for the agent, from the row and the clock."""

from dataclasses import replace

import pytest

from interlock.core.approval.approval import STATUSES, DecisionRecord
from interlock.core.ledger.event import Payload
from interlock.core.outcome import (
    Answered,
    Finished,
    Outcome,
    Proceed,
    Refused,
    Waiting,
    approval_outcome,
    status_at,
)
from interlock.core.policy.policy import Ask
from tests.unit.builders import LEASE, NOW, approval_in_status, pending

DEADLINE = NOW + Ask().expires_in
PAYLOAD = Payload(args=b'{"a":1}', result=b'{"id":7}', error="Boom.")
TIMED_OUT = "The call timed out: nobody decided or started it in time."


# R3, R5, R46
@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("pending", Waiting("id", "pending", until=DEADLINE)),
        ("approved", Proceed(b'{"a":1}', "id")),
        ("running", Waiting("id", "running", until=NOW + LEASE)),
        ("rejected", Waiting("id", "rejected", until=NOW + 8_000)),
        ("responded", Answered({"id": 7}, "id")),
        ("expired", Refused(TIMED_OUT, "expired", "id")),
        ("cancelled", Refused("The call was cancelled.", "cancelled", "id")),
        ("succeeded", Finished("succeeded", {"id": 7}, "Boom.", "id")),
        ("failed", Finished("failed", {"id": 7}, "Boom.", "id")),
        ("unknown", Finished("unknown", {"id": 7}, "Boom.", "id")),
    ],
)
def test_every_status_has_its_outcome(status: str, outcome: Outcome) -> None:
    assert approval_outcome(approval_in_status(status), PAYLOAD, NOW) == outcome


def test_no_status_is_left_out() -> None:
    kinds = {status: type(approval_outcome(approval_in_status(status), PAYLOAD, NOW)) for status in STATUSES}
    assert len(kinds) == 10
    assert [status for status, kind in kinds.items() if kind is Proceed] == ["approved"]


@pytest.mark.parametrize("outcome", [Proceed(b"{}"), Finished("failed"), Answered("No."), Refused("No.")])
def test_an_outcome_without_an_approval_names_none(outcome: Proceed | Finished | Answered | Refused) -> None:
    assert (outcome.approval_id, outcome.args_sha256) == ("", "")


def test_outcomes_are_equal_whatever_they_warn_about() -> None:
    for outcome in (Proceed(b"{}"), Refused("No."), Waiting("id")):
        assert outcome.warnings == ()
        assert replace(outcome, warnings=("Look out.",), args_sha256="0" * 64) == outcome
    for ended in (Finished("failed"), Answered("No.")):
        assert replace(ended, args_sha256="0" * 64) == ended
    assert Waiting("id", questions=(1,)) != Waiting("id")


def test_what_is_erased_is_none() -> None:
    assert approval_outcome(approval_in_status("succeeded"), Payload(), NOW) == Finished("succeeded", None, "", "id")
    assert approval_outcome(approval_in_status("responded"), Payload(), NOW) == Answered(None, "id")
    assert approval_outcome(approval_in_status("approved"), Payload(), NOW) == Proceed(b"{}", "id")


# R5
def test_the_deadline_counts_before_the_worker_has_seen_it() -> None:
    approval = pending()
    assert approval_outcome(approval, PAYLOAD, DEADLINE - 1) == Waiting("id", "pending", until=DEADLINE)
    assert approval_outcome(approval, PAYLOAD, DEADLINE) == Refused(TIMED_OUT, "expired", "id")
    assert "timed out" in TIMED_OUT


# R28
def test_a_rule_that_approves_by_time_waits_for_the_transition() -> None:
    auto = Ask(on_expiry="approve")
    assert status_at(pending(auto), DEADLINE) == "pending"
    assert status_at(pending(auto, alarms=("f1",)), DEADLINE) == "expired"
    assert status_at(pending(auto), DEADLINE - 1) == "pending"


# R5
def test_an_approval_that_was_not_started_in_time_is_expired() -> None:
    approval = approval_in_status("approved")
    assert status_at(approval, NOW + 3_599_999) == "approved"
    assert approval_outcome(approval, PAYLOAD, NOW + 3_600_000) == Refused(TIMED_OUT, "expired", "id")
    assert status_at(replace(approval, deadlines=approval.deadlines._replace(start_by=None)), NOW) == "expired"


# R46
def test_a_lapsed_lease_is_unknown_before_the_worker_has_seen_it() -> None:
    approval = approval_in_status("running")
    assert status_at(approval, NOW + LEASE - 1) == "running"
    assert approval_outcome(approval, Payload(), NOW + LEASE) == Finished("unknown", None, "", "id")
    assert status_at(replace(approval, lease=approval.lease._replace(until=None)), NOW) == "unknown"


# R46
def test_an_idempotent_call_whose_runner_is_gone_is_started_again() -> None:
    approval = approval_in_status("running", idempotent=True)
    assert approval_outcome(approval, PAYLOAD, NOW + LEASE - 1) == Waiting("id", "running", until=NOW + LEASE)
    assert approval_outcome(approval, PAYLOAD, NOW + LEASE) == Proceed(b'{"a":1}', "id")
    assert approval_outcome(replace(approval, lease=approval.lease._replace(until=None)), Payload(), NOW) == Proceed(
        b"{}", "id"
    )


# R14
def test_a_rejection_is_told_to_the_agent_only_when_it_is_released() -> None:
    decided = DecisionRecord("reject", "alice", NOW, reason="Too much.")
    approval = approval_in_status("rejected", decision=decided)
    assert approval_outcome(approval, PAYLOAD, NOW + 7_999) == Waiting("id", "rejected", until=NOW + 8_000)
    assert approval_outcome(approval, PAYLOAD, NOW + 8_000) == Refused("Too much.", "rejected", "id")
    bare = replace(approval, decision=None, deadlines=approval.deadlines._replace(release_at=None))
    assert approval_outcome(bare, PAYLOAD, NOW) == Refused("A person rejected this call.", "rejected", "id")
