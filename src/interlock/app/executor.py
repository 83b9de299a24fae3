"""The executor of approved calls: runs the tool of a started call under its lease, and reports how it ended.

Programs and the chat use it. They differ in where they report to, and in the task that renews the leases.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast

from interlock.app.gate import Execution
from interlock.core.call import ToolSpec, secret_texts
from interlock.core.errors import EffectUnknown, Error
from interlock.core.ledger.event import Payload
from interlock.runtime.offload import LoopThread

T = TypeVar("T")
CURRENT_EXECUTION: ContextVar[Execution | None] = ContextVar("interlock_execution", default=None)
MAX_ERROR_LENGTH = 2_000  # characters of a tool's error that are recorded


class ExecutionReports(Protocol):
    """The gate, as the runner of a started call reports to it."""

    async def finish(self, execution: Execution, payload: Payload, *, ok: bool) -> None: ...

    async def mark_effect_unknown(self, execution: Execution) -> None:
        """Record that the tool itself does not know whether it took effect."""

    async def abandon(self, execution: Execution) -> None:
        """Record that the tool was interrupted. Raises no Error: the lease would lapse with the same end."""


@dataclass(frozen=True, slots=True)
class ExecutionResult(Generic[T]):
    """The end of a tool: its result, or the error that it raised."""

    result: T | None = None
    error: Exception | None = None

    def unwrap(self) -> T:
        """Return the result, or raise the tool's error unchanged."""
        if self.error is None:
            return cast(T, self.result)
        try:
            raise self.error
        finally:
            del self  # else the traceback of the error would refer to the error itself


@dataclass(frozen=True, slots=True)
class Executor:
    """Runs tools of started calls, each exactly once; `encode_result` makes the bytes that the ledger keeps.

    Every end is reported: the result, the error without secret arguments, or that the outcome is unknown. What a report
    raises is raised here; what the tool raised is in the ending, unless it is an interruption, which is raised again.
    """

    reports: ExecutionReports
    leases: RunningLeases
    encode_result: Callable[[object], bytes]

    async def run(self, execution: Execution, spec: ToolSpec, tool: Callable[[], Awaitable[T]]) -> ExecutionResult[T]:
        with self.leases.hold(execution):
            try:
                result = await tool()
                payload = Payload(result=self.encode_result(result))
            except Exception as error:  # noqa: BLE001  any exception of a tool is its failure
                await self._report_error(execution, spec, error)
                return ExecutionResult(error=error)
            except BaseException:
                await asyncio.shield(self.reports.abandon(execution))
                raise
            await self.reports.finish(execution, payload, ok=True)
            return ExecutionResult(result)

    def run_sync(
        self, execution: Execution, spec: ToolSpec, tool: Callable[[], T], loop_thread: LoopThread
    ) -> ExecutionResult[T]:
        """`run` for a synchronous tool, in the caller's thread."""
        with self.leases.hold(execution):
            try:
                result = tool()
                payload = Payload(result=self.encode_result(result))
            except Exception as error:  # noqa: BLE001  any exception of a tool is its failure
                loop_thread.run(self._report_error(execution, spec, error))
                return ExecutionResult(error=error)
            except BaseException:
                loop_thread.run(self.reports.abandon(execution))
                raise
            loop_thread.run(self.reports.finish(execution, payload, ok=True))
            return ExecutionResult(result)

    async def _report_error(self, execution: Execution, spec: ToolSpec, error: Exception) -> None:
        if isinstance(error, EffectUnknown):
            await self.reports.mark_effect_unknown(execution)
        else:
            payload = Payload(error=error_text(error, execution.args, spec))
            await self.reports.finish(execution, payload, ok=False)


def current_execution() -> Execution | None:
    """The execution of the tool that runs now, with its idempotency key; None outside of one, and inside a read."""
    return CURRENT_EXECUTION.get()


@contextmanager
def as_current(execution: Execution | None) -> Iterator[None]:
    """Set `current_execution` while a tool runs; threads that it is offloaded to see it too."""
    token = CURRENT_EXECUTION.set(execution)
    try:
        yield
    finally:
        CURRENT_EXECUTION.reset(token)


class RunningLeases:
    """The leases of calls that run now, each renewed at a third of its length until the call ends."""

    def __init__(self, renew: Callable[[str, int], Awaitable[object]], lease: int) -> None:
        self._renew = renew
        self._lease = lease  # milliseconds
        self._fences: dict[str, int] = {}  # by approval id

    @contextmanager
    def hold(self, execution: Execution) -> Iterator[None]:
        self.add(execution.approval_id, execution.fence)
        try:
            yield
        finally:
            self.discard(execution.approval_id)

    def add(self, approval_id: str, fence: int) -> None:
        self._fences[approval_id] = fence

    def discard(self, approval_id: str) -> None:
        self._fences.pop(approval_id, None)

    async def keep_renewed(self) -> None:
        """Renew the leases until cancelled."""
        while True:
            await asyncio.sleep(self._lease / 3000)
            await self.renew_all()

    async def renew_all(self) -> None:
        """Renew each lease once; a lost one surfaces when its call ends."""
        held = [self._renew(approval_id, fence) for approval_id, fence in list(self._fences.items())]
        for error in await asyncio.gather(*held, return_exceptions=True):
            if isinstance(error, BaseException) and not isinstance(error, Error):
                raise error


def error_text(error: Exception, args: bytes, spec: ToolSpec) -> str:
    """The error of a tool for the ledger and the model, without the secrets among the arguments."""
    words = error.message if isinstance(error, Error) else f"{type(error).__name__}: {error}"
    for secret in secret_texts(args, spec):
        words = words.replace(secret, "[hidden]")
    return words[:MAX_ERROR_LENGTH].replace("\x00", "").encode("utf-8", "replace").decode()
