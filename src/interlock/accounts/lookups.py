"""Who was found a moment ago, by the digest of what they showed; bounded, and forgotten when anything changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from ipaddress import ip_address, ip_network

from interlock.accounts.keys import expired_key_error
from interlock.accounts.members import session_label
from interlock.core.errors import Unauthenticated
from interlock.core.identity import AGENT, ANY_REQUESTER, NO_REQUESTER, ApiKey, Principal, lesser_role
from interlock.core.ports import Clock, User

MAX_CACHED = 10_000
CacheablePrincipal = tuple[Principal, int]  # until when it may be kept
LoadPrincipal = Callable[[], Coroutine[object, object, CacheablePrincipal]]


class PrincipalCache:
    """Only what was found is kept, so that made-up secrets take no memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changes = 0
        self._kept: dict[str, tuple[Principal, int, int]] = {}
        self._looks: dict[tuple[str, int], asyncio.Task[Principal]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, digest: str) -> Principal | None:
        kept = self._kept.get(digest)
        return kept[0] if kept is not None and kept[1] <= self._clock() < kept[2] else None

    def clear(self) -> None:
        self._changes += 1
        self._kept.clear()

    async def look(self, digest: str, look: LoadPrincipal) -> Principal:
        """Whoever comes with the same secret meanwhile waits for the same look, unless something changed since."""
        which = digest, self._changes
        task = self._looks.get(which)
        if task is None:
            task = self._looks[which] = asyncio.get_running_loop().create_task(self._look(digest, look))
            task.add_done_callback(lambda done: self._looked(which, done))
        return await asyncio.shield(task)

    async def _look(self, digest: str, look: LoadPrincipal) -> Principal:
        before = self._changes
        principal, until = await look()
        if before == self._changes:  # else this may be what was there before the change
            if len(self._kept) >= MAX_CACHED:
                self._kept.clear()
            self._kept[digest] = principal, self._clock(), until
        return principal

    def _looked(self, which: tuple[str, int], task: asyncio.Task[Principal]) -> None:
        del self._looks[which]
        if not task.cancelled():
            task.exception()  # everybody who waited may have given up


def key_principal(key: ApiKey, person: User | None, now: int) -> Principal:
    if key.revoked_at is not None or (key.person and (person is None or person.removed_at is not None)):
        raise invalid_key_error()
    if not key.counts_at(now):
        raise expired_key_error(key)
    if key.role == AGENT:
        return _agent_principal(key)
    if person is None:  # no such key is made
        raise invalid_key_error()
    role = lesser_role(key.role, person.role)
    proven = Principal(key.workspace, person.name, role, person.teams, "key", key.id, root=key.first)
    return replace(proven, person_role=person.role, expires_at=key.expires_at)


def _agent_principal(key: ApiKey) -> Principal:
    if key.person in (ANY_REQUESTER, NO_REQUESTER):  # somebody's name once, and a word for requesters now
        raise invalid_key_error()
    bound = (key.agents, key.tools, key.requester, key.first, key.per_minute, key.pending)
    return Principal(key.workspace, key.name, AGENT, frozenset(), "key", key.id, *bound)


def session_principal(user: User, workspace: str, hashed: str, since: int) -> Principal:
    mark = session_label(hashed)
    return Principal(workspace, user.name, user.role, user.teams, "web", mark, signed_in_at=since)


def invalid_key_error() -> Unauthenticated:
    return Unauthenticated("This key does not count: it is unknown or was revoked. Ask an admin for another.")


def client_network(address: str) -> str:
    """What one subscriber has: an IPv4 address, or a /64 of IPv6."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return ""
    return str(parsed) if parsed.version == 4 else str(ip_network((parsed, 64), strict=False))
