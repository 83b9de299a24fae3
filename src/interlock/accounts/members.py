"""What may happen to the people of a workspace: each step looks, refuses or writes, and says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from interlock.accounts import keys
from interlock.core import grant as grants
from interlock.core.approval.approval import Approval
from interlock.core.decision import Reviewer
from interlock.core.errors import Conflict, InvalidRequest, NotFound, Stale, Unauthenticated
from interlock.core.grant import Grant
from interlock.core.identity import ADMIN, OneTimeLink, UserSession, check_person_name
from interlock.core.ledger.event import SYSTEM_ACTOR, Change, Event, Moment
from interlock.core.ledger.expected_tables import user_changed_event
from interlock.core.policy.policy import People
from interlock.core.ports import AccountTransaction, User
from interlock.core.removal import RemovalEffects, UpdatedMember, keeps_grant, withdraw_participation, without_person

MAX_SESSIONS = 100  # of one person; a further one ends the oldest


@dataclass(frozen=True, slots=True)
class NewSession:
    """The session that is to begin: the digest of its token, and how long it lasts."""

    digest: str
    lasts: int


# People


def admins(users: Sequence[User]) -> list[str]:
    return [user.name for user in users if user.role == ADMIN and user.removed_at is None]


def add_user(book: AccountTransaction, user: User, author: str) -> User:
    known = book.user(user.name)
    if known is not None and known.removed_at is None:
        raise Conflict(f"{user.name} is there already. Change them, or choose another name.", user=user.name)
    _save(book, user, author)
    book.set_subject(user.name, "")  # of somebody who was removed: this may be another person
    return user


def change_user(
    book: AccountTransaction, name: str, changes: Mapping[str, Any], author: str, seen: User | None = None
) -> UserChange:
    """What they may not do any more ends with it."""
    user = _check_unchanged(require_user(book, name), seen)
    changed = replace(user, **changes)
    if changed.role != ADMIN:
        _keep_an_admin(book, user)
    if changed == user:
        return UserChange(user, RemovalEffects())
    _save(book, changed, author)
    if _has_same_rights(user, changed):
        return UserChange(changed, RemovalEffects())
    return UserChange(changed, demote(book, UpdatedMember(name, changed.role, changed.teams), author))


def remove_user(book: AccountTransaction, name: str, author: str, seen: User | None = None) -> UserChange:
    user = _check_unchanged(require_user(book, name), seen)
    _keep_an_admin(book, user)
    return remove(book, user, author)


def preview(book: AccountTransaction, name: str, changes: Mapping[str, Any] | None) -> RemovalEffects:
    """What a removal would end, or these changes; nothing is changed."""
    user = require_user(book, name)
    if changes is None:
        return removal_effects(book, name)
    changed = replace(user, **changes)
    if _has_same_rights(user, changed):
        return RemovalEffects()
    return demotion_effects(book, UpdatedMember(name, changed.role, changed.teams))


def set_away(book: AccountTransaction, name: str, until: int | None, to: People | None, author: str) -> User:
    if until is not None and until <= book.now:
        raise InvalidRequest("The time until which somebody is away has to lie ahead.")
    if to is not None and not (to.users or to.teams):
        raise InvalidRequest("Say who decides meanwhile: people or teams.")
    user = replace(require_user(book, name), away_until=until, away_to=to if until is not None else None)
    book.save_user(user)
    content = None
    if user.away_to is not None:
        content = {"to": {"users": sorted(user.away_to.users), "teams": sorted(user.away_to.teams)}}
    book.tell(Event("away_changed", author, {"user": name, "until": until}, "", content))
    return user


def require_user(book: AccountTransaction, name: str) -> User:
    user = book.user(name)
    if user is None or user.removed_at is not None:
        raise NotFound(f"There is nobody called {name} here. See: interlock users list", user=name)
    return user


# Passwords and sessions


def set_password(book: AccountTransaction, name: str, hashed: str, author: str, spared: str) -> None:
    """A password that is replaced may be known to somebody else: their sessions and their own keys end with it."""
    require_user(book, name)
    ended = keys.revoke_personal_keys(book, name, author) if book.password(name) else 0
    book.set_password(name, hashed)
    sessions = _end_sessions(book, name, spared)
    book.tell(Event("password_changed", author, {"user": name, "sessions": sessions, "keys": ended}))


def sign_in(book: AccountTransaction, name: str, password: str, new: NewSession) -> User:
    """`password` is what was checked: one that changed meanwhile does not count."""
    user = book.user(name)
    if user is None or user.removed_at is not None or not password or book.password(name) != password:
        raise Unauthenticated("The password was changed at this very moment. Sign in again.")
    return start_session(book, user, "password", new)


def sign_in_by_subject(book: AccountTransaction, subject: str, wanted: User, new: NewSession) -> User:
    """Known by the subject, or by the address that an admin gave them, or added now if a role was given."""
    known = book.user(book.name_of_subject(subject))
    if known is not None and known.removed_at is not None:
        raise Unauthenticated("You were removed from this workspace. Ask an admin to add you again.")
    user = known or _find_by_email(book, wanted.email) or _add_newcomer(book, wanted)
    if known is None:
        book.set_subject(user.name, subject)
    return start_session(book, user, "oidc", new)


def sign_out(book: AccountTransaction, digest: str) -> None:
    session = book.session(digest)
    if session is not None:
        book.end_session(digest)
        book.tell(Event("signed_out", session.person, {"sessions": 1}))


def sign_out_everywhere(book: AccountTransaction, name: str, author: str) -> tuple[int, int]:
    """How many sessions and keys of theirs ended."""
    require_user(book, name)
    sessions, ended = _end_sessions(book, name), keys.revoke_personal_keys(book, name, author)
    book.tell(Event("signed_out", author, {"user": name, "sessions": sessions, "keys": ended}))
    return sessions, ended


# One-time links


def add_link(book: AccountTransaction, link: OneTimeLink, lasts: int, digest: str) -> None:
    if link.person and not link.role:
        require_user(book, link.person)
    book.add_link(digest, replace(link, expires_at=book.now + lasts))
    data = {"user": link.person, "role": link.role, "until": book.now + lasts}
    book.tell(Event("link_created", link.created_by, data))


def use_link(book: AccountTransaction, digest: str, name: str, hashed: str, new: NewSession) -> User:
    link = book.link(digest)
    if link is None or link.expires_at <= book.now or (_is_first_admin_link(link) and admins(book.users())):
        raise invalid_link_error()
    book.spend_link(digest)
    who = link.person or name
    known = book.user(who)
    if known is None:
        return _join(book, User(who, link.role, teams=link.teams), hashed, new)
    if not link.person:
        raise Conflict(f"There is somebody called {who} here, or there was. Choose another name.", user=who)
    user = require_user(book, who)
    if hashed:
        set_password(book, who, hashed, who, "")
    book.tell(Event("link_used", who, {"user": who}))
    return start_session(book, user, "link", new)


def invalid_link_error() -> Unauthenticated:
    return Unauthenticated("This link was used, or its time is over. Ask an admin for another.")


def _is_first_admin_link(link: OneTimeLink) -> bool:
    return link.created_by == SYSTEM_ACTOR and link.role == ADMIN


def _join(book: AccountTransaction, user: User, hashed: str, new: NewSession) -> User:
    check_person_name(user.name)
    if not hashed:
        raise InvalidRequest("Choose a password, so that you can sign in again.")
    _save(book, user, user.name)
    book.set_password(user.name, hashed)
    book.tell(Event("link_used", user.name, {"user": user.name}))
    return start_session(book, user, "link", new)


# Parts of steps


def _save(book: AccountTransaction, user: User, author: str) -> User:
    book.save_user(user)
    book.tell(user_changed_event(user, author))
    return user


def start_session(book: AccountTransaction, user: User, via: str, new: NewSession) -> User:
    for digest in book.sessions_of(user.name)[: 1 - MAX_SESSIONS]:
        book.end_session(digest)
    book.add_session(new.digest, UserSession("", user.name, via, book.now, book.now + new.lasts))
    book.tell(Event("signed_in", user.name, {"via": via}, "", {"credential": session_label(new.digest)}))
    return user


def session_label(digest: str) -> str:
    """How the record names a session: not by what its digest could be looked up with."""
    return f"session {digest[:12]}"


def _has_same_rights(user: User, changed: User) -> bool:
    """What somebody may do is a matter of role and teams: a new address ends nothing."""
    return (user.role, user.teams) == (changed.role, changed.teams)


def _check_unchanged(user: User, seen: User | None) -> User:
    if seen is not None and seen != user:
        raise Stale(f"{user.name} was changed meanwhile. Look again, then change what is there now.", user=user.name)
    return user


def _end_sessions(book: AccountTransaction, name: str, spared: str = "") -> int:
    ended = [digest for digest in book.sessions_of(name) if digest != spared]
    for digest in ended:
        book.end_session(digest)
    return len(ended)


def _keep_an_admin(book: AccountTransaction, user: User) -> None:
    if user.role == ADMIN and admins(book.users()) == [user.name]:
        raise Conflict(f"{user.name} is the only admin here. Make somebody else one first.", user=user.name)


def _add_newcomer(book: AccountTransaction, wanted: User) -> User:
    if not wanted.role:
        raise Unauthenticated("Nobody here has this account. Ask an admin to add you with your e-mail address.")
    if book.user(wanted.name) is not None:
        raise Conflict(f"There is somebody called {wanted.name} here, or there was. Ask an admin.", user=wanted.name)
    return _save(book, wanted, SYSTEM_ACTOR)


def _find_by_email(book: AccountTransaction, email: str) -> User | None:
    """Only if exactly one has it, and is not somebody else's account already."""
    wanted = email.casefold()
    found = [user for user in book.users() if wanted and user.email.casefold() == wanted and user.removed_at is None]
    return found[0] if len(found) == 1 and not book.has_subject(found[0].name) else None


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
