"""An agent of this program as an integration knows it: where it stands, and one call of it on its way."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from interlock.core.call import Args, ToolCall, ToolSpec, propose
from interlock.core.canonical import canonical, digest, read_canonical
from interlock.core.errors import EffectUnknown, InvalidRequest, Misconfigured
from interlock.core.outcome import Answered, Finished, Outcome, Refused, Waiting, refusal_message
from interlock.core.run import Pause, check_pause
from interlock.runtime.offload import LoopThread
from interlock.sdk.functions import stored_result
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

T = TypeVar("T")
MAX_ID_LENGTH = 150  # characters of an id that is taken as it is


@dataclass(frozen=True, slots=True)
class Executed:
    """It ran just now, here. What a framework's tool gave stays as it is; the record has it as JSON."""

    result: Any


@dataclass(frozen=True)
class Agent:
    """`path` are the agents from the outermost to this one: a sub-agent can tighten what asks, and never loosen it."""

    lock: Interlock
    path: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path[-1]

    def agent(self, name: str, tool_approvals: Mapping[str, bool] | None = None) -> Agent:
        """A sub-agent of this one, with switches of its own."""
        if tool_approvals is not None and name in self.path:
            raise Misconfigured(
                f"An agent above this one is called {name} too, and switches go by name. Choose another."
            )
        self.lock.agent(name, tool_approvals)
        return Agent(self.lock, (*self.path, name))

    def call(self, tool: str, args: object, run_id: str, call_id: str, **more: Any) -> ToolCall:
        """`(run_id, call_id)` names it for ever: the same ids with the same arguments are the same call.

        Ids of any length will do. The run is the framework's own: its thread, conversation or session.
        """
        program = self.lock.program
        known: dict[str, Any] = {"workspace": program.workspace, "requester": program.user, "setting": "paused"}
        known |= {"agent": self.name, "agent_path": self.path, "thread_id": bounded_id(run_id)}
        return propose(tool, args, bounded_id(run_id), bounded_id(call_id), **(known | more))

    async def attempt(
        self, call: ToolCall, spec: ToolSpec, body: Callable[[Args], Awaitable[Any]]
    ) -> Executed | Outcome:
        """Runs the call if it may run now, with the arguments that were approved, and never a second time.

        Gives Ran, Waiting (for people), Refused, Answered, or Finished (it ran before); never Proceed. An error of
        the tool itself is recorded and raised as it is; after EffectUnknown nobody knows whether it ran. Raises
        InvalidRequest for arguments that do not fit.
        """
        session = await self._open_session()
        step = await session.try_start(call, spec)
        if not isinstance(step, Runnable):
            return step
        args: Args = read_canonical(step.args)  # type: ignore[assignment]  # a call has an object
        return Executed(await execute(session, step, spec, lambda: body(args)))

    def attempt_sync(self, call: ToolCall, spec: ToolSpec, body: Callable[[Args], Any]) -> Executed | Outcome:
        """The same from synchronous code; the tool runs in the thread of the caller."""
        session, loop_thread = self.lock.open(), self.lock.loop_thread
        step = loop_thread.run(session.try_start(call, spec))
        if not isinstance(step, Runnable):
            return step
        args: Args = read_canonical(step.args)  # type: ignore[assignment]  # a call has an object
        return Executed(execute_sync(session, step, spec, lambda: body(args), loop_thread))

    async def wait(self, approval_id: str, timeout: float | None = None) -> Outcome:
        """Until it needs no more waiting; holds nothing but this coroutine."""
        return await self.lock.wait(approval_id, timeout)

    async def result(self, call: ToolCall, spec: ToolSpec, function: Callable[..., Any]) -> object:
        """What to tell the model, for a loop of one's own: waits for people where it stands, as long as it takes.

        The function, sync or async, gets the approved arguments by name. What it raises is recorded and raised.
        """

        async def body(args: Args) -> Any:
            given = function(**args)
            return await given if inspect.isawaitable(given) else given

        try:
            outcome = await self.attempt(call, spec, body)
            while isinstance(outcome, Waiting):
                await self.wait(outcome.approval_id)
                outcome = await self.attempt(call, spec, body)
        except InvalidRequest as error:
            return invalid_arguments_message(error)
        return outcome.result if isinstance(outcome, Executed) else to_model_message(outcome, call.tool)

    def result_sync(self, call: ToolCall, spec: ToolSpec, function: Callable[..., Any]) -> object:
        """The same from synchronous code; the function runs in the thread of the caller."""
        try:
            outcome = self.attempt_sync(call, spec, lambda args: function(**args))
            while isinstance(outcome, Waiting):
                self.lock.loop_thread.run(self.lock.open().backend.wait(outcome.approval_id))
                outcome = self.attempt_sync(call, spec, lambda args: function(**args))
        except InvalidRequest as error:
            return invalid_arguments_message(error)
        return outcome.result if isinstance(outcome, Executed) else to_model_message(outcome, call.tool)

    # Runs that stand still: they belong to the outermost agent

    async def pause(self, run_id: str, state: bytes = b"") -> Pause:
        """Keeps that the run stands still, and what is needed to go on with it; takes the place of an older pause.

        It survives the end of the program. What `state` is, is the framework's own business: at most 4 MiB.
        """
        check_pause(run_id, state)
        return await (await self._open_session()).backend.pause(self.path[0], bounded_id(run_id), run_id, bytes(state))

    def pause_sync(self, run_id: str, state: bytes = b"") -> Pause:
        check_pause(run_id, state)
        backend = self.lock.open().backend
        return self.lock.loop_thread.run(backend.pause(self.path[0], bounded_id(run_id), run_id, bytes(state)))

    async def paused(self) -> list[Pause]:
        """Those that wait longest first, without their state; at most 10,000."""
        return list(await (await self._open_session()).backend.list_paused(self.path[0]))

    async def ready(self, timeout: float | None = None, limit: int = 10) -> list[Pause]:
        """Runs of which nothing waits for people any more, for this program alone until its lease ends.

        Waits for the first one: up to `timeout` seconds, or for ever. `resume_all` also keeps the lease.
        """
        return list(await (await self._open_session()).backend.acquire_ready(self.path[0], timeout, limit))

    async def resumed(self, pause: Pause) -> None:
        """The run went on and needs no pause any more. One that paused again meanwhile stays."""
        await (await self._open_session()).backend.complete_pause(self.path[0], bounded_id(pause.run_id), pause.fence)

    def resumed_sync(self, pause: Pause) -> None:
        backend = self.lock.open().backend
        self.lock.loop_thread.run(backend.complete_pause(self.path[0], bounded_id(pause.run_id), pause.fence))

    async def resume_all(
        self, resume: Callable[[Pause], Awaitable[object]], stop: asyncio.Event | None = None, at_once: int = 10
    ) -> None:
        """Goes on with every run as soon as it can, until `stop` is set; then waits for those that are under way.

        `resume` may be called again for a run that it went on with before: after a crash, or when it raised. What
        it raises is logged, and the run is tried again after a while.
        """
        await RunResumer(await self._open_session(), self.path[0], bounded_id, resume, at_once).run(
            stop or asyncio.Event()
        )

    async def _open_session(self) -> RunSession:
        return self.lock.open() if self.lock.is_open else await asyncio.to_thread(self.lock.open)


def to_model_message(outcome: Outcome, tool: str) -> object:
    """What the model is told of a call that did not run just now: a result from before, an answer, or why not."""
    match outcome:
        case Finished("succeeded", result):
            return result
        case Finished("failed", _, error):
            return {"success": False, "status": "failed", "error": error}
        case Finished(status):
            said = f"{tool} was started and nobody knows how it ended. Do not call it again: a person has to look."
            return {"success": False, "status": status, "error": said}
        case Answered(message):
            return message
        case Refused():
            return refusal_message(outcome, tool)
        case _:
            raise TypeError(f"There is nothing to tell of {outcome!r} yet.")


def invalid_arguments_message(error: InvalidRequest) -> dict[str, object]:
    """What the model is told of arguments that do not fit: nobody was asked, and it may try again."""
    return {"success": False, "status": "invalid", "error": error.message}


def bounded_id(name: str) -> str:
    """A framework's id as one of ours: what is long or cannot be seen becomes its digest."""
    return name if 0 < len(name) <= MAX_ID_LENGTH and name.isprintable() else f"sha256:{digest(canonical(name))}"


async def execute(session: RunSession, runnable: Runnable, spec: ToolSpec, run: Callable[[], Awaitable[T]]) -> T:
    with session.running(runnable):
        try:
            result = await run()
        except EffectUnknown:
            await session.mark_unknown(runnable)
            raise
        except Exception as error:
            await session.record_failure(runnable, spec, error)
            raise
        except BaseException:
            await asyncio.shield(session.mark_unknown(runnable))
            raise
    await session.record_success(runnable, stored_result(result))
    return result


def execute_sync(
    session: RunSession, runnable: Runnable, spec: ToolSpec, run: Callable[[], T], loop_thread: LoopThread
) -> T:
    with session.running(runnable):
        try:
            result = run()
        except EffectUnknown:
            loop_thread.run(session.mark_unknown(runnable))
            raise
        except Exception as error:
            loop_thread.run(session.record_failure(runnable, spec, error))
            raise
        except BaseException:
            loop_thread.run(session.mark_unknown(runnable))
            raise
    loop_thread.run(session.record_success(runnable, stored_result(result)))
    return result


EDITED = "A reviewer changed the arguments before it ran"


def edit_note(call: ToolCall, spec: ToolSpec, outcome: Executed | Outcome, executed_args: Args | None) -> str:
    """Empty where nothing was changed. `executed_args` are the arguments that were run just now, if they were."""
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
        self._consecutive_failures = 0  # times that the other side could not be reached, one after the other

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
        """Those that can go on; none when it is to stop, or when the other side could not be reached for a while."""
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
        _logger().warning("Paused runs cannot be looked at (%s). Tried again in %.0f s.", error.code, seconds)
        await asyncio.wait({stopping}, timeout=seconds)

    async def _resume_run(self, pause: Pause) -> None:
        backend, run_id = self._session.backend, self._bound_id(pause.run_id)
        with self._session.resuming(self._agent, run_id, pause.fence):
            try:
                await self._resume(pause)
            except Exception as error:  # noqa: BLE001  whatever it is: it is this run's, and the others go on
                await self._record_failure(pause, error)
                return
            except BaseException:
                with suppress(Error):
                    await asyncio.shield(backend.release_pause(self._agent, run_id, pause.fence, failed=False))
                raise
            with suppress(Error):  # then it is gone on with once more, which repeats no call
                await backend.complete_pause(self._agent, run_id, pause.fence)

    async def _record_failure(self, pause: Pause, error: Exception) -> None:
        """What the error says may hold anything that the run did: only who asks for all there is to log sees it."""
        run_id, again = self._bound_id(pause.run_id), "when its lease ends"
        with suppress(Error):
            seconds = await self._session.backend.release_pause(self._agent, run_id, pause.fence, failed=True)
            again = f"in {seconds:.0f} s"
        kind = type(error).__name__
        _logger().warning("The run %s did not go on: %s. It is tried again %s.", run_id, kind, again)
        _logger().debug("Where it came from:", exc_info=error)


async def _wait_stopped(stop: asyncio.Event) -> None:
    await stop.wait()


def _logger() -> logging.Logger:
    return logging.getLogger("interlock")
