"""Decisions on an approval: which are allowed, the order of the checks, and the events that they leave."""

from dataclasses import replace

import pytest

from interlock.core.approval.approval import (
    Approval,
    DecisionRecord,
    already_decided_error,
    cancel,
    decide,
    delegate,
    expire,
    record_refusal,
    resolve_unknown,
    undo,
)
from interlock.core.canonical import canonical, digest
from interlock.core.decision import Acknowledgement, Approve, Decision, Edit, Reject, Respond, Reviewer
from interlock.core.errors import (
    AlreadyDecided,
    AlreadyStarted,
    ClockBehind,
    Conflict,
    DigestMismatch,
    Error,
    Expired,
    FindingsNotAcknowledged,
    Forbidden,
    InvalidDecision,
    Problem,
)
from interlock.core.ledger.event import SYSTEM_ACTOR, Change, Payload
from interlock.core.policy.policy import Ask, Stage
from tests.unit.builders import (
    ADMIN,
    ALICE,
    BOB,
    CAROL,
    DAVE,
    FINANCE,
    LEGAL,
    NOW,
    OTHER_ARGS,
    TWO_OF_FINANCE,
    VIEWER,
    acknowledge,
    approval_in_status,
    approve,
    at,
    at_with_clock_behind,
    edit,
    pending,
    prepare_edit,
    reject,
    respond,
    users,
)

DEADLINE = NOW + Ask().expires_in
WRONG_ACKNOWLEDGEMENT = Acknowledgement("f" * 64)


def assert_refused(change: Change[Approval], approval: Approval) -> Error:
    """A refused attempt changes nothing and leaves one event."""
    assert change.state is approval
    assert change.payload is None
    (event,) = change.events
    assert change.error is not None
    assert (event.kind, event.approval_id, dict(event.data)) == (
        "decision_refused",
        approval.id,
        {"error": change.error.code},
    )
    return change.error


def only_event(change: Change[Approval]) -> tuple[str, str, dict[str, object], dict[str, object]]:
    (event,) = change.events
    assert event.approval_id == change.state.id
    assert event.data["status"] == change.state.status
    assert event.data["binding"] == change.state.binding
    return event.kind, event.actor, dict(event.data), dict(event.content or {})


# --- approve


# R11, R41
def test_an_approval_says_who_decided_what_when_and_by_which_channel() -> None:
    approval = pending()
    change = decide(approval, approve(approval, comment="fine"), ALICE, at(NOW + 5))
    approved = change.state
    assert (approved.status, approved.version) == ("approved", 2)
    assert approved.decision == DecisionRecord("approve", "alice", NOW + 5, via="web", reason="", comment="fine")
    assert approved.deadlines.start_by == NOW + 5 + approval.terms.start_within
    kind, actor, data, content = only_event(change)
    assert (kind, actor, data["stage"]) == ("approved", "alice", 0)
    assert content == {"args_sha256": approval.args_sha256, "via": "web", "comment": "fine"}
    assert (change.error, change.payload) == (None, None)


# R11, R41
def test_a_reason_goes_with_an_approval_too() -> None:
    approval = pending()
    change = decide(approval, approve(approval, reason="urgent", comment="fine"), ALICE, at(NOW + 5))
    assert change.state.decision == DecisionRecord(
        "approve", "alice", NOW + 5, via="web", reason="urgent", comment="fine"
    )
    _, _, _, content = only_event(change)
    assert (content or {})["reason"] == "urgent"


# R41, R48
def test_a_vote_that_is_not_the_last_leaves_the_call_pending() -> None:
    approval = pending(TWO_OF_FINANCE)
    change = decide(approval, approve(approval), ALICE, at(NOW + 5))
    kind, actor, data, content = only_event(change)
    assert (change.state.status, change.state.version, change.state.decision) == ("pending", 2, None)
    assert (kind, actor, data["stage"], content["via"]) == ("voted", "alice", 0, "web")
    (vote,) = change.state.votes
    assert (vote.by, vote.on_behalf_of, vote.stage, vote.args_sha256, vote.at, vote.via) == (
        "alice",
        "alice",
        0,
        approval.args_sha256,
        NOW + 5,
        "web",
    )


# R40, R41
def test_a_vote_in_another_persons_seat_says_so() -> None:
    waiting = delegate(pending(TWO_OF_FINANCE), users("dave"), ALICE, at()).state
    _, actor, _, content = only_event(decide(waiting, approve(waiting), DAVE, at()))
    assert (actor, content["seat"]) == ("dave", "alice")


# R47, design rule 9: where an old interface sends no digest
def test_without_a_digest_an_approval_counts_only_while_nothing_was_edited_or_found() -> None:
    clean = pending()
    assert decide(clean, Approve(), ALICE, at()).state.status == "approved"
    for doubtful in (
        replace(clean, editors=("bob",)),
        replace(clean, findings=clean.findings._replace(alarms=("f1",))),
    ):
        for decision in (Approve(Acknowledgement(acknowledged=("f1",))), Edit(b"{}")):
            error = assert_refused(decide(doubtful, decision, ALICE, at()), doubtful)
            assert isinstance(error, DigestMismatch)
            assert error.ids == {"approval_id": "id", "args_sha256": doubtful.args_sha256}
        assert decide(doubtful, Reject(), ALICE, at()).state.status == "rejected"
        assert decide(doubtful, Respond("no"), ALICE, at()).state.status == "responded"


# R47
@pytest.mark.parametrize(
    "decision",
    [
        Approve(WRONG_ACKNOWLEDGEMENT),
        Edit(b"{}", WRONG_ACKNOWLEDGEMENT),
        Respond("x", None, WRONG_ACKNOWLEDGEMENT),
        Reject("", WRONG_ACKNOWLEDGEMENT),
    ],
)
def test_who_saw_other_arguments_decides_nothing(decision: Decision) -> None:
    approval = pending()
    error = assert_refused(decide(approval, decision, ALICE, at(), prepare_edit(approval)), approval)
    assert isinstance(error, DigestMismatch)
    assert error.ids == {"approval_id": "id", "args_sha256": approval.args_sha256}


# R53
def test_findings_are_acknowledged_one_by_one() -> None:
    approval = pending(alarms=("f1", "f2"))
    for acknowledged in ((), ("f1",), ("f2",), ("f3",)):
        error = assert_refused(decide(approval, approve(approval, *acknowledged), ALICE, at()), approval)
        assert isinstance(error, FindingsNotAcknowledged)
        assert error.ids["approval_id"] == "id"
        assert error.ids["findings"] == [each for each in ("f1", "f2") if each not in acknowledged]
    change = decide(approval, approve(approval, "f1", "f2"), ALICE, at())
    assert change.state.status == "approved"
    assert only_event(change)[3]["acknowledged"] == ["f1", "f2"]


# R53
def test_a_rejection_needs_no_acknowledgement() -> None:
    approval = pending(alarms=("f1",))
    assert decide(approval, reject(approval), ALICE, at()).state.status == "rejected"
    assert decide(approval, respond(approval), ALICE, at()).state.status == "responded"


# --- the order of the checks


LOCKED = Ask(stages=(Stage(FINANCE),), decisions=("approve", "reject"))


# R41, R48
@pytest.mark.parametrize("reviewer", [CAROL, VIEWER, Reviewer("alice", "agent")])
@pytest.mark.parametrize(
    "decision",
    [
        Approve(WRONG_ACKNOWLEDGEMENT),
        Edit(b"{}", WRONG_ACKNOWLEDGEMENT),
        Respond("x", None, WRONG_ACKNOWLEDGEMENT),
        Reject("", WRONG_ACKNOWLEDGEMENT),
    ],
)
def test_who_may_not_decide_learns_nothing_else(reviewer: Reviewer, decision: Decision) -> None:
    approval = pending(LOCKED, alarms=("f1",))
    hint = InvalidDecision("The policy forbids the edited call.", [Problem("/args", "secret rule")])
    error = assert_refused(decide(approval, decision, reviewer, at(), hint), approval)
    assert isinstance(error, Forbidden)
    assert error.ids == {"approval_id": "id"}
    assert approval.args_sha256 not in error.message


# R48
def test_a_later_stage_waits_before_it_is_told_about_digests() -> None:
    approval = pending(Ask(stages=(Stage(FINANCE), Stage(LEGAL))))
    for decision in (Approve(WRONG_ACKNOWLEDGEMENT), Edit(b"{}", WRONG_ACKNOWLEDGEMENT)):
        error = assert_refused(decide(approval, decision, CAROL, at()), approval)
        assert isinstance(error, Forbidden)
        assert "Another stage" in error.message
    assert decide(approval, reject(approval), CAROL, at()).state.status == "rejected"


# R11
@pytest.mark.parametrize("decision", [Edit(b"{}", WRONG_ACKNOWLEDGEMENT), Respond("x", None, WRONG_ACKNOWLEDGEMENT)])
def test_an_answer_that_the_rule_does_not_allow_is_refused_before_its_content_is_looked_at(decision: Decision) -> None:
    approval = pending(LOCKED)
    error = assert_refused(decide(approval, decision, ALICE, at(), Conflict("never said")), approval)
    assert isinstance(error, InvalidDecision)
    assert error.message.endswith("allowed: approve, reject.")
    assert error.ids == {"approval_id": "id"}


# R12, R27
def test_what_was_found_wrong_before_the_transaction_refuses_the_answer() -> None:
    approval = pending()
    wrong = InvalidDecision("Too much.", [Problem("/args/amount", "too much")])
    for decision in (edit(approval), respond(approval)):
        assert assert_refused(decide(approval, decision, ALICE, at(), wrong), approval) is wrong


# R41
def test_a_refused_attempt_is_kept_with_what_the_person_had_seen() -> None:
    approval = pending(LOCKED)
    (event,) = decide(approval, Approve(WRONG_ACKNOWLEDGEMENT), CAROL, at()).events
    assert event.actor == "carol"
    assert event.content == {"kind": "approve", "args_sha256": "f" * 64, "via": "web"}


# --- reject and respond


# R11, R14
def test_one_rejection_ends_it_and_is_released_after_the_undo_window() -> None:
    approval = pending(TWO_OF_FINANCE)
    once = decide(approval, approve(approval), ALICE, at()).state
    change = decide(once, reject(once, reason="too much", comment="ask again"), BOB, at(NOW + 1))
    assert (change.state.status, change.state.version, change.state.deadlines.release_at) == (
        "rejected",
        3,
        NOW + 8_001,
    )
    assert change.state.decision == DecisionRecord(
        "reject", "bob", NOW + 1, via="slack", reason="too much", comment="ask again"
    )
    kind, actor, data, content = only_event(change)
    assert (kind, actor, data["release_at"]) == ("rejected", "bob", NOW + 8_001)
    assert content == {"args_sha256": once.args_sha256, "via": "slack", "reason": "too much", "comment": "ask again"}


# R11, R22
def test_a_reason_can_accompany_an_acknowledgement() -> None:
    approval = pending()
    change = decide(approval, Reject(seen=acknowledge(approval, reason="too much")), ALICE, at())
    assert change.state.decision == DecisionRecord("reject", "alice", NOW, via="web", reason="too much")
    assert only_event(change)[3]["reason"] == "too much"


# R11, R37
@pytest.mark.parametrize(
    ("message", "answer", "result"), [("hi", None, b'"hi"'), ("hi", {"b": 1, "a": 2}, b'{"a":2,"b":1}'), ("", 0, b"0")]
)
def test_a_response_is_the_result(message: str, answer: object, result: bytes) -> None:
    approval = pending()
    change = decide(approval, Respond(message, answer, acknowledge(approval, comment="c")), ALICE, at())
    assert (change.state.status, change.payload) == ("responded", Payload(result=result))
    assert change.state.decision == DecisionRecord("respond", "alice", NOW, via="web", reason="", comment="c")
    kind, _, _, content = only_event(change)
    assert (kind, content) == ("responded", {"args_sha256": approval.args_sha256, "via": "web", "comment": "c"})


# --- edit


# R12, R50
def test_an_edit_is_also_the_editors_approval() -> None:
    approval = pending()
    wanted = prepare_edit(approval)
    change = decide(approval, edit(approval), ALICE, at(NOW + 3), wanted)
    approved = change.state
    assert (approved.status, approved.version, approved.editors) == ("approved", 2, ("alice",))
    assert approved.args_sha256 == wanted.args_sha256 != approval.args_sha256
    assert approved.binding == approval.subject.binding(wanted.args_sha256, approval.terms.sha256)
    assert approved.binding != approval.binding
    assert approved.decision is not None
    assert (approved.decision.kind, approved.deadlines.expires_at) == ("edit", approval.deadlines.expires_at)
    assert change.payload == Payload(args=canonical(OTHER_ARGS), sentence="Pay more?")
    assert [event.kind for event in change.events] == ["edited", "approved"]
    assert all(event.data["binding"] == approved.binding for event in change.events)
    assert change.events[0].data["quorum"] == [1]
    assert change.events[0].content == {
        "args_sha256": wanted.args_sha256,
        "replaces": approval.args_sha256,
        "via": "web",
    }


# R47
def test_an_edit_with_secrets_binds_the_bytes_that_run() -> None:
    approval = pending()
    hiding = replace(prepare_edit(approval), shown=b'{"p":1}', args_sha256=digest(b'{"p":1}'))
    one = decide(approval, edit(approval), ALICE, at(), hiding)
    other = decide(approval, edit(approval), ALICE, at(), replace(hiding, args=b"{}"))
    assert one.state.args_sha256 == other.state.args_sha256
    assert one.state.binding != other.state.binding
    assert one.payload == Payload(args=hiding.args, shown=hiding.shown, sentence="Pay more?")


# R48, R50
def test_an_edit_voids_earlier_votes() -> None:
    approval = pending(TWO_OF_FINANCE)
    once = decide(approval, approve(approval), ALICE, at()).state
    edited = decide(once, edit(once), BOB, at(), prepare_edit(once)).state
    assert (edited.status, [vote.by for vote in edited.votes]) == ("pending", ["bob"])
    assert {vote.args_sha256 for vote in edited.votes} == {edited.args_sha256}
    assert decide(edited, approve(edited), ALICE, at()).state.status == "approved"


# R48
def test_an_excluded_editor_does_not_approve_what_they_wrote() -> None:
    approval = pending(Ask(exclude=frozenset({"editor"})))
    change = decide(approval, edit(approval), ALICE, at(), prepare_edit(approval))
    assert (change.state.status, change.state.votes, change.state.version) == ("pending", (), 2)
    assert [event.kind for event in change.events] == ["edited"]
    assert change.payload is not None
    again = decide(change.state, approve(change.state), ALICE, at())
    assert isinstance(assert_refused(again, change.state), Forbidden)
    assert decide(change.state, approve(change.state), BOB, at()).state.status == "approved"


# R50
def test_an_edit_into_a_stricter_rule_stays_pending_under_it() -> None:
    approval = pending()
    strict = Ask("two of legal", (Stage(LEGAL, 2),), decisions=("approve", "reject"), start_within=5)
    edited = decide(approval, edit(approval), ALICE, at(), prepare_edit(approval, OTHER_ARGS, strict)).state
    assert (edited.status, edited.terms.stages, edited.terms.decisions) == ("pending", strict.stages, strict.decisions)
    assert edited.terms.rule == "two of legal"
    assert edited.binding == approval.subject.binding(edited.args_sha256, edited.terms.sha256)
    assert isinstance(decide(edited, approve(edited), ALICE, at()).error, Forbidden)
    once = decide(edited, approve(edited), CAROL, at()).state
    last = decide(once, approve(once), replace(CAROL, name="carl"), at(NOW + 2)).state
    assert (last.status, last.deadlines.start_by) == ("approved", NOW + 7)


# R50
def test_an_edit_into_a_looser_rule_keeps_the_old_terms() -> None:
    approval = pending(TWO_OF_FINANCE)
    edited = decide(approval, edit(approval), ALICE, at(), prepare_edit(approval, OTHER_ARGS, Ask("loose"))).state
    assert (edited.status, edited.terms) == ("pending", TWO_OF_FINANCE)


# R50
def test_an_edit_where_nobody_may_approve_counts_as_no_vote() -> None:
    approval = pending(Ask(decisions=("edit", "reject")))
    edited = decide(approval, edit(approval), ALICE, at(), prepare_edit(approval)).state
    assert (edited.status, edited.votes) == ("pending", ())


# R48, R50
def test_an_editor_of_a_later_stage_starts_again_at_the_first() -> None:
    approval = pending(Ask(stages=(Stage(FINANCE), Stage(LEGAL))))
    second = decide(approval, approve(approval), ALICE, at()).state
    edited = decide(second, edit(second), CAROL, at(), prepare_edit(second)).state
    assert (edited.status, edited.votes, edited.editors) == ("pending", (), ("carol",))


# R12
def test_editors_are_named_once_each() -> None:
    approval = pending(replace(TWO_OF_FINANCE, stages=(Stage(FINANCE, 3),)))
    for number, reviewer in enumerate((ALICE, BOB, ALICE)):
        args = {"amount": 10 + number}
        approval = decide(approval, edit(approval, args), reviewer, at(), prepare_edit(approval, args)).state
    assert approval.editors == ("alice", "bob")


# R53
def test_findings_of_the_edit_itself_are_acknowledged() -> None:
    approval = pending()
    odd = prepare_edit(approval, OTHER_ARGS, None, "f9")
    error = assert_refused(decide(approval, edit(approval), ALICE, at(), odd), approval)
    assert isinstance(error, FindingsNotAcknowledged)
    change = decide(approval, edit(approval, OTHER_ARGS, "f9"), ALICE, at(), odd)
    assert (change.state.status, change.state.findings.alarms) == ("approved", ("f9",))


# R53
def test_an_edit_that_takes_the_findings_away_needs_no_acknowledgement() -> None:
    approval = pending(alarms=("f1",))
    change = decide(approval, edit(approval), ALICE, at(), prepare_edit(approval))
    assert (change.state.status, change.state.findings.alarms) == ("approved", ())


# R47
def test_an_edit_of_arguments_that_changed_meanwhile_is_refused() -> None:
    approval = pending(TWO_OF_FINANCE)
    stale = prepare_edit(approval)
    edited = decide(approval, edit(approval, {"amount": 9}), BOB, at(), prepare_edit(approval, {"amount": 9})).state
    for late in (stale, None):
        error = assert_refused(decide(edited, edit(edited), ALICE, at(), late), edited)
        assert isinstance(error, DigestMismatch)
        assert error.ids == {"approval_id": "id"}


# --- time


# R5, R28
@pytest.mark.parametrize("make", [approve, reject, respond])
def test_a_decision_counts_up_to_the_last_millisecond(make: object) -> None:
    approval = pending()
    in_time = decide(approval, make(approval), ALICE, at(DEADLINE - 1))
    assert in_time.error is None
    assert in_time.state.status != "pending"
    for now in (DEADLINE, DEADLINE + 1, DEADLINE + 10**12):
        late = decide(approval, make(approval), ALICE, at(now))
        assert (late.state.status, late.state.version) == ("expired", 2)
        assert isinstance(late.error, Expired)
        assert only_event(late)[:2] == ("expired", SYSTEM_ACTOR)
        assert late.state.decision is not None
        assert (late.state.decision.kind, late.state.decision.by, late.state.decision.at) == (
            "expire",
            SYSTEM_ACTOR,
            now,
        )
        assert "timed out" in late.state.decision.reason


# R5
def test_an_edit_at_the_deadline_is_too_late() -> None:
    approval = pending()
    late = decide(approval, edit(approval), ALICE, at(DEADLINE), prepare_edit(approval))
    assert (late.state.status, late.state.args_sha256) == ("expired", approval.args_sha256)
    assert isinstance(late.error, Expired)


# R28, R43
def test_only_a_rule_that_says_so_approves_when_time_is_up() -> None:
    generous = pending(Ask("auto", on_expiry="approve", start_within=50))
    change = decide(generous, reject(generous), ALICE, at(DEADLINE))
    assert (change.state.status, change.state.deadlines.start_by) == ("approved", DEADLINE + 50)
    assert change.state.decision is not None
    assert (change.state.decision.by, change.state.decision.kind) == (SYSTEM_ACTOR, "approve")
    assert "nobody answers in time" in change.state.decision.reason
    assert isinstance(change.error, AlreadyDecided)
    kind, actor, data, _ = only_event(change)
    assert (kind, actor, data["by"]) == ("approved", SYSTEM_ACTOR, "expiry")
    for terms in (Ask(), Ask(on_expiry="escalate"), Ask(on_expiry="reject")):
        assert expire(pending(terms), at(DEADLINE)).state.status == "expired"


# R28, R53
def test_time_approves_nothing_that_may_deceive_and_nothing_while_the_clock_is_behind() -> None:
    auto = Ask("auto", on_expiry="approve")
    assert expire(pending(auto, alarms=("f1",)), at(DEADLINE)).state.status == "expired"
    assert expire(pending(auto), at_with_clock_behind(DEADLINE)).state.status == "expired"


# design rule 7
def test_while_the_clock_is_behind_nothing_is_approved_and_anything_can_be_refused() -> None:
    approval = pending()
    for decision in (approve(approval), edit(approval)):
        with pytest.raises(ClockBehind):
            decide(approval, decision, ALICE, at_with_clock_behind(), prepare_edit(approval))
    assert decide(approval, reject(approval), ALICE, at_with_clock_behind()).state.status == "rejected"
    assert decide(approval, respond(approval), ALICE, at_with_clock_behind()).state.status == "responded"
    assert isinstance(
        decide(approval, Approve(WRONG_ACKNOWLEDGEMENT), ALICE, at_with_clock_behind()).error, DigestMismatch
    )


# --- after the decision


# R24, R41
def test_a_second_decision_is_refused_with_the_first() -> None:
    approval = pending()
    approved = decide(approval, approve(approval), ALICE, at(NOW + 1)).state
    with pytest.raises(AlreadyDecided) as caught:
        decide(approved, reject(approved), BOB, at(NOW + 2))
    assert caught.value.ids == {
        "approval_id": "id",
        "status": "approved",
        "decision": {"kind": "approve", "by": "alice", "at": NOW + 1, "reason": ""},
    }
    assert "alice (approve)" in caught.value.message


# R21
def test_a_late_decision_gets_the_recorded_decision() -> None:
    expired = already_decided_error(approval_in_status("expired"))
    assert isinstance(expired, Expired)
    assert "propose the call again" in expired.message
    assert expired.ids == {"approval_id": "id"}
    bare = already_decided_error(approval_in_status("succeeded"))
    assert isinstance(bare, AlreadyDecided)
    assert (bare.ids["decision"], "succeeded" in bare.message) == (None, True)


# --- undo


def rejected_approval(terms: Ask = Ask()) -> Approval:  # noqa: B008  frozen
    approval = pending(terms)
    return decide(approval, reject(approval), ALICE, at()).state


# R14
def test_a_rejection_can_be_undone_until_the_agent_hears_of_it() -> None:
    approval = rejected_approval()
    change = undo(approval, ALICE, at(NOW + 7_999))
    assert (change.state.status, change.state.version) == ("pending", 3)
    assert (change.state.decision, change.state.deadlines.release_at) == (None, None)
    assert only_event(change)[:2] == ("undone", "alice")
    assert only_event(change)[3] == {"via": "web"}
    with pytest.raises(Expired, match="Too late"):
        undo(approval, ALICE, at(NOW + 8_000))


# R14
def test_a_rejection_cannot_be_undone_at_the_deadline() -> None:
    approval = rejected_approval(Ask(undo_window=10**9))
    assert undo(approval, ALICE, at(DEADLINE - 1)).state.status == "pending"
    with pytest.raises(Expired):
        undo(approval, ALICE, at(DEADLINE))


# R14, R41, R48
def test_only_who_rejected_or_an_admin_can_undo() -> None:
    approval = rejected_approval()
    assert undo(approval, ADMIN, at()).events[0].actor == "root"
    change = undo(approval, BOB, at())
    assert isinstance(assert_refused(change, approval), Forbidden)
    assert change.events[0].content == {"kind": "undo", "via": "slack"}


# R14
def test_undo_keeps_the_votes_that_others_gave() -> None:
    approval = pending(TWO_OF_FINANCE)
    once = decide(approval, approve(approval), ALICE, at()).state
    again = undo(decide(once, reject(once), BOB, at()).state, BOB, at()).state
    assert again.votes == once.votes
    assert decide(again, approve(again), BOB, at()).state.status == "approved"


# design rule 7
def test_undo_is_refused_while_the_clock_is_behind() -> None:
    with pytest.raises(ClockBehind):
        undo(rejected_approval(), ALICE, at_with_clock_behind())


# R14
def test_a_rejection_without_a_record_cannot_be_undone() -> None:
    done = rejected_approval()
    with pytest.raises(Conflict, match="Only a rejection"):
        undo(replace(rejected_approval(), decision=None), ADMIN, at())
    with pytest.raises(Expired):
        undo(replace(done, deadlines=done.deadlines._replace(release_at=None)), ADMIN, at())


# --- delegate, cancel, resolve


# R40
def test_a_delegation_is_recorded_with_its_delegates() -> None:
    approval = pending(TWO_OF_FINANCE)
    change = delegate(approval, users("dave", "carol"), ALICE, at())
    assert (change.state.status, change.state.version, len(change.state.delegations)) == ("pending", 2, 1)
    kind, actor, _, content = only_event(change)
    assert (kind, actor) == ("delegated", "alice")
    assert content == {"to": {"users": ["carol", "dave"], "teams": []}, "via": "web"}


# R40, R41
def test_only_those_who_may_decide_can_delegate_and_only_in_time() -> None:
    approval = pending(TWO_OF_FINANCE)
    for reviewer in (CAROL, VIEWER):
        change = delegate(approval, users("dave"), reviewer, at())
        assert isinstance(assert_refused(change, approval), Forbidden)
        assert change.events[0].content == {"kind": "delegate", "via": reviewer.via}
    late = delegate(approval, users("dave"), ALICE, at(DEADLINE))
    assert (late.state.status, late.state.delegations) == ("expired", ())
    assert isinstance(late.error, Expired)
    with pytest.raises(AlreadyDecided):
        delegate(rejected_approval(), users("dave"), ALICE, at())


# R55
@pytest.mark.parametrize("status", ["pending", "approved"])
def test_a_call_that_has_not_started_can_be_withdrawn(status: str) -> None:
    change = cancel(approval_in_status(status), "agent:helper", "changed my mind", at(NOW + 1))
    assert (change.state.status, change.state.version) == ("cancelled", 2)
    assert change.state.decision == DecisionRecord("cancel", "agent:helper", NOW + 1, via="", reason="changed my mind")
    assert only_event(change)[0] == "cancelled"
    assert only_event(change)[3] == {"reason": "changed my mind"}
    again = cancel(change.state, "agent:helper", "again", at())
    assert (again.state, again.events) == (change.state, ())


@pytest.mark.parametrize("status", ["running", "succeeded", "failed", "unknown"])
def test_a_call_that_started_cannot_be_withdrawn(status: str) -> None:
    with pytest.raises(AlreadyStarted, match=status):
        cancel(approval_in_status(status), "agent", "", at())


def test_a_call_that_people_ended_cannot_be_withdrawn() -> None:
    with pytest.raises(AlreadyDecided):
        cancel(approval_in_status("rejected"), "agent", "", at())
    with pytest.raises(Expired):
        cancel(approval_in_status("expired"), "agent", "", at())


def test_a_person_who_may_not_decide_is_told_who_has_to() -> None:
    for terms, needs in (
        (Ask(), "the requester, a reviewer or an admin"),
        (Ask(stages=(Stage(replace(LEGAL, users=frozenset({"zed"}))),)), "zed or team legal"),
    ):
        change = decide(pending(terms=terms), Approve(), Reviewer("nobody", "viewer"), at())
        assert change.error is not None
        assert change.error.message == f"You may not decide this approval. It needs {needs}."


def test_an_edit_that_leaves_no_answer_is_refused() -> None:
    approval = pending(terms=Ask(decisions=("edit", "reject")))
    edited = prepare_edit(approval, terms=Ask("other", decisions=("approve", "respond")))
    change = decide(approval, edit(approval), ALICE, at(), edited)
    assert (change.state, type(change.error)) == (approval, InvalidDecision)


# R46
def test_a_person_who_looked_says_how_an_unknown_call_ended() -> None:
    unknown = approval_in_status("unknown")
    ok = resolve_unknown(unknown, "seen in the bank", ALICE, b"5", at(), ok=True)
    assert (ok.state.status, ok.payload) == ("succeeded", Payload(result=b"5"))
    failed = resolve_unknown(unknown, "not there", ADMIN, b"5", at(), ok=False)
    assert (failed.state.status, failed.payload) == ("failed", Payload(error="not there"))
    kind, actor, _, content = only_event(ok)
    assert (kind, actor, content) == ("resolved", "alice", {"note": "seen in the bank", "via": "web"})
    assert ok.state.version == unknown.version + 1


# R41, R46, R48
@pytest.mark.parametrize(
    ("terms", "reviewer", "may"),
    [
        (Ask(), ALICE, True),
        (Ask(), VIEWER, False),
        (TWO_OF_FINANCE, ALICE, True),
        (TWO_OF_FINANCE, CAROL, False),
        (TWO_OF_FINANCE, ADMIN, False),
        (Ask(exclude=frozenset({"requester"})), Reviewer("rita", "reviewer"), False),
    ],
)
def test_only_those_who_may_decide_a_call_resolve_its_outcome(terms: Ask, reviewer: Reviewer, may: bool) -> None:
    change = resolve_unknown(approval_in_status("unknown", terms=terms), "", reviewer, None, at(), ok=True)
    assert change.state.status == ("succeeded" if may else "unknown")
    assert may or isinstance(change.error, Forbidden)


def test_only_reviewers_resolve_and_only_what_is_unknown() -> None:
    unknown = approval_in_status("unknown")
    change = resolve_unknown(unknown, "", VIEWER, None, at(), ok=True)
    assert isinstance(assert_refused(change, unknown), Forbidden)
    assert change.events[0].content == {"kind": "resolve", "via": "library"}
    with pytest.raises(Conflict, match="running"):
        resolve_unknown(approval_in_status("running"), "", ALICE, None, at(), ok=True)


# R41
def test_few_and_short_pointers_of_a_refused_answer_are_recorded() -> None:
    problems = [Problem(f"/{number}{'x' * 300}", "odd") for number in range(9)]
    (event,) = record_refusal(pending(), "approve", ALICE, InvalidDecision("No.", problems)).events
    assert (event.content or {})["fields"] == [problem.pointer[:200] for problem in problems[:5]]
    (other,) = record_refusal(pending(), "undo", ALICE, Conflict("No.")).events
    assert "fields" not in (other.content or {})
