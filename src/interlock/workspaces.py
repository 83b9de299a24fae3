"""The doors of each workspace: a gate and an inbox under its own policy, which is followed while the server runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from interlock.conditions import compile_condition
from interlock.core.decision import Reviewer
from interlock.core.errors import Misconfigured, StoreUnavailable
from interlock.core.identity import Principal
from interlock.core.policy import Policy
from interlock.core.ports import Store, User
from interlock.gate import Gate
from interlock.inbox import Inbox, covers_of
from interlock.policy_file import Loaded, load_policy
from interlock.wiring import Toggles, names_of

FOLLOW_EVERY = 1.0  # seconds until what another process changed holds here
MakeDoors = Callable[[Policy], tuple[Gate, Inbox]]


@dataclass
class Doors:
    """`people` are those of the workspace, by name; `body` is the text of the policy in force."""

    workspace: str
    gate: Gate
    inbox: Inbox
    loaded: Loaded
    body: str
    people: Mapping[str, User]

    def reviewer(self, principal: Principal, now: int) -> Reviewer:
        """A person with those for whom they stand in now."""
        covers = covers_of(self.people.values(), principal.name, principal.teams, now)
        return Reviewer(principal.name, principal.role, principal.teams, principal.via, covers)

    def take_up(self, loaded: Loaded, body: str) -> None:
        self.loaded, self.body = loaded, body
        self.gate.policy = self.inbox.policy = loaded.policy


class Workspaces:
    def __init__(self, store: Store, make: MakeDoors, toggles: Toggles) -> None:
        self._store = store
        self._make = make
        self._toggles = toggles
        self._doors: dict[str, Doors] = {}
        self._opening = asyncio.Lock()

    async def doors(self, workspace: str) -> Doors:
        """A policy that does not load lets nothing through."""
        known = self._doors.get(workspace)
        if known is not None:
            return known
        async with self._opening:
            if workspace not in self._doors:
                self._doors[workspace] = await self._opened(workspace)
            return self._doors[workspace]

    async def put_policy(self, workspace: str, body: str, author: str, reason: str = "") -> Loaded:
        """Puts a policy in force as a new version: here at once, in other processes within a second."""
        doors = await self.doors(workspace)
        loaded = load_policy(body, compile_condition, names_of(list(doors.people.values())), self._toggles)
        await self._store.put_policy(workspace, loaded.policy.sha256, body, author, reason)
        doors.take_up(loaded, body)
        return loaded

    async def follow(self) -> None:
        while True:
            await asyncio.sleep(FOLLOW_EVERY)
            for workspace in list(self._doors):
                with suppress(Misconfigured, StoreUnavailable):  # what was in force stays in force
                    await self.refresh(workspace)

    async def refresh(self, workspace: str) -> None:
        """Takes up what changed: the people, and the policy."""
        doors = await self.doors(workspace)
        body, people = await self._read(workspace)
        doors.people = people
        if body != doors.body:
            doors.take_up(self._load(body), body)

    async def _opened(self, workspace: str) -> Doors:
        body, people = await self._read(workspace)
        loaded = self._load(body)
        gate, inbox = self._make(loaded.policy)
        return Doors(workspace, gate, inbox, loaded, body, people)

    async def _read(self, workspace: str) -> tuple[str, Mapping[str, User]]:
        stored = await self._store.policy(workspace)
        users = await self._store.users(workspace)
        return stored.body if stored else "", {user.name: user for user in users}

    def _load(self, body: str) -> Loaded:
        """Without a look at who is in which team: a team that emptied must not stop everything."""
        return load_policy(body, compile_condition, None, self._toggles)
