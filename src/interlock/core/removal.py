"""Removal or demotion of a person: their votes, delegations, grants, keys and sessions that end with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from interlock.core.approval import vote as voting
from interlock.core.approval.approval import Approval, make_change
from interlock.core.approval.vote import DECIDING_ROLES, Delegation, Vote
from interlock.core.fast_dataclasses import next_version
from interlock.core.grant import Grant
from interlock.core.identity import lesser_role
from interlock.core.ledger.event import Change
from interlock.core.policy.policy import People


class UpdatedMember(NamedTuple):
    """A person after the change; without a role they are removed."""

    name: str
    role: str = ""
    teams: frozenset[str] = frozenset()

    @property
    def can_vote(self) -> bool:
        return self.role in DECIDING_ROLES


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalEffects:
    """What a removal or a demotion ends, or would end; `made_keys` are those of others, which stay.

    Grants and keys are given by id and tool or name, votes and delegations by the approval that they are part of;
    `away` are the people who had named them as their delegate.
    """

    grants: tuple[tuple[str, str], ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    sessions: int = 0
    links: int = 0
    identities: int = 0
    votes: tuple[str, ...] = ()
    delegations: tuple[str, ...] = ()
    away: tuple[str, ...] = ()
    made_keys: tuple[tuple[str, str], ...] = ()


def withdraw_participation(approval: Approval, member: UpdatedMember, author: str) -> Change[Approval] | None:
    """Withdraw what they may no longer do about a pending call; None if there is nothing."""
    votes = tuple(vote for vote in approval.votes if _is_vote_kept(approval, vote, member))
    kept = [_kept_delegation(each, member) for each in approval.delegations]
    delegations = tuple(each for each in kept if each is not None)
    discussion = approval.discussion
    if discussion.claimed_by == member.name and not member.can_vote:
        discussion = discussion._replace(claimed_by="")
    if (votes, delegations, discussion) == (approval.votes, approval.delegations, approval.discussion):
        return None
    fewer = next_version(approval, votes=votes, delegations=delegations, discussion=discussion)
    voters = sorted({vote.by for vote in approval.votes} - {vote.by for vote in votes})
    return make_change(fewer, "reviewer_removed", author, {"user": member.name, "voters": voters})


def keeps_grant(grant: Grant, member: UpdatedMember) -> bool:
    """Whether its creator still has the rights with which the grant was created."""
    return member.can_vote and lesser_role(grant.role, member.role) == grant.role and grant.teams <= member.teams


def without_person(people: People | None, name: str) -> People | None:
    """The others, or None if there are none."""
    if people is None:
        return None
    others = replace(people, users=people.users - {name})
    return others if others.users or others.teams else None


def _is_vote_kept(approval: Approval, vote: Vote, member: UpdatedMember) -> bool:
    if member.name not in (vote.by, vote.on_behalf_of):
        return True
    if not member.role:
        return False
    if vote.on_behalf_of == member.name:
        return voting.may_vote(approval, member.name, member.role, member.teams, vote.stage)
    return member.can_vote


def _kept_delegation(delegation: Delegation, member: UpdatedMember) -> Delegation | None:
    """Their own delegation is kept while they have all the rights they passed on; one to them while they may vote."""
    if delegation.by == member.name:
        had = lesser_role(delegation.role, member.role) == delegation.role and delegation.teams <= member.teams
        return delegation if member.role and had else None
    if member.name not in delegation.to.users or member.can_vote:
        return delegation
    to = without_person(delegation.to, member.name)
    return None if to is None else replace(delegation, to=to)
