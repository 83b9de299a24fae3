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
from interlock.core.ports import Book, User
from interlock.core.removal import RemovalEffects, Standing, outlives, withdraw, without

REASON = "Its maker was removed, or may do less than when they made it."


@dataclass(frozen=True, slots=True)
class UserChange:
    """A person as they are now, and what ended with how they were."""

    user: User
    ended: RemovalEffects


def of_removal(book: Book, name: str) -> RemovalEffects:
    """What removing them would end; changes nothing."""
    return _with_access(book, name, of_demotion(book, Standing(name)))


def of_demotion(book: Book, who: Standing) -> RemovalEffects:
    """What they may not do any more with this role and these teams; changes nothing."""
    return _ending(book, who, "").effects


def demote(book: Book, who: Standing, author: str) -> RemovalEffects:
    """Revokes their grants, and takes back votes and delegations of calls that are pending."""
    ending = _ending(book, who, author)
    by, moment = Reviewer(author, ADMIN, via="removal"), Moment(book.now)
    for grant in ending.grants:
        book.save_grant(grants.revoke(grant, by, moment, REASON))
    for approval, change in ending.withdrawn:
        book.save_approval(approval, change)
    return ending.effects


def _with_access(book: Book, name: str, ended: RemovalEffects) -> RemovalEffects:
    """What they came in by, and who relies on them."""
    return replace(
        ended,
        keys=tuple((key.id, key.name) for key in book.keys_of(name) if key.counts_at(book.now)),
        sessions=len(book.sessions_of(name)),
        links=len({*book.links_of(name), *book.links_made_by(name)}),
        identities=len(book.identities_of(name)),
        away=tuple(user.name for user in _relying(book, name)),
        made_keys=tuple((key.id, key.name) for key in book.keys_made_by(name) if key.counts_at(book.now)),
    )


class _Ending(NamedTuple):
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


def _ending(book: Book, who: Standing, author: str) -> _Ending:
    """Looked for once, since every pending call with an answer is read, under the lock."""
    made = [each for each in book.grants_of(who.name) if grants.usable(each, book.now) and not outlives(each, who)]
    changes = ((approval, withdraw(approval, who, author)) for approval in book.answered())
    return _Ending(made, [(approval, change) for approval, change in changes if change is not None])


def remove(book: Book, user: User, author: str) -> UserChange:
    """All in one: what they came in by, what stands for them, and who relied on them."""
    name = user.name
    ended = _with_access(book, name, demote(book, Standing(name), author))
    gone = replace(user, removed_at=book.now, email="", away_until=None, away_to=None)
    book.save_user(gone)
    book.set_password(name, "")  # the subject stays: a provider that still vouches for them must not add them again
    for digest in book.sessions_of(name):
        book.end_session(digest)
    for key in book.keys_of(name):
        if key.revoked_at is None:
            keys.end(book, key, author)
    for link in {*book.links_of(name), *book.links_made_by(name)}:
        book.spend_link(link)
    for channel, outside in book.identities_of(name):
        book.drop_identity(channel, outside)  # whoever gets this name later is somebody else
    for other in _relying(book, name):
        _rely_on_others(book, other, name, author)
    book.tell(Event("user_removed", author, {"user": name, "sessions": ended.sessions}))
    return UserChange(gone, ended)


def _relying(book: Book, name: str) -> list[User]:
    """Who is away and named them as a stand-in."""
    there = [user for user in book.users() if user.removed_at is None and user.name != name]
    return [user for user in there if user.away_to is not None and name in user.away_to.users]


def _rely_on_others(book: Book, user: User, name: str, author: str) -> None:
    left = replace(user, away_to=without(user.away_to, name))
    book.save_user(left)
    to = None if left.away_to is None else {"users": sorted(left.away_to.users), "teams": sorted(left.away_to.teams)}
    data = {"user": user.name, "until": user.away_until}
    book.tell(Event("away_changed", author, data, "", None if to is None else {"to": to}))
