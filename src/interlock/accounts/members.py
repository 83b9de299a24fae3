"""What may happen to the people of a workspace and their keys: each step looks, refuses or writes, and says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interlock.core.errors import Conflict, InvalidRequest, NotFound, Stale, Unauthenticated
from interlock.core.event import TIME, Event
from interlock.core.identity import ADMIN, AGENT, Key, Link, Session, check_name, lesser
from interlock.core.policy import People
from interlock.core.ports import Book, User

SESSIONS = 100  # of one person; a further one ends the oldest


@dataclass(frozen=True, slots=True)
class New:
    """The session that is to begin: the digest of its token, and how long it lasts."""

    digest: str
    lasts: int


# Keys


def add_key(book: Book, key: Key, digest: str) -> Key:
    if book.key(key.id) is not None:
        raise Conflict("This key is there already. Try again: another one is made.", key_id=key.id)
    user = book.user(key.person) if key.person else None
    if user is not None and user.removed_at is not None:
        raise Conflict(f"{user.name} was removed. Add them again first: interlock users add {user.name}")
    if user is not None and lesser(key.role, user.role) != key.role:
        raise InvalidRequest(
            f"{user.name} is a {user.role}, so a key of theirs cannot be for {_a(key.role)}. Change their role first."
        )
    if key.person and user is None:
        _save(book, User(key.person, "viewer" if key.role == AGENT else key.role), key.created_by)
    made = replace(key, created_at=book.now)
    book.add_key(made, digest)
    data = {"key": key.id, "role": key.role, "user": key.person}
    book.tell(Event("key_created", key.created_by, data, "", {"name": key.name}))
    return made


def revoke_key(book: Book, key_id: str, author: str) -> Key:
    """A second time it changes nothing."""
    key = book.key(key_id)
    if key is None:
        raise NotFound("There is no key with this id. See: interlock keys list", key_id=key_id)
    if key.revoked_at is not None:
        return key
    _revoke(book, key, author)
    return replace(key, revoked_at=book.now)


# People


def admins(users: Sequence[User]) -> list[str]:
    return [user.name for user in users if user.role == ADMIN and user.removed_at is None]


def add_user(book: Book, user: User, author: str) -> User:
    known = book.user(user.name)
    if known is not None and known.removed_at is None:
        raise Conflict(f"{user.name} is there already. Change them, or choose another name.", user=user.name)
    _save(book, user, author)
    book.set_subject(user.name, "")  # of somebody who was removed: this may be another person
    return user


def change_user(book: Book, name: str, changes: Mapping[str, Any], author: str, seen: User | None = None) -> User:
    user = _as_seen(there(book, name), seen)
    changed = replace(user, **changes)
    if changed.role != ADMIN:
        _keep_an_admin(book, user)
    return user if changed == user else _save(book, changed, author)


def remove_user(book: Book, name: str, author: str, seen: User | None = None) -> User:
    user = _as_seen(there(book, name), seen)
    _keep_an_admin(book, user)
    gone = replace(user, removed_at=book.now, email="", away_until=None, away_to=None)
    book.save_user(gone)
    book.set_password(name, "")  # the subject stays: a provider that still vouches for them must not add them again
    sessions = _end_sessions(book, name)
    for key in book.keys_of(name):
        if key.revoked_at is None:
            _revoke(book, key, author)
    for link in book.links_of(name):
        book.spend_link(link)
    for channel, outside in book.identities_of(name):
        book.drop_identity(channel, outside)  # whoever gets this name later is somebody else
    book.tell(Event("user_removed", author, {"user": name, "sessions": sessions}))
    return gone


def set_away(book: Book, name: str, until: int | None, to: People | None, author: str) -> User:
    if until is not None and until <= book.now:
        raise InvalidRequest("The time until which somebody is away has to lie ahead.")
    if to is not None and not (to.users or to.teams):
        raise InvalidRequest("Say who decides meanwhile: people or teams.")
    user = replace(there(book, name), away_until=until, away_to=to if until is not None else None)
    book.save_user(user)
    content = None
    if user.away_to is not None:
        content = {"to": {"users": sorted(user.away_to.users), "teams": sorted(user.away_to.teams)}}
    book.tell(Event("away_changed", author, {"user": name, "until": until}, "", content))
    return user


def there(book: Book, name: str) -> User:
    user = book.user(name)
    if user is None or user.removed_at is not None:
        raise NotFound(f"There is nobody called {name} here. See: interlock users list", user=name)
    return user


# Passwords and sessions


def set_password(book: Book, name: str, hashed: str, author: str, spared: str) -> None:
    there(book, name)
    book.set_password(name, hashed)
    sessions = _end_sessions(book, name, spared)
    book.tell(Event("password_changed", author, {"user": name, "sessions": sessions}))


def sign_in(book: Book, name: str, password: str, new: New) -> User:
    """`password` is what was checked: one that changed meanwhile does not count."""
    user = book.user(name)
    if user is None or user.removed_at is not None or not password or book.password(name) != password:
        raise Unauthenticated("The password was changed at this very moment. Sign in again.")
    return enter(book, user, "password", new)


def vouched(book: Book, subject: str, wanted: User, new: New) -> User:
    """Known by the subject, or by the address that an admin gave them, or added now if a role was given."""
    known = book.user(book.name_of_subject(subject))
    if known is not None and known.removed_at is not None:
        raise Unauthenticated("You were removed from this workspace. Ask an admin to add you again.")
    user = known or _by_email(book, wanted.email) or _newcomer(book, wanted)
    if known is None:
        book.set_subject(user.name, subject)
    return enter(book, user, "oidc", new)


def sign_out(book: Book, digest: str) -> None:
    session = book.session(digest)
    if session is not None:
        book.end_session(digest)
        book.tell(Event("signed_out", session.person, {"sessions": 1}))


def sign_out_everywhere(book: Book, name: str, author: str) -> int:
    there(book, name)
    ended = _end_sessions(book, name)
    book.tell(Event("signed_out", author, {"user": name, "sessions": ended}))
    return ended


# One-time links


def add_link(book: Book, link: Link, lasts: int, digest: str) -> None:
    if link.person and not link.role:
        there(book, link.person)
    book.add_link(digest, replace(link, expires_at=book.now + lasts))
    data = {"user": link.person, "role": link.role, "until": book.now + lasts}
    book.tell(Event("link_created", link.created_by, data))


def use_link(book: Book, digest: str, name: str, hashed: str, new: New) -> User:
    link = book.link(digest)
    if link is None or link.expires_at <= book.now or (_is_for_first(link) and admins(book.users())):
        raise no_link()
    book.spend_link(digest)
    who = link.person or name
    known = book.user(who)
    if known is None:
        return _join(book, User(who, link.role, link.teams), hashed, new)
    if not link.person:
        raise Conflict(f"There is somebody called {who} here, or there was. Choose another name.", user=who)
    user = there(book, who)
    if hashed:
        set_password(book, who, hashed, who, "")
    book.tell(Event("link_used", who, {"user": who}))
    return enter(book, user, "link", new)


def no_link() -> Unauthenticated:
    return Unauthenticated("This link was used, or its time is over. Ask an admin for another.")


def _is_for_first(link: Link) -> bool:
    return link.created_by == TIME and link.role == ADMIN


def _join(book: Book, user: User, hashed: str, new: New) -> User:
    check_name(user.name)
    if not hashed:
        raise InvalidRequest("Choose a password, so that you can sign in again.")
    _save(book, user, user.name)
    book.set_password(user.name, hashed)
    book.tell(Event("link_used", user.name, {"user": user.name}))
    return enter(book, user, "link", new)


# Parts of steps


def _save(book: Book, user: User, author: str) -> User:
    book.save_user(user)
    content = {"teams": sorted(user.teams), "email": user.email}
    kept = {key: value for key, value in content.items() if value or key == "teams"}
    book.tell(Event("user_changed", author, {"user": user.name, "role": user.role}, "", kept))
    return user


def enter(book: Book, user: User, via: str, new: New) -> User:
    for digest in book.sessions_of(user.name)[: 1 - SESSIONS]:
        book.end_session(digest)
    book.add_session(new.digest, Session("", user.name, via, book.now, book.now + new.lasts))
    book.tell(Event("signed_in", user.name, {"via": via}))
    return user


def _as_seen(user: User, seen: User | None) -> User:
    if seen is not None and seen != user:
        raise Stale(f"{user.name} was changed meanwhile. Look again, then change what is there now.", user=user.name)
    return user


def _end_sessions(book: Book, name: str, spared: str = "") -> int:
    ended = [digest for digest in book.sessions_of(name) if digest != spared]
    for digest in ended:
        book.end_session(digest)
    return len(ended)


def _revoke(book: Book, key: Key, author: str) -> None:
    book.revoke_key(key.id)
    book.tell(Event("key_revoked", author, {"key": key.id, "user": key.person}))


def _keep_an_admin(book: Book, user: User) -> None:
    if user.role == ADMIN and admins(book.users()) == [user.name]:
        raise Conflict(f"{user.name} is the only admin here. Make somebody else one first.", user=user.name)


def _newcomer(book: Book, wanted: User) -> User:
    if not wanted.role:
        raise Unauthenticated("Nobody here has this account. Ask an admin to add you with your e-mail address.")
    if book.user(wanted.name) is not None:
        raise Conflict(f"There is somebody called {wanted.name} here, or there was. Ask an admin.", user=wanted.name)
    return _save(book, wanted, TIME)


def _by_email(book: Book, email: str) -> User | None:
    """Only if exactly one has it, and is not somebody else's account already."""
    wanted = email.casefold()
    found = [user for user in book.users() if wanted and user.email.casefold() == wanted and user.removed_at is None]
    return found[0] if len(found) == 1 and not book.has_subject(found[0].name) else None


def _a(role: str) -> str:
    return f"an {role}" if role[0] in "a" else f"a {role}"
