"""The rules of a policy in words, policies to start from, and what rules did lately or would have done."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel

from interlock.core.policy.analysis import Matched, Shadow
from interlock.core.policy.policy import Policy, Then
from interlock.policy.diff import Difference, facets_of
from interlock.policy.file import Loaded
from interlock.policy.rehearsal import activity
from interlock.policy.templates import NAMES, summary, template
from interlock.presenters.policy import difference_json
from interlock.runtime.durations import optional_rfc3339, parse_duration, rfc3339
from interlock.server.dependencies import ADMINS, Caller, Here, fails, may

router = APIRouter(tags=["policy"])

MOST_ENTRIES = 20_000  # of the ledger that one look at the rules' activity reads
MOST_SECONDS = 5.0


class RuleInfo(BaseModel):
    """`says` is what the rule says by itself, key by key in the words of the file; `line` is where it begins."""

    name: str
    line: int | None
    then: Then
    shadow: bool
    says: dict[str, str]


class FacetChange(BaseModel):
    """One key that differs; null where it is not given."""

    key: str
    old: str | None
    new: str | None


class RuleChange(BaseModel):
    """Places count from 1; `old_name` is set if the rule got another name."""

    kind: Literal["added", "removed", "renamed", "changed", "moved"]
    rule: str
    old_name: str | None
    old_place: int | None
    new_place: int | None
    moved: bool
    changes: list[FacetChange]


class PolicyDiff(BaseModel):
    """How two policies differ, by their rules."""

    rules: list[RuleChange]
    defaults: list[FacetChange]
    agents: list[FacetChange]


class Template(BaseModel):
    """A whole policy to start from, with comments; its first line is the `summary`."""

    name: str
    summary: str
    body: str


class TemplateList(BaseModel):
    items: list[Template]
    next: str | None = None


class MatchedRule(BaseModel):
    """How many calls a rule allowed, asked about and denied; the empty name is for calls that no rule decided."""

    rule: str
    allow: int
    ask: int
    deny: int
    last: str


class Turned(BaseModel):
    """So many calls got the verdict `was`, and `would` have got the other."""

    was: Then
    would: Then
    calls: int


class ShadowRule(BaseModel):
    """What a rule in shadow mode would have done; not `in_force` if it is gone or enforced now."""

    rule: str
    calls: int
    turns: list[Turned]
    in_force: bool
    first: str | None
    last: str | None


class Activity(BaseModel):
    """Of `calls` since then; allowed reads are not among them. Of `erased` ones nobody knows what was noted.

    Not `complete` if there was more than the newest 20,000 entries of the ledger, or than 5 seconds allow.
    """

    since: str
    calls: int
    erased: int
    complete: bool
    rules: list[MatchedRule]
    shadows: list[ShadowRule]


@router.get("/api/policy/templates", responses=fails(), **may(ADMINS))
async def list_templates() -> TemplateList:
    """Policies to start from: whole files with comments that say what to change."""
    return TemplateList(items=[Template(name=name, summary=summary(name), body=template(name)) for name in NAMES])


@router.get("/api/policy/activity", responses=fails(), **may(ADMINS))
async def show_activity(site: Here, who: Caller, since: str = "30d") -> Activity:
    """How often each rule decided, and what rules in shadow mode would have done."""
    begin = site.clock() - parse_duration(since)
    loop = asyncio.get_running_loop()
    async with site.rehearsing:
        end = loop.time() + MOST_SECONDS
        found = await activity(site.store, who.workspace, begin, MOST_ENTRIES, lambda *_: loop.time() < end)
    policy = (await site.workspaces.doors(who.workspace)).loaded.policy
    return Activity(
        since=rfc3339(begin),
        calls=found.shadows.calls,
        erased=found.shadows.erased,
        complete=found.complete,
        rules=[_matched(each) for each in found.matched],
        shadows=_shadows(found.shadows.rules, policy),
    )


def rules_in_words(loaded: Loaded) -> list[RuleInfo]:
    policy = loaded.policy
    return [
        RuleInfo(
            name=rule.name,
            line=loaded.lines.get(rule.name),
            then=rule.then,
            shadow=rule.shadow,
            says=facets_of(rule, policy.defaults),
        )
        for rule in policy.rules
    ]


def policy_diff(difference: Difference) -> PolicyDiff:
    fields: dict[str, Any] = difference_json(difference)
    return PolicyDiff(**fields)


def _matched(each: Matched) -> MatchedRule:
    counts = {kind: each.verdicts.get(kind, 0) for kind in ("allow", "ask", "deny")}
    return MatchedRule(rule=each.rule, last=rfc3339(each.last), **counts)


def _shadows(noted: tuple[Shadow, ...], policy: Policy) -> list[ShadowRule]:
    """Those that noted something, then those in force that did not."""
    known = {rule.name: None for rule in policy.rules if rule.shadow}
    silent = [Shadow(name, 0, {}, 0, 0) for name in known if name not in {each.rule for each in noted}]
    return [
        ShadowRule(
            rule=each.rule,
            calls=each.calls,
            turns=[Turned(was=was, would=would, calls=count) for (was, would), count in each.turns.items()],
            in_force=each.rule in known,
            first=optional_rfc3339(each.first or None),
            last=optional_rfc3339(each.last or None),
        )
        for each in (*noted, *silent)
    ]
