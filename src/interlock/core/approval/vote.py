"""Votes: who may decide, on whose behalf a vote counts, quorum, and the stricter of two terms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from interlock.core.confusables import fold_confusables
from interlock.core.decision import KINDS, Reviewer
from interlock.core.policy.policy import Ask, Deny, People, Stage, Verdict

if TYPE_CHECKING:
    from interlock.core.approval.approval import Approval
from collections.abc import Mapping, Sequence

from interlock.core.call import RedactedArgs
from interlock.core.card import CardField, Finding, escape_invisible, head_and_tail, make_card
from interlock.core.errors import InvalidRequest, Problem

DECIDING_ROLES = frozenset({"reviewer", "admin"})


class Vote(NamedTuple):
    """A vote; `on_behalf_of` is the person it counts for: the voter, or the person who delegated to them."""

    by: str
    on_behalf_of: str
    stage: int
    args_sha256: str
    at: int
    via: str


@dataclass(frozen=True, slots=True)
class Delegation:
    """Permission from `by` for another person or team to decide in their place, for one approval or while away."""

    by: str
    teams: frozenset[str]
    role: str
    to: People


def effective_voter(approval: Approval, reviewer: Reviewer, stage: int) -> str | None:
    """The person this reviewer would vote for in this stage; None if they may not vote."""
    if may_vote(approval, reviewer.name, reviewer.role, reviewer.teams, stage):
        return reviewer.name
    if reviewer.role in ("viewer", "agent") or _is_excluded(approval, reviewer.name):
        return None
    delegators = list(_delegators(approval, reviewer, stage))
    taken = {name for vote in approval.votes for name in (vote.by, vote.on_behalf_of)}
    return next((name for name in delegators if name not in taken), delegators[0] if delegators else None)


def may_vote(approval: Approval, name: str, role: str, teams: frozenset[str], stage: int) -> bool:
    """Whether they may vote in their own name in this stage."""
    return _is_stage_approver(approval, name, role, teams, stage) and not _is_excluded(approval, name)


def has_open_vote(approval: Approval, reviewer: Reviewer) -> bool:
    """Whether they may vote in any stage that is still open, as rejecting and responding require."""
    return any(open_voters(approval, reviewer))


def open_voters(approval: Approval, reviewer: Reviewer) -> list[str | None]:
    """The effective voter in each stage that is still open."""
    stages = range(open_stage(approval), len(approval.terms.stages))
    return [effective_voter(approval, reviewer, stage) for stage in stages]


def may_decide(approval: Approval, reviewer: Reviewer) -> bool:
    """Whether they may vote in any stage, complete or not, as resolving an unknown outcome requires."""
    return any(effective_voter(approval, reviewer, stage) for stage in range(len(approval.terms.stages)))


def open_stage(approval: Approval) -> int:
    """The first stage without its quorum; the number of stages when all have theirs."""
    if not approval.votes:
        return 0
    for number, stage in enumerate(approval.terms.stages):
        if len({vote.on_behalf_of for vote in approval.votes if vote.stage == number}) < stage.quorum:
            return number
    return len(approval.terms.stages)


def next_approvers_text(approval: Approval) -> str:
    """The people who have to decide next, as text."""
    return _stage_text(approval.terms.stages[min(open_stage(approval), len(approval.terms.stages) - 1)])


def not_an_approver_text(approval: Approval) -> str:
    """To somebody who has no open vote, who it needs instead."""
    return f"You may not decide this approval. It needs {next_approvers_text(approval)}."


def all_approvers_text(approval: Approval) -> str:
    """Everybody who may vote in any stage, as text."""
    return " or ".join(dict.fromkeys(map(_stage_text, approval.terms.stages)))


def total_quorum(approval: Approval) -> int:
    return sum(stage.quorum for stage in approval.terms.stages)


def stricter_terms(old: Ask, new: Ask) -> Ask:
    """Terms that satisfy both: an edit can tighten terms and never loosen them."""
    if old.stages == new.stages or _implies(old.stages, new.stages):
        stages = old.stages
    elif _implies(new.stages, old.stages):
        stages = new.stages
    else:
        stages = old.stages + _missing_stages(old.stages, new.stages)
    return replace(
        old,
        rule=old.rule if stages is old.stages else new.rule,
        stages=stages,
        exclude=old.exclude | new.exclude,
        decisions=tuple(kind for kind in old.decisions if kind in new.decisions),
        priority=max(old.priority, new.priority, key=("low", "medium", "high").index),
        on_expiry=new.on_expiry if old.on_expiry == "approve" else old.on_expiry,
        escalation_steps=tuple(
            step if step in new.escalation_steps else replace(step, to=People()) for step in old.escalation_steps
        ),
        undo_window=max(old.undo_window, new.undo_window),
        start_within=min(old.start_within, new.start_within),
        notes=tuple(dict.fromkeys((*old.notes, *new.notes))),
    )


def stricter_verdict(one: Verdict, other: Verdict) -> Verdict:
    """The verdict that satisfies both: deny before ask before allow; two asks are joined."""
    if isinstance(one, Deny):
        return one
    if isinstance(other, Deny):
        return other
    if isinstance(one, Ask):
        return join_terms(one, other) if isinstance(other, Ask) else with_reject(one)
    if isinstance(other, Ask):
        return with_reject(other)
    return one if one.start_within <= other.start_within else replace(one, start_within=other.start_within)


def join_terms(one: Ask, other: Ask) -> Ask:
    """Join two terms as an edit does, with one deadline; the reminders come from the side whose deadline holds."""
    if one == other:
        return with_reject(one)
    both = stricter_terms(one, other)
    pick = max if both.on_expiry == "approve" else min
    timed = pick(one, other, key=lambda ask: ask.expires_in)
    channels = tuple(dict.fromkeys((*one.channels, *other.channels)))
    return with_reject(replace(both, expires_in=timed.expires_in, remind=timed.remind, channels=channels))


def with_reject(ask: Ask) -> Ask:
    """Add reject to terms under which a call could be approved; a question is only answered."""
    if "reject" in ask.decisions or ask.decisions == ("respond",):
        return ask
    return replace(ask, decisions=tuple(kind for kind in KINDS if kind in ask.decisions or kind == "reject"))


def may_participate(approval: Approval, name: str, role: str) -> bool:
    """The requester, reviewers and admins; never a viewer or an agent."""
    return role in DECIDING_ROLES or (name == approval.subject.requester and role not in ("viewer", "agent"))


def _delegators(approval: Approval, reviewer: Reviewer, stage: int) -> Iterator[str]:
    """People this reviewer may vote for: those who delegated this approval to them, and those who are away."""
    for delegation in (*approval.delegations, *reviewer.delegations_to_me):
        meant = delegation.to.include(reviewer.name, reviewer.teams) and not _is_excluded(approval, delegation.by)
        if meant and _is_stage_approver(approval, delegation.by, delegation.role, delegation.teams, stage):
            yield delegation.by


def _stage_text(stage: Stage) -> str:
    if stage.approvers is None:
        return "the requester, a reviewer or an admin"
    teams = [f"team {team}" for team in sorted(stage.approvers.teams)]
    return " or ".join([*sorted(stage.approvers.users), *teams])


def _is_excluded(approval: Approval, name: str) -> bool:
    exclude = approval.terms.exclude
    if "requester" in exclude and fold_confusables(name) == fold_confusables(approval.subject.requester):
        return True
    return "editor" in exclude and name in approval.editors


def _is_stage_approver(approval: Approval, name: str, role: str, teams: frozenset[str], stage: int) -> bool:
    if not may_participate(approval, name, role):
        return False
    approvers = approval.terms.stages[stage].approvers
    if approvers is None:
        return True
    steps = approval.terms.escalation_steps[: approval.timers.escalated]
    return approvers.include(name, teams) or any(step.to.include(name, teams) for step in steps)


def _implies(strict: tuple[Stage, ...], loose: tuple[Stage, ...]) -> bool:
    """Whether fulfilling `strict` also fulfils `loose`, stage by stage."""
    return len(strict) >= len(loose) and all(map(_covers, strict, loose))


def _missing_stages(stages: tuple[Stage, ...], more: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """The stages of `more` that are not in `stages`; duplicates are matched one to one."""
    left, unmet = list(stages), []
    for stage in more:
        if stage in left:
            left.remove(stage)
        else:
            unmet.append(stage)
    return tuple(unmet)


def _covers(strict: Stage, loose: Stage) -> bool:
    if strict.quorum < loose.quorum:
        return False
    if loose.approvers is None:
        return True
    return (
        strict.approvers is not None
        and strict.approvers.users <= loose.approvers.users
        and strict.approvers.teams <= loose.approvers.teams
    )


MAX_CHANGES = 50  # changes listed one by one; the rest is only counted
MAX_VALUE_LENGTH = 400  # characters of a value


def args_diff(old: RedactedArgs, new: RedactedArgs) -> dict[str, object]:
    """Each argument that was added, removed or changed; None where it is absent."""
    before, after = _leaves(old), _leaves(new)
    changed = [
        {"name": escape_invisible(pointer), "before": before.get(pointer), "after": after.get(pointer)}
        for pointer in {**before, **after}
        if before.get(pointer) != after.get(pointer)
    ]
    cut = [{name: _shorten(text) for name, text in change.items()} for change in changed[:MAX_CHANGES]]
    return {"changes": cut, "changed": len(changed)}


def _leaves(shown: RedactedArgs) -> Mapping[str, str]:
    """Values by pointer; a container is represented by its members."""
    card = make_card(
        tool="", sentence="", risk="", facts=(), args=shown.value, findings=(), secrets=frozenset(shown.secrets)
    )
    return {field.pointer: _field_text(field) for field in card.fields if field.text}


def _field_text(field: CardField) -> str:
    """The text of a field; a long text has its digest, so that a change in the middle shows."""
    return f"{field.text} ({field.length:,} characters, sha256 {field.sha256[:16]})" if field.sha256 else field.text


def _shorten(text: str | None) -> str | None:
    if text is None:
        return None
    head, tail = head_and_tail(text, MAX_VALUE_LENGTH)
    return f"{head} … {tail}" if tail else head


def schema_findings(problems: Sequence[Problem]) -> tuple[Finding, ...]:
    """One alarm per place; unlike other alarms these cannot be acknowledged, only fixed by an edit."""
    by_place: dict[str, list[str]] = {}
    for problem in problems:
        by_place.setdefault(problem.pointer, []).append(escape_invisible(problem.message))
    return tuple(
        Finding(f"misfit:{pointer}", "misfit", "alarm", pointer, f"Does not fit the tool: {'; '.join(messages)}.")
        for pointer, messages in by_place.items()
    )


def schema_error(problems: Sequence[Problem]) -> InvalidRequest:
    """The error for a program whose arguments do not fit the schema."""
    listed = "; ".join(map(str, problems))
    places = [{"pointer": p.pointer, "message": p.message} for p in problems]
    return InvalidRequest(f"The arguments do not fit the tool's schema: {listed}.", problems=places)
