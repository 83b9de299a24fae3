"""Agents as integrations use them: gated tool calls, pausing and resuming of runs, and messages for the model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interlock.core.call import Args, ToolCall, ToolSpec, propose
from interlock.core.canonical import canonical, digest, read_canonical
from interlock.core.errors import InvalidRequest, Misconfigured
from interlock.core.outcome import Finished, Outcome, Waiting
from interlock.core.run import Pause, check_pause
from interlock.presenters.model_message import error_message, to_model_message
from interlock.sdk.session import Runnable, RunSession

if TYPE_CHECKING:
    from interlock.sdk.interlock import Interlock
import json
import logging
from collections.abc import Sequence
from contextlib import suppress

from interlock.core.canonical import canonical_args
from interlock.core.errors import Error, StoreUnavailable
from interlock.core.run import retry_delay

MAX_ID_LENGTH = 150  # maximum length in characters of an id that is used unchanged


@dataclass(frozen=True, slots=True)
class Executed:
    """A call that ran just now in this process. `result` is the tool's own value; the ledger stores it as JSON."""

    result: Any


@dataclass(frozen=True)
class Agent:
    """An agent, by its `path` from the outermost agent: a sub-agent can require more approvals, never fewer."""

    interlock: Interlock
    path: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path[-1]

    def agent(self, name: str, tool_approvals: Mapping[str, bool] | None = None) -> Agent:
        """A sub-agent of this agent, with its own `tool_approvals`."""
        if tool_approvals is not None and name in self.path:
            raise Misconfigured(
                f"A parent agent has the same name, {name}, and tool_approvals apply by name. Choose another name."
            )
        self.interlock.agent(name, tool_approvals)
        return Agent(self.interlock, (*self.path, name))

    def call(self, tool: str, args: object, run_id: str, call_id: str, **more: Any) -> ToolCall:
        """Make a call. `(run_id, call_id)` identifies it forever: same ids and same arguments mean the same call.

        Ids may have any length. The run is the framework's own: its thread, conversation or session.
        """
        program = self.interlock.program
        known: dict[str, Any] = {"workspace": program.workspace, "requester": program.user, "setting": "paused"}
        known |= {"agent": self.name, "agent_path": self.path, "thread_id": bounded_id(run_id)}
        return propose(tool, args, bounded_id(run_id), bounded_id(call_id), **(known | more))

    async def attempt(
        self, call: ToolCall, spec: ToolSpec, body: Callable[[Args], Awaitable[Any]]
    ) -> Executed | Outcome:
        """Run the call at most once, with the approved arguments, if it may run now.

        Returns `Executed`, `Waiting` (for a decision), `Refused`, `Answered`, or `Finished` (it ran before); never
        `Proceed`. An error raised by the tool is recorded and re-raised unchanged; after `EffectUnknown` it is unknown
        whether the tool took effect. Raises InvalidRequest for arguments that do not match the schema.
        """
        session = await self._open_session()
        step = await session.try_start(call, spec)
        if not isinstance(step, Runnable):
            return step
        args: Args = read_canonical(step.args)  # type: ignore[assignment]  # the arguments of a call are a JSON object
        return Executed(await session.execute(step, spec, lambda: body(args)))

    def attempt_sync(self, call: ToolCall, spec: ToolSpec, body: Callable[[Args], Any]) -> Executed | Outcome:
        """`attempt` for synchronous code; the tool runs in the caller's thread."""
        session, loop_thread = self.interlock.open(), self.interlock.loop_thread
        step = loop_thread.run(session.try_start(call, spec))
        if not isinstance(step, Runnable):
            return step
        args: Args = read_canonical(step.args)  # type: ignore[assignment]  # the arguments of a call are a JSON object
        return Executed(session.execute_sync(step, spec, lambda: body(args), loop_thread))

    async def attempt_until_decided(
        self, call: ToolCall, spec: ToolSpec, body: Callable[[Args], Awaitable[Any]]
    ) -> Executed | Outcome:
        """`attempt` that waits inline for a decision without a timeout; never returns `Waiting`."""
        while isinstance(outcome := await self.attempt(call, spec, body), Waiting):
            await self.wait(outcome.approval_id)
        return outcome

    def attempt_until_decided_sync(
        self, call: ToolCall, spec: ToolSpec, body: Callable[[Args], Any]
    ) -> Executed | Outcome:
        """`attempt_until_decided` for synchronous code; the tool runs in the caller's thread."""
        while isinstance(outcome := self.attempt_sync(call, spec, body), Waiting):
            self.interlock.loop_thread.run(self.wait(outcome.approval_id))
        return outcome

    async def wait(self, approval_id: str, timeout: float | None = None) -> Outcome:
        """Wait for an outcome other than `Waiting`, up to `timeout` seconds; blocks only this coroutine."""
        return await self.interlock.wait(approval_id, timeout)

    async def result(self, call: ToolCall, spec: ToolSpec, function: Callable[..., Any]) -> object:
        """The message for the model, for custom agent loops; waits inline for a decision without a timeout.

        The function, sync or async, gets the approved arguments by name. An error that it raises is recorded and
        re-raised.
        """

        async def body(args: Args) -> Any:
            given = function(**args)
            return await given if inspect.isawaitable(given) else given

        try:
            outcome = await self.attempt_until_decided(call, spec, body)
        except InvalidRequest as error:
            return error_message(error, call.tool)
        return outcome.result if isinstance(outcome, Executed) else to_model_message(outcome, call.tool)

    def result_sync(self, call: ToolCall, spec: ToolSpec, function: Callable[..., Any]) -> object:
        """`result` for synchronous code; the function runs in the caller's thread."""
        try:
            outcome = self.attempt_until_decided_sync(call, spec, lambda args: function(**args))
        except InvalidRequest as error:
            return error_message(error, call.tool)
        return outcome.result if isinstance(outcome, Executed) else to_model_message(outcome, call.tool)

    # Paused runs; they belong to the outermost agent

    async def pause(self, run_id: str, state: bytes = b"") -> Pause:
        """Save a paused run with the state needed to resume it; replaces an older pause of the run.

        The pause survives the end of the program. `state` is opaque bytes of the framework, at most 4 MiB.
        """
        check_pause(run_id, state)
        return await (await self._open_session()).backend.pause(self.path[0], bounded_id(run_id), run_id, bytes(state))

    def pause_sync(self, run_id: str, state: bytes = b"") -> Pause:
        check_pause(run_id, state)
        backend = self.interlock.open().backend
        return self.interlock.loop_thread.run(backend.pause(self.path[0], bounded_id(run_id), run_id, bytes(state)))

    async def list_pauses(self) -> list[Pause]:
        """Paused runs without their state, the longest pause first; at most 10,000."""
        return list(await (await self._open_session()).backend.list_paused(self.path[0]))

    async def acquire_ready_pauses(self, timeout: float | None = None, limit: int = 10) -> list[Pause]:
        """Acquire paused runs that have no pending approvals, exclusively for this program until its lease ends.

        Waits for the first one: up to `timeout` seconds, or without limit. `resume_all` also renews the lease.
        """
        return list(await (await self._open_session()).backend.acquire_ready(self.path[0], timeout, limit))

    async def complete_pause(self, pause: Pause) -> None:
        """Delete the pause of a run that was resumed; a newer pause of the same run is kept."""
        await (await self._open_session()).backend.complete_pause(self.path[0], bounded_id(pause.run_id), pause.fence)

    def complete_pause_sync(self, pause: Pause) -> None:
        backend = self.interlock.open().backend
        self.interlock.loop_thread.run(backend.complete_pause(self.path[0], bounded_id(pause.run_id), pause.fence))

    async def resume_all(
        self, resume: Callable[[Pause], Awaitable[object]], stop: asyncio.Event | None = None, at_once: int = 10
    ) -> None:
        """Resume each paused run as soon as it is ready, until `stop` is set; then wait for those in progress.

        `resume` may be called again for the same run: after a crash, or after it raised. An exception is logged, and
        the run is retried with backoff.
        """
        await RunResumer(await self._open_session(), self.path[0], bounded_id, resume, at_once).run(
            stop or asyncio.Event()
        )

    async def _open_session(self) -> RunSession:
        return self.interlock.open() if self.interlock.is_open else await asyncio.to_thread(self.interlock.open)


def bounded_id(name: str) -> str:
    """A framework's id, replaced by its digest if it is empty, too long or not printable."""
    return name if 0 < len(name) <= MAX_ID_LENGTH and name.isprintable() else f"sha256:{digest(canonical(name))}"


EDITED = "A reviewer changed the arguments before it ran"


def edit_note(call: ToolCall, spec: ToolSpec, outcome: Executed | Outcome, executed_args: Args | None) -> str:
    """A note that a reviewer edited the arguments, or "". `executed_args` are those that ran just now, if any."""
    match outcome:
        case Executed() if executed_args is not None and canonical_args(executed_args) != call.args:
            return f"{EDITED}." if spec.secret else f"{EDITED}: {json.dumps(executed_args, ensure_ascii=False)}"
        case Finished("succeeded", args_sha256=before) if before and not spec.secret and before != digest(call.args):
            return f"{EDITED}."
        case _:
            return ""


class RunResumer:
    def __init__(
        self,
        session: RunSession,
        agent: str,
        bound_id: Callable[[str], str],
        resume: Callable[[Pause], Awaitable[object]],
        max_concurrent: int,
    ) -> None:
        self._session = session
        self._agent = agent
        self._bound_id = bound_id
        self._resume = resume
        self._max_concurrent = max(max_concurrent, 1)
        self._running: set[asyncio.Task[None]] = set()
        self._consecutive_failures = 0  # consecutive times that the backend was unavailable

    async def run(self, stop: asyncio.Event) -> None:
        stopping = asyncio.ensure_future(_wait_stopped(stop))
        try:
            while not stop.is_set():
                if len(self._running) >= self._max_concurrent:
                    await asyncio.wait({stopping, *self._running}, return_when=asyncio.FIRST_COMPLETED)
                    continue
                for pause in await self._next_ready(stopping):
                    task = asyncio.ensure_future(self._resume_run(pause))
                    self._running.add(task)
                    task.add_done_callback(self._running.discard)
            await asyncio.gather(*self._running)
        finally:
            for task in (stopping, *self._running):
                task.cancel()
            await asyncio.gather(stopping, *self._running, return_exceptions=True)

    async def _next_ready(self, stopping: asyncio.Future[None]) -> Sequence[Pause]:
        """Acquire runs that are ready; none if stopping, or after backing off because the backend was unavailable."""
        room = self._max_concurrent - len(self._running)
        waiting = asyncio.ensure_future(self._session.backend.acquire_ready(self._agent, None, room))
        try:
            await asyncio.wait((waiting, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                return ()
            self._consecutive_failures, taken = 0, waiting.result()
            return taken
        except StoreUnavailable as error:
            self._consecutive_failures += 1
            await self._back_off(error, stopping)
            return ()
        finally:
            if not waiting.done():
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)

    async def _back_off(self, error: Error, stopping: asyncio.Future[None]) -> None:
        seconds = retry_delay(self._consecutive_failures) / 1000
        _logger().warning("Cannot read paused runs (%s). Retrying in %.0f s.", error.code, seconds)
        await asyncio.wait({stopping}, timeout=seconds)

    async def _resume_run(self, pause: Pause) -> None:
        backend, run_id = self._session.backend, self._bound_id(pause.run_id)
        with self._session.resuming(self._agent, run_id, pause.fence):
            try:
                await self._resume(pause)
            except Exception as error:  # noqa: BLE001  an error of one run must not stop the others
                await self._record_failure(pause, error)
                return
            except BaseException:
                with suppress(Error):
                    await asyncio.shield(backend.release_pause(self._agent, run_id, pause.fence, failed=False))
                raise
            with suppress(Error):  # the run is then resumed once more, which repeats no call
                await backend.complete_pause(self._agent, run_id, pause.fence)

    async def _record_failure(self, pause: Pause, error: Exception) -> None:
        """Log only the type of the error; the traceback goes to debug level, since it may hold data of the run."""
        run_id, again = self._bound_id(pause.run_id), "when its lease ends"
        with suppress(Error):
            seconds = await self._session.backend.release_pause(self._agent, run_id, pause.fence, failed=True)
            again = f"in {seconds:.0f} s"
        kind = type(error).__name__
        _logger().warning("Resuming run %s failed: %s. Retrying %s.", run_id, kind, again)
        _logger().debug("Where it came from:", exc_info=error)


async def _wait_stopped(stop: asyncio.Event) -> None:
    await stop.wait()


def _logger() -> logging.Logger:
    return logging.getLogger("interlock")
