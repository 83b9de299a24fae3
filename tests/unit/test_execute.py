"""Execution of an approved call: one start, a fence, a lease, and a reported end."""

from dataclasses import replace

import pytest

from interlock.core.approval.approval import Approval, DecisionRecord, Lease, decide, undo
from interlock.core.approval.execute import (
    DEFAULT_LEASE,
    MAX_STARTS,
    abandon,
    expire_unstarted,
    finish,
    is_startable,
    mark_unknown,
    renew,
    report_unknown,
    start,
)
from interlock.core.approval.timers import fire_next_timer, next_timer_at
from interlock.core.call import ToolSpec, fingerprint
from interlock.core.canonical import canonical, digest
from interlock.core.errors import (
    AlreadyStarted,
    BindingBroken,
    ClockBehind,
    Conflict,
    Error,
    Expired,
    LeaseLost,
    NotApproved,
)
from interlock.core.ledger.event import SYSTEM_ACTOR, Change, Payload, Stored
from interlock.core.outcome import Finished, Proceed, Refused, approval_outcome, status_at
from interlock.core.policy.policy import Ask
from tests.unit.builders import (
    ALICE,
    ARGS,
    KEY,
    LEASE,
    NOW,
    OTHER_ARGS,
    PAY,
    approval_in_status,
    approve,
    at,
    at_with_clock_behind,
    edit,
    pending,
    pending_with_payload,
    prepare_edit,
    replace_fields,
    start_call,
    store_row,
)

DECIDED_AT = DecisionRecord("reject", "alice", NOW)

START_BY = NOW + 3_600_000
AFTER_LEASE = NOW + LEASE


def approved_approval(**more: object) -> Approval:
    return approval_in_status("approved", **more)


def running_approval(**more: object) -> Approval:
    return start_call(approved_approval(**more)).state


def only_event(change: Change[Approval]) -> tuple[str, str, dict[str, object]]:
    (event,) = change.events
    assert event.data["binding"] == change.state.binding
    return event.kind, event.actor, {name: value for name, value in event.data.items() if name != "binding"}


# --- start


# R46
def test_the_winner_gets_a_fence_and_a_lease() -> None:
    change = start_call(approved_approval(), NOW + 7, runner="r9")
    assert (change.state.status, change.state.lease.fence, change.state.lease.runner) == ("running", 1, "r9")
    assert (change.state.lease.until, change.state.version) == (NOW + 7 + LEASE, 2)
    assert only_event(change) == ("started", "r9", {"status": "running", "fence": 1})


# R24, R46
@pytest.mark.parametrize(
    ("changes", "runner", "idempotent", "now", "dead", "fence"),
    [
        ({}, "attempt:1", False, NOW, False, 1),
        ({}, "attempt:1", True, NOW, False, 1),
        ({}, "attempt:1", False, AFTER_LEASE - 1, False, 1),
        ({}, "attempt:1", False, AFTER_LEASE, False, None),  # the lease has expired: the outcome is unknown
        ({}, "attempt:1", True, AFTER_LEASE, False, 2),
        ({}, "attempt:1", False, NOW, True, None),
        ({}, "attempt:1", True, NOW, True, 2),
        ({}, "attempt:2", False, NOW, False, None),
        ({}, "attempt:2", True, NOW, False, None),
        ({}, "r1", False, NOW, False, None),
        ({"runner": "r1"}, "r1", False, NOW, False, None),  # a name of a process says nothing about the attempt
        ({"runner": "r1"}, "r1", True, NOW, False, None),
        ({"runner": "r1"}, "attempt:1", False, NOW, False, None),
        ({"runner": "runner:1"}, "attempt:1", False, NOW, False, None),
        ({"status": "unknown"}, "attempt:1", False, NOW, False, None),
        ({"status": "unknown"}, "attempt:1", True, NOW, False, None),
        ({"status": "succeeded"}, "attempt:1", False, NOW, False, None),
        ({"status": "failed"}, "attempt:1", True, NOW, False, None),
    ],
)
def test_an_attempt_whose_answer_got_lost_is_given_the_same_fence(
    changes: dict[str, str], runner: str, idempotent: bool, now: int, dead: bool, fence: int | None
) -> None:
    held = replace_fields(approval_in_status("running", idempotent=idempotent, runner="attempt:1"), **changes)

    def again() -> Change[Approval]:
        return start(store_row(held), runner, LEASE, "", at(now), runner_is_dead=dead)

    if fence is None:
        with pytest.raises(AlreadyStarted):
            again()
    else:
        change = again()
        assert (change.state.lease.fence, change.state.lease.runner) == (fence, runner)
        assert (change.state is held, change.events == ()) == (fence == 1, fence == 1)


# R46
def test_a_repeated_start_is_checked_like_the_first() -> None:
    held = approval_in_status("running", runner="attempt:1")
    with pytest.raises(ClockBehind):
        start(store_row(held), "attempt:1", LEASE, "", at_with_clock_behind(), runner_is_dead=False)
    for other, spec in ((OTHER_ARGS, ""), (ARGS, "0" * 64)):
        with pytest.raises(BindingBroken):
            start(store_row(held, other), "attempt:1", LEASE, spec, at(), runner_is_dead=False)


# R46
def test_an_attempt_that_was_heard_of_is_not_started_again() -> None:
    held = approval_in_status("running", runner="attempt:1")
    renewed = renew(held, 1, LEASE, at()).state
    assert renewed.lease.runner == "runner:1"
    with pytest.raises(AlreadyStarted):
        start(store_row(renewed), "attempt:1", LEASE, "", at(), runner_is_dead=False)
    assert finish(renewed, 1, Payload(), at(), ok=True).state.status == "succeeded"
    abandoned = abandon(approval_in_status("running", runner="attempt:1", idempotent=True), 1, at()).state
    assert start(store_row(abandoned), "attempt:1", LEASE, "", at(), runner_is_dead=False).state.lease.fence == 2


# R46
def test_a_second_start_is_refused() -> None:
    for now in (NOW, AFTER_LEASE, AFTER_LEASE + 10**9):
        with pytest.raises(AlreadyStarted):
            start_call(running_approval(), now)


# R46
def test_a_dead_runner_does_not_make_a_call_startable_again() -> None:
    with pytest.raises(AlreadyStarted):
        start(store_row(running_approval()), "r2", LEASE, "", at(), runner_is_dead=True)


# R46
def test_an_idempotent_call_is_started_again_once_its_runner_is_lost() -> None:
    first = running_approval(idempotent=True)
    with pytest.raises(AlreadyStarted):
        start_call(first, AFTER_LEASE - 1)
    second = start_call(first, AFTER_LEASE, runner="r2").state
    assert (second.lease.fence, second.lease.runner, second.lease.until) == (2, "r2", AFTER_LEASE + LEASE)
    at_once = start(store_row(first), "r2", LEASE, "", at(NOW + 1), runner_is_dead=True).state
    assert (at_once.status, at_once.lease.fence) == ("running", 2)


@pytest.mark.parametrize(
    ("status", "idempotent", "now", "dead", "expected"),
    [
        ("approved", False, NOW, False, True),
        ("pending", False, NOW, False, False),
        ("rejected", True, NOW, True, False),
        ("unknown", True, AFTER_LEASE, True, False),
        ("running", False, AFTER_LEASE, True, False),
        ("running", True, AFTER_LEASE - 1, False, False),
        ("running", True, AFTER_LEASE, False, True),
        ("running", True, NOW, True, True),
    ],
)
def test_what_can_be_started(status: str, idempotent: bool, now: int, dead: bool, expected: bool) -> None:
    assert is_startable(approval_in_status(status, idempotent=idempotent), now, runner_is_dead=dead) is expected


# R46
@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("pending", NotApproved),
        ("rejected", NotApproved),
        ("responded", NotApproved),
        ("cancelled", NotApproved),
        ("expired", Expired),
        ("running", AlreadyStarted),
        ("succeeded", AlreadyStarted),
        ("failed", AlreadyStarted),
        ("unknown", AlreadyStarted),
    ],
)
def test_nothing_but_an_approved_call_starts(status: str, error: type[Error]) -> None:
    with pytest.raises(error) as caught:
        start_call(approval_in_status(status))
    assert caught.value.ids["approval_id"] == "id"
    assert caught.value.ids.get("status", "expired") == status


def test_a_call_that_waits_is_told_apart_from_one_that_may_not_run() -> None:
    with pytest.raises(NotApproved, match="still waits"):
        start_call(approval_in_status("pending"))
    with pytest.raises(NotApproved, match="may not run: it is rejected"):
        start_call(approval_in_status("rejected"))


def test_a_lease_lasts_a_minute_unless_the_runner_wants_another() -> None:
    assert DEFAULT_LEASE == 60_000


# R5: consent does not keep
def test_an_approval_lapses_to_the_millisecond() -> None:
    assert start_call(approved_approval(), START_BY - 1).state.status == "running"
    late = start_call(approved_approval(), START_BY)
    assert (late.state.status, late.state.lease.fence) == ("expired", 0)
    assert isinstance(late.error, Expired)
    assert late.error.ids == {"approval_id": "id"}
    assert only_event(late) == ("lapsed", SYSTEM_ACTOR, {"status": "expired"})
    assert start_call(approved_approval(start_by=None)).state.status == "expired"


# R46
def test_nothing_starts_while_the_clock_is_behind() -> None:
    with pytest.raises(ClockBehind):
        start(store_row(approved_approval()), "r1", LEASE, "", at_with_clock_behind(), runner_is_dead=False)


# --- what you approved is what runs


# R47
def test_the_stored_bytes_are_the_approved_bytes_or_nothing_runs() -> None:
    for payload in (Payload(args=canonical(OTHER_ARGS)), Payload(args=None), Payload(args=b'{"to":"ann","amount":5}')):
        with pytest.raises(BindingBroken, match="not what was approved"):
            start(Stored(approved_approval(), payload), "r1", LEASE, "", at(), runner_is_dead=False)


# R47
@pytest.mark.parametrize("field", ["workspace", "run_id", "call_id", "tool", "spec_sha256", "nonce"])
def test_each_bound_field_that_changes_after_the_approval_stops_the_start(field: str) -> None:
    approval = approved_approval()
    moved = replace(approval, subject=approval.subject._replace(**{field: "other"}))
    with pytest.raises(BindingBroken):
        start_call(moved)


# R47
@pytest.mark.parametrize("fields", [{"args_sha256": "f" * 64}, {"binding": "f" * 64}, {"terms": Ask("looser")}])
def test_arguments_binding_and_terms_are_bound(fields: dict[str, object]) -> None:
    with pytest.raises(BindingBroken):
        start_call(replace(approved_approval(), **fields))


# R47
def test_arguments_swapped_with_their_digest_are_still_found() -> None:
    other = canonical(OTHER_ARGS)
    forged = replace(approved_approval(), args_sha256=digest(other))
    with pytest.raises(BindingBroken):
        start(Stored(forged, Payload(args=other)), "r1", LEASE, "", at(), runner_is_dead=False)


SECRET = ToolSpec("pay", "write", secret=("/to",))


def secret_call() -> Stored:
    waiting = pending_with_payload(spec=SECRET)
    done = decide(waiting.approval, approve(waiting.approval), ALICE, at()).state
    return Stored(done, waiting.payload)


# R47
def test_a_call_with_secrets_starts_by_what_people_saw() -> None:
    secret = secret_call()
    assert secret.payload.args == canonical(ARGS)
    assert secret.payload.shown == canonical({"amount": 5, "to": {"$secret": fingerprint("ann", KEY)}})
    assert start(secret, "r1", LEASE, "", at(), runner_is_dead=False).state.status == "running"


# R47
@pytest.mark.parametrize(
    "fields",
    [
        {"args": canonical(OTHER_ARGS)},
        {"args": canonical({"amount": 5, "to": "eve"})},
        {"args": None},
        {"shown": None},
        {"shown": canonical(ARGS)},
    ],
)
def test_hidden_bytes_that_changed_do_not_run(fields: dict[str, bytes | None]) -> None:
    secret = secret_call()
    altered = Stored(secret.approval, secret.payload._replace(**fields))
    with pytest.raises(BindingBroken):
        start(altered, "r1", LEASE, "", at(), runner_is_dead=False)


# R47
def test_other_bytes_cannot_hide_behind_the_ones_that_people_saw() -> None:
    payload = Payload(args=canonical(OTHER_ARGS), shown=canonical(ARGS))
    with pytest.raises(BindingBroken):
        start(Stored(approved_approval(), payload), "r1", LEASE, "", at(), runner_is_dead=False)


# R47
def test_a_tool_whose_definition_changed_needs_a_new_approval() -> None:
    with pytest.raises(BindingBroken, match="definition changed"):
        start(
            store_row(approved_approval()), "r1", LEASE, replace(PAY, effect="read").sha256, at(), runner_is_dead=False
        )
    same = start(store_row(approved_approval()), "r1", LEASE, PAY.sha256, at(), runner_is_dead=False)
    assert same.state.status == "running"


# R12, R47
def test_an_edited_call_runs_with_the_edited_bytes_only() -> None:
    waiting = pending()
    edited = decide(waiting, edit(waiting), ALICE, at(), prepare_edit(waiting)).state
    assert start_call(edited, args=OTHER_ARGS).state.status == "running"
    with pytest.raises(BindingBroken):
        start_call(edited, args=ARGS)


# --- renew


# R46
def test_the_runner_keeps_its_lease_by_renewing() -> None:
    change = renew(running_approval(), 1, LEASE, at(AFTER_LEASE - 1))
    assert (change.state.lease.until, change.state.version) == (AFTER_LEASE - 1 + LEASE, 3)
    assert change.events == (), "a heartbeat is not history"


# R46
@pytest.mark.parametrize(("fence", "now"), [(1, AFTER_LEASE), (0, NOW), (2, NOW)])
def test_a_lost_lease_cannot_be_renewed(fence: int, now: int) -> None:
    with pytest.raises(LeaseLost):
        renew(running_approval(), fence, LEASE, at(now))


@pytest.mark.parametrize("status", ["approved", "succeeded", "unknown"])
def test_only_a_running_call_has_a_lease(status: str) -> None:
    with pytest.raises(LeaseLost):
        renew(replace(approval_in_status(status), lease=Lease(fence=1, until=AFTER_LEASE)), 1, LEASE, at())


# --- finish


# R46
def test_a_result_in_time_is_kept() -> None:
    payload = Payload(result=b'{"id":7}')
    change = finish(running_approval(), 1, payload, at(AFTER_LEASE - 1), ok=True)
    assert (change.state.status, change.state.lease.until, change.state.version) == ("succeeded", None, 3)
    assert (change.payload, change.error) == (payload, None)
    assert only_event(change) == ("succeeded", "r1", {"status": "succeeded", "fence": 1})
    assert change.events[0].content == {"result_sha256": digest(b'{"id":7}')}


# R46
def test_a_failure_in_time_is_kept() -> None:
    change = finish(running_approval(), 1, Payload(error="Boom."), at(), ok=False)
    assert (change.state.status, change.payload) == ("failed", Payload(error="Boom."))
    assert only_event(change)[0] == "failed"
    assert change.events[0].content == {"error": "Boom."}
    assert finish(running_approval(), 1, Payload(), at(), ok=True).events[0].content is None


# R46
def test_a_late_finish_makes_the_call_unknown_and_is_kept_as_evidence() -> None:
    change = finish(running_approval(), 1, Payload(result=b"5"), at(AFTER_LEASE), ok=True)
    assert (change.state.status, change.state.version, change.payload) == ("unknown", 3, None)
    assert isinstance(change.error, LeaseLost)
    lost, evidence = change.events
    assert (lost.kind, lost.actor, lost.data["fence"]) == ("lost", SYSTEM_ACTOR, 1)
    assert (evidence.kind, dict(evidence.data)) == ("finished_late", {"fence": 1})
    assert evidence.content == {"ok": True, "error": None, "result_sha256": digest(b"5")}


# R46
@pytest.mark.parametrize("status", ["unknown", "succeeded", "pending", "cancelled"])
def test_a_finish_of_what_does_not_run_changes_nothing(status: str) -> None:
    approval = approval_in_status(status, fence=1)
    change = finish(approval, 1, Payload(error="Boom."), at(), ok=False)
    assert change.state is approval
    assert isinstance(change.error, LeaseLost)
    assert change.error.ids == {"approval_id": "id", "status": status}
    (evidence,) = change.events
    assert (evidence.kind, "status" in evidence.data) == ("finished_late", False)
    assert evidence.content == {"ok": False, "error": "Boom.", "result_sha256": None}


def test_a_late_finish_that_is_known_already_leaves_no_entry() -> None:
    lost = finish(running_approval(), 1, Payload(result=b"5"), at(AFTER_LEASE), ok=True, late=lambda _: False)
    assert ([event.kind for event in lost.events], type(lost.error)) == (["lost"], LeaseLost)
    again = finish(lost.state, 1, Payload(result=b"5"), at(AFTER_LEASE), ok=True, late=lambda _: False)
    assert (again.state, again.events, type(again.error)) == (lost.state, (), LeaseLost)


def test_an_idempotent_call_is_not_started_again_for_ever() -> None:
    last = running_approval(idempotent=True)
    last = replace(last, lease=last.lease._replace(fence=MAX_STARTS))
    assert abandon(last, MAX_STARTS, at()).state.status == "unknown"
    assert not is_startable(last, AFTER_LEASE, runner_is_dead=True)


# R24
def test_a_repeated_finish_counts_once() -> None:
    for status, ok in (("succeeded", True), ("failed", False)):
        approval = approval_in_status(status, fence=1)
        change = finish(approval, 1, Payload(result=b"5"), at(), ok=ok)
        assert (change.state, change.events, change.error) == (approval, (), None)


@pytest.mark.parametrize("fence", [0, -1, 2])
def test_a_finish_under_a_fence_that_nobody_was_given_is_refused(fence: int) -> None:
    with pytest.raises(Conflict, match="under this fence"):
        finish(approval_in_status("running", fence=1), fence, Payload(), at(), ok=True)


def test_an_idempotent_call_that_is_abandoned_may_be_started_again_at_once() -> None:
    approval = running_approval(idempotent=True)
    change = abandon(approval, 1, at())
    assert (change.state.status, change.state.lease.until, change.events) == ("running", NOW, ())
    assert is_startable(change.state, NOW, runner_is_dead=False)


# R46
def test_a_tool_that_does_not_know_whether_it_took_effect_leaves_it_to_people() -> None:
    for idempotent in (True, False):
        change = report_unknown(running_approval(idempotent=idempotent), 1, at())
        assert (change.state.status, [event.kind for event in change.events]) == ("unknown", ["lost"])


def test_only_the_runner_can_report_an_unknown_outcome() -> None:
    approval = running_approval()
    assert report_unknown(approval, 2, at()).state is approval


# R46
def test_a_finish_with_an_old_fence_does_not_touch_the_next_run() -> None:
    second = start_call(running_approval(idempotent=True), AFTER_LEASE, runner="r2").state
    change = finish(second, 1, Payload(result=b"5"), at(AFTER_LEASE + 1), ok=True)
    assert change.state is second
    assert isinstance(change.error, LeaseLost)
    assert finish(second, 2, Payload(result=b"5"), at(AFTER_LEASE + 1), ok=True).state.status == "succeeded"


# R46
def test_a_late_finish_of_an_idempotent_call_leaves_it_to_be_started_again() -> None:
    first = running_approval(idempotent=True)
    change = finish(first, 1, Payload(result=b"5"), at(AFTER_LEASE), ok=True)
    assert change.state is first
    assert is_startable(change.state, AFTER_LEASE, runner_is_dead=False)


# --- lose, abandon, lapse


# R46
def test_a_runner_that_was_interrupted_says_that_it_does_not_know() -> None:
    change = abandon(running_approval(), 1, at())
    assert (change.state.status, change.state.lease.until) == ("unknown", None)
    assert only_event(change) == ("lost", SYSTEM_ACTOR, {"status": "unknown", "fence": 1})
    other = running_approval()
    assert abandon(other, 2, at()) == Change(other)


# R46
@pytest.mark.parametrize("verb", [mark_unknown, expire_unstarted])
@pytest.mark.parametrize("status", ["pending", "rejected", "succeeded", "unknown", "expired"])
def test_time_takes_nothing_from_what_is_not_its_own(verb: object, status: str) -> None:
    approval = approval_in_status(status)
    assert verb(approval, at()) == Change(approval)


# R46
def test_a_time_that_is_missing_has_passed() -> None:
    """So that a row that lost it lets nothing run; also in the first millisecond of all."""
    approved, rejected = (
        approval_in_status("approved", start_by=None),
        approval_in_status("rejected", release_at=None, decision=DECIDED_AT),
    )
    running = approval_in_status("running", until=None)
    assert isinstance(start_call(approved, 0).error, Expired)
    assert (status_at(approved, 0), status_at(running, 0)) == ("expired", "unknown")
    assert approval_outcome(rejected, Payload(), 0) == Refused("A person rejected this call.", "rejected", "id")
    assert (next_timer_at(approved), next_timer_at(running)) == (0, 0)
    with pytest.raises(Expired):
        undo(rejected, ALICE, at(0))
    with pytest.raises(LeaseLost):
        renew(running, 1, LEASE, at(0))


# R46
def test_an_idempotent_call_without_a_lease_can_be_started_again_at_once() -> None:
    idle = approval_in_status("running", idempotent=True, until=None)
    assert is_startable(idle, 0, runner_is_dead=False)
    assert approval_outcome(idle, Payload(args=b'{"a":1}'), 0) == Proceed(b'{"a":1}', "id")
    assert next_timer_at(idle) == idle.deadlines.start_by


# R46, R56
def test_an_idempotent_call_is_not_started_again_past_the_time_by_which_it_had_to_start() -> None:
    running = approval_in_status("running", idempotent=True)
    last = (running.deadlines.start_by or 0) - 1
    assert is_startable(running, last, runner_is_dead=True)
    assert approval_outcome(running, Payload(args=b"{}"), last) == Proceed(b"{}", "id")
    assert not is_startable(running, last + 1, runner_is_dead=True)
    assert approval_outcome(running, Payload(args=b"{}"), last + 1) == Finished("unknown", approval_id="id")
    assert fire_next_timer(running, at(last + 1), runner_is_dead=True).state.status == "unknown"
