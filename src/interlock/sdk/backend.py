"""Protocols of the SDK's backend, which is either a database (embedded) or a server (remote)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from interlock.app.gate import Execution
from interlock.core.call import ToolCall, ToolSpec
from interlock.core.decision import Decision, Reviewer
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Outcome
from interlock.core.ports import ApprovalQuery, ToolItemStore
from interlock.core.run import Pause
from interlock.runtime.offload import LoopThread

GAVE_UP = "The agent gave up waiting."


@dataclass(frozen=True, slots=True)
class ProgramIdentity:
    """The identity of a program, sent with each of its calls."""

    workspace: str
    agent: str
    user: str
    runner: str
    lease: int


class ApprovalStatus(Protocol):
    """The id and status of an approval; in the embedded backend, the approval itself."""

    @property
    def id(self) -> str: ...
    @property
    def status(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecision:
    """A decision. An agent's key does not learn `by`, `via` and `comment`: they are empty there."""

    kind: str
    at: datetime
    by: str = ""
    via: str = ""
    reason: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRecord:
    """An approval as the library shows it; times are in UTC, `status` is by the clock.

    `args` (secrets replaced by fingerprints), `result` and `error` are of a single approval, and None in a list.
    """

    id: str
    tool: str
    status: str
    sentence: str
    args_sha256: str
    effect: str
    priority: str
    agent: str
    agent_path: tuple[str, ...]
    thread_id: str
    run_id: str
    call_id: str
    requester: str
    created_at: datetime
    expires_at: datetime
    decision: ApprovalDecision | None
    args: Mapping[str, Any] | None = None
    result: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalStats:
    """Approvals of the workspace, counted; `waiting_agents` are runs with a pending call, `freezes` active ones."""

    by_status: Mapping[str, int]
    pending: int
    decided: int
    expired: int
    cancelled: int
    allowed_reads: int
    waiting_agents: int
    oldest_pending_seconds: float
    freezes: int


class ApprovalRecords(NamedTuple):
    """A page of records; `next` is the cursor of the following page, None if this is the last."""

    items: Sequence[ApprovalRecord]
    next: str | None


class RunBackend(Protocol):
    """The run of a program, which is acquired at its start and renewed while it lives."""

    async def acquire_run(self, run_id: str | None) -> str:
        """The id of the run: the given one, or that of a run that was resumed or opened."""

    async def renew_run(self, run_id: str) -> None: ...
    async def end_run(self, run_id: str, *, finished: bool) -> None: ...

    async def call_id_key(self) -> bytes:
        """The key that hides secrets in call ids; it stays the same when the run is continued."""


class CallBackend(Protocol):
    """The lifecycle of a call: check, wait, start, finish."""

    async def check(self, call: ToolCall, spec: ToolSpec) -> Outcome: ...
    async def ask(self, call: ToolCall, spec: ToolSpec) -> Outcome: ...
    async def wait(self, approval_id: str, timeout: float | None = None) -> Outcome: ...

    async def tool_name(self, approval_id: str) -> str:
        """The name of the tool; empty if it is not known."""

    async def start(self, approval_id: str, spec: ToolSpec | None) -> Execution: ...
    async def renew(self, approval_id: str, fence: int) -> ApprovalStatus: ...
    async def finish(self, approval_id: str, fence: int, *, ok: bool, payload: Payload) -> ApprovalStatus: ...
    async def abandon(self, approval_id: str, fence: int) -> ApprovalStatus: ...
    async def cancel(self, approval_id: str, reason: str) -> ApprovalStatus: ...
    async def decide(self, approval_id: str, decision: Decision, reviewer: str | Reviewer) -> ApprovalStatus: ...


class RecordBackend(Protocol):
    """Approvals as values: of the workspace, or with an agent's key the calls that belong to it."""

    async def list_approvals(self, query: ApprovalQuery) -> ApprovalRecords: ...
    async def show_approval(self, approval_id: str) -> ApprovalRecord: ...
    async def stats(self) -> ApprovalStats: ...


class PauseBackend(Protocol):
    """Paused runs of frameworks, which wait for decisions."""

    async def pause(self, agent: str, run_id: str, framework_run_id: str, state: bytes) -> Pause:
        """Save a paused run; `framework_run_id` is the framework's own id of the run."""

    async def list_paused(self, agent: str) -> Sequence[Pause]: ...
    async def acquire_ready(self, agent: str, timeout: float | None, limit: int) -> Sequence[Pause]: ...
    async def renew_pause(self, agent: str, run_id: str, fence: int) -> None: ...

    async def release_pause(self, agent: str, run_id: str, fence: int, *, failed: bool) -> float:
        """Release the lease; returns the seconds until another process may acquire the run."""

    async def complete_pause(self, agent: str, run_id: str, fence: int) -> None: ...


class Backend(RunBackend, CallBackend, RecordBackend, PauseBackend, Protocol):
    async def open(self, loop_thread: LoopThread) -> None: ...
    async def close(self) -> None: ...

    def set_tool_approvals(self, agent: str, tool_approvals: Mapping[str, bool]) -> None:
        """Set the approval switches of an agent; raises Misconfigured if they can only be set on the server."""

    def background_tasks(self, stop: asyncio.Event) -> Sequence[Coroutine[Any, Any, None]]:
        """Background tasks to run while the program lives."""

    def tool_items(self) -> ToolItemStore | None:
        """Storage for a program's own items; None if the backend has none."""
