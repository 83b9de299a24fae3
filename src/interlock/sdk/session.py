"""A program's session: its run, the ids of its calls, starting and executing calls, and lease renewal.

While a call waits for a decision, a program at a terminal prints one line: which call, how to decide it, and the time
left.
"""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from shlex import quote
from typing import TypeVar

from interlock.app.bootstrap import approval_link, database_file, database_option, wall_clock
from interlock.app.executor import Executor, RunningLeases, as_current
from interlock.app.gate import Execution
from interlock.core.call import DEFAULT_WORKSPACE, QUESTION_TOOL, ToolCall, ToolSpec, propose, redact
from interlock.core.card import escape_invisible, head_and_tail
from interlock.core.errors import (
    AlreadyStarted,
    CallAnswered,
    CallFailed,
    CallRefused,
    CallUnknown,
    DeniedNow,
    Error,
    Frozen,
    LeaseLost,
    NotRun,
)
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Answered, Finished, Outcome, Proceed, Refused, Waiting
from interlock.presenters.model_message import to_model_message
from interlock.runtime.durations import duration_text
from interlock.runtime.functions import stored_result
from interlock.runtime.offload import LoopThread
from interlock.runtime.process_identity import read_running_address
from interlock.sdk.backend import GAVE_UP, ApprovalRecord, Backend, ProgramIdentity, RecordBackend

T = TypeVar("T")
FROZEN_RETRY_SECONDS = 1.0  # seconds between two attempts to start a frozen call
MAX_LINES = 5  # for calls that wait at the same time; more of them share one line
MAX_REMEMBERED = 1_000  # approvals that had their line, so that a repeated wait does not print it again
MAX_SENTENCE = 160  # characters
SHORT_ID = 8  # characters: the end of an id, as the command line takes it


@dataclass(frozen=True, slots=True)
class Runnable:
    """A call that may run now, with exactly these arguments; without an `execution` it is an allowed read."""

    args: bytes
    execution: Execution | None = None


@dataclass(frozen=True, slots=True)
class CachedResult:
    """The result of a call that succeeded earlier in this run, possibly in a previous process."""

    result: object


class RunSession:
    def __init__(self, backend: Backend, program: ProgramIdentity, run_id: str | None, lines: WaitingLines) -> None:
        self.backend = backend
        self.program = program
        self.run_id = run_id or ""
        self._owns_run = run_id is None
        self._lines = lines
        self._counts: dict[tuple[str, str], int] = defaultdict(int)
        self._count_lock = threading.Lock()
        self.leases = RunningLeases(backend.renew, program.lease)
        self._executor = Executor(self, self.leases, stored_result)
        self._resuming: set[tuple[str, str, int]] = set()  # agent, run id and fence of runs being resumed
        self._has_unknown_call = False  # an unknown effect keeps the run open, so that the next start reports it
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Continue the newest run of this agent whose program is gone, or open a new one."""
        self.run_id = await self.backend.acquire_run(None if self._owns_run else self.run_id)
        chores = (*self.backend.background_tasks(self._stop), self._renew_leases())
        self._tasks = [asyncio.create_task(chore) for chore in chores]

    async def close(self, *, finished: bool) -> None:
        """Stop the background tasks; an unfinished run is released, so that the next start continues it at once."""
        self._stop.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._owns_run:
            with suppress(Error):
                await self.backend.end_run(self.run_id, finished=finished and not self._has_unknown_call)

    # Calls

    async def make_call(self, spec: ToolSpec, args: Mapping[str, object], expires_in: int | None = None) -> ToolCall:
        """Make a call. Its id is derived from tool, arguments and count, so a restarted program makes the same ids."""
        program = self.program
        call = propose(
            spec.name,
            args,
            self.run_id,
            "new",
            workspace=program.workspace,
            agent=program.agent,
            requester=program.user,
            expires_in=expires_in,
        )
        return await self._with_call_id(call, spec)

    async def wait_until_runnable(self, call: ToolCall, spec: ToolSpec) -> Runnable | CachedResult:
        """Wait for a decision without a timeout; raises NotRun if the call must not or need not run."""
        outcome = await self.backend.check(call, spec)
        while isinstance(outcome, Finished) and outcome.status == "failed":
            # It failed before a restart of the program: a retry is a new call, which asks again.
            call = await self._with_call_id(call, spec)
            outcome = await self.backend.check(call, spec)
        while True:
            match await self._start_if_approved(outcome, spec):
                case Runnable() as runnable:
                    return runnable
                case Waiting(approval_id, status):
                    outcome = await self.wait_decided(approval_id, is_frozen=status == "approved")
                case Finished("succeeded", result):
                    return CachedResult(result)
                case ended:
                    raise to_not_run_error(ended, call.tool)

    async def try_start(self, call: ToolCall, spec: ToolSpec) -> Runnable | Outcome:
        """Start the call if it may run now; waits only for another process that runs it.

        Execute a `Runnable` exactly once.
        """
        outcome = await self._start_if_approved(await self.backend.check(call, spec), spec)
        while isinstance(outcome, Waiting) and outcome.status == "running":
            outcome = await self._start_if_approved(await self.backend.wait(outcome.approval_id), spec)
        return outcome

    async def _start_if_approved(self, outcome: Outcome, spec: ToolSpec) -> Runnable | Outcome:
        """Start a call that may proceed; returns its outcome if it may not, or not any more, or not yet."""
        while isinstance(outcome, Proceed):
            if not outcome.approval_id:
                return Runnable(outcome.args)
            try:
                started = await self.backend.start(outcome.approval_id, spec)
                return Runnable(started.args, started)
            except Frozen:
                return Waiting(outcome.approval_id, "approved")
            except (AlreadyStarted, DeniedNow, LeaseLost):
                outcome = await self.backend.wait(outcome.approval_id, 0)
        return outcome

    async def execute(self, runnable: Runnable, spec: ToolSpec, tool: Callable[[], Awaitable[T]]) -> T:
        """Run the tool and report how it ended; its error is raised unchanged. A read has nothing to report."""
        with as_current(runnable.execution):
            if runnable.execution is None:
                return await tool()
            return (await self._executor.run(runnable.execution, spec, tool)).unwrap()

    def execute_sync(self, runnable: Runnable, spec: ToolSpec, tool: Callable[[], T], loop_thread: LoopThread) -> T:
        with as_current(runnable.execution):
            if runnable.execution is None:
                return tool()
            return self._executor.run_sync(runnable.execution, spec, tool, loop_thread).unwrap()

    # Reports of the executor

    async def finish(self, execution: Execution, payload: Payload, *, ok: bool) -> None:
        try:
            await self.backend.finish(execution.approval_id, execution.fence, ok=ok, payload=payload)
        except LeaseLost as error:
            told = to_model_message(Finished("unknown"), "The call")
            raise CallUnknown(error.message, told, approval_id=execution.approval_id) from error

    async def mark_effect_unknown(self, execution: Execution) -> None:
        """Abandon the call: an idempotent one may be started again, when the program tries it again."""
        await self.abandon(execution)

    async def abandon(self, execution: Execution) -> None:
        self._has_unknown_call = True
        with suppress(Error):
            await self.backend.abandon(execution.approval_id, execution.fence)

    @contextmanager
    def resuming(self, agent: str, run_id: str, fence: int) -> Iterator[None]:
        """Renew the lease of a paused run while it is being resumed."""
        held = (agent, run_id, fence)
        self._resuming.add(held)
        try:
            yield
        finally:
            self._resuming.discard(held)

    async def _with_call_id(self, call: ToolCall, spec: ToolSpec) -> ToolCall:
        shown = redact(call.args, spec, await self.backend.call_id_key()).sha256
        with self._count_lock:
            self._counts[spec.name, shown] += 1
            number = self._counts[spec.name, shown]
        return call.with_call_id(f"{spec.name[:100]}:{shown}:{number}")

    async def wait_decided(self, approval_id: str, *, is_frozen: bool = False) -> Outcome:
        """Wait for a decision; if interrupted, cancel the approval: nobody should approve a call that will not run.

        Of a frozen call the outcome may be Proceed for a moment longer, so there is a pause before it is looked at.
        """
        try:
            if is_frozen:
                await asyncio.sleep(FROZEN_RETRY_SECONDS)
            async with self._lines.while_waiting(self.backend, approval_id):
                return await self.backend.wait(approval_id)
        except asyncio.CancelledError:
            with suppress(Error):
                await self.backend.cancel(approval_id, GAVE_UP)
            raise

    # The run and its leases

    async def _renew_leases(self) -> None:
        """Renew all leases at a third of their length, on the loop thread, which no tool can block."""
        while True:
            await asyncio.sleep(self.program.lease / 3000)
            resumed = [self.backend.renew_pause(*each) for each in list(self._resuming)]
            run = [self.backend.renew_run(self.run_id)] if self._owns_run else []
            found = await asyncio.gather(self.leases.renew_all(), *resumed, *run, return_exceptions=True)
            for error in found:
                if isinstance(error, BaseException) and not isinstance(error, Error):
                    raise error


def to_not_run_error(outcome: Outcome, tool: str) -> NotRun:
    """The error that the program gets instead of a result, with the message for the model."""
    match outcome:
        case Refused():
            ids = {"approval_id": outcome.approval_id} if outcome.approval_id else {}
            message = f"{tool} was not run ({outcome.status}): {outcome.reason}"
            return CallRefused(message, to_model_message(outcome, tool), status_of_call=outcome.status, **ids)
        case Answered(said, approval_id):
            message = f"{tool} was not run; a person answered: {said}"
            return CallAnswered(message, to_model_message(outcome, tool), approval_id=approval_id)
        case Finished("failed", _, error, approval_id):
            message = f"{tool} ran and failed: {error}"
            return CallFailed(message, to_model_message(outcome, tool), approval_id=approval_id)
        case Finished(approval_id=approval_id):
            how = f"interlock approvals resolve {approval_id} --succeeded, or --failed"
            message = f"{tool} was started, but its outcome is unknown. Check the target system, then record it: {how}"
            return CallUnknown(message, to_model_message(outcome, tool), approval_id=approval_id)
        case _:
            return NotRun(f"{tool} was not run.")


# The line of a waiting call


class WaitingLines:
    """The lines of one program; its calls may wait in several threads and event loops."""

    def __init__(self, url: str, workspace: str, *, quiet: bool) -> None:
        self._url = url
        self._workspace = workspace
        self._quiet = quiet
        self._lock = threading.Lock()
        self._shown: dict[str, None] = {}  # in order, the oldest first
        self._waiting: list[str] = []
        self._with_line: set[str] = set()  # of those that wait
        self._has_said_more = False

    @asynccontextmanager
    async def while_waiting(self, backend: RecordBackend, approval_id: str) -> AsyncIterator[None]:
        """Print the line beside the wait, which it neither delays nor fails."""
        if self._quiet or not _has_terminal():
            yield
            return
        with self._lock:
            self._waiting.append(approval_id)
        printing = asyncio.create_task(self._print(backend, approval_id))
        try:
            yield
        finally:
            printing.cancel()
            await asyncio.gather(printing, return_exceptions=True)
            with self._lock:
                self._waiting.remove(approval_id)
                self._with_line &= set(self._waiting)
                self._has_said_more = self._has_said_more and bool(self._waiting)

    async def _print(self, backend: RecordBackend, approval_id: str) -> None:
        """Print the approval as people see it: its sentence has fingerprints in place of secrets."""
        if approval_id in self._shown:
            return
        with suppress(Error):
            record = await backend.show_approval(approval_id)
            if record.status == "pending":
                self._write(record)

    def _write(self, record: ApprovalRecord) -> None:
        """One write for each line, so that lines of several threads are not mixed."""
        with self._lock:
            if record.id in self._shown:
                return
            self._remember(record.id)
            if len(self._with_line) < MAX_LINES:
                self._with_line.add(record.id)
                line = self.line(record, wall_clock())
            elif not self._has_said_more:
                self._has_said_more = True
                line = f"Interlock: more calls wait for a decision. To see them: {self._command('list')}"
            else:
                return
            with suppress(OSError, ValueError):  # the terminal is gone; the call waits on
                sys.stderr.write(_printable(line) + "\n")
                sys.stderr.flush()

    def _remember(self, approval_id: str) -> None:
        if len(self._shown) >= MAX_REMEMBERED:
            del self._shown[next(iter(self._shown))]
        self._shown[approval_id] = None

    def line(self, record: ApprovalRecord, now: int) -> str:
        """The sentence is last: a model may have written a part of it, and it must not look like our command."""
        left = duration_text(int(record.expires_at.timestamp() * 1000) - now)
        head, tail = head_and_tail(re.sub(" {2,}", " ", record.sentence), MAX_SENTENCE)
        sentence = f"{head} … {tail}" if tail else head
        verb, more = ("respond", " ANSWER") if record.tool == QUESTION_TOOL else ("approve", "")
        command = self._command(f"{verb} {quote(record.id[-SHORT_ID:])}{more}")
        page = self._page(record.id)
        where = f"{command}, or open {page}" if page else command
        tool = escape_invisible(record.tool)
        return f"Interlock: {tool} waits for a decision ({left} left). To decide: {where}. The call: {sentence}"

    def _command(self, words: str) -> str:
        if self._is_remote:
            return f"interlock approvals {words} --url {quote(self._url.rstrip('/'))}"
        more = "" if self._workspace == DEFAULT_WORKSPACE else f" --workspace {quote(self._workspace)}"
        return f"interlock approvals {words} {database_option(self._url)}{more}"

    def _page(self, approval_id: str) -> str:
        """The approval in the web app; empty if no server is known for this database."""
        file = database_file(self._url)
        server = self._url if self._is_remote else read_running_address(file) if file else ""
        return approval_link(server).replace("{id}", approval_id) if server else ""

    @property
    def _is_remote(self) -> bool:
        return self._url.partition("://")[0].lower() in ("http", "https")


def _printable(line: str) -> str:
    """Escape what would control the terminal; a sentence is escaped already, and stays as it is."""
    return escape_invisible(line).replace("\\\\", "\\")


def _has_terminal() -> bool:
    """Whether standard error is a terminal; a program may have closed it."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:
        return False
