"""Approvals as JSON: the same shape on the command line, over HTTP and in the live feed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import assert_never, cast

from interlock.app.inbox import ERASED_MESSAGE, ApprovalDetails
from interlock.core.approval.approval import STATUSES, Approval, DecisionRecord, decision_blockers
from interlock.core.approval.vote import Delegation, Vote, next_approvers_text, open_stage, total_quorum
from interlock.core.canonical import read_canonical
from interlock.core.card import Card, CardField, Finding, escape_invisible, risk_level
from interlock.core.decision import Reviewer
from interlock.core.declared import shown_schema
from interlock.core.ledger.chain import Entry
from interlock.core.ledger.event import Payload, Stored
from interlock.core.outcome import Answered, Finished, Outcome, Proceed, Refused, Waiting, status_at
from interlock.core.policy.policy import People
from interlock.runtime.durations import optional_rfc3339, rfc3339
from interlock.storage.store import SqlStore

OWN_CALL_FIELDS = (
    *("id", "tool", "status", "args_sha256", "sentence", "effect", "priority", "agent", "agent_path", "thread_id"),
    *("run_id", "call_id", "requester", "created_at", "expires_at"),
)
DECIDED_STATUSES = ("approved", "rejected", "responded", "running", "succeeded", "failed", "unknown")


def approval_item_json(stored: Stored, now: int) -> dict[str, object]:
    """One row of a list; the status is by the clock."""
    approval, subject = stored.approval, stored.approval.subject
    return {
        "id": approval.id,
        "tool": subject.tool,
        "status": status_at(approval, now),
        "args_sha256": approval.args_sha256,
        "sentence": approval_sentence(stored),
        "risk": risk_level(subject.effect, subject.priority),
        "effect": subject.effect,
        "agent": subject.agent,
        "agent_path": list(subject.agent_path),
        "thread_id": subject.thread_id,
        "run_id": subject.run_id,
        "call_id": subject.call_id,
        "requester": subject.requester,
        "rule": approval.terms.rule,
        "priority": subject.priority,
        "quorum": {"have": vote_count(approval), "need": total_quorum(approval)},
        "alarms": list(approval.findings.alarms),
        "claimed_by": approval.discussion.claimed_by,
        "open_questions": len(approval.discussion.open_questions),
        "version": approval.version,
        "created_at": rfc3339(approval.created_at),
        "expires_at": rfc3339(approval.deadlines.expires_at),
        "seconds_left": _seconds_left(approval, now),
        "release_at": optional_rfc3339(approval.deadlines.release_at),
        "start_by": optional_rfc3339(approval.deadlines.start_by),
        "decision": decision_json(approval.decision),
    }


def inbox_row_json(stored: Stored, now: int, reviewer: Reviewer) -> dict[str, object]:
    """A row of a list with the decisions that this person could make now."""
    return {
        **approval_item_json(stored, now),
        "may_decide": may_decide_json(stored.approval, reviewer, now)["may_decide"],
    }


def approval_json(view: ApprovalDetails, now: int, reviewer: Reviewer | None = None) -> dict[str, object]:
    """Everything that a front end shows; with a `reviewer` also the decisions that this person could make now."""
    approval, payload = view.stored.approval, view.stored.payload
    yours = {} if reviewer is None else may_decide_json(approval, reviewer, now)
    return {
        **approval_item_json(view.stored, now),
        "status": view.status,
        "sentence": view.card.sentence,
        "args": shown_args(payload),
        "schema": shown_schema(view.spec),
        "declared": view.spec.declared,
        "card": _card_json(view.card),
        "findings": [_finding_json(finding) for finding in view.card.findings],
        "decisions": list(approval.terms.decisions),
        **yours,
        "needed": next_approvers_text(approval) if view.status == "pending" else "",
        "stages": _stages_json(approval),
        "excluded": sorted(approval.terms.exclude),
        "votes": [_vote_json(vote) for vote in approval.votes],
        "editors": list(approval.editors),
        "delegations": [_delegation_json(each) for each in approval.delegations],
        "questions": questions_json(view.timeline),
        "timeline": [entry_json(entry) for entry in view.timeline],
        "result": None if payload.result is None else read_canonical(payload.result),
        "error_message": payload.error,
    }


def own_call_json(stored: Stored, now: int) -> dict[str, object]:
    """One of an agent's own calls, as its program may see it: not who decides, claims or warns, nor by which rule.

    A rejection can be undone until its release, so that until then its reason is not shown.
    """
    approval, row = stored.approval, approval_item_json(stored, now)
    decision = approval.decision if now >= (approval.deadlines.release_at or 0) else None
    return {name: row[name] for name in OWN_CALL_FIELDS} | {
        "decision": decision and {"kind": decision.kind, "at": rfc3339(decision.at), "reason": decision.reason}
    }


def own_call_details_json(stored: Stored, now: int) -> dict[str, object]:
    """One of an agent's own calls with its arguments, secrets replaced by fingerprints, and how it ended."""
    payload = stored.payload
    return {
        **own_call_json(stored, now),
        "args": shown_args(payload),
        "result": None if payload.result is None else read_canonical(payload.result),
        "error_message": payload.error,
    }


async def workspace_stats_json(store: SqlStore, workspace: str) -> dict[str, object]:
    """Approvals of a workspace, counted by status."""
    stats, oldest = await store.stats(workspace), await store.metrics.oldest_pending(workspace)
    by_status = {status: stats.by_status.get(status, 0) for status in STATUSES}
    return {
        "pending": by_status["pending"],
        "waiting_agents": stats.waiting_runs,
        "decided": sum(by_status[status] for status in DECIDED_STATUSES),
        "expired": by_status["expired"],
        "cancelled": by_status["cancelled"],
        "allowed_reads": stats.allowed_reads,
        "oldest_pending_seconds": 0.0 if oldest is None else max(0, store.clock() - oldest) / 1000,
        "freezes": sum(each.is_on for each in await store.open_freezes(workspace)),
        "by_status": by_status,
    }


def decision_result_json(approval: Approval, now: int) -> dict[str, object]:
    """The result of a decision, without the card."""
    return {
        "id": approval.id,
        "status": status_at(approval, now),
        "version": approval.version,
        "args_sha256": approval.args_sha256,
        "quorum": {"have": vote_count(approval), "need": total_quorum(approval)},
        "decision": decision_json(approval.decision),
        "release_at": optional_rfc3339(approval.deadlines.release_at),
        "start_by": optional_rfc3339(approval.deadlines.start_by),
    }


def may_decide_json(approval: Approval, reviewer: Reviewer, now: int) -> dict[str, object]:
    """The decisions that the person may make; `may_not` has the reasons against the others, as text."""
    found = decision_blockers(approval, reviewer, now)
    return {
        "may_decide": [kind for kind, blocker in found.items() if not blocker],
        "may_not": {kind: blocker for kind, blocker in found.items() if blocker},
    }


def questions_json(timeline: Iterable[Entry]) -> list[dict[str, object]]:
    """Questions to the agent, each with its reply; texts are null once they were erased."""
    asked: dict[object, dict[str, object]] = {}
    for entry in timeline:
        if entry.kind not in ("asked", "replied"):
            continue
        content, number = entry_content(entry), json.loads(entry.data)["number"]
        said = {"by": entry.actor, "at": rfc3339(entry.at), "text": None if content is None else content["text"]}
        if entry.kind == "asked":
            asked[number] = {"number": number, **said, "reply": None}
        elif number in asked:
            asked[number]["reply"] = said
    return list(asked.values())


def entry_json(entry: Entry) -> dict[str, object]:
    """`content` is null if there was none or it was erased; only in the second case `digest` is set."""
    return {
        "seq": entry.seq,
        "at": rfc3339(entry.at),
        "kind": entry.kind,
        "actor": entry.actor,
        "approval_id": entry.approval_id,
        "data": json.loads(entry.data),
        "content": entry_content(entry),
        "digest": entry.digest,
    }


def decision_json(decision_record: DecisionRecord | None) -> dict[str, object] | None:
    if decision_record is None:
        return None
    return {
        "kind": decision_record.kind,
        "by": decision_record.by,
        "at": rfc3339(decision_record.at),
        "via": decision_record.via,
        "reason": decision_record.reason,
        "comment": decision_record.comment,
    }


def entry_content(entry: Entry) -> Mapping[str, object] | None:
    return None if entry.content is None else cast(dict[str, object], json.loads(entry.content))


def shown_args(payload: Payload) -> object:
    """Arguments with fingerprints in place of secrets; null once they were erased."""
    shown = payload.shown if payload.shown is not None else payload.args
    return None if shown is None else read_canonical(shown)


def approval_sentence(stored: Stored) -> str:
    approval = stored.approval
    return escape_invisible(
        stored.payload.sentence or (ERASED_MESSAGE if approval.erasure else f"Execute {approval.subject.tool}?")
    )


def vote_count(approval: Approval) -> int:
    return len({(vote.stage, vote.on_behalf_of) for vote in approval.votes})


def _seconds_left(approval: Approval, now: int) -> float | None:
    """Seconds until it expires; null if it is not pending."""
    return max(0, approval.deadlines.expires_at - now) / 1000 if approval.status == "pending" else None


def _stages_json(approval: Approval) -> list[dict[str, object]]:
    """The stages in order; people vote in the first that is not done."""
    current = open_stage(approval)
    return [
        {
            "approvers": None if stage.approvers is None else _people_json(stage.approvers),
            "need": stage.quorum,
            "have": len({vote.on_behalf_of for vote in approval.votes if vote.stage == number}),
            "done": number < current,
        }
        for number, stage in enumerate(approval.terms.stages)
    ]


def _delegation_json(delegation: Delegation) -> dict[str, object]:
    return {"by": delegation.by, "to": _people_json(delegation.to)}


def _people_json(people: People) -> dict[str, object]:
    return {"users": sorted(people.users), "teams": sorted(people.teams)}


def _vote_json(vote: Vote) -> dict[str, object]:
    return {
        "by": vote.by,
        "seat": vote.on_behalf_of,
        "stage": vote.stage,
        "args_sha256": vote.args_sha256,
        "at": rfc3339(vote.at),
        "via": vote.via,
    }


def _card_json(card: Card) -> dict[str, object]:
    """The card without the findings, which are next to it."""
    return {
        "risk": card.risk,
        "tool": card.tool,
        "sentence": card.sentence,
        "facts": [{"label": label, "text": text} for label, text in card.facts],
        "fields": [_field_json(field) for field in card.fields],
        "preview": card.preview,
        "agent_description": card.agent_description,
        "agent_preview": card.agent_preview,
        "agent_says": card.agent_says,
    }


def _finding_json(finding: Finding) -> dict[str, object]:
    return {
        "id": finding.id,
        "kind": finding.kind,
        "level": finding.level,
        "pointer": finding.pointer,
        "message": finding.message,
    }


def _field_json(field: CardField) -> dict[str, object]:
    return {
        "pointer": field.pointer,
        "name": field.name,
        "type": field.type,
        "text": field.text,
        "length": field.length,
        "sha256": field.sha256,
        "findings": field.findings,
    }


def outcome_json(outcome: Outcome) -> dict[str, object]:
    """The outcome for an agent; arguments that may run are added as the stored bytes."""
    ids: dict[str, object] = {"approval_id": outcome.approval_id} if outcome.approval_id else {}
    ids["args_sha256"] = outcome.args_sha256
    if isinstance(outcome, Proceed | Refused | Waiting) and outcome.warnings:
        ids["warnings"] = list(outcome.warnings)
    match outcome:
        case Proceed(approval_id=approval_id):
            return {"outcome": "proceed", "status": "approved" if approval_id else "allowed", **ids}
        case Waiting(status=status, until=until, questions=questions):
            times = {"until": optional_rfc3339(until), "questions": list(questions)}
            return {"outcome": "waiting", "status": status, **ids, **times}
        case Answered(message=said):
            return {"outcome": "answered", "status": "responded", **ids, "message": said}
        case Refused(reason=reason, status=status):
            return {"outcome": "refused", "status": status, **ids, "reason": reason}
        case Finished(status=status, result=result, error=error):
            return {"outcome": "finished", "status": status, **ids, "result": result, "error": error or None}
        case _:
            assert_never(outcome)
