"""Proposal of a call: pending, or created as approved by a rule or a grant; a denied call leaves an event only."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from interlock.core.approval.approval import Approval, ApprovalDeadlines, DecisionRecord, Findings
from interlock.core.call import RedactedArgs, ToolCall, ToolSpec, agent_actor, caller_json, make_subject
from interlock.core.card import escape_invisible
from interlock.core.errors import CallMismatch, ClockBehind, InvalidRequest, Problem
from interlock.core.fast_dataclasses import fast_construct, fast_replace
from interlock.core.grant import Amounts, Grant, format_amount, use
from interlock.core.ledger.event import Change, Event, Moment, Payload
from interlock.core.policy.policy import Allow, Ask, Deny

MAX_FAILING_ARGS = 16 * 1024  # bytes of the arguments that the entry of a call known to fail keeps
MAX_FAILING_SENTENCE = 1_000  # characters, if the arguments are longer than that


class Proposal(NamedTuple):
    """A checked call on its way into the store, with everything that was computed before the transaction.

    `has_caller_id`: the caller chose its id, which may be taken. `schema_errors` are the places where its arguments do
    not fit the tool's schema, `effects` the tool's possible effects by the judgement.
    """

    id: str
    nonce: str
    call: ToolCall
    spec: ToolSpec
    shown: RedactedArgs
    sentence: str
    alarms: tuple[str, ...] = ()
    preview: str = ""
    preview_version: str = ""
    confirmed_version: str = ""  # of the preview that the person has already said yes to in the conversation
    policy_sha256: str = ""
    shadows: tuple[tuple[str, str], ...] = ()
    has_caller_id: bool = False
    schema_errors: tuple[Problem, ...] = ()
    effects: tuple[str, ...] = ()


def request_approval(proposal: Proposal, terms: Ask, moment: Moment) -> Change[Approval]:
    approval = _new_approval(proposal, terms, "pending", moment.now)
    data = {
        "rule": terms.rule,
        "quorum": [stage.quorum for stage in terms.stages],
        "expires_at": approval.deadlines.expires_at,
    }
    payload = _payload(proposal)
    if proposal.preview_version:
        payload = payload._replace(preview_version=proposal.preview_version)
    return Change(approval, (_event("proposed", proposal, approval, data),), payload)


def allow(proposal: Proposal, verdict: Allow, moment: Moment) -> Change[Approval]:
    """Allow a call by a rule; a write gets a row as well, so that "at most once" and the ledger hold for it too."""
    terms = _allow_terms(verdict.rule, proposal.call.priority or "medium", verdict.start_within)
    reason = f"Allowed by the rule {verdict.rule!r}." if verdict.rule else ""
    decision_record = DecisionRecord("approve", "policy", moment.now, reason=reason)
    return _allow_proposal(proposal, terms, decision_record, {"by": "rule", "rule": verdict.rule}, moment)


@lru_cache(maxsize=1_000)
def _allow_terms(rule: str, priority: str, start_within: int) -> Ask:
    """The terms of an allowed call, cached so that the same terms are encoded and hashed once."""
    return Ask(rule, priority=priority, start_within=start_within)


def allow_by_grant(proposal: Proposal, terms: Ask, grant: Grant, moment: Moment) -> Change[Approval]:
    """Allow a call by a grant and count the use: the updated grant goes into the same transaction."""
    decision_record = DecisionRecord(
        "approve", grant.created_by, moment.now, via="grant", reason=f"Covered by the grant {grant.id}."
    )
    data = {"by": "grant", "grant": grant.id, "granted_by": grant.created_by, "rule": terms.rule}
    amounts = Amounts(proposal.shown.data)
    change = _allow_proposal(proposal, terms, decision_record, data, moment)
    used = use(grant, amounts, moment)
    (event,) = change.events
    counted = {"use": used.uses, "uses_left": used.uses_left}
    told = {"reason": f"Covered by the grant {grant.id}, which {grant.created_by} made."} | _amount_facts(used, amounts)
    event = event._replace(data={**event.data, **counted}, content={**(event.content or {}), **told})
    return change._replace(events=(event,), grant=used)


def deny(proposal: Proposal, verdict: Deny) -> Change[None]:
    """Deny a call: it has no row; its event holds everything needed to judge it again, with secrets redacted."""
    call = proposal.call
    content = {
        **_erasable_facts(proposal),
        "reason": verdict.reason,
        "sentence": proposal.sentence,
        "args": proposal.shown.value,
        "agent": call.agent,
        "agent_path": list(call.agent_path),
        "thread_id": call.thread_id,
        "priority": call.priority,
        "known": None if call.caller is None else caller_json(call.caller),
    }
    if call.pre_check.deny_reason:
        content["refusal"] = call.pre_check.deny_reason
    data = {"tool": escape_invisible(call.tool), "rule": verdict.rule, "spec": proposal.spec.sha256}
    return Change(None, (Event("denied", agent_actor(proposal.call), data, "", content),))


def deny_by_preview(proposal: Proposal, rule: str, reason: str) -> Change[None]:
    """Deny a call that would have been asked about, since its tool's preview shows that it would fail.

    Nobody is asked about such calls, so nothing else limits what a model makes the ledger keep: of long arguments only
    the digest is kept.
    """
    (event,) = deny(proposal, Deny(reason, rule)).events
    data, content, size = {**event.data, "by": "preview"}, dict(event.content or {}), len(proposal.shown.data)
    if size > MAX_FAILING_ARGS:
        data["args_left_out"] = size
        content["sentence"] = proposal.sentence[:MAX_FAILING_SENTENCE]
        del content["args"], data["spec"]  # without `spec`, older programs do not try to rehearse it either
    return Change(None, (event._replace(data=data, content=content),))


def check_same_call(approval: Approval, call: ToolCall, approval_id: str = "") -> None:
    """Raise CallMismatch if a known call id comes with another tool, other bytes or another agent.

    `approval_id` is the approval id that the caller wants, if any.
    """
    if not approval.subject.is_same_call(call):
        message = "This call id is known with another tool, other arguments or another agent. Use a new call id."
        raise CallMismatch(message)  # without its approval id, which could be another agent's
    if approval_id not in ("", approval.id):
        raise CallMismatch("This call is known under another approval id.")


def check_approval_id(approval_id: str) -> None:
    """Accept one spelling of a UUID only, so that one id cannot name two approvals."""
    if not approval_id:  # most calls get one here
        return
    try:
        canonical = str(UUID(approval_id)) == approval_id
    except ValueError:
        canonical = False
    if not canonical:
        raise InvalidRequest("An approval id is a UUID, in lower case and with hyphens.")


def id_taken_error() -> CallMismatch:
    return CallMismatch("This approval id belongs to another call. Use a new one.")


def _new_approval(proposal: Proposal, terms: Ask, status: str, now: int, start_by: int | None = None) -> Approval:
    call, shown = proposal.call, proposal.shown
    subject = make_subject(call, proposal.spec, terms.priority, proposal.nonce, proposal.effects)
    sha256 = shown.sha256
    binding = subject.binding(sha256, terms.sha256, None if shown.data == call.args else call.args)
    return fast_construct(
        Approval,
        id=proposal.id,
        subject=subject,
        terms=terms,
        args_sha256=sha256,
        binding=binding,
        status=status,
        created_at=now,
        deadlines=ApprovalDeadlines(now + terms.expires_in, start_by=start_by),
        findings=Findings(proposal.alarms, proposal.schema_errors),
    )


def _allow_proposal(
    proposal: Proposal, terms: Ask, decision_record: DecisionRecord, data: Mapping[str, object], moment: Moment
) -> Change[Approval]:
    if moment.is_clock_behind:
        raise ClockBehind("The clock is behind the ledger's last entry. Nothing is allowed until it is corrected.")
    start_by = moment.now + terms.start_within
    born = _new_approval(proposal, terms, "approved", moment.now, start_by)
    approval = fast_replace(born, decision=decision_record, grant_id=str(data.get("grant", "")))
    return Change(approval, (_event("allowed", proposal, approval, data),), _payload(proposal))


def _event(kind: str, proposal: Proposal, approval: Approval, data: Mapping[str, object]) -> Event:
    facts = {
        "status": approval.status,
        "binding": approval.binding,
        "tool": proposal.call.tool,
        "idempotent": approval.subject.idempotent,
        **data,
    }
    return Event(kind, agent_actor(proposal.call), facts, approval.id, _erasable_facts(proposal))


def _erasable_facts(proposal: Proposal) -> dict[str, object]:
    """The facts of a call that are erased with it."""
    call = proposal.call
    facts: dict[str, object] = {
        "args_sha256": proposal.shown.sha256,
        "run_id": call.run_id,
        "call_id": call.call_id,
        "requester": call.requester,
        "policy": proposal.policy_sha256,
    }
    if call.caller is not None:
        facts |= {"owner": call.caller.owner, "credential": call.caller.credential}
    if proposal.shadows:
        facts["shadow"] = [{"rule": rule, "then": then} for rule, then in proposal.shadows]
    if proposal.schema_errors:
        facts["misfits"] = [str(problem) for problem in proposal.schema_errors]
    _add_match_facts(facts, call)
    return facts


def _add_match_facts(facts: dict[str, object], call: ToolCall) -> None:
    """Add what rules match on and an approval does not store: its priority is the rule's, and teams change."""
    if call.priority:
        facts["priority"] = call.priority
    if call.teams:
        facts["teams"] = list(call.teams)
    if call.switch:
        facts["switch"] = call.switch
    if call.setting != "queue":
        facts["setting"] = call.setting


def _amount_facts(used: Grant, amounts: Amounts) -> dict[str, object]:
    amount = amounts.get(used.budget_of) if used.budget else None
    return {} if amount is None else {"amount": format_amount(amount), "budget_left": used.budget_left}


def _payload(proposal: Proposal) -> Payload:
    """The payload of a call that is allowed unasked: its preview of now, unlike a question, was shown to nobody."""
    shown = None if proposal.shown.data == proposal.call.args else proposal.shown.data
    call = proposal.call
    preview, version = proposal.preview or None, proposal.confirmed_version or None
    return Payload(call.args, shown, proposal.sentence, call.agent_says or None, preview, preview_version=version)
