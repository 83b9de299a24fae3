"""Who was found a moment ago, by the digest of what they showed; bounded, and forgotten when anything changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from interlock.core.errors import Unauthenticated
from interlock.core.identity import AGENT, Key, Principal, lesser
from interlock.core.ports import Clock, User

MOST = 10_000
Found = tuple[Principal, int]  # until when it may be kept
Look = Callable[[], Coroutine[object, object, Found]]


class Lookups:
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

    async def look(self, digest: str, look: Look) -> Principal:
        """Whoever comes with the same secret meanwhile waits for the same look, unless something changed since."""
        which = digest, self._changes
        task = self._looks.get(which)
        if task is None:
            task = self._looks[which] = asyncio.get_running_loop().create_task(self._look(digest, look))
            task.add_done_callback(lambda done: self._looked(which, done))
        return await asyncio.shield(task)

    async def _look(self, digest: str, look: Look) -> Principal:
        before = self._changes
        principal, until = await look()
        if before == self._changes:  # else this may be what was there before the change
            if len(self._kept) >= MOST:
                self._kept.clear()
            self._kept[digest] = principal, self._clock(), until
        return principal

    def _looked(self, which: tuple[str, int], task: asyncio.Task[Principal]) -> None:
        del self._looks[which]
        if not task.cancelled():
            task.exception()  # everybody who waited may have given up


def of_key(key: Key, person: User | None) -> Principal:
    if key.revoked_at is not None or (key.person and (person is None or person.removed_at is not None)):
        raise no_key()
    if key.role == AGENT:
        return Principal(key.workspace, key.name, AGENT, frozenset(), "key", key.id, key.person)
    if person is None:  # no such key is made
        raise no_key()
    return Principal(key.workspace, person.name, lesser(key.role, person.role), person.teams, "key", key.id)


def of_session(user: User, workspace: str, hashed: str) -> Principal:
    return Principal(workspace, user.name, user.role, user.teams, "web", f"session {hashed[:12]}")


def no_key() -> Unauthenticated:
    return Unauthenticated("This key does not count: it is unknown or was revoked. Ask an admin for another.")
