"""People, sessions and one-time links of a workspace, with removal and demotion, as steps of a transaction."""

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
from interlock.core.identity import ADMIN, OneTimeLink, UserSession, check_new_person_name
from interlock.core.ledger.event import SYSTEM_ACTOR, Change, Event, Moment
from interlock.core.ledger.expected_tables import user_changed_event
from interlock.core.policy.policy import People
from interlock.core.ports import AccountTransaction, User
from interlock.core.removal import RemovalEffects, UpdatedMember, keeps_grant, withdraw_participation, without_person

MAX_SESSIONS = 100  # per person; a further one ends the oldest


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to start: the digest of its token, and its lifetime."""

    digest: str
    lifetime: int


# People


def admins(users: Sequence[User]) -> list[str]:
    return [user.name for user in users if user.role == ADMIN and user.removed_at is None]


def add_user(tx: AccountTransaction, user: User, author: str) -> User:
    check_new_person_name(user.name)
    known = tx.user(user.name)
    if known is not None and known.removed_at is None:
        raise Conflict(f"{user.name} already exists. Change this user, or choose another name.", user=user.name)
    _save(tx, user, author)
    tx.set_subject(user.name, "")  # of a removed namesake, who may be another person
    return user


def change_user(
    tx: AccountTransaction, name: str, changes: Mapping[str, Any], author: str, expected: User | None = None
) -> UserChange:
    """Change a person, and revoke what the new role does not permit."""
    user = _check_unchanged(require_user(tx, name), expected)
    changed = replace(user, **changes)
    if changed.role != ADMIN:
        _keep_an_admin(tx, user)
    if changed == user:
        return UserChange(user, RemovalEffects())
    _save(tx, changed, author)
    if _has_same_rights(user, changed):
        return UserChange(changed, RemovalEffects())
    return UserChange(changed, demote(tx, UpdatedMember(name, changed.role, changed.teams), author))


def remove_user(tx: AccountTransaction, name: str, author: str, expected: User | None = None) -> UserChange:
    user = _check_unchanged(require_user(tx, name), expected)
    _keep_an_admin(tx, user)
    return remove(tx, user, author)


def preview(tx: AccountTransaction, name: str, changes: Mapping[str, Any] | None) -> RemovalEffects:
    """What a removal would end, or these changes; nothing is changed."""
    user = require_user(tx, name)
    if changes is None:
        return removal_effects(tx, name)
    changed = replace(user, **changes)
    if _has_same_rights(user, changed):
        return RemovalEffects()
    return demotion_effects(tx, UpdatedMember(name, changed.role, changed.teams))


def set_away(tx: AccountTransaction, name: str, until: int | None, to: People | None, author: str) -> User:
    if until is not None and until <= tx.now:
        raise InvalidRequest("The end of the absence must be in the future.")
    if to is not None and not (to.users or to.teams):
        raise InvalidRequest("Name delegates: users or teams.")
    user = replace(require_user(tx, name), away_until=until, away_to=to if until is not None else None)
    tx.save_user(user)
    content = None
    if user.away_to is not None:
        content = {"to": {"users": sorted(user.away_to.users), "teams": sorted(user.away_to.teams)}}
    tx.append_event(Event("away_changed", author, {"user": name, "until": until}, "", content))
    return user


def require_user(tx: AccountTransaction, name: str) -> User:
    user = tx.user(name)
    if user is None or user.removed_at is not None:
        raise NotFound(f"There is no user {name} in this workspace. See: interlock users list", user=name)
    return user


# Passwords and sessions


def set_password(tx: AccountTransaction, name: str, hashed: str, author: str, kept_session: str) -> None:
    """Set a password; the old one may be known to others, so sessions and personal keys end with it."""
    require_user(tx, name)
    ended = keys.revoke_personal_keys(tx, name, author) if tx.password(name) else 0
    tx.set_password(name, hashed)
    sessions = _end_sessions(tx, name, kept_session)
    tx.append_event(Event("password_changed", author, {"user": name, "sessions": sessions, "keys": ended}))


def sign_in(tx: AccountTransaction, name: str, password: str, new: NewSession) -> User:
    """Sign in; `password` is the hash that was checked: if it changed meanwhile, it does not count."""
    user = tx.user(name)
    if user is None or user.removed_at is not None or not password or tx.password(name) != password:
        raise Unauthenticated("The password was just changed. Sign in again.")
    return start_session(tx, user, "password", new)


def sign_in_by_subject(tx: AccountTransaction, subject: str, profile: User, new: NewSession) -> User:
    """Find a person by subject, or by the e-mail address that an admin gave them, or add them if there is a role."""
    known = tx.user(tx.find_name_by_subject(subject))
    if known is not None and known.removed_at is not None:
        raise Unauthenticated("You were removed from this workspace. Ask an admin to add you again.")
    user = known or _find_by_email(tx, profile.email) or _add_newcomer(tx, profile)
    if known is None:
        tx.set_subject(user.name, subject)
    return start_session(tx, user, "oidc", new)


def sign_out(tx: AccountTransaction, digest: str) -> None:
    session = tx.session(digest)
    if session is not None:
        tx.end_session(digest)
        tx.append_event(Event("signed_out", session.person, {"sessions": 1}))


def sign_out_everywhere(tx: AccountTransaction, name: str, author: str) -> tuple[int, int]:
    """The number of their ended sessions and keys."""
    require_user(tx, name)
    sessions, ended = _end_sessions(tx, name), keys.revoke_personal_keys(tx, name, author)
    tx.append_event(Event("signed_out", author, {"user": name, "sessions": sessions, "keys": ended}))
    return sessions, ended


# One-time links


def add_link(tx: AccountTransaction, link: OneTimeLink, lifetime: int, digest: str) -> None:
    if link.person and not link.role:
        require_user(tx, link.person)
    tx.add_link(digest, replace(link, expires_at=tx.now + lifetime))
    data = {"user": link.person, "role": link.role, "until": tx.now + lifetime}
    tx.append_event(Event("link_created", link.created_by, data))


def use_link(tx: AccountTransaction, digest: str, name: str, hashed: str, new: NewSession) -> User:
    link = tx.link(digest)
    if link is None or link.expires_at <= tx.now or (_is_first_admin_link(link) and admins(tx.users())):
        raise invalid_link_error()
    tx.use_link(digest)
    username = link.person or name
    known = tx.user(username)
    if known is None:
        return _join(tx, User(username, link.role, teams=link.teams), hashed, new)
    if not link.person:
        raise Conflict(f"The name {username} is taken, or was taken before. Choose another name.", user=username)
    user = require_user(tx, username)
    if hashed:
        set_password(tx, username, hashed, username, "")
    tx.append_event(Event("link_used", username, {"user": username}))
    return start_session(tx, user, "link", new)


def invalid_link_error() -> Unauthenticated:
    return Unauthenticated("This link was already used or has expired. Ask an admin for another.")


def _is_first_admin_link(link: OneTimeLink) -> bool:
    return link.created_by == SYSTEM_ACTOR and link.role == ADMIN


def _join(tx: AccountTransaction, user: User, hashed: str, new: NewSession) -> User:
    check_new_person_name(user.name)
    if not hashed:
        raise InvalidRequest("Choose a password, so that you can sign in again.")
    _save(tx, user, user.name)
    tx.set_password(user.name, hashed)
    tx.append_event(Event("link_used", user.name, {"user": user.name}))
    return start_session(tx, user, "link", new)


# Helpers


def _save(tx: AccountTransaction, user: User, author: str) -> User:
    tx.save_user(user)
    tx.append_event(user_changed_event(user, author))
    return user


def start_session(tx: AccountTransaction, user: User, via: str, new: NewSession) -> User:
    for digest in tx.person_sessions(user.name)[: 1 - MAX_SESSIONS]:
        tx.end_session(digest)
    tx.add_session(new.digest, UserSession("", user.name, via, tx.now, tx.now + new.lifetime))
    tx.append_event(Event("signed_in", user.name, {"via": via}, "", {"credential": session_label(new.digest)}))
    return user


def session_label(digest: str) -> str:
    """The session's name in the ledger; too short to look up the digest with."""
    return f"session {digest[:12]}"


def _has_same_rights(user: User, changed: User) -> bool:
    """Rights depend on role and teams only: a new address ends nothing."""
    return (user.role, user.teams) == (changed.role, changed.teams)


def _check_unchanged(user: User, expected: User | None) -> User:
    if expected is not None and expected != user:
        raise Stale(
            f"{user.name} was changed in the meantime. Reload it, then change the current version.", user=user.name
        )
    return user


def _end_sessions(tx: AccountTransaction, name: str, kept_session: str = "") -> int:
    ended = [digest for digest in tx.person_sessions(name) if digest != kept_session]
    for digest in ended:
        tx.end_session(digest)
    return len(ended)


def _keep_an_admin(tx: AccountTransaction, user: User) -> None:
    if user.role == ADMIN and admins(tx.users()) == [user.name]:
        raise Conflict(
            f"{user.name} is the only admin of this workspace. Make another user an admin first.", user=user.name
        )


def _add_newcomer(tx: AccountTransaction, profile: User) -> User:
    if not profile.role:
        raise Unauthenticated("No user has this account. Ask an admin to add you with your e-mail address.")
    if tx.user(profile.name) is not None:
        raise Conflict(f"The name {profile.name} is taken, or was taken before. Ask an admin.", user=profile.name)
    check_new_person_name(profile.name)
    return _save(tx, profile, SYSTEM_ACTOR)


def _find_by_email(tx: AccountTransaction, email: str) -> User | None:
    """Only if exactly one person has it and is not linked to another subject already."""
    folded = email.casefold()
    found = [user for user in tx.users() if folded and user.email.casefold() == folded and user.removed_at is None]
    return found[0] if len(found) == 1 and not tx.has_subject(found[0].name) else None


REVOKE_REASON = "Its creator was removed, or has fewer rights than when they created it."


@dataclass(frozen=True, slots=True)
class UserChange:
    """The changed person, and what ended with the change."""

    user: User
    effects: RemovalEffects


def removal_effects(tx: AccountTransaction, name: str) -> RemovalEffects:
    """What removing them would end; changes nothing."""
    return _add_access_effects(tx, name, demotion_effects(tx, UpdatedMember(name)))


def demotion_effects(tx: AccountTransaction, member: UpdatedMember) -> RemovalEffects:
    """What they may no longer do with this role and these teams; changes nothing."""
    return _find_lost_rights(tx, member, "").effects


def demote(tx: AccountTransaction, member: UpdatedMember, author: str) -> RemovalEffects:
    """Revoke their grants, and withdraw votes and delegations of pending calls."""
    ending = _find_lost_rights(tx, member, author)
    by, moment = Reviewer(author, ADMIN, via="removal"), Moment(tx.now)
    for grant in ending.grants:
        tx.save_grant(grants.revoke(grant, by, moment, REVOKE_REASON))
    for approval, change in ending.withdrawn:
        tx.save_approval(approval, change)
    return ending.effects


def _add_access_effects(tx: AccountTransaction, name: str, ended: RemovalEffects) -> RemovalEffects:
    """Add their credentials and identities, and the people who delegate to them."""
    return replace(
        ended,
        keys=tuple((key.id, key.name) for key in tx.person_keys(name) if key.is_valid_at(tx.now)),
        sessions=len(tx.person_sessions(name)),
        links=len({*tx.person_links(name), *tx.links_made_by(name)}),
        identities=len(tx.person_identities(name)),
        away=tuple(user.name for user in _people_delegating_to(tx, name)),
        made_keys=tuple((key.id, key.name) for key in tx.keys_made_by(name) if key.is_valid_at(tx.now)),
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


def _find_lost_rights(tx: AccountTransaction, member: UpdatedMember, author: str) -> _LostRights:
    """Computed once, since it reads every pending call with activity under the lock."""
    made = [
        each
        for each in tx.person_grants(member.name)
        if grants.is_usable(each, tx.now) and not keeps_grant(each, member)
    ]
    changes = ((approval, withdraw_participation(approval, member, author)) for approval in tx.pending_with_activity())
    return _LostRights(made, [(approval, change) for approval, change in changes if change is not None])


def remove(tx: AccountTransaction, user: User, author: str) -> UserChange:
    """Remove a person, their credentials and rights, and the delegations to them, in one transaction."""
    name = user.name
    ended = _add_access_effects(tx, name, demote(tx, UpdatedMember(name), author))
    gone = replace(user, removed_at=tx.now, email="", away_until=None, away_to=None)
    tx.save_user(gone)
    tx.set_password(name, "")  # the subject stays: a provider that still vouches for them must not add them again
    for digest in tx.person_sessions(name):
        tx.end_session(digest)
    for key in tx.person_keys(name):
        if key.revoked_at is None:
            keys.write_revocation(tx, key, author)
    for link in {*tx.person_links(name), *tx.links_made_by(name)}:
        tx.use_link(link)
    for channel, external_id in tx.person_identities(name):
        tx.delete_identity(channel, external_id)  # a later person of this name is somebody else
    for other in _people_delegating_to(tx, name):
        _remove_delegate(tx, other, name, author)
    tx.append_event(Event("user_removed", author, {"user": name, "sessions": ended.sessions}))
    return UserChange(gone, ended)


def _people_delegating_to(tx: AccountTransaction, name: str) -> list[User]:
    """People who are away and named them as a delegate."""
    there = [user for user in tx.users() if user.removed_at is None and user.name != name]
    return [user for user in there if user.away_to is not None and name in user.away_to.users]


def _remove_delegate(tx: AccountTransaction, user: User, name: str, author: str) -> None:
    left = replace(user, away_to=without_person(user.away_to, name))
    tx.save_user(left)
    to = None if left.away_to is None else {"users": sorted(left.away_to.users), "teams": sorted(left.away_to.teams)}
    data = {"user": user.name, "until": user.away_until}
    tx.append_event(Event("away_changed", author, data, "", None if to is None else {"to": to}))
