"""Authentication and accounts: keys, people, passwords, sessions, one-time links and sign-in codes.

It is long because the cache of principals belongs to the look-ups that fill and clear it.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from hashlib import sha256
from ipaddress import ip_address, ip_network
from typing import TypeVar

from interlock.accounts import keys, members, passwords
from interlock.accounts.keys import expired_key_error
from interlock.accounts.members import UserChange, session_label
from interlock.accounts.passwords import HashingPool, check_password, hash_password, verify_password
from interlock.core.errors import Error, InvalidRequest, TooManyRequests, Unauthenticated
from interlock.core.identity import (
    ADMIN,
    AGENT,
    ANY_REQUESTER,
    NO_REQUESTER,
    ApiKey,
    KeyBindings,
    OneTimeLink,
    Principal,
    check_email,
    check_names,
    check_person_name,
    check_role,
    check_workspace,
    is_name,
    lesser_role,
)
from interlock.core.ledger.event import SYSTEM_ACTOR, Event
from interlock.core.policy.policy import People
from interlock.core.ports import AccountStore, AccountTransaction, Clock, Trace, User
from interlock.core.rate_limit import AttemptLimiter
from interlock.core.removal import RemovalEffects
from interlock.runtime.durations import HOUR

T = TypeVar("T")
SESSION_LIFETIME = 7 * 24 * HOUR  # milliseconds until a session expires
IDEMPOTENCY_RETENTION = 24 * HOUR  # milliseconds that a response is replayed for an idempotency key
CACHE_TTL = 1_000  # milliseconds that a cached principal is used
KEY_USE_INTERVAL = 60_000  # milliseconds between two records of a key's last use
CLEANUP_BATCH = 500  # rows of each kind that one sweep deletes
MAX_FAILURES_PER_NAME, MAX_FAILURES_PER_ADDRESS = 5, 20  # failed sign-ins allowed within a minute
KEY_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # without characters that look alike
NO_TEAMS: frozenset[str] = frozenset()

_KEY = re.compile(r"(ilk_[a-z0-9]{8})_[A-Za-z0-9_-]{43}")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


class Accounts:
    """Accounts with cached look-ups: changes of this process count at once, those of others after at most a second."""

    def __init__(self, store: AccountStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._cache = PrincipalCache(clock)
        self._name_limiter = AttemptLimiter(MAX_FAILURES_PER_NAME)
        self._address_limiter = AttemptLimiter(MAX_FAILURES_PER_ADDRESS)
        self._code_limiter = AttemptLimiter(passwords.MAX_CODES_PER_ADDRESS, passwords.CODE_LIFETIME)
        self._person_code_limiter = AttemptLimiter(passwords.MAX_CODES_PER_PERSON, passwords.CODE_LIFETIME)
        self._failure_note_limiter = AttemptLimiter(1, 1_000)
        self._key_use_limiter = AttemptLimiter(1, KEY_USE_INTERVAL)
        self._hashing_pool = HashingPool()
        self._trace: Trace = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # Keys

    async def create_key(
        self,
        workspace: str,
        name: str,
        role: str,
        author: str,
        user: str = "",
        bindings: KeyBindings = KeyBindings(),  # noqa: B008  frozen
        lifetime: int | None = None,
        until: int | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key; its secret is returned only once. A missing `user` is added, a missing requester is refused."""
        key_id, secret = _new_key()
        key = keys.draft(key_id, workspace=workspace, name=name, role=role, author=author, user=user, bindings=bindings)
        adds = bool(user) or role != AGENT
        hashed = digest(secret)
        made = await self._change(
            workspace, lambda tx: keys.add(tx, key, lifetime, hashed, adds_person=adds, until=until)
        )
        return made, secret

    async def rotate_key(
        self,
        workspace: str,
        key_id: str,
        author: str,
        overlap: int = 24 * HOUR,
        lifetime: int | None = None,
        until: int | None = None,
    ) -> tuple[ApiKey, str]:
        """Replace a key by a new one; the old key expires after the overlap."""
        new_id, secret = _new_key()
        new = ApiKey(new_id, workspace=workspace, name="", role="", person="", created_by=author, created_at=0)
        hashed = digest(secret)
        made = await self._change(
            workspace,
            lambda tx: keys.rotate(tx, key_id, new, overlap=overlap, lifetime=lifetime, digest=hashed, until=until),
        )
        return made, secret

    async def keys(self, workspace: str) -> Sequence[ApiKey]:
        return await self._store.keys(workspace)

    async def revoke_key(self, workspace: str, key_id: str, author: str) -> ApiKey:
        return await self._change(workspace, lambda tx: keys.revoke(tx, key_id, author))

    async def authenticate_key(self, secret: str) -> Principal:
        hashed = digest(secret)
        return self._cache.get(hashed) or await self._cache.get_or_load(
            hashed, lambda: self._load_by_key(secret, hashed)
        )

    @property
    def cache_size(self) -> int:
        return len(self._cache)

    async def _load_by_key(self, secret: str, hashed: str) -> CacheablePrincipal:
        shape = _KEY.fullmatch(secret)
        found = await self._store.key(shape[1]) if shape else None
        if found is None or not hmac.compare_digest(found[1], hashed):
            raise invalid_key_error()
        (key, _, person), now = found, self._clock()
        principal = key_principal(key, person, now)
        if (key.used_at is None or now - key.used_at >= KEY_USE_INTERVAL) and not self._key_use_limiter.retry_after(
            key.id, now
        ):
            self._key_use_limiter.record_attempt(key.id, now)
            self._run_in_background(self._store.touch_key(key.workspace, key.id, now))
        return principal, now + CACHE_TTL if key.expires_at is None else min(now + CACHE_TTL, key.expires_at)

    # People

    async def users(self, workspace: str) -> Sequence[User]:
        """All people, including removed ones."""
        return await self._store.users(workspace)

    async def add_user(
        self, workspace: str, name: str, role: str, author: str, teams: frozenset[str] = NO_TEAMS, email: str = ""
    ) -> User:
        """Add a person; a removed one comes back with nothing but the name."""
        _check_person(name, role, teams, email)
        user = User(name, role, teams=teams, email=email)
        return await self._change(workspace, lambda tx: members.add_user(tx, user, author))

    async def change_user(
        self,
        workspace: str,
        name: str,
        author: str,
        *,
        role: str | None = None,
        teams: frozenset[str] | None = None,
        email: str | None = None,
        expected: User | None = None,
    ) -> UserChange:
        """Change a person; None keeps a value. Raises an error if they are no longer as `expected`."""
        given = (("role", role), ("teams", teams), ("email", email))
        changes = {what: value for what, value in given if value is not None}
        _check_person(name, role or ADMIN, teams or NO_TEAMS, email or "")
        return await self._change(workspace, lambda tx: members.change_user(tx, name, changes, author, expected))

    async def remove_user(self, workspace: str, name: str, author: str, expected: User | None = None) -> UserChange:
        """Remove a person with all their credentials, grants, votes and delegations, in one transaction."""
        return await self._change(workspace, lambda tx: members.remove_user(tx, name, author, expected))

    async def preview_change(
        self, workspace: str, name: str, role: str | None = None, teams: frozenset[str] | None = None
    ) -> RemovalEffects:
        """What removing somebody would end, or giving them this role and these teams. Changes nothing."""
        changes = {what: value for what, value in (("role", role), ("teams", teams)) if value is not None} or None
        return await self._store.change(workspace, lambda tx: members.preview(tx, name, changes))

    async def set_away(self, workspace: str, name: str, until: int | None, to: People | None, author: str) -> User:
        if to is not None:
            check_names([*to.users, *to.teams])
        return await self._change(workspace, lambda tx: members.set_away(tx, name, until, to, author))

    async def needs_first_admin(self, workspace: str) -> bool:
        return not members.admins(await self._store.users(workspace))

    async def workspaces(self) -> Sequence[tuple[str, int]]:
        """Names of workspaces, with the time of their creation."""
        return await self._store.workspaces()

    async def add_workspace(self, workspace: str) -> None:
        """Add a workspace; does nothing if it exists."""
        check_workspace(workspace)
        await self._store.add_workspace(workspace)

    # Passwords and sessions

    async def set_password(self, workspace: str, name: str, password: str, author: str, token: str = "") -> None:
        """Set a password and end their sessions, except the one with this token."""
        check_password(password)
        hashed, kept_session = await self._hashing_pool(hash_password, password), digest(token)
        await self._change(workspace, lambda tx: members.set_password(tx, name, hashed, author, kept_session))

    async def change_password(
        self, workspace: str, name: str, old: str, new: str, address: str = "", token: str = ""
    ) -> None:
        """Change one's own password; the old one is required: an unlocked screen must not give lasting access."""
        check_password(new)
        await self._verify_password(workspace, name, old, address)
        await self.set_password(workspace, name, new, name, token)

    async def sign_in(self, workspace: str, name: str, password: str, address: str = "") -> tuple[Principal, str]:
        """Start a session and return its token. Wrong names and wrong passwords get the same error in the same time."""
        known = await self._verify_password(workspace, name, password, address)
        return await self._start_session(workspace, lambda tx, new: members.sign_in(tx, name, known, new))

    async def _verify_password(self, workspace: str, name: str, password: str, address: str) -> str:
        """The argon2 hash of the password, if it is the right one."""
        account, network, now = digest(f"{workspace}\n{name}"), client_network(address), self._clock()
        wait = max(
            self._name_limiter.retry_after(account, now),
            self._address_limiter.retry_after(network, now) if network else 0,
        )
        if wait:
            raise TooManyRequests(f"Too many sign-ins failed. Try again in {wait} seconds.", retry_after=wait)
        self._name_limiter.record_attempt(account, now)
        self._address_limiter.record_attempt(network, now)
        known = await self._store.password(workspace, name) if is_name(name) and is_name(workspace) else ""
        if not await self._hashing_pool(verify_password, password, known):
            self._run_in_background(self._record_failure(workspace, name, network))
            raise _wrong_password_error()
        self._name_limiter.forgive(account)
        self._address_limiter.forgive(network)
        return known

    async def sign_in_by_subject(
        self, workspace: str, subject: str, email: str, name: str, role: str = "", teams: frozenset[str] = NO_TEAMS
    ) -> tuple[Principal, str]:
        """Sign in a person by OpenID; `subject` is the provider's address and their id there.

        `email` is given only if the provider has verified it: it matches a person that an admin added with it. With a
        `role`, an unknown person is added as `name`.
        """
        if not subject:
            raise InvalidRequest("The provider did not return an identity.")
        _check_person(name, role or ADMIN, teams, email)
        user = User(name, role, teams=teams, email=email)
        return await self._start_session(workspace, lambda tx, new: members.sign_in_by_subject(tx, subject, user, new))

    async def authenticate_session(self, token: str) -> Principal:
        hashed = digest(token)
        return self._cache.get(hashed) or await self._cache.get_or_load(
            hashed, lambda: self._load_by_session(token, hashed)
        )

    async def _load_by_session(self, token: str, hashed: str) -> CacheablePrincipal:
        found = await self._store.session(hashed) if _TOKEN.fullmatch(token) else None
        now = self._clock()
        if found is None or found[0].expires_at <= now or found[1].removed_at is not None:
            raise Unauthenticated("You are not signed in, or your session has ended. Sign in again.")
        principal = session_principal(found[1], found[0].workspace, hashed, found[0].created_at)
        return principal, min(now + CACHE_TTL, found[0].expires_at)

    async def sign_out(self, token: str) -> None:
        """End a session; does nothing if the token belongs to none."""
        found = await self._store.session(digest(token)) if _TOKEN.fullmatch(token) else None
        if found is not None:
            await self._change(found[0].workspace, lambda tx: members.sign_out(tx, digest(token)))

    async def sign_out_everywhere(self, workspace: str, name: str, author: str) -> tuple[int, int]:
        """The number of ended sessions and keys."""
        return await self._change(workspace, lambda tx: members.sign_out_everywhere(tx, name, author))

    # One-time links

    async def create_link(
        self,
        workspace: str,
        author: str,
        user: str = "",
        role: str = "",
        teams: frozenset[str] = NO_TEAMS,
        lifetime: int = HOUR,
    ) -> str:
        """Create a one-time link and return its token.

        An existing `user` signs in with it; for a new one, or without one, `role` is required. A link that Interlock
        itself makes for an admin is valid only while there is no admin.
        """
        _check_person(user or "anybody", role or ADMIN, teams, "")
        if not (user or role):
            raise InvalidRequest("Name a person or a role for the link.")
        token = secrets.token_urlsafe(32)
        link = OneTimeLink(workspace=workspace, person=user, role=role, teams=teams, created_by=author, expires_at=0)
        await self._change(workspace, lambda tx: members.add_link(tx, link, lifetime, digest(token)))
        return token

    async def inspect_link(self, token: str) -> OneTimeLink:
        """Inspect a link without using it."""
        link = await self._store.link(digest(token)) if _TOKEN.fullmatch(token) else None
        if link is None or link.expires_at <= self._clock():
            raise members.invalid_link_error()
        return link

    async def use_link(self, token: str, name: str = "", password: str = "") -> tuple[Principal, str]:
        """Use up the link. A new person needs a name, unless the link has one, and a password."""
        link = await self.inspect_link(token)
        hashed = ""
        if password:
            check_password(password)
            hashed = await self._hashing_pool(hash_password, password)
        spent = digest(token)
        return await self._start_session(link.workspace, lambda tx, new: members.use_link(tx, spent, name, hashed, new))

    # Sign-in codes by e-mail

    async def add_code(self, workspace: str, person: str, code: passwords.SignInCode, address: str = "") -> bool:
        """False if this person was sent enough codes for now, or does not exist."""
        account, now = digest(f"{workspace}\n{person}"), self._clock()
        account_network = f"{account}\n{client_network(address)}"
        if self._code_limiter.retry_after(account_network, now) or self._person_code_limiter.retry_after(account, now):
            return False
        self._code_limiter.record_attempt(account_network, now)
        self._person_code_limiter.record_attempt(account, now)
        return await self._change(workspace, lambda tx: passwords.add(tx, person, code, digest))

    async def use_code(
        self, workspace: str, person: str, code: passwords.SignInCode, address: str = ""
    ) -> tuple[Principal, str]:
        """Use up the code, or one attempt. The reason for a failure is not revealed."""
        network, now = client_network(address), self._clock()
        wait = self._address_limiter.retry_after(network, now) if network else 0
        if wait:
            raise TooManyRequests(f"Too many sign-ins failed. Try again in {wait} seconds.", retry_after=wait)
        self._address_limiter.record_attempt(network, now)
        token = secrets.token_urlsafe(32)
        new = members.NewSession(digest(token), passwords.SESSION_LIFETIME)
        user = await self._change(workspace, lambda tx: passwords.use(tx, person, code, digest, new))
        if user is None:
            self._run_in_background(self._record_failure(workspace, person, network))
            raise passwords.invalid_code_error()
        self._address_limiter.forgive(network)
        return session_principal(user, workspace, new.digest, self._clock()), token

    # Cleanup

    async def sweep(self) -> int:
        """Delete some expired sessions, links and idempotency records; returns how many rows. More may be left."""
        now = self._clock()
        return await self._store.delete_expired(now, now - IDEMPOTENCY_RETENTION, CLEANUP_BATCH)

    async def drain(self) -> None:
        """Wait for background tasks: records of a key's use and of failed sign-ins."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    async def _start_session(
        self, workspace: str, step: Callable[[AccountTransaction, members.NewSession], User]
    ) -> tuple[Principal, str]:
        token = secrets.token_urlsafe(32)
        new = members.NewSession(digest(token), SESSION_LIFETIME)
        user = await self._change(workspace, lambda tx: step(tx, new))
        return session_principal(user, workspace, new.digest, self._clock()), token

    def with_trace(self, trace: Trace) -> Accounts:
        """A copy for an author with this trace, which goes into the events of their changes."""
        other = copy(self)
        other._trace = trace
        return other

    async def _change(self, workspace: str, step: Callable[[AccountTransaction], T]) -> T:
        try:
            return await self._store.change(workspace, step, self._trace)
        finally:
            self._cache.clear()

    async def _record_failure(self, workspace: str, name: str, network: str) -> None:
        """Record a failed sign-in; unknown names share one record a second, so that they cannot fill the ledger."""
        users, now = await self._store.users(workspace) if is_name(workspace) else (), self._clock()
        known_name = name if any(user.name == name for user in users) else ""
        slot = f"{workspace}\n{known_name}"
        if users and not self._failure_note_limiter.retry_after(slot, now):
            self._failure_note_limiter.record_attempt(slot, now)
            content = {"name": name if is_name(name) else "", "address": network}
            event = Event("sign_in_failed", SYSTEM_ACTOR, {}, "", content)
            await self._store.change(workspace, lambda tx: tx.append_event(event))

    def _run_in_background(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(_ignore_errors(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _new_key() -> tuple[str, str]:
    """The id and the secret of a new key."""
    key_id = "ilk_" + "".join(secrets.choice(KEY_ALPHABET) for _ in range(8))
    return key_id, f"{key_id}_{secrets.token_urlsafe(32)}"


def digest(secret: str) -> str:
    """A plain hash is enough, because keys and tokens are long and random."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _check_person(name: str, role: str, teams: frozenset[str], email: str) -> None:
    check_person_name(name)
    check_names(teams)
    check_role(role)
    if role == AGENT:
        raise InvalidRequest("A person is a viewer, a reviewer or an admin. Agents have keys: interlock keys create.")
    check_email(email)


def _wrong_password_error() -> Unauthenticated:
    return Unauthenticated("The name or the password is wrong. Try again, or ask an admin for a sign-in link.")


async def _ignore_errors(work: Coroutine[object, object, None]) -> None:
    with suppress(Error):  # the database fails, and other callers get the error
        await work


MAX_CACHED = 10_000
CacheablePrincipal = tuple[Principal, int]  # with the time until which it may be cached
LoadPrincipal = Callable[[], Coroutine[object, object, CacheablePrincipal]]


class PrincipalCache:
    """Cache of found principals only, so that made-up secrets take no memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._generation = 0
        self._entries: dict[str, tuple[Principal, int, int]] = {}
        self._loading: dict[tuple[str, int], asyncio.Task[Principal]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, digest: str) -> Principal | None:
        kept = self._entries.get(digest)
        return kept[0] if kept is not None and kept[1] <= self._clock() < kept[2] else None

    def clear(self) -> None:
        self._generation += 1
        self._entries.clear()

    async def get_or_load(self, digest: str, load: LoadPrincipal) -> Principal:
        """Concurrent callers with the same secret share one look-up, unless something changed since."""
        key = digest, self._generation
        task = self._loading.get(key)
        if task is None:
            task = self._loading[key] = asyncio.get_running_loop().create_task(self._load(digest, load))
            task.add_done_callback(lambda done: self._on_loaded(key, done))
        return await asyncio.shield(task)

    async def _load(self, digest: str, load: LoadPrincipal) -> Principal:
        before = self._generation
        principal, until = await load()
        if before == self._generation:  # else it may be outdated
            if len(self._entries) >= MAX_CACHED:
                self._entries.clear()
            self._entries[digest] = principal, self._clock(), until
        return principal

    def _on_loaded(self, key: tuple[str, int], task: asyncio.Task[Principal]) -> None:
        del self._loading[key]
        if not task.cancelled():
            task.exception()  # all waiters may have given up


def key_principal(key: ApiKey, person: User | None, now: int) -> Principal:
    if key.revoked_at is not None or (key.person and (person is None or person.removed_at is not None)):
        raise invalid_key_error()
    if not key.is_valid_at(now):
        raise expired_key_error(key)
    if key.role == AGENT:
        return _agent_principal(key)
    if person is None:  # no such key is made
        raise invalid_key_error()
    role = lesser_role(key.role, person.role)
    proven = Principal(
        key.workspace, person.name, role, teams=person.teams, via="key", credential=key.id, root=key.first_key_id
    )
    return replace(proven, person_role=person.role, expires_at=key.expires_at)


def _agent_principal(key: ApiKey) -> Principal:
    if key.person in (ANY_REQUESTER, NO_REQUESTER):  # once a person's name, now reserved for requesters
        raise invalid_key_error()
    return Principal(
        key.workspace,
        key.name,
        AGENT,
        credential=key.id,
        agents=key.agents,
        tools=key.tools,
        requester=key.requester,
        root=key.first_key_id,
        per_minute=key.per_minute,
        pending=key.pending,
    )


def session_principal(user: User, workspace: str, hashed: str, since: int) -> Principal:
    mark = session_label(hashed)
    return Principal(workspace, user.name, user.role, teams=user.teams, via="web", credential=mark, signed_in_at=since)


def invalid_key_error() -> Unauthenticated:
    return Unauthenticated("This key is unknown or was revoked. Ask an admin for another.")


def client_network(address: str) -> str:
    """The network of one subscriber, for rate limits: an IPv4 address, or a /64 of IPv6."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return ""
    return str(parsed) if parsed.version == 4 else str(ip_network((parsed, 64), strict=False))
