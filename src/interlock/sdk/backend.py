"""What a program needs of the other side, be it a database or a server that has one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from interlock.app.gate import Execution
from interlock.core.call import ToolCall, ToolSpec
from interlock.core.decision import Decision, Reviewer
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Outcome
from interlock.core.ports import ToolItemStore
from interlock.core.run import Pause
from interlock.runtime.offload import LoopThread

GAVE_UP = "The agent gave up waiting."


@dataclass(frozen=True, slots=True)
class ProgramIdentity:
    """Who calls: the same for every call of one program."""

    workspace: str
    agent: str
    user: str
    runner: str
    lease: int


class ApprovalStatus(Protocol):
    """What became of an approval: over a database, the approval itself."""

    @property
    def id(self) -> str: ...
    @property
    def status(self) -> str: ...


class RunBackend(Protocol):
    """The run of a program: one that was resumed or opened, and is renewed while the program lives."""

    async def acquire_run(self, run_id: str | None) -> str:
        """The id of the run: the given one, or one that was resumed or opened."""

    async def renew_run(self, run_id: str) -> None: ...
    async def end_run(self, run_id: str, *, finished: bool) -> None: ...

    async def call_id_key(self) -> bytes:
        """Hides secrets in the ids of calls, and is the same whenever this run goes on."""


class CallBackend(Protocol):
    """One call: checked, waited for, started and finished."""

    async def check(self, call: ToolCall, spec: ToolSpec) -> Outcome: ...
    async def ask(self, call: ToolCall, spec: ToolSpec) -> Outcome: ...
    async def wait(self, approval_id: str, timeout: float | None = None) -> Outcome: ...

    async def tool_name(self, approval_id: str) -> str:
        """The name of the tool; empty where it is not known."""

    async def start(self, approval_id: str, spec: ToolSpec | None) -> Execution: ...
    async def renew(self, approval_id: str, fence: int) -> ApprovalStatus: ...
    async def finish(self, approval_id: str, fence: int, *, ok: bool, payload: Payload) -> ApprovalStatus: ...
    async def abandon(self, approval_id: str, fence: int) -> ApprovalStatus: ...
    async def cancel(self, approval_id: str, reason: str) -> ApprovalStatus: ...
    async def decide(self, approval_id: str, decision: Decision, reviewer: str | Reviewer) -> ApprovalStatus: ...


class PauseBackend(Protocol):
    """Runs of frameworks that stand still until people have decided."""

    async def pause(self, agent: str, run_id: str, framework_run_id: str, state: bytes) -> Pause:
        """`framework_run_id` is what the framework calls the run."""

    async def list_paused(self, agent: str) -> Sequence[Pause]: ...
    async def acquire_ready(self, agent: str, timeout: float | None, limit: int) -> Sequence[Pause]: ...
    async def renew_pause(self, agent: str, run_id: str, fence: int) -> None: ...

    async def release_pause(self, agent: str, run_id: str, fence: int, *, failed: bool) -> float:
        """Gives for how many seconds nobody takes it."""

    async def complete_pause(self, agent: str, run_id: str, fence: int) -> None: ...


class Backend(RunBackend, CallBackend, PauseBackend, Protocol):
    async def open(self, loop_thread: LoopThread) -> None: ...
    async def close(self) -> None: ...

    def set_tool_approvals(self, agent: str, tool_approvals: Mapping[str, bool]) -> None:
        """Sets the switches of an agent; raises Misconfigured where they are set elsewhere."""

    def background_tasks(self, stop: asyncio.Event) -> Sequence[Coroutine[Any, Any, None]]:
        """What has to go on while the program lives."""

    def records(self) -> ToolItemStore | None:
        """What a program may keep beside its calls; None where there is no place for it."""
