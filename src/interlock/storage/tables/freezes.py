"""Freezes: created and released with a ledger entry; deadlines that they deferred are moved in batches afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from interlock.core import freeze as rules
from interlock.core.confusables import fold_confusables
from interlock.core.errors import NotFound
from interlock.core.freeze import Freeze
from interlock.core.ledger.event import Change
from interlock.storage.engine import rows
from interlock.storage.engine.database import Database
from interlock.storage.engine.transaction import Transaction
from interlock.storage.engine.writer import BatchItem

BATCH_SIZE = 200  # deadlines moved in one transaction
MAX_LISTED = 1_000  # freezes in a list


class SqlFreezes:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_open(self, workspace: str) -> tuple[Freeze, ...]:
        """Return freezes that are on, and released ones that have deadlines left to move."""
        return rows.read_freezes(await self._database.fetch("freezes", workspace))

    async def list_all(self, workspace: str) -> Sequence[Freeze]:
        """Return the newest 1,000 freezes, including released ones."""
        return rows.read_freezes(await self._database.fetch("all_freezes", workspace, MAX_LISTED))

    async def get(self, workspace: str, freeze_id: str) -> Freeze:
        found = rows.read_freezes(await self._database.fetch("freeze", workspace, freeze_id))
        if not found:
            raise NotFound("There is no freeze with this id.", freeze_id=freeze_id)
        return found[0]

    async def add(self, draft: Freeze) -> Freeze:
        """Create a freeze, or return the existing one if the scope is frozen already."""

        def run(tx: Transaction) -> Freeze:
            change = rules.make(draft, tx.freezes(draft.workspace), tx.moment(draft.workspace))
            if change.events:
                change = change._replace(state=replace(change.state, keys=_covered_keys(tx, draft)))
                tx.save_freeze(change)
            return change.state

        return cast(
            Freeze, await self._database.write(BatchItem(run, draft.workspace, (("freezes", draft.workspace),)))
        )

    async def release(self, workspace: str, freeze_id: str, by: str, reason: str = "") -> Freeze:
        """Release a freeze at once; its deferred deadlines are moved afterwards, and none of them passes in between."""
        await self.get(workspace, freeze_id)

        def run(tx: Transaction) -> Freeze | None:
            found = [each for each in tx.freezes(workspace) if each.id == freeze_id]
            if not found:
                return None  # settled already
            change = rules.release(found[0], by, reason, tx.moment(workspace))
            if change.events:
                tx.save_freeze(change)
            return change.state

        released = await self._database.write(BatchItem(run, workspace, (("freezes", workspace),)))
        return cast(Freeze | None, released) or await self.get(workspace, freeze_id)

    async def unsettled(self) -> Sequence[tuple[str, str]]:
        """Return the workspace and id of freezes whose release was interrupted before every deadline was moved."""
        return [(row[0], row[1]) for row in await self._database.fetch("unsettled_freezes")]

    async def settle(self, workspace: str, freeze_id: str) -> int:
        """Move the deadlines that a released freeze deferred, in batches; idempotent.

        A rejection that could still be undone when the freeze was released is included: undone, it is pending again.
        """
        released_at = (await self.get(workspace, freeze_id)).released_at or 0
        found = await self._database.fetch("open_approvals", workspace, workspace, workspace, released_at)
        ids = [row[0] for row in found]
        moved = 0
        for start in range(0, len(ids), BATCH_SIZE):
            item = BatchItem(_defer_deadlines(workspace, ids[start : start + BATCH_SIZE]), workspace, is_short=False)
            moved += cast(int, await self._database.write(item))
        await self._database.write(BatchItem(_mark_settled(workspace, freeze_id), workspace, (("freezes", workspace),)))
        return moved

    async def record_key_agents(self, workspace: str, key: str, agents: Sequence[str]) -> None:
        """Record that a key has used the names of these agents."""

        def run(tx: Transaction) -> None:
            for agent in agents:
                tx.write("insert_key_agent", workspace, agent, key)

        await self._database.write(BatchItem(run, workspace))


def _covered_keys(tx: Transaction, draft: Freeze) -> frozenset[str]:
    """Return the keys that a new freeze covers, as the query `freezes` reads them for a stored one."""
    match draft.scope:
        case "agent":
            found = tx.fetch("keys_of_agent", draft.workspace, fold_confusables(draft.name))
        case "key":
            found = tx.fetch("keys_of_chain", draft.workspace, draft.name)
        case _:
            return draft.keys
    return frozenset(str(row[0]) for row in found)


def _defer_deadlines(workspace: str, ids: Sequence[str]) -> Callable[[Transaction], int]:
    def run(tx: Transaction) -> int:
        freezes, moment, moved = tx.freezes(workspace), tx.moment(workspace), 0
        for approval_id in ids:
            try:
                approval = tx.approval(workspace, approval_id)
            except NotFound:  # deleted meanwhile
                continue
            change = rules.defer_deadlines(approval, freezes, moment)
            if change.events:
                tx.update(approval, change)
                moved += 1
        return moved

    return run


def _mark_settled(workspace: str, freeze_id: str) -> Callable[[Transaction], None]:
    def run(tx: Transaction) -> None:
        for each in tx.freezes(workspace):
            if each.id == freeze_id and not each.is_on:
                tx.save_freeze(Change(rules.settle(each, tx.moment(workspace))))

    return run
