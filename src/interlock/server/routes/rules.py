"""Rules of a policy in words, policy templates, and the activity of rules, including those in shadow mode."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel

from interlock.core.policy.analysis import RuleUsage, ShadowRuleUsage
from interlock.core.policy.policy import Policy, VerdictKind
from interlock.policy.diff import PolicyDifference, rule_fields
from interlock.policy.file import LoadedPolicy
from interlock.policy.rehearsal import rule_activity
from interlock.policy.templates import TEMPLATE_NAMES, read_template, template_summary
from interlock.presenters.policy import difference_json
from interlock.runtime.durations import optional_rfc3339, parse_duration, rfc3339
from interlock.server.dependencies import ADMINS, PrincipalDep, StateDep, documented_errors, require_roles

router = APIRouter(tags=["policy"])

MAX_ENTRIES = 20_000  # ledger entries that one report of the rules' activity reads
MAX_SECONDS = 5.0


class RuleInfo(BaseModel):
    """`says` is the content of the rule, by key, as in the file; `line` is its first line."""

    name: str
    line: int | None
    then: VerdictKind
    shadow: bool
    says: dict[str, str]


class FacetChange(BaseModel):
    """One key that differs; null if it is not given."""

    key: str
    old: str | None
    new: str | None


class RuleChange(BaseModel):
    """Places count from 1; `old_name` is set if the rule was renamed."""

    kind: Literal["added", "removed", "renamed", "changed", "moved"]
    rule: str
    old_name: str | None
    old_place: int | None
    new_place: int | None
    moved: bool
    changes: list[FacetChange]


class PolicyDiff(BaseModel):
    """The difference between two policies, by rules."""

    rules: list[RuleChange]
    defaults: list[FacetChange]
    agents: list[FacetChange]


class PolicyTemplate(BaseModel):
    """A complete policy to start from, with comments; its first line is the `summary`."""

    name: str
    summary: str
    body: str


class PolicyTemplateList(BaseModel):
    items: list[PolicyTemplate]
    next: str | None = None


class MatchedRule(BaseModel):
    """How many calls a rule allowed, asked about and denied; the empty name is for calls that no rule decided."""

    rule: str
    allow: int
    ask: int
    deny: int
    last: str


class VerdictChangeJson(BaseModel):
    """The number of calls that got the verdict `was`, and `would` have got the other."""

    was: VerdictKind
    would: VerdictKind
    calls: int


class ShadowRule(BaseModel):
    """What a rule in shadow mode would have done; `in_force` is false if it is gone or enforced now."""

    rule: str
    calls: int
    turns: list[VerdictChangeJson]
    in_force: bool
    first: str | None
    last: str | None


class RuleActivityJson(BaseModel):
    """The activity in `calls` since then, allowed reads excluded. For `erased` ones, the shadow notes are lost.

    `complete` is false if there was more than the newest 20,000 ledger entries, or than 5 seconds allow.
    """

    since: str
    calls: int
    erased: int
    complete: bool
    rules: list[MatchedRule]
    shadows: list[ShadowRule]


@router.get("/api/policy/templates", responses=documented_errors(), **require_roles(ADMINS))
async def list_templates() -> PolicyTemplateList:
    """Policies to start from: complete files with comments that say what to change."""
    return PolicyTemplateList(
        items=[
            PolicyTemplate(name=name, summary=template_summary(name), body=read_template(name))
            for name in TEMPLATE_NAMES
        ]
    )


@router.get("/api/policy/activity", responses=documented_errors(), **require_roles(ADMINS))
async def show_activity(state: StateDep, principal: PrincipalDep, since: str = "30d") -> RuleActivityJson:
    """How often each rule decided, and what rules in shadow mode would have done."""
    begin = state.clock() - parse_duration(since)
    loop = asyncio.get_running_loop()
    async with state.rehearsal_lock:
        end = loop.time() + MAX_SECONDS
        found = await rule_activity(state.store, principal.workspace, begin, MAX_ENTRIES, lambda *_: loop.time() < end)
    policy = (await state.workspaces.services(principal.workspace)).loaded_policy.policy
    return RuleActivityJson(
        since=rfc3339(begin),
        calls=found.shadows.calls,
        erased=found.shadows.erased,
        complete=found.complete,
        rules=[_matched_rule(each) for each in found.matched],
        shadows=_shadow_rules(found.shadows.rules, policy),
    )


def rule_infos(loaded: LoadedPolicy) -> list[RuleInfo]:
    policy = loaded.policy
    return [
        RuleInfo(
            name=rule.name,
            line=loaded.rule_lines.get(rule.name),
            then=rule.then,
            shadow=rule.shadow,
            says=rule_fields(rule, policy.defaults),
        )
        for rule in policy.rules
    ]


def policy_diff(difference: PolicyDifference) -> PolicyDiff:
    fields: dict[str, Any] = difference_json(difference)
    return PolicyDiff(**fields)


def _matched_rule(each: RuleUsage) -> MatchedRule:
    counts = {kind: each.verdicts.get(kind, 0) for kind in ("allow", "ask", "deny")}
    return MatchedRule(rule=each.rule, last=rfc3339(each.last), **counts)


def _shadow_rules(noted: tuple[ShadowRuleUsage, ...], policy: Policy) -> list[ShadowRule]:
    """Rules that noted something first, then those in force that did not."""
    known = {rule.name: None for rule in policy.rules if rule.shadow}
    silent = [ShadowRuleUsage(name, 0, {}, 0, 0) for name in known if name not in {each.rule for each in noted}]
    return [
        ShadowRule(
            rule=each.rule,
            calls=each.calls,
            turns=[
                VerdictChangeJson(was=was, would=would, calls=count)
                for (was, would), count in each.verdict_counts.items()
            ],
            in_force=each.rule in known,
            first=optional_rfc3339(each.first or None),
            last=optional_rfc3339(each.last or None),
        )
        for each in (*noted, *silent)
    ]
