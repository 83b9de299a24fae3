"""The gate over a database for one hook: without the inbox, the worker, and all else that a program has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.app.bootstrap import database_of, gate_of, stored_policy
from interlock.app.gate import Execution, Gate
from interlock.core.call import ToolCall, ToolSpec
from interlock.core.event import Payload
from interlock.core.outcome import Outcome
from interlock.core.policy import Policy
from interlock.storage.store import SqlStore

if TYPE_CHECKING:  # its reader takes a while to import, and most hooks have no policy of their own
    from interlock.policy.own_file import OwnPolicy

RUNNER = "hook"  # no process, since this one is gone while the tool runs: the lease alone says that it lives


class Local:
    def __init__(self, url: str, workspace: str, agent: str, lease: int, own: OwnPolicy | None = None) -> None:
        self._store = SqlStore(database_of(url))
        self._gate: Gate = gate_of(self._store, Policy()).outside()
        self._workspace = workspace
        self._agent = agent
        self._lease = lease
        self._own = own

    async def open(self) -> None:
        await self._store.open()
        try:
            await self._store.state()
            self._gate.policy = await stored_policy(self._store, self._workspace, self._own)
            self._gate.stops.freezes = await self._store.open_freezes(self._workspace)
        except BaseException:
            await self._store.close()
            raise

    async def close(self) -> None:
        await self._store.close()

    async def check(self, call: ToolCall, spec: ToolSpec) -> Outcome:
        return await self._gate.check(call, spec)

    async def wait(self, approval_id: str, timeout: float | None = None) -> Outcome:
        return await self._gate.wait(self._workspace, approval_id, timeout)

    async def start(self, approval_id: str, spec: ToolSpec | None) -> Execution:
        return await self._gate.start(self._workspace, approval_id, RUNNER, self._lease, spec.sha256 if spec else "")

    async def finish(self, approval_id: str, fence: int, *, ok: bool, payload: Payload) -> object:
        return await self._gate.finish(self._workspace, approval_id, fence, ok=ok, payload=payload)

    async def abandon(self, approval_id: str, fence: int) -> object:
        return await self._gate.abandon(self._workspace, approval_id, fence)

    async def cancel(self, approval_id: str, reason: str) -> object:
        return await self._gate.cancel(self._workspace, approval_id, f"agent:{self._agent}", reason)
