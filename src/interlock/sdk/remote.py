"""The remote backend: a server over HTTP. All requests run on the loop thread, which lives as long as the program."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from interlock.app.gate import Execution
from interlock.core.call import ToolCall, ToolSpec
from interlock.core.canonical import MAX_BYTES, read_canonical
from interlock.core.decision import Decision, Reviewer
from interlock.core.errors import Error, Misconfigured, StoreUnavailable
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Outcome, Proceed, Waiting
from interlock.core.ports import ApprovalQuery
from interlock.core.run import Pause
from interlock.runtime.offload import LoopThread
from interlock.runtime.process_identity import is_dead
from interlock.sdk.backend import GAVE_UP, ApprovalRecord, ApprovalRecords, ApprovalStats, ProgramIdentity
from interlock.sdk.client import BEST_EFFORT_TIMEOUT, Client
from interlock.sdk.codec import RemoteApprovalStatus

T = TypeVar("T")
MAX_TOOL_NAMES = 10_000  # maximum number of calls whose tool is remembered
ENVELOPE_BYTES = 1_024  # bytes of a request body besides the result
CLOSED = "This Interlock is closed. Nothing was run."
MAX_SHOWN = 2_000  # characters kept of a result that is too large to send


class RemoteBackend:
    def __init__(self, client: Client, program: ProgramIdentity) -> None:
        self._client = client
        self._program = program
        self._loop_thread: LoopThread | None = None
        self._tasks: set[asyncio.Task[Any] | None] = set()
        self._call_id_key = b""
        self._tool_names: dict[str, str] = {}

    async def open(self, loop_thread: LoopThread) -> None:
        """Connect lazily: the first request shows whether the server is available."""
        self._loop_thread = loop_thread

    async def close(self) -> None:
        """Close, on the loop thread. Waiting callers get an error; their approvals stay pending for the next start."""
        self._loop_thread = None
        tasks = [task for task in self._tasks if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._client.close()

    def set_tool_approvals(self, agent: str, tool_approvals: Mapping[str, bool]) -> None:
        raise Misconfigured(
            f"tool_approvals= does not go with a server: set it there, under agents: {agent}: in interlock.yaml, or on "
            "its page Agents."
        )

    def background_tasks(self, stop: asyncio.Event) -> Sequence[Coroutine[Any, Any, None]]:
        return ()

    async def acquire_run(self, run_id: str | None) -> str:
        """Acquire the run. Reports dead runners of this machine, which the server cannot see, to skip their leases."""
        program = self._program
        dead_runners = await self._dead_runners() if run_id is None else ()
        response = await self._run_on_loop(
            self._client.acquire_run(program.agent, program.runner, run_id or "", dead_runners)
        )
        self._call_id_key = bytes.fromhex(response["key"])
        taken: str = response["run_id"]
        return taken

    async def renew_run(self, run_id: str) -> None:
        await self._run_on_loop(self._client.renew_run(run_id, self._program.runner))

    async def end_run(self, run_id: str, *, finished: bool) -> None:
        await self._run_on_loop(self._client.end_run(run_id, self._program.runner, finished=finished))

    async def call_id_key(self) -> bytes:
        return self._call_id_key

    def tool_items(self) -> None:
        """None: a server stores no items for its agents."""

    async def check(self, call: ToolCall, spec: ToolSpec) -> Outcome:
        proposal = await self._client.make_proposal(call, spec)  # not on the loop thread: a preview may block
        proposing = asyncio.ensure_future(self._run_on_loop(self._client.check_proposal(proposal)))
        try:
            outcome = await asyncio.shield(proposing)
        except asyncio.CancelledError:
            await self._withdraw(proposing)
            raise
        if isinstance(outcome, Waiting | Proceed):
            self._remember_tool(outcome.approval_id, call.tool)
        return outcome

    async def ask(self, call: ToolCall, spec: ToolSpec) -> Outcome:
        return await self._run_on_loop(self._client.ask_call(call))

    async def wait(self, approval_id: str, timeout: float | None = None) -> Outcome:
        return await self._run_on_loop(self._client.wait(approval_id, timeout))

    async def tool_name(self, approval_id: str) -> str:
        return self._tool_names.get(approval_id, "")

    async def start(self, approval_id: str, spec: ToolSpec | None) -> Execution:
        self._tool_names.pop(approval_id, None)
        return await self._run_on_loop(self._client.start(approval_id, spec))

    async def renew(self, approval_id: str, fence: int) -> RemoteApprovalStatus:
        return await self._run_on_loop(self._client.renew(approval_id, fence))

    async def finish(self, approval_id: str, fence: int, *, ok: bool, payload: Payload) -> RemoteApprovalStatus:
        result = _bound_result(payload.result) if ok else None
        error = "" if ok else payload.error or "It failed."
        return await self._run_on_loop(self._client.finish(approval_id, fence, result, error=error))

    async def abandon(self, approval_id: str, fence: int) -> RemoteApprovalStatus:
        return await self._run_on_loop(self._client.abandon(approval_id, fence))

    async def cancel(self, approval_id: str, reason: str) -> RemoteApprovalStatus:
        return await self._run_on_loop(self._client.cancel(approval_id, reason))

    async def decide(self, approval_id: str, decision: Decision, reviewer: str | Reviewer) -> RemoteApprovalStatus:
        """Decide as the owner of the key: the server trusts no other name."""
        name = reviewer.name if isinstance(reviewer, Reviewer) else reviewer
        return await self._run_on_loop(self._client.decide(approval_id, decision, name))

    async def list_approvals(self, query: ApprovalQuery) -> ApprovalRecords:
        return await self._run_on_loop(self._client.list_approvals(query))

    async def show_approval(self, approval_id: str) -> ApprovalRecord:
        return await self._run_on_loop(self._client.show_approval(approval_id))

    async def stats(self) -> ApprovalStats:
        return await self._run_on_loop(self._client.stats())

    async def pause(self, agent: str, run_id: str, framework_run_id: str, state: bytes) -> Pause:
        return await self._run_on_loop(self._client.pause(agent, run_id, framework_run_id, state))

    async def list_paused(self, agent: str) -> Sequence[Pause]:
        return await self._run_on_loop(self._client.list_pauses(agent))

    async def acquire_ready(self, agent: str, timeout: float | None, limit: int) -> Sequence[Pause]:
        """Acquire ready runs. If cancelled, it first closes the connection, so that the server leases no run to it."""
        closed: Future[None] = Future()

        async def acquire() -> Sequence[Pause]:
            closed.set_running_or_notify_cancel()
            try:
                return await self._client.acquire_ready_pauses(agent, self._program.runner, timeout, limit, is_dead)
            finally:
                closed.set_result(None)

        try:
            return await self._run_on_loop(acquire())
        except asyncio.CancelledError:
            if closed.running():
                await asyncio.wait({asyncio.wrap_future(closed)}, timeout=BEST_EFFORT_TIMEOUT)
            raise

    async def renew_pause(self, agent: str, run_id: str, fence: int) -> None:
        await self._run_on_loop(self._client.renew_pause(run_id, fence))

    async def release_pause(self, agent: str, run_id: str, fence: int, *, failed: bool) -> float:
        return await self._run_on_loop(self._client.release_pause(run_id, fence, failed=failed))

    async def complete_pause(self, agent: str, run_id: str, fence: int) -> None:
        await self._run_on_loop(self._client.complete_pause(run_id, fence))

    async def _withdraw(self, proposing: asyncio.Future[Outcome]) -> None:
        """Cancel the approval, if any, of an interrupted check: nobody should approve a call that will not run."""
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(BEST_EFFORT_TIMEOUT):
                outcome = await proposing
                if isinstance(outcome, Waiting):
                    await self.cancel(outcome.approval_id, GAVE_UP)

    async def _dead_runners(self) -> list[str]:
        runs = await self._run_on_loop(self._client.list_runs(self._program.agent))
        return [run["runner"] for run in runs if is_dead(run["runner"])]

    def _remember_tool(self, approval_id: str, tool: str) -> None:
        if len(self._tool_names) >= MAX_TOOL_NAMES:
            del self._tool_names[next(iter(self._tool_names))]
        if approval_id:
            self._tool_names[approval_id] = tool

    async def _run_on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        loop_thread = self._loop_thread
        if loop_thread is None:
            work.close()
            raise StoreUnavailable(CLOSED)
        try:
            return await asyncio.wrap_future(loop_thread.submit(self._noted(work)))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._loop_thread is None and task is not None and not task.cancelling():
                raise StoreUnavailable(CLOSED) from None
            raise

    async def _noted(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            return await work
        finally:
            self._tasks.discard(task)


def _bound_result(result: bytes | None) -> object:
    """The result, truncated if it is too large to send: the success itself must still be recorded."""
    if result is None or len(result) <= MAX_BYTES - ENVELOPE_BYTES:
        return None if result is None else read_canonical(result)
    return f"{result[:MAX_SHOWN].decode('utf-8', 'ignore')}… ({len(result):,} bytes, too large to be sent)"
