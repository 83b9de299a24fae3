"""Grants: standing, scoped, expiring, revocable permissions made by a person; the only way to skip asking."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal, Inexact
from functools import cached_property
from typing import Literal

from interlock.core import confusables
from interlock.core.approval.vote import DECIDING_ROLES
from interlock.core.call import MAX_NAME, ToolCall, ToolSpec
from interlock.core.canonical import MAX_DIGITS, canonical
from interlock.core.confusables import fold_confusables
from interlock.core.decision import MAX_COMMENT, Reviewer
from interlock.core.errors import Conflict, Forbidden, InvalidRequest
from interlock.core.identity import is_reserved_actor
from interlock.core.ledger.event import Change, Event, Moment
from interlock.core.ledger.expected_tables import scope_sha256
from interlock.core.policy.policy import Ask, Condition, call_facts, folded_facts

MAX_TERM = 366 * 24 * 3_600_000
MAX_USES = 10**9
GrantState = Literal["active", "revoked", "used up", "expired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A grant; `when` is the source of a condition; `spec_sha256` ties it to the tool definition at the time.

    `budget` is a decimal number, the maximum sum over all uses; `budget_of` points at the amount.
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

    @property
    def uses_left(self) -> int | None:
        return None if self.max_uses is None else self.max_uses - self.uses

    @property
    def budget_left(self) -> str | None:
        return remaining_budget(self.budget, self.spent) if self.budget else None


CompileCondition = Callable[[str], Condition]


def make(draft: Grant, maker: Reviewer, moment: Moment) -> Change[Grant]:
    """Make a grant from `draft`, which gives scope, expiry and uses; its maker comes from authentication."""
    _check_maker(maker)
    _check_scope(draft)
    _check_limits(draft, moment.now)
    who = replace(draft, created_by=maker.name, teams=maker.teams, role=maker.role, created_at=moment.now)
    budget = parse_budget(draft.budget) if draft.budget else ""
    grant = replace(who, uses=0, revoked_at=None, budget=budget, spent="0")
    data = {
        "grant": grant.id,
        "tool": grant.tool,
        "spec": grant.spec_sha256,
        "expires_at": grant.expires_at,
        "max_uses": grant.max_uses,
        "budget_of": grant.budget_of,
        "budget": grant.budget,
        "role": grant.role,
        "scope": scope_sha256(grant),
    }
    content = {"agent": grant.agent, "when": grant.when, "reason": grant.reason, **maker.trace}
    return Change(grant, (Event("granted", maker.name, data, "", content),))


def check_budget_argument(draft: Grant, spec: ToolSpec) -> None:
    """Refuse a budget that could never be counted with this tool; every call would be asked about."""
    if not draft.budget_of:
        return
    first = pointer_parts(draft.budget_of)[0]
    known = spec.known_arguments
    if known is not None and first not in known:
        there = ", ".join(sorted(known)) or "none"
        raise InvalidRequest(f"{spec.name} has no argument {first!r} to count for a budget. There are: {there}.")
    if any(_is_secret(pointer, draft.budget_of) for pointer in spec.secret):
        raise InvalidRequest(f"{draft.budget_of!r} of {spec.name} is secret: a sum would tell it. Limit the uses.")


def revoke(grant: Grant, by: Reviewer, moment: Moment, reason: str = "") -> Change[Grant]:
    if by.role != "admin" and by.name != grant.created_by:
        raise Forbidden(f"{grant.created_by} made this grant; only they or an admin can revoke it.", grant_id=grant.id)
    if grant.revoked_at is not None:
        return Change(grant)
    _check_text("The reason", reason, MAX_COMMENT)
    data, content = {"grant": grant.id, "tool": grant.tool}, {"reason": reason, **by.trace}
    revoked = replace(grant, revoked_at=moment.now)
    return Change(revoked, (Event("grant_revoked", by.name, data, "", content),))


def use(grant: Grant, amounts: Amounts, moment: Moment) -> Grant:
    """Use the grant once; checked again inside the transaction, so that only one call gets the last use or budget."""
    if not is_usable(grant, moment.now) or moment.is_clock_behind or not has_budget_for(grant, amounts):
        raise Conflict("The grant is used up, expired or revoked.", grant_id=grant.id)
    amount = amounts.get(grant.budget_of) if grant.budget else None
    return replace(grant, uses=grant.uses + 1, spent=add_amount(grant.spent, amount or Decimal(0)))


def is_usable(grant: Grant, now: int) -> bool:
    return state_at(grant, now) == "active"


def state_at(grant: Grant, now: int) -> GrantState:
    """The state by the clock: nothing is written when a grant expires or is used up."""
    if grant.revoked_at is not None:
        return "revoked"
    full = grant.max_uses is not None and grant.uses >= grant.max_uses
    if full or (grant.budget and grant.spent == grant.budget):
        return "used up"
    return "active" if now < grant.expires_at else "expired"


def has_budget_for(grant: Grant, amounts: Amounts) -> bool:
    """Whether the budget covers the call; not if its amount cannot be counted or exceeds the rest."""
    if not grant.budget:
        return True
    amount = amounts.get(grant.budget_of)
    return amount is not None and fits_budget(amount, grant.budget, grant.spent)


def covers(
    grant: Grant,
    call: ToolCall,
    spec: ToolSpec,
    terms: Ask,
    compile_condition: CompileCondition,
    now: int,
    effect: str | None = None,
) -> bool:
    effects = (spec.effect if effect is None else effect,)
    return covers_all(grant, (call,), effects, spec, terms, compile_condition, now)


def covers_all(
    grant: Grant,
    calls: Sequence[ToolCall],
    effects: Sequence[str],
    spec: ToolSpec,
    terms: Ask,
    compile_condition: CompileCondition,
    now: int,
) -> bool:
    """Whether the grant covers a call in every interpretation."""
    meant = all(covers_scope(grant, call, spec, terms, now) for call in calls)
    return meant and (not grant.when or condition_holds(grant.when, calls, effects, compile_condition))


def covers_scope(grant: Grant, call: ToolCall, spec: ToolSpec, terms: Ask, now: int) -> bool:
    """Whether it covers such a call if its condition holds.

    A grant stands for one person's yes: it never fills a larger quorum, and never covers a call its maker may not
    approve.
    """
    same = (grant.workspace, grant.tool, grant.spec_sha256) == (call.workspace, call.tool, spec.sha256)
    path = call.path or (call.agent,)  # a grant loosens, so every agent of the path has to match
    scope = same and all(confusables.matches_pattern(agent, grant.agent) for agent in path)
    return scope and is_usable(grant, now) and "approve" in terms.decisions and _may_approve(grant, call, terms)


def condition_holds(
    when: str, calls: Sequence[ToolCall], effects: Sequence[str], compile_condition: CompileCondition
) -> bool:
    """Whether a grant's condition holds for a call in every interpretation."""
    try:
        condition = compile_condition(when)
        ways = (call_facts(call, effect) for call in calls for effect in effects)
        return all(condition(facts) is True and condition(folded_facts(facts)) is True for facts in ways)
    except Exception:  # noqa: BLE001  a condition that fails covers nothing
        return False


def _may_approve(grant: Grant, call: ToolCall, terms: Ask) -> bool:
    if len(terms.stages) != 1 or terms.stages[0].quorum != 1:
        return False
    if "requester" in terms.exclude and fold_confusables(grant.created_by) == fold_confusables(call.requester):
        return False
    approvers = terms.stages[0].approvers
    return grant.role in DECIDING_ROLES if approvers is None else approvers.include(grant.created_by, grant.teams)


def _check_maker(maker: Reviewer) -> None:
    if not maker.name or is_reserved_actor(maker.name) or maker.role not in DECIDING_ROLES:
        raise Forbidden("Only reviewers and admins can make a grant: people, never a program.")


def _check_scope(draft: Grant) -> None:
    for label, name in (("The tool", draft.tool), ("The agent", draft.agent)):
        if not 1 <= len(name) <= MAX_NAME or not name.isprintable():
            raise InvalidRequest(f"{label} of a grant is a name of 1 to {MAX_NAME} characters that can be seen.")
    _check_text("The reason", draft.reason, MAX_COMMENT)


def _check_limits(draft: Grant, now: int) -> None:
    if not now < draft.expires_at <= now + MAX_TERM:
        raise InvalidRequest("A grant ends in the future, within a year.")
    if draft.max_uses is not None and not 1 <= draft.max_uses <= MAX_USES:
        raise InvalidRequest(f"A grant is good for at least one use, and for at most {MAX_USES:,}.")
    if bool(draft.budget) != bool(draft.budget_of):
        raise InvalidRequest("A budget takes two: the most that may be spent, and the argument that is counted.")
    _check_text("What a budget counts", draft.budget_of, MAX_NAME)
    if "*" in pointer_parts(draft.budget_of):
        raise InvalidRequest("A budget counts one number of a call: its place has no '*'.")


def _is_secret(secret: str, pointer: str) -> bool:
    pattern, steps = pointer_parts("/" + secret.removeprefix("/")), pointer_parts(pointer)
    return len(pattern) <= len(steps) and all(p in (step, "*") for p, step in zip(pattern, steps, strict=False))


def _check_text(label: str, text: str, limit: int) -> None:
    if len(text) > limit:
        raise InvalidRequest(f"{label} has at most {limit} characters.")
    canonical(text)  # NUL and lone surrogates cannot be stored


# A sum has at most 40 digits before the point, and no JSON number that Python reads has more than 400 after it.
PRECISION = 500
_NUMBER = re.compile(rf"[0-9]{{1,{MAX_DIGITS}}}(?:\.[0-9]{{1,{MAX_DIGITS}}})?")


@dataclass(frozen=True)
class Amounts:
    """The amounts of a call, from its redacted arguments: a secret amount counts as none, so no sum reveals it."""

    shown_args: bytes

    def get(self, pointer: str) -> Decimal | None:
        """The amount at a JSON pointer or under a plain name; None if there is none that can be counted."""
        found = self._value
        for step in pointer_parts(pointer):
            # Not into lists: the other amounts in the list would not be counted.
            found = found.get(step) if isinstance(found, Mapping) else None
        return found if isinstance(found, Decimal) and found >= 0 else None

    @cached_property
    def _value(self) -> object:
        return json.loads(self.shown_args, parse_int=Decimal, parse_float=Decimal)


def pointer_parts(pointer: str) -> tuple[str, ...]:
    """Split `/a/b` as in RFC 6901, or one plain name."""
    if not pointer.startswith("/"):
        return (pointer,)
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def parse_budget(text: str) -> str:
    """The canonical spelling of a budget that a person wrote."""
    if _NUMBER.fullmatch(text) is None or Decimal(text) == 0:
        raise InvalidRequest(
            f"A budget is a number above 0, such as 500 or 99.50, of at most {MAX_DIGITS} digits; not {text[:50]!r}."
        )
    return format_amount(Decimal(text))


def remaining_budget(budget: str, spent: str) -> str:
    return format_amount(_exact_context().subtract(Decimal(budget), Decimal(spent)))


def fits_budget(amount: Decimal, budget: str, spent: str) -> bool:
    try:
        return _exact_context().add(Decimal(spent), amount) <= Decimal(budget)
    except ArithmeticError:  # an inexact sum, or a row that holds no number, does not fit
        return False


def add_amount(spent: str, amount: Decimal) -> str:
    return format_amount(_exact_context().add(Decimal(spent), amount))


def format_amount(number: Decimal) -> str:
    """Digits only, without an exponent or trailing zeros, so that equal numbers are equal texts."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _exact_context() -> Context:
    return Context(prec=PRECISION, traps=[Inexact])
