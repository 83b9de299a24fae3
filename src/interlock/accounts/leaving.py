"""What ends with somebody who is removed, or who may do less than before: looked for first, so that it can be shown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from interlock.accounts import keys
from interlock.core import grant as grants
from interlock.core.approval.approval import Approval
from interlock.core.decision import Reviewer
from interlock.core.grant import Grant
from interlock.core.identity import ADMIN
from interlock.core.ledger.event import Change, Event, Moment
from interlock.core.ports import AccountTransaction, User
from interlock.core.removal import RemovalEffects, UpdatedMember, keeps_grant, withdraw_participation, without_person

REVOKE_REASON = "Its maker was removed, or may do less than when they made it."


@dataclass(frozen=True, slots=True)
class UserChange:
    """A person as they are now, and what ended with how they were."""

    user: User
    ended: RemovalEffects


def removal_effects(book: AccountTransaction, name: str) -> RemovalEffects:
    """What removing them would end; changes nothing."""
    return _add_access_effects(book, name, demotion_effects(book, UpdatedMember(name)))


def demotion_effects(book: AccountTransaction, who: UpdatedMember) -> RemovalEffects:
    """What they may not do any more with this role and these teams; changes nothing."""
    return _find_lost_rights(book, who, "").effects


def demote(book: AccountTransaction, who: UpdatedMember, author: str) -> RemovalEffects:
    """Revokes their grants, and takes back votes and delegations of calls that are pending."""
    ending = _find_lost_rights(book, who, author)
    by, moment = Reviewer(author, ADMIN, via="removal"), Moment(book.now)
    for grant in ending.grants:
        book.save_grant(grants.revoke(grant, by, moment, REVOKE_REASON))
    for approval, change in ending.withdrawn:
        book.save_approval(approval, change)
    return ending.effects


def _add_access_effects(book: AccountTransaction, name: str, ended: RemovalEffects) -> RemovalEffects:
    """What they came in by, and who relies on them."""
    return replace(
        ended,
        keys=tuple((key.id, key.name) for key in book.keys_of(name) if key.counts_at(book.now)),
        sessions=len(book.sessions_of(name)),
        links=len({*book.links_of(name), *book.links_made_by(name)}),
        identities=len(book.identities_of(name)),
        away=tuple(user.name for user in _people_delegating_to(book, name)),
        made_keys=tuple((key.id, key.name) for key in book.keys_made_by(name) if key.counts_at(book.now)),
    )


class _LostRights(NamedTuple):
    grants: list[Grant]
    withdrawn: list[tuple[Approval, Change[Approval]]]

    @property
    def effects(self) -> RemovalEffects:
        both = self.withdrawn
        return RemovalEffects(
            grants=tuple((each.id, each.tool) for each in self.grants),
            votes=tuple(old.id for old, new in both if new.state.votes != old.votes),
            delegations=tuple(old.id for old, new in both if new.state.delegations != old.delegations),
        )


def _find_lost_rights(book: AccountTransaction, who: UpdatedMember, author: str) -> _LostRights:
    """Looked for once, since every pending call with an answer is read, under the lock."""
    made = [
        each for each in book.grants_of(who.name) if grants.is_usable(each, book.now) and not keeps_grant(each, who)
    ]
    changes = ((approval, withdraw_participation(approval, who, author)) for approval in book.answered())
    return _LostRights(made, [(approval, change) for approval, change in changes if change is not None])


def remove(book: AccountTransaction, user: User, author: str) -> UserChange:
    """All in one: what they came in by, what stands for them, and who relied on them."""
    name = user.name
    ended = _add_access_effects(book, name, demote(book, UpdatedMember(name), author))
    gone = replace(user, removed_at=book.now, email="", away_until=None, away_to=None)
    book.save_user(gone)
    book.set_password(name, "")  # the subject stays: a provider that still vouches for them must not add them again
    for digest in book.sessions_of(name):
        book.end_session(digest)
    for key in book.keys_of(name):
        if key.revoked_at is None:
            keys.write_revocation(book, key, author)
    for link in {*book.links_of(name), *book.links_made_by(name)}:
        book.spend_link(link)
    for channel, outside in book.identities_of(name):
        book.drop_identity(channel, outside)  # whoever gets this name later is somebody else
    for other in _people_delegating_to(book, name):
        _remove_delegate(book, other, name, author)
    book.tell(Event("user_removed", author, {"user": name, "sessions": ended.sessions}))
    return UserChange(gone, ended)


def _people_delegating_to(book: AccountTransaction, name: str) -> list[User]:
    """Who is away and named them as a stand-in."""
    there = [user for user in book.users() if user.removed_at is None and user.name != name]
    return [user for user in there if user.away_to is not None and name in user.away_to.users]


def _remove_delegate(book: AccountTransaction, user: User, name: str, author: str) -> None:
    left = replace(user, away_to=without_person(user.away_to, name))
    book.save_user(left)
    to = None if left.away_to is None else {"users": sorted(left.away_to.users), "teams": sorted(left.away_to.teams)}
    data = {"user": user.name, "until": user.away_until}
    book.tell(Event("away_changed", author, data, "", None if to is None else {"to": to}))
