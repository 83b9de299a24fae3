"""Copies of Interlock that are broken on purpose: a suite that does not catch them proves nothing."""

from __future__ import annotations

from typing import Any

from interlock.core.event import Payload
from interlock.gate import Execution, Gate
from interlock.stores.sqlite import SqliteDatabase


def apply(name: str) -> None:
    {"no-transaction": no_transaction, "start-after-effect": start_after_effect}[name]()


def no_transaction() -> None:
    """Every statement commits by itself, as a store without BEGIN would."""
    connect = SqliteDatabase._connect

    class Autocommit:
        def __init__(self, connection: Any) -> None:
            self._connection = connection

        def execute(self, text: str, values: Any = ()) -> Any:
            if text in ("begin immediate", "commit", "rollback"):
                return None
            return self._connection.execute(text, values)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

    SqliteDatabase._connect = lambda self: Autocommit(connect(self))  # type: ignore[method-assign]


def start_after_effect() -> None:
    """The claim is only written with the result, as frameworks do that record a step when it is done."""
    real_start, real_finish = Gate.start, Gate.finish
    claims: dict[str, tuple[str, int]] = {}

    async def start(
        self: Gate, workspace: str, approval_id: str, runner: str, lease: int = 0, spec_sha256: str = ""
    ) -> Execution:
        stored = await self._store.get(workspace, approval_id)
        claims[approval_id] = (runner, lease)
        return Execution(approval_id, stored.approval.fence + 1, stored.payload.args or b"{}", approval_id, 0)

    async def finish(self: Gate, workspace: str, approval_id: str, fence: int, *, ok: bool, payload: Payload) -> Any:
        runner, lease = claims[approval_id]
        execution = await real_start(self, workspace, approval_id, runner, lease)
        return await real_finish(self, workspace, approval_id, execution.fence, ok=ok, payload=payload)

    Gate.start, Gate.finish = start, finish  # type: ignore[method-assign,assignment]
