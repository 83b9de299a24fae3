"""A standing, scoped, expiring, revocable permission that a person made: the only way not to be asked again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from interlock.core.call import ToolCall, ToolSpec
from interlock.core.decision import Reviewer
from interlock.core.errors import Conflict, Forbidden, InvalidRequest
from interlock.core.event import Change, Event, Moment
from interlock.core.policy import Ask, Condition, facts_of
from interlock.core.voting import DECIDERS

MAX_TERM = 366 * 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Grant:
    """`when` is the source of a condition; `spec_sha256` ties it to the tool as it was when the person agreed.

    `budget` is a decimal number, the most that all uses may add up to; `budget_of` points at the amount.
    """

    id: str
    workspace: str
    tool: str
    spec_sha256: str
    created_by: str
    teams: frozenset[str]
    role: str
    created_at: int
    expires_at: int
    agent: str = "*"
    when: str = ""
    max_uses: int | None = None
    uses: int = 0
    revoked_at: int | None = None
    reason: str = ""
    budget_of: str = ""
    budget: str = ""
    spent: str = "0"


Compile = Callable[[str], Condition]


def make(draft: Grant, maker: Reviewer, moment: Moment) -> Change[Grant]:
    if maker.role not in DECIDERS:
        raise Forbidden("Only reviewers and admins can make a grant.")
    if not moment.now < draft.expires_at <= moment.now + MAX_TERM:
        raise InvalidRequest("A grant ends in the future, within a year.")
    if draft.max_uses is not None and draft.max_uses < 1:
        raise InvalidRequest("A grant is good for at least one use.")
    who = replace(draft, created_by=maker.name, teams=maker.teams, role=maker.role, created_at=moment.now)
    grant = replace(who, uses=0, revoked_at=None)
    content = {"agent": grant.agent, "when": grant.when, "reason": grant.reason, "via": maker.via}
    data = {"grant": grant.id, "tool": grant.tool, "expires_at": grant.expires_at, "max_uses": grant.max_uses}
    return Change(grant, (Event("granted", maker.name, data, "", content),))


def revoke(grant: Grant, by: Reviewer, moment: Moment) -> Change[Grant]:
    if by.role != "admin" and by.name != grant.created_by:
        raise Forbidden(f"{grant.created_by} made this grant; only they or an admin can revoke it.")
    if grant.revoked_at is not None:
        return Change(grant)
    revoked = replace(grant, revoked_at=moment.now)
    return Change(revoked, (Event("grant_revoked", by.name, {"grant": grant.id}, "", {"via": by.via}),))


def use(grant: Grant, moment: Moment) -> Grant:
    """Checked again inside the transaction: of two last uses one wins."""
    if not usable(grant, moment.now) or moment.behind:
        raise Conflict("The grant is used up, expired or revoked.", grant_id=grant.id)
    return replace(grant, uses=grant.uses + 1)


def usable(grant: Grant, now: int) -> bool:
    spent = grant.max_uses is not None and grant.uses >= grant.max_uses
    return grant.revoked_at is None and now < grant.expires_at and not spent


def covers(grant: Grant, call: ToolCall, spec: ToolSpec, terms: Ask, compile_condition: Compile, now: int) -> bool:
    """A grant stands for one person's yes: it never fills a quorum, and never covers what its maker may not approve."""
    same = (grant.workspace, grant.tool, grant.spec_sha256) == (call.workspace, call.tool, spec.sha256)
    path = call.path or (call.agent,)  # a grant loosens, so every agent of the path has to be meant
    scope = same and all(fnmatchcase(agent, grant.agent) for agent in path)
    if not scope or not usable(grant, now) or "approve" not in terms.decisions or not _may_approve(grant, call, terms):
        return False
    if not grant.when:
        return True
    try:
        return compile_condition(grant.when)(facts_of(call, spec.effect)) is True
    except Exception:  # noqa: BLE001  a condition in doubt covers nothing
        return False


def _may_approve(grant: Grant, call: ToolCall, terms: Ask) -> bool:
    if len(terms.stages) != 1 or terms.stages[0].quorum != 1:
        return False
    if "requester" in terms.exclude and grant.created_by == call.requester:
        return False
    approvers = terms.stages[0].approvers
    return grant.role in DECIDERS if approvers is None else approvers.include(grant.created_by, grant.teams)
