"""DBOS: a workflow that waits for people ends, and its next segment goes on where it stopped, without repeating a step.

A run is one row of ours from its beginning to its end, held by whoever carries it on. Its segments are workflows of
DBOS called `run:<id>:seg:<n>`, each a fork of the one before it: what that one recorded comes along. While people think
there is no workflow at all.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from dbos import DBOS, SetWorkflowID, WorkflowStatus

from interlock.core.call import Args, ToolCall, ToolSpec
from interlock.core.canonical import canonical, read_canonical
from interlock.core.errors import (
    CallUnknown,
    Conflict,
    InvalidRequest,
    Misconfigured,
    StoreUnavailable,
    TooManyRequests,
)
from interlock.core.outcome import Outcome, Waiting
from interlock.core.run import Pause
from interlock.integrations.workflow_tools import call_function
from interlock.sdk.agent import Agent, Executed, bounded_id, invalid_arguments_message, to_model_message
from interlock.sdk.functions import stored_result

Workflow = Callable[[Any], Awaitable[Any]]
ACTIVE = ("PENDING", "ENQUEUED", "DELAYED")
OVER = ("SUCCESS", "ERROR", "CANCELLED")
LOOK, LONGEST = 0.05, 1.0  # seconds between two looks at a segment: doubled each time, and never longer
_SEGMENT = re.compile(r"run:(.+):seg:([1-9][0-9]*)", re.DOTALL)


class SegmentSuspended(BaseException):
    """Ends a segment at this step. No error: what catches errors has to let it pass."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step


class Segments:
    """The workflows of one agent. `keep` has to run in at least one process: it begins runs, and goes on with them."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._workflows: dict[str, Workflow] = {}
        self._local_segments: set[str] = set()  # segments that this process carries out now

    def workflow(self, function: Workflow) -> Workflow:
        """Makes it a workflow of DBOS, before DBOS.launch(): async, with one argument that JSON can hold."""
        if not inspect.iscoroutinefunction(function):
            raise Misconfigured(f"{function!r} has to be an async function with one argument.")

        @functools.wraps(function)
        async def segment(given: Any) -> dict[str, Any]:
            async with self._with_heartbeat(str(DBOS.workflow_id)):
                try:
                    return {"result": await function(given)}
                except SegmentSuspended as parked:
                    return {"waits_at": parked.step}

        self._workflows[function.__qualname__] = DBOS.workflow()(segment)
        return function

    async def begin(self, function: Workflow, run_id: str, given: object = None) -> None:
        """Kept when this returns. The id names the run for ever: one that has started is not changed by this."""
        name = function.__qualname__
        self._find_workflow(name)
        begun = await _status(segment_id(run_id, 1))
        if begun is None:
            await self._save_pause(run_id, {"workflow": name, "given": given, "segment": 1})
        elif begun.name != name:
            raise Conflict(f"{run_id} is a run of {begun.name}. Choose another id for this one.", run_id=run_id)

    async def gated(self, spec: ToolSpec, args: object, function: Callable[..., Any]) -> Any:
        """A step of a workflow of this agent that asks people. The function gets the approved arguments by name.

        Gives what it returned, as JSON, or what a model should be told: an answer, or why it did not run to its end.
        """
        found = _SEGMENT.fullmatch(DBOS.workflow_id or "")
        if found is None or DBOS.step_id is not None:
            raise Misconfigured(
                "gated() stands in a workflow that begin() began, and neither in its steps nor children."
            )
        name = f"interlock.{spec.name}"
        step = await DBOS.run_step_async({"name": name}, self._attempt_step, found[1], spec, args, function)
        if "told" not in step:
            raise SegmentSuspended(step["waits_at"])
        return step["told"]

    async def keep(self, stop: asyncio.Event | None = None, at_once: int = 10) -> None:
        """Carries runs on as soon as they can go on, until `stop` is set. Any number of processes may do so."""
        await self._agent.resume_all(self._resume_run, stop, at_once)

    async def result(self, run_id: str) -> Any:
        """Waits until the run is over, however long people take; raises what its workflow raised."""
        segment = 1
        while "result" not in (given := await DBOS.get_result_async(segment_id(run_id, segment)) or {}):
            segment += 1
        return given["result"]

    # Inside of a segment

    async def _attempt_step(self, run_id: str, spec: ToolSpec, args: object, function: Callable[..., Any]) -> Any:
        """What DBOS records of the step. The number of a step is the same in every segment: it names the call."""
        waits = {"waits_at": DBOS.step_id}
        try:
            call = self._agent.call(spec.name, args, run_id, f"step-{DBOS.step_id}")
            outcome = await self._outcome(call, spec, function)
        except InvalidRequest as error:
            return {"told": invalid_arguments_message(error)}
        except (StoreUnavailable, TooManyRequests):  # the run goes on from here when it can be reached again
            return waits
        match outcome:
            case Executed(result):
                return {"told": read_canonical(stored_result(result))}
            case Waiting():
                return waits
            case _:
                return {"told": to_model_message(outcome, spec.name)}

    async def _outcome(self, call: ToolCall, spec: ToolSpec, function: Callable[..., Any]) -> Executed | Outcome:
        failures: list[Exception] = []

        async def body(args: Args) -> Any:
            if failures:  # a read that failed leaves no record, and is not read again to say so
                raise failures[0]
            try:
                return await call_function(function, args)
            except Exception as error:
                failures.append(error)
                raise

        try:
            return await self._agent.attempt(call, spec, body)
        except Exception as error:
            if not failures and not isinstance(error, CallUnknown):
                raise
            return await self._agent.attempt(call, spec, body)  # in the words of the record, which has no secrets

    @asynccontextmanager
    async def _with_heartbeat(self, segment: str) -> AsyncIterator[None]:
        """Shows that somebody is at it: DBOS itself does not know which of its processes are alive."""
        beating = asyncio.create_task(
            self._send_heartbeats(segment), context=contextvars.Context()
        )  # no step of the workflow
        self._local_segments.add(segment)
        try:
            yield
        finally:
            self._local_segments.discard(segment)
            beating.cancel()

    async def _send_heartbeats(self, segment: str) -> None:
        beats = 0
        while True:
            await asyncio.sleep(self._lease / 3)
            beats += 1
            with suppress(Exception):  # then it looks dead, and is carried on elsewhere
                await DBOS.update_workflow_attributes_async(segment, {"interlock_beats": beats}, merge=True)

    # Between segments

    async def _resume_run(self, pause: Pause) -> None:
        """May be called again for a segment that began, or ended, before: it begins once."""
        position: Any = read_canonical(pause.state)
        segment = segment_id(pause.run_id, position["segment"])
        if await _status(segment) is None:
            await self._start(pause.run_id, position, segment)
        ended = await self._wait_ended(segment)
        if ended.status not in OVER:
            raise Misconfigured(f"DBOS gave {segment} up ({ended.status}). Look why, then resume it there.")
        if ended.status == "SUCCESS" and "waits_at" in ended.output:
            await self._save_pause(pause.run_id, position | {"segment": position["segment"] + 1})

    async def _start(self, run_id: str, position: Any, segment: str) -> None:
        workflow = self._find_workflow(position["workflow"])
        if position["segment"] == 1:
            with SetWorkflowID(segment):
                await DBOS.start_workflow_async(workflow, position["given"])
            return
        before = await _status(segment_id(run_id, position["segment"] - 1))
        if before is None:
            raise Misconfigured(f"DBOS has no workflow before {segment} any more. Keep them while people may take.")
        try:
            with SetWorkflowID(segment):
                await DBOS.fork_workflow_async(
                    before.workflow_id, before.output["waits_at"], application_version=DBOS.application_version
                )
        except Exception:
            if await _status(segment) is None:  # otherwise somebody was quicker
                raise

    async def _wait_ended(self, segment: str) -> WorkflowStatus:
        """Waits for it. One that shows no sign of life for the length of a lease is begun again from its last step."""
        now = asyncio.get_running_loop().time
        rest, seen, since = LOOK, None, now()
        while (status := await _status(segment)) is not None and status.status in ACTIVE:
            sign = (status.status, status.executor_id, status.attributes)
            if sign != seen or segment in self._local_segments:
                seen, since = sign, now()
            elif status.status == "PENDING" and now() - since > self._lease:
                await DBOS.resume_workflow_async(segment)
                since = now()
            await asyncio.sleep(rest)
            rest = min(2 * rest, LONGEST)
        if status is None:
            raise Misconfigured(f"DBOS has no workflow {segment} any more.")
        return status

    async def _save_pause(self, run_id: str, position: dict[str, Any]) -> None:
        await self._agent.pause(run_id, canonical(position))

    def _find_workflow(self, name: str) -> Workflow:
        if name not in self._workflows:
            raise Misconfigured(
                f"There is no workflow {name} here. Put @segments.workflow above it, before DBOS.launch()."
            )
        return self._workflows[name]

    @property
    def _lease(self) -> float:
        return self._agent.lock.program.lease / 1000


def segment_id(run_id: str, segment: int) -> str:
    """What DBOS calls it."""
    return f"run:{bounded_id(run_id)}:seg:{segment}"


async def _status(segment: str) -> WorkflowStatus | None:
    return await DBOS.get_workflow_status_async(segment)
