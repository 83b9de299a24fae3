"""Freezes, the emergency stop of admins: freeze a workspace, an agent, a key or a tool, and release it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, cast

from interlock.app.gate import uuid7
from interlock.core.confusables import fold_confusables, fold_pattern, matches_pattern
from interlock.core.decision import Reviewer
from interlock.core.errors import Forbidden
from interlock.core.freeze import Freeze, FreezeScope
from interlock.core.identity import ADMIN
from interlock.core.ports import Clock, FirstSeenTool


class FreezeStore(Protocol):
    async def list_open(self, workspace: str) -> tuple[Freeze, ...]: ...
    async def list_all(self, workspace: str) -> Sequence[Freeze]: ...
    async def add(self, draft: Freeze) -> Freeze: ...
    async def release(self, workspace: str, freeze_id: str, by: str, reason: str = "") -> Freeze: ...
    async def settle(self, workspace: str, freeze_id: str) -> int: ...


class Freezes:
    def __init__(self, store: FreezeStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def list_active(self, workspace: str) -> Sequence[Freeze]:
        return [freeze for freeze in await self._store.list_open(workspace) if freeze.is_on]

    async def list_all(self, workspace: str) -> Sequence[Freeze]:
        """The newest freezes, including released ones."""
        return await self._store.list_all(workspace)

    async def freeze(self, workspace: str, scope: str, name: str, reason: str, person: Reviewer) -> Freeze:
        """Stop everything in the scope at once; returns the existing freeze if there is one."""
        _require_admin(person)
        draft = Freeze(
            id=uuid7(self._clock()),
            workspace=workspace,
            scope=cast(FreezeScope, scope),
            name=name,
            reason=reason,
            by=person.name,
            at=0,
        )
        return await self._store.add(draft)

    async def release(self, workspace: str, freeze_id: str, reason: str, person: Reviewer) -> Freeze:
        """Let calls start again, and move the paused deadlines."""
        _require_admin(person)
        freeze = await self._store.release(workspace, freeze_id, person.name, reason)
        if freeze.settled_at is None:
            await self._store.settle(workspace, freeze_id)
        return freeze


def freeze_warnings(freeze: Freeze, seen: Iterable[FirstSeenTool]) -> list[str]:
    """Warnings for a freeze that covers no known call: a misspelt name stops nothing."""
    match freeze.scope:
        case "agent" if not freeze.keys and fold_confusables(freeze.name) not in {
            fold_confusables(each.agent) for each in seen
        }:
            return ["No call of this agent is known; check the name."]
        case "tool" if not any(
            matches_pattern(fold_confusables(each.name), fold_pattern(freeze.name)) for each in seen
        ):
            return ["No call of such a tool is known; check the name."]
        case _:
            return []


def _require_admin(person: Reviewer) -> None:
    if person.role != ADMIN:
        raise Forbidden("Only admins freeze and unfreeze. Ask an admin of the workspace.")
