"""Policies, rehearsals, freezes, grants and tools as JSON: the same on the command line and over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.app.inbox import GrantView, LatestDefinition
from interlock.app.tool_catalog import CatalogTool
from interlock.core.call import RedactedArgs, ToolSpec
from interlock.core.canonical import read_canonical
from interlock.core.card import escape_invisible
from interlock.core.declared import call_sentence
from interlock.core.freeze import Freeze
from interlock.core.grant import Amounts, Grant, format_amount, state_at
from interlock.core.ledger.event import Stored
from interlock.core.outcome import status_at
from interlock.core.pins import Pin
from interlock.core.policy.analysis import ChangedCall, RecordedCall, RehearsalReport, VerdictChangeCause
from interlock.core.policy.policy import Ask, Deny, People, VerdictKind
from interlock.core.ports import PolicyVersion
from interlock.policy.diff import FieldDifference, PolicyDifference
from interlock.policy.explain import Explanation, RuleEvaluation
from interlock.policy.file import LoadedPolicy
from interlock.policy.rehearsal import RehearsalResult
from interlock.presenters.approval import approval_sentence, entry_content
from interlock.presenters.text import approvers_text, people_text, pluralize
from interlock.runtime.durations import DAY, optional_rfc3339, rfc3339

VERDICT_KINDS: tuple[VerdictKind, ...] = ("allow", "ask", "deny")
ANY_APPROVER = "the requester, a reviewer or an admin"

# Freezes


def freeze_json(freeze: Freeze) -> dict[str, object]:
    return {
        "id": freeze.id,
        "scope": freeze.scope,
        "name": freeze.name,
        "reason": freeze.reason,
        "created_by": freeze.by,
        "created_at": rfc3339(freeze.at),
        "released_at": optional_rfc3339(freeze.released_at),
        "released_by": freeze.released_by or None,
    }


# Grants


def grant_json(grant: Grant, now: int) -> dict[str, object]:
    """A grant; what is left is null without a limit; amounts are texts, since JSON numbers are not exact."""
    return {
        "id": grant.id,
        "tool": grant.tool,
        "agent": grant.agent,
        "when": grant.when,
        "state": state_at(grant, now),
        "reason": grant.reason,
        "created_by": grant.created_by,
        "created_at": rfc3339(grant.created_at),
        "expires_at": rfc3339(grant.expires_at),
        "revoked_at": optional_rfc3339(grant.revoked_at),
        "uses": grant.uses,
        "max_uses": grant.max_uses,
        "uses_left": grant.uses_left,
        "budget_of": grant.budget_of or None,
        "budget": grant.budget or None,
        "spent": grant.spent if grant.budget else None,
        "budget_left": grant.budget_left,
        "spec_sha256": grant.spec_sha256,
    }


def grant_view_json(view: GrantView, now: int) -> dict[str, object]:
    revoked = None if view.revocation_entry is None else entry_content(view.revocation_entry)
    return {
        **grant_json(view.grant, now),
        "revoked_by": None if view.revocation_entry is None else view.revocation_entry.actor,
        "revoked_reason": None if revoked is None else revoked.get("reason"),
        "calls": [
            {
                "approval_id": stored.approval.id,
                "at": rfc3339(stored.approval.created_at),
                "status": status_at(stored.approval, now),
                "sentence": approval_sentence(stored),
                "amount": grant_amount(stored, view.grant) or None,
            }
            for stored in view.recent_calls
        ],
    }


def grant_amount(stored: Stored, grant: Grant) -> str:
    """The amount of a call; empty without a budget, and once the arguments were erased."""
    shown = stored.payload.shown or stored.payload.args
    amount = Amounts(shown).get(grant.budget_of) if grant.budget and shown else None
    return "" if amount is None else format_amount(amount)


def grant_warnings(grant: Grant, definition: LatestDefinition) -> Iterator[str]:
    if grant.max_uses is None and not grant.budget and not grant.when:
        yield "the only limit is time: limit the uses, the budget or the condition unless every call is meant."
    if definition.others:
        more = pluralize(definition.others, "other definition is", "other definitions are")
        yield f"{more} in use for {escape_invisible(grant.tool)}; calls with those still need approval."


# Policies


def policy_version_json(version: PolicyVersion) -> dict[str, object]:
    return {
        "version": version.version,
        "at": rfc3339(version.at),
        "author": version.author,
        "reason": version.reason,
        "sha256": version.sha256,
    }


def explanation_json(explained: Explanation, origin: str, loaded: LoadedPolicy) -> dict[str, object]:
    return {
        "judged_as": explained.judged_as,
        "verdict": explained.verdict.kind,
        "rule": explained.rule,
        "why": explained.conclusion,
        "terms": read_canonical(explained.verdict.snapshot) if isinstance(explained.verdict, Ask) else None,
        "reason": explained.verdict.reason if isinstance(explained.verdict, Deny) else None,
        "steps": [_rule_evaluation_json(step) for step in explained.steps],
        "notes": list(explained.notes),
        "policy": {"origin": origin, "sha256": loaded.policy.sha256},
    }


def _rule_evaluation_json(step: RuleEvaluation) -> dict[str, object]:
    names = ("rule", "line", "then", "shadow", "matched", "holds", "why")
    return {name: getattr(step, name) for name in names}


def difference_json(difference: PolicyDifference) -> dict[str, object]:
    return {
        "rules": [
            {
                "kind": each.kind,
                "rule": each.rule,
                "old_name": each.old_name or None,
                "old_place": each.old_place,
                "new_place": each.new_place,
                "moved": each.moved,
                "changes": _field_differences_json(each.changes),
            }
            for each in difference.rules
        ],
        "defaults": _field_differences_json(difference.defaults),
        "agents": _field_differences_json(difference.agents),
    }


def _field_differences_json(facets: tuple[FieldDifference, ...]) -> list[dict[str, object]]:
    return [{"key": facet.key, "old": facet.old or None, "new": facet.new or None} for facet in facets]


# Rehearsals


def rehearsal_json(rehearsed: RehearsalResult, now: int, kept: str) -> dict[str, object]:
    """The result of a rehearsal; `kept` is the retention of finished calls, `first` the oldest call covered."""
    report = rehearsed.report
    return {
        "calls": report.calls,
        "first": optional_rfc3339(report.first or None),
        "last": optional_rfc3339(report.last or None),
        "verdicts": {
            old: {new: report.verdict_counts.get((old, new), 0) for new in VERDICT_KINDS} for old in VERDICT_KINDS
        },
        "turned": report.changed_verdicts,
        "other_terms": report.other_terms,
        "loosened": report.loosened,
        "outdated": report.outdated,
        "erased": rehearsed.erased,
        "retention": kept,
        "allowed_reads": rehearsed.allowed_reads,
        "left_out": rehearsed.left_out,
        "causes": [_cause_json(cause, count) for cause, count in report.causes.items()],
        "answers_per_day": [
            {"who": words, "now": round(old, 2), "draft": round(new, 2)}
            for words, old, new in answers_per_day(report, now)
        ],
        "changed": [_changed_call_json(changed) for changed in report.changed],
    }


def answers_per_day(report: RehearsalReport, now: int) -> Iterator[tuple[str, float, float]]:
    """Answers per day by group, the largest changes first. Less than a day counts as one day."""
    days = max(1.0, (now - report.first) / DAY)
    groups = sorted(report.answers_needed.items(), key=lambda item: -abs(item[1][1] - item[1][0]))
    for people, (old, new) in groups:
        yield _approvers_text(people), old / days, new / days


def recorded_sentence(each: RecordedCall) -> str:
    """The sentence of a recorded call; a denied one has no approval with it, and redacted arguments."""
    if each.sentence or each.approval_id:
        return each.sentence or f"Execute {each.call.tool}?"
    return call_sentence(each.spec, RedactedArgs(each.call.args, each.call.parsed_args, ""))


def _cause_json(cause: VerdictChangeCause, count: int) -> dict[str, object]:
    return {
        "calls": count,
        "from": cause.old,
        "to": cause.new,
        "old_rule": cause.old_rule,
        "new_rule": cause.new_rule,
        "loosened": cause.loosened,
    }


def tool_json(tool: CatalogTool) -> dict[str, object]:
    """A tool and the source of its definition, with the definition that counts."""
    pin = tool.pin
    return {
        "name": tool.name,
        "standing": tool.status,
        **_definition_json(tool.spec),
        "agents": list(tool.agents),
        "first_seen_at": optional_rfc3339(tool.first_at),
        "last_seen_at": optional_rfc3339(tool.last_at),
        "calls": tool.calls,
        "declared_sha256": tool.declared.sha256 if tool.declared else None,
        "pinned_by": pin.author if pin else None,
        "pinned_at": optional_rfc3339(pin.at if pin else None),
        "changed": list(tool.changed),
        "named_by": tool.named_by,
        "on_word": tool.is_declaration_trusted,
        "looks_like": list(tool.looks_like),
    }


def pin_json(pin: Pin) -> dict[str, object]:
    about = {"agent": pin.agent, "pinned_by": pin.author, "pinned_at": rfc3339(pin.at)}
    return {"tool": pin.tool, **_definition_json(pin.spec), **about}


def _definition_json(spec: ToolSpec) -> dict[str, object]:
    return {
        "effect": spec.effect,
        "schema": spec.schema,
        "secret": list(spec.secret),
        "idempotent": spec.idempotent,
    }


def _changed_call_json(changed: ChangedCall) -> dict[str, object]:
    each, new = changed.recorded, changed.new
    return {
        "approval_id": each.approval_id or None,
        "at": rfc3339(each.at),
        "tool": each.call.tool,
        "agent": each.call.path[-1] if each.call.path else "",
        "sentence": recorded_sentence(each),
        "from": changed.old.kind,
        "to": new.kind,
        "old_rule": changed.old.rule,
        "new_rule": new.rule,
        "needs": approvers_text(new) if isinstance(new, Ask) else None,
        "recorded": each.verdict,
        "loosened": changed.loosened,
    }


def _approvers_text(people: People | None) -> str:
    return ANY_APPROVER if people is None else people_text(people)
