"""The approval state machine: states, allowed transitions, and a pure function for each transition.

A transition takes the approval and the moment of the transaction; it returns the Change to store, or raises an error.

It is long because every transition stands beside the table that allows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

from interlock.core.approval import vote as voting
from interlock.core.approval.vote import Delegation, Vote
from interlock.core.call import Subject
from interlock.core.canonical import canonical
from interlock.core.decision import DIGEST_LENGTH, Acknowledgement, Approve, Decision, Edit, Reject, Respond, Reviewer
from interlock.core.declared import AGENT_SECRET
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
from interlock.core.fast_dataclasses import fast_replace, next_version
from interlock.core.ledger.event import SYSTEM_ACTOR, Change, Event, Moment, Payload
from interlock.core.policy.policy import Ask, People

# from → allowed next states. The database holds the same table and refuses every other transition.
TRANSITIONS: Mapping[str, frozenset[str]] = {
    "": frozenset({"pending", "approved"}),
    "pending": frozenset({"pending", "approved", "rejected", "responded", "expired", "cancelled"}),
    "rejected": frozenset({"pending"}),
    "approved": frozenset({"running", "cancelled", "expired"}),
    "running": frozenset({"running", "succeeded", "failed", "unknown"}),
    "unknown": frozenset({"succeeded", "failed"}),
    "responded": frozenset(),
    "expired": frozenset(),
    "cancelled": frozenset(),
    "succeeded": frozenset(),
    "failed": frozenset(),
}
STATUSES = tuple(status for status in TRANSITIONS if status)
APPROVED_STATUSES = frozenset({"approved", "running", "succeeded", "failed", "unknown"})  # approved, and maybe run
FINAL_STATUSES = frozenset({"responded", "expired", "cancelled", "succeeded", "failed"})
MAX_REFUSED_FIELDS = 5  # recorded of a refused answer
MAX_POINTER = 200  # characters, since a pointer may hold names that the sender chose
_new = tuple.__new__  # used for every change: a named tuple's constructor takes three times as long


class DecisionRecord(NamedTuple):
    """What was decided, by which person, when and through which channel."""

    kind: str
    by: str
    at: int
    via: str = ""
    reason: str = ""
    comment: str = ""


class ApprovalDeadlines(NamedTuple):
    """Until when a decision, the undo of a rejection and the start of an approved call are possible.

    Freezes moved them by `deferred` milliseconds, computed up to `deferred_until`.
    """

    expires_at: int
    release_at: int | None = None
    start_by: int | None = None
    deferred: int = 0
    deferred_until: int = 0


class Findings(NamedTuple):
    """What people have to see before they decide: alarms, and where the arguments do not fit the tool's schema."""

    alarms: tuple[str, ...] = ()
    schema_errors: tuple[Problem, ...] = ()


class TimerProgress(NamedTuple):
    """The number of reminders sent and of escalation steps taken."""

    reminded: int = 0
    escalated: int = 0


class Lease(NamedTuple):
    """Which runner may run the call until when; `fence` is the number of its start."""

    fence: int = 0
    until: int | None = None
    runner: str = ""


class Discussion(NamedTuple):
    """Which person claimed the approval, and questions to the agent: how many, and the numbers of the answered ones."""

    claimed_by: str = ""
    asked: int = 0
    replied: tuple[int, ...] = ()

    @property
    def open_questions(self) -> tuple[int, ...]:
        return tuple([number for number in range(1, self.asked + 1) if number not in self.replied])


class ErasureRecord(NamedTuple):
    """When its content was erased, and by whom."""

    at: int
    by: str


NO_FINDINGS, NO_TIMERS, NO_LEASE, NO_DISCUSSION = Findings(), TimerProgress(), Lease(), Discussion()


@dataclass(frozen=True, kw_only=True)
class Approval:
    id: str
    subject: Subject
    terms: Ask
    args_sha256: str
    binding: str
    status: str
    created_at: int
    deadlines: ApprovalDeadlines
    version: int = 1
    findings: Findings = NO_FINDINGS
    votes: tuple[Vote, ...] = ()
    editors: tuple[str, ...] = ()
    delegations: tuple[Delegation, ...] = ()
    timers: TimerProgress = NO_TIMERS
    decision: DecisionRecord | None = None
    lease: Lease = NO_LEASE
    grant_id: str = ""
    erasure: ErasureRecord | None = None
    discussion: Discussion = NO_DISCUSSION


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedEdit:
    """Edited arguments, checked and judged before the transaction, with the digest that they replace."""

    replaces: str
    args: bytes
    shown: bytes | None
    args_sha256: str
    sentence: str
    alarms: tuple[str, ...]
    terms: Ask
    changes: Mapping[str, object] = field(default_factory=dict)


def decide(
    approval: Approval,
    decision: Decision,
    reviewer: Reviewer,
    moment: Moment,
    prepared: PreparedEdit | Error | None = None,
) -> Change[Approval]:
    """Decide a pending approval: check, authorise, validate, record, in this order so that an error leaks nothing.

    `prepared` was computed before the transaction: a checked edit, or the error why the decision cannot be accepted.
    """
    if approval.status == "pending" and moment.now >= approval.deadlines.expires_at:
        return expire_with_error(approval, moment)
    if approval.status != "pending":
        raise already_decided_error(approval)
    voters = voting.open_voters(approval, reviewer)
    error = prepared if isinstance(prepared, Error) else None
    refusal = _decision_error(approval, decision, reviewer, voters) or error
    if refusal is not None:
        return _refuse_decision(approval, decision, reviewer, refusal)
    edited = prepared if isinstance(prepared, PreparedEdit) else None
    match decision:
        case Approve():
            return _approve(approval, decision.seen, reviewer, moment, next(iter(voters), None))
        case Edit():
            return _edit(approval, decision, reviewer, moment, edited)
        case Respond():
            return _respond(approval, decision, reviewer, moment)
        case Reject():
            return _reject(approval, decision, reviewer, moment)
        case _:
            assert_never(decision)


def undo(approval: Approval, reviewer: Reviewer, moment: Moment) -> Change[Approval]:
    """Undo a rejection that has not been released to the agent yet."""
    decision_record = approval.decision
    if approval.status != "rejected" or decision_record is None:
        raise Conflict(f"Only a rejection can be undone; this is {approval.status}.", approval_id=approval.id)
    if reviewer.role != "admin" and reviewer.name != decision_record.by:
        message = f"{decision_record.by} rejected this; only they or an admin can undo it."
        return record_refusal(approval, "undo", reviewer, Forbidden(message, approval_id=approval.id))
    _refuse_if_behind(moment)
    if moment.now >= (approval.deadlines.release_at or 0) or moment.now >= approval.deadlines.expires_at:
        raise Expired("Too late to undo: the agent already has the rejection.", approval_id=approval.id)
    pending = next_version(
        approval, status="pending", decision=None, deadlines=approval.deadlines._replace(release_at=None)
    )
    return make_change(pending, "undone", reviewer.name, {}, reviewer.trace)


def delegate(approval: Approval, to: People, reviewer: Reviewer, moment: Moment) -> Change[Approval]:
    """Delegate a vote: the delegate votes in the delegator's place, so the quorum gains no vote."""
    if approval.status != "pending":
        raise already_decided_error(approval)
    if moment.now >= approval.deadlines.expires_at:
        return expire_with_error(approval, moment)
    if not voting.has_open_vote(approval, reviewer):
        error = Forbidden("Only those who may decide can delegate.", approval_id=approval.id)
        return record_refusal(approval, "delegate", reviewer, error)
    passed = Delegation(reviewer.name, reviewer.teams, reviewer.role, to)
    named = {"users": sorted(to.users), "teams": sorted(to.teams)}
    delegated = next_version(approval, delegations=(*approval.delegations, passed))
    return make_change(delegated, "delegated", reviewer.name, {}, {"to": named, **reviewer.trace})


def cancel(approval: Approval, actor: str, reason: str, moment: Moment) -> Change[Approval]:
    """Cancel a call that has not started."""
    if approval.status == "cancelled":
        return Change(approval)
    if approval.status in ("running", "succeeded", "failed", "unknown"):
        raise AlreadyStarted(f"This cannot be cancelled: it is {approval.status}.", approval_id=approval.id)
    if approval.status not in ("pending", "approved"):
        raise already_decided_error(approval)
    decision_record = DecisionRecord("cancel", actor, moment.now, reason=reason)
    return make_change(
        next_version(approval, status="cancelled", decision=decision_record), "cancelled", actor, {}, {"reason": reason}
    )


def resolve_unknown(
    approval: Approval, note: str, reviewer: Reviewer, result: bytes | None, moment: Moment, *, ok: bool
) -> Change[Approval]:
    """Record the outcome that a person found out for an unknown call; nothing runs."""
    if approval.status != "unknown":
        raise Conflict(f"Only an unknown outcome can be resolved; this is {approval.status}.", approval_id=approval.id)
    if not voting.may_decide(approval, reviewer):
        message = f"Only people who may decide this call resolve its outcome: {voting.all_approvers_text(approval)}."
        return record_refusal(approval, "resolve", reviewer, Forbidden(message, approval_id=approval.id))
    status = "succeeded" if ok else "failed"
    payload = Payload(result=result) if ok else Payload(error=note)
    content = {"note": note, **reviewer.trace}
    return make_change(next_version(approval, status=status), "resolved", reviewer.name, {}, content, payload)


def expire(approval: Approval, moment: Moment) -> Change[Approval]:
    """Expire a pending call at its deadline; it is approved only if the rule says so explicitly."""
    if approval.status != "pending":
        return Change(approval)
    if approval.terms.on_expiry == "approve" and not moment.is_clock_behind and not approval.findings.alarms:
        decision_record = DecisionRecord(
            "approve", SYSTEM_ACTOR, moment.now, reason="The rule approves when nobody answers in time."
        )
        return _mark_approved(approval, decision_record, moment, {"by": "expiry"})
    decision_record = DecisionRecord(
        "expire", SYSTEM_ACTOR, moment.now, reason="The call timed out: nobody decided in time."
    )
    return make_change(
        next_version(approval, status="expired", decision=decision_record), "expired", SYSTEM_ACTOR, {}, None
    )


def already_decided_error(approval: Approval) -> Error:
    """The error for a decision that comes after the call was decided or expired."""
    if approval.status == "expired":
        return Expired("This approval has expired. Let the agent propose the call again.", approval_id=approval.id)
    decision_record = approval.decision
    who = f"{decision_record.by} ({decision_record.kind})" if decision_record else approval.status
    record = (
        {
            "kind": decision_record.kind,
            "by": decision_record.by,
            "at": decision_record.at,
            "reason": decision_record.reason,
        }
        if decision_record
        else None
    )
    message = f"Already decided: {who}. Nothing was changed."
    return AlreadyDecided(message, approval_id=approval.id, status=approval.status, decision=record)


def record_refusal(
    approval: Approval, attempt: str, reviewer: Reviewer, error: Error, **seen: object
) -> Change[Approval]:
    """Record a refused attempt, with the fields that were wrong and none of their values; the approval stays as is."""
    fields = [pointer[:MAX_POINTER] for pointer in error.pointers[:MAX_REFUSED_FIELDS]]
    content = {"kind": attempt, **seen, **({"fields": fields} if fields else {}), **reviewer.trace}
    event = Event("decision_refused", reviewer.name, {"error": error.code}, approval.id, content)
    return Change(approval, (event,), error=error)


def expire_with_error(approval: Approval, moment: Moment) -> Change[Approval]:
    """Expire the approval for a late decision, in case the worker has not done so yet, and return the error."""
    change = expire(approval, moment)
    return change._replace(error=already_decided_error(change.state))


def _decision_error(
    approval: Approval, decision: Decision, reviewer: Reviewer, voters: Sequence[str | None]
) -> Error | None:
    """The error for a decision; None for a vote that is already counted, which changes nothing.

    `voters` are the effective voters in the open stages.
    """
    if isinstance(decision, Approve) and _is_counted(approval, decision.seen, reviewer):
        return None
    return _uncounted_decision_error(approval, decision, reviewer, voters)


def _is_counted(approval: Approval, acknowledgement: Acknowledgement, reviewer: Reviewer) -> bool:
    """Whether they approved exactly these arguments before, also in a stage that is complete."""
    return acknowledgement.args_sha256 == approval.args_sha256 and any(
        vote.by == reviewer.name for vote in approval.votes
    )


def _uncounted_decision_error(
    approval: Approval, decision: Decision, reviewer: Reviewer, voters: Sequence[str | None]
) -> Error | None:
    acknowledgement, kind = decision.seen, decision.kind
    ends = kind in ("respond", "reject")
    if not any(voters):
        return Forbidden(voting.not_an_approver_text(approval), approval_id=approval.id)
    if not ends and voters[0] is None:
        message = f"Another stage has to approve first: {voting.next_approvers_text(approval)}."
        return Forbidden(message, approval_id=approval.id)
    if kind not in approval.terms.decisions:
        allowed = ", ".join(approval.terms.decisions)
        message = f"This call cannot be answered by {kind}; allowed: {allowed}."
        return InvalidDecision(message, [Problem("/kind", f"one of {allowed}")], approval_id=approval.id)
    if acknowledgement.args_sha256 is None and (approval.editors or approval.findings.alarms) and not ends:
        message = "The arguments were edited or may deceive: look at the card and send its args_sha256."
        return DigestMismatch(message, approval_id=approval.id, args_sha256=approval.args_sha256)
    if acknowledgement.args_sha256 not in (None, approval.args_sha256):
        message = "The arguments changed since you saw them. Reload the card."
        return DigestMismatch(message, approval_id=approval.id, args_sha256=approval.args_sha256)
    if kind != "approve":
        return None
    return _schema_mismatch_error(approval) or _acknowledgement_error(approval.id, approval.findings.alarms, decision)


def _schema_mismatch_error(approval: Approval) -> Error | None:
    if not approval.findings.schema_errors:
        return None
    listed = "; ".join(map(str, approval.findings.schema_errors))
    message = f"The arguments do not fit the tool's schema: {listed}. Edit the call, or reject it."
    return InvalidDecision(message, approval.findings.schema_errors, approval_id=approval.id)


def _acknowledgement_error(approval_id: str, alarms: tuple[str, ...], decision: Decision) -> Error | None:
    if not alarms:
        return None
    acknowledged = frozenset(decision.seen.acknowledged)
    missing = [alarm for alarm in alarms if alarm not in acknowledged]
    if not missing:
        return None
    message = f"{_alarm_message(missing)} Look at the card and acknowledge: {', '.join(missing)}"
    return FindingsNotAcknowledged(message, approval_id=approval_id, findings=missing)


def _alarm_message(missing: list[str]) -> str:
    if AGENT_SECRET not in missing:
        return "Some arguments may deceive."
    if len(missing) == 1:
        return "The agent hides arguments from you."
    return "Some arguments may deceive, and the agent hides others from you."


def _refuse_decision(approval: Approval, decision: Decision, reviewer: Reviewer, error: Error) -> Change[Approval]:
    digest = (decision.seen.args_sha256 or "")[:DIGEST_LENGTH]
    return record_refusal(approval, decision.kind, reviewer, error, args_sha256=digest or None)


def _approve(
    approval: Approval, acknowledgement: Acknowledgement, reviewer: Reviewer, moment: Moment, voter: str | None
) -> Change[Approval]:
    """Count a vote in the open stage for `voter`, the effective one."""
    _refuse_if_behind(moment)
    stage = voting.open_stage(approval)
    if voter is None or (approval.votes and _has_voted(approval, (voter, reviewer.name))):
        return Change(approval)  # a second vote of the same person changes nothing
    vote = Vote(reviewer.name, voter, stage, approval.args_sha256, moment.now, reviewer.via)
    counted = fast_replace(approval, votes=(*approval.votes, vote))
    decision_record = DecisionRecord(
        "edit" if approval.editors else "approve",
        reviewer.name,
        moment.now,
        via=reviewer.via,
        reason=acknowledgement.reason,
        comment=acknowledgement.comment,
    )
    content: dict[str, object] = {
        "args_sha256": approval.args_sha256,
        **reviewer.trace,
        "comment": acknowledgement.comment,
    }
    if acknowledgement.reason:
        content["reason"] = acknowledgement.reason
    if voter != reviewer.name:
        content["seat"] = voter
    if approval.findings.alarms:
        content["acknowledged"] = list(approval.findings.alarms)
    if voting.open_stage(counted) < len(approval.terms.stages):
        return make_change(next_version(counted), "voted", reviewer.name, {"stage": stage}, content)
    return _mark_approved(counted, decision_record, moment, {"stage": stage}, content)


def _mark_approved(
    approval: Approval,
    decision_record: DecisionRecord,
    moment: Moment,
    data: Mapping[str, object],
    content: Mapping[str, object] | None = None,
) -> Change[Approval]:
    deadlines = approval.deadlines._replace(start_by=moment.now + approval.terms.start_within)
    approved = next_version(approval, status="approved", decision=decision_record, deadlines=deadlines)
    return make_change(approved, "approved", decision_record.by, data, content)


def _has_voted(approval: Approval, names: tuple[str, ...]) -> bool:
    return any(vote.by in names or vote.on_behalf_of in names for vote in approval.votes)


def _edit(
    approval: Approval, decision: Edit, reviewer: Reviewer, moment: Moment, edited: PreparedEdit | None
) -> Change[Approval]:
    """Edit the arguments: earlier votes are void, the deadline stays, the stricter terms hold.

    The editor's own vote counts if they may vote.
    """
    _refuse_if_behind(moment)
    if edited is None or edited.replaces != approval.args_sha256:
        message = "The arguments changed since you saw them. Reload the card."
        return _refuse_decision(approval, decision, reviewer, DigestMismatch(message, approval_id=approval.id))
    unacknowledged = _acknowledgement_error(approval.id, edited.alarms, decision)
    if unacknowledged is not None:
        return _refuse_decision(approval, decision, reviewer, unacknowledged)
    terms = voting.stricter_terms(approval.terms, edited.terms)
    if not terms.decisions:
        message = (
            f"The rule {edited.terms.rule!r}, which holds for the edited call, leaves no answer that can be given."
        )
        return _refuse_decision(approval, decision, reviewer, InvalidDecision(message, approval_id=approval.id))
    fresh = fast_replace(
        approval,
        terms=terms,
        args_sha256=edited.args_sha256,
        binding=approval.subject.binding(edited.args_sha256, terms.sha256, edited.args if edited.shown else None),
        findings=Findings(edited.alarms),
        votes=(),
        editors=tuple(dict.fromkeys((*approval.editors, reviewer.name))),
    )
    content = {"args_sha256": edited.args_sha256, "replaces": edited.replaces, **reviewer.trace, **edited.changes}
    data = {"quorum": [stage.quorum for stage in terms.stages]}
    change = make_change(next_version(fresh), "edited", reviewer.name, data, content)
    payload = Payload(args=edited.args, shown=edited.shown, sentence=edited.sentence)
    voter = voting.effective_voter(fresh, reviewer, 0)
    if "approve" not in terms.decisions or voter is None:
        return change._replace(payload=payload)
    vote = _approve(fresh, decision.seen, reviewer, moment, voter)
    return vote._replace(events=change.events + vote.events, payload=payload)


def _respond(approval: Approval, decision: Respond, reviewer: Reviewer, moment: Moment) -> Change[Approval]:
    decision_record = DecisionRecord(
        "respond",
        reviewer.name,
        moment.now,
        via=reviewer.via,
        reason=decision.seen.reason,
        comment=decision.seen.comment,
    )
    said = decision.message if decision.answer is None else decision.answer
    responded = next_version(approval, status="responded", decision=decision_record)
    content = {"args_sha256": approval.args_sha256, **reviewer.trace, "comment": decision.seen.comment}
    return make_change(responded, "responded", reviewer.name, {}, content, Payload(result=canonical(said)))


def _reject(approval: Approval, decision: Reject, reviewer: Reviewer, moment: Moment) -> Change[Approval]:
    """Reject the call with one vote; the rejection is released to the agent after the undo window."""
    reason, comment = decision.reason or decision.seen.reason, decision.seen.comment
    decision_record = DecisionRecord(
        "reject", reviewer.name, moment.now, via=reviewer.via, reason=reason, comment=comment
    )
    release_at = moment.now + approval.terms.undo_window
    rejected = next_version(
        approval,
        status="rejected",
        decision=decision_record,
        deadlines=approval.deadlines._replace(release_at=release_at),
    )
    content = {"args_sha256": approval.args_sha256, **reviewer.trace, "reason": reason, "comment": comment}
    return make_change(rejected, "rejected", reviewer.name, {"release_at": release_at}, content)


def _refuse_if_behind(moment: Moment) -> None:
    if moment.is_clock_behind:
        raise ClockBehind("The clock is behind the ledger's last entry. Nothing is approved until it is corrected.")


def make_change(
    approval: Approval,
    kind: str,
    actor: str,
    data: Mapping[str, object],
    content: Mapping[str, object] | None = None,
    payload: Payload | None = None,
) -> Change[Approval]:
    """Make every Change from a new state: its event holds the resulting status and binding."""
    facts = {"status": approval.status, "binding": approval.binding, **data}
    event = _new(Event, (kind, actor, facts, approval.id, content or None))
    return _new(Change, (approval, (event,), payload, None, None))


ALREADY_VOTED = "You have approved this already. It still needs others."


def decision_blockers(approval: Approval, reviewer: Reviewer, now: int) -> dict[str, str]:
    """The reason why each kind of decision is blocked, "" if it is not; acknowledged findings do not block."""
    acknowledgement = Acknowledgement(approval.args_sha256, approval.findings.alarms)
    tries: tuple[Decision, ...] = (Approve(acknowledgement), Edit({}, acknowledgement), Respond(), Reject())
    return {each.kind: _blocked_reason(approval, each, reviewer, now) for each in tries}


def needs_reviewer(approval: Approval, reviewer: Reviewer, now: int) -> bool:
    """Whether it needs this person's answer now: they have not voted, and no earlier stage has to approve first."""
    if approval.status != "pending":
        return False
    found = decision_blockers(approval, reviewer, now)
    asked = [kind for kind in approval.terms.decisions if kind in ("approve", "edit")] or approval.terms.decisions
    return found["approve"] != ALREADY_VOTED and any(not found[kind] for kind in asked)


def _blocked_reason(approval: Approval, decision: Decision, reviewer: Reviewer, now: int) -> str:
    same = PreparedEdit(
        replaces=approval.args_sha256,
        args=b"{}",
        shown=None,
        args_sha256=approval.args_sha256,
        sentence="",
        alarms=(),
        terms=approval.terms,
    )
    prepared = same if decision.kind == "edit" else None
    try:
        change = decide(approval, decision, reviewer, Moment(now, is_clock_behind=False), prepared)
    except Error as error:
        return error.message
    if change.error is not None:
        return change.error.message
    return ALREADY_VOTED if change.state is approval else ""
