"""API keys: creation, bindings, expiry, rotation and revocation, as steps of a transaction."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from shlex import quote

from interlock.core.confusables import differs_only_in_case
from interlock.core.errors import Conflict, InvalidRequest, NotFound, Unauthenticated
from interlock.core.identity import (
    AGENT,
    ANY_REQUESTER,
    NO_REQUESTER,
    ApiKey,
    KeyBindings,
    check_bindings,
    check_name,
    check_person_name,
    check_role,
    lesser_role,
)
from interlock.core.ledger.event import Event
from interlock.core.ledger.expected_tables import key_sha256, user_changed_event
from interlock.core.ports import AccountTransaction, User
from interlock.runtime.durations import DAY

PERSONAL_KEY_LIFETIME = 90 * DAY  # default lifetime of a person's key, in milliseconds
NEVER_EXPIRES = -1  # for a key without expiry
MAX_LIFETIME = 10 * 366 * DAY
MAX_COMMAND = 1_000  # characters of a command in a message


def draft(key_id: str, workspace: str, name: str, role: str, author: str, user: str, bindings: KeyBindings) -> ApiKey:
    """A checked draft of a key; only an agent's key may belong to nobody."""
    check_role(role)
    check_name(name)
    check_bindings(role, bindings)
    named = "" if bindings.requester in (ANY_REQUESTER, NO_REQUESTER) else bindings.requester
    if user and bindings.requester not in ("", user):
        raise InvalidRequest(f"Name one requester for this key: {user} or {bindings.requester}.")
    person = user or named or ("" if role == AGENT else name)
    if person:
        check_person_name(person)
    requester = (person or bindings.requester) if role == AGENT else ""
    key = ApiKey(
        key_id,
        workspace=workspace,
        name=name,
        role=role,
        person=person,
        created_by=author,
        created_at=0,
        used_at=None,
        revoked_at=None,
        agents=bindings.agents,
        tools=bindings.tools,
        requester=requester,
    )
    return replace(key, per_minute=bindings.per_minute, pending=bindings.pending)


def add(
    tx: AccountTransaction,
    key: ApiKey,
    lifetime: int | None,
    digest: str,
    *,
    adds_person: bool,
    until: int | None = None,
) -> ApiKey:
    """Add a key; `lifetime` are milliseconds or NEVER_EXPIRES; None is 90 days for people, and never for agents.

    It expires by `until` at the latest.
    """
    if tx.key(key.id) is not None:
        raise Conflict("This key already exists. Try again to create another.", key_id=key.id)
    user = tx.user(key.person) if key.person else None
    if user is not None and user.removed_at is not None:
        raise Conflict(f"{user.name} was removed. Add them again first: interlock users add {user.name}")
    if user is not None and lesser_role(key.role, user.role) != key.role:
        raise InvalidRequest(
            f"{user.name} is a {user.role}, so a key of theirs cannot be for {_with_article(key.role)}. "
            "Change their role first."
        )
    if key.person and user is None:
        if not adds_person:
            raise _unknown_person_error(key.person, tx)
        _add_person(tx, User(key.person, "viewer" if key.role == AGENT else key.role), key.created_by)
    made = replace(key, created_at=tx.now, expires_at=_earlier(_expiry(tx.now, key.role, lifetime), until))
    tx.add_key(made, digest)
    tx.append_event(Event("key_created", made.created_by, _key_facts(made, digest), "", {"name": made.name}))
    return made


def revoke(tx: AccountTransaction, key_id: str, author: str) -> ApiKey:
    """Revoke a key; a second time does nothing."""
    key = _require_key(tx, key_id)
    if key.revoked_at is not None:
        return key
    write_revocation(tx, key, author)
    return replace(key, revoked_at=tx.now)


def rotate(
    tx: AccountTransaction,
    key_id: str,
    new: ApiKey,
    overlap: int,
    lifetime: int | None,
    digest: str,
    until: int | None = None,
) -> ApiKey:
    """Add a key with the same bindings that expires by `until`; the old one expires after the overlap or earlier."""
    old = _require_key(tx, key_id)
    if not old.is_valid_at(tx.now):
        raise Conflict("This key is no longer valid. Create a new one: interlock keys create", key_id=key_id)
    if not 0 <= overlap <= MAX_LIFETIME:
        raise InvalidRequest("The overlap must be a duration of at least 0s, such as 24h.")
    if lifetime is None:
        lifetime = NEVER_EXPIRES if old.expires_at is None else max(old.expires_at - old.created_at, DAY)
    expires_at = _earlier(_expiry(tx.now, old.role, lifetime), until)
    made = replace(old, id=new.id, created_by=new.created_by, created_at=tx.now, used_at=None)
    made = replace(made, expires_at=expires_at, rotated_from=old.id, root=old.first_key_id)
    tx.add_key(made, digest)
    ends = tx.now + overlap if old.expires_at is None else min(tx.now + overlap, old.expires_at)
    tx.expire_key(old.id, ends)
    data = {**_key_facts(made, digest), "replaces": old.id, "root": made.root, "replaced_until": ends}
    tx.append_event(Event("key_rotated", made.created_by, data, "", {"name": made.name}))
    return made


def write_revocation(tx: AccountTransaction, key: ApiKey, author: str) -> None:
    tx.revoke_key(key.id)
    tx.append_event(Event("key_revoked", author, {"key": key.id, "user": key.person}))


def revoke_personal_keys(tx: AccountTransaction, person: str, author: str) -> int:
    """Revoke the keys that they sign in with themselves, and return their number."""
    ended = [key for key in tx.person_keys(person) if key.role != AGENT and key.revoked_at is None]
    for key in ended:
        write_revocation(tx, key, author)
    return len(ended)


def expired_key_error(key: ApiKey) -> Unauthenticated:
    """The error for the holder of the full key, who may know its bindings; never for anybody else."""
    how = f"interlock keys create {' '.join(quote(word) for word in _create_options(key))}"
    if len(how) > MAX_COMMAND:
        how = f"interlock keys create, with what is listed for it in: interlock keys list --all --json ({key.id})"
    return Unauthenticated(f"This key has expired. Ask an admin for another: {how}", key_id=key.id)


def _create_options(key: ApiKey) -> list[str]:
    """The options that create a key like this one."""
    given = [("--name", key.name), ("--role", key.role)]
    given += [("--agent", name) for name in key.agents] + [("--tool", pattern) for pattern in key.tools]
    if key.role == AGENT and key.requester:
        given.append(("--requester", key.requester))
    elif key.person != key.name:
        given.append(("--user", key.person))
    given += [(f"--{name.replace('_', '-')}", str(limit)) for name, limit in key.quotas.items()]
    return [word for option, value in given if value for word in (option, value)]


def _unknown_person_error(name: str, tx: AccountTransaction) -> InvalidRequest:
    """The error for an unknown person: a misspelt name must not create an account for which the key acts."""
    there = [user for user in tx.users() if user.removed_at is None]
    same = [user.name for user in there if any(differs_only_in_case(name, each) for each in (user.name, user.email))]
    close = same or get_close_matches(name, [user.name for user in there], 3)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    how = f"interlock users add {quote(name)} --role viewer"
    return InvalidRequest(f"There is no person {name!r} that this key could act for.{hint} To add them: {how}")


def _expiry(now: int, role: str, lifetime: int | None) -> int | None:
    if lifetime is None:
        lifetime = NEVER_EXPIRES if role == AGENT else PERSONAL_KEY_LIFETIME
    if lifetime == NEVER_EXPIRES:
        return None
    if not 0 < lifetime <= MAX_LIFETIME:
        raise InvalidRequest("The lifetime of a key is more than zero and at most ten years; use never for no expiry.")
    return now + lifetime


def _earlier(end: int | None, until: int | None) -> int | None:
    return min((each for each in (end, until) if each is not None), default=None)


def _key_facts(key: ApiKey, digest: str) -> dict[str, object]:
    """What a key may do is structure, not content: comparing rows with the ledger needs it permanently."""
    bound = {"agents": list(key.agents), "tools": list(key.tools), "requester": key.requester, "quotas": key.quotas}
    data = {"key": key.id, "role": key.role, "user": key.person, "expires_at": key.expires_at}
    return {**data, "sha256": key_sha256(digest), **{name: value for name, value in bound.items() if value}}


def _require_key(tx: AccountTransaction, key_id: str) -> ApiKey:
    key = tx.key(key_id)
    if key is None:
        raise NotFound("There is no key with this id. See: interlock keys list", key_id=key_id)
    return key


def _add_person(tx: AccountTransaction, user: User, author: str) -> None:
    tx.save_user(user)
    tx.append_event(user_changed_event(user, author))


def _with_article(role: str) -> str:
    return f"an {role}" if role[0] in "a" else f"a {role}"
