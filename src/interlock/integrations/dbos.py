"""DBOS: a workflow ends while a call is pending, and its next segment continues there without repeating a step.

A run is one row in Interlock's database from start to end, leased by the process that resumes it. Its segments are DBOS
workflows named `run:<id>:seg:<n>`, each a fork of the previous one, which brings along the recorded steps. While a
decision is pending, no workflow exists.
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

from interlock.core.call import ToolSpec
from interlock.core.canonical import canonical, read_canonical
from interlock.core.errors import (
    Conflict,
    InvalidRequest,
    Misconfigured,
    StoreUnavailable,
    TooManyRequests,
)
from interlock.core.outcome import Waiting
from interlock.core.run import Pause
from interlock.integrations.workflow_tools import attempt_recorded, call_function
from interlock.presenters.model_message import error_message, to_model_message
from interlock.sdk.agent import Agent, bounded_id

Workflow = Callable[[Any], Awaitable[Any]]
ACTIVE = ("PENDING", "ENQUEUED", "DELAYED")
OVER = ("SUCCESS", "ERROR", "CANCELLED")
FIRST_POLL, LONGEST_POLL = 0.05, 1.0  # poll intervals of a segment in seconds: the first is doubled up to the longest
_SEGMENT = re.compile(r"run:(.+):seg:([1-9][0-9]*)", re.DOTALL)


class SegmentSuspended(BaseException):
    """Ends a segment at this step. A BaseException, so that handlers of errors let it pass."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step


class Segments:
    """The workflows of one agent. `run_worker` must run in at least one process: it starts and resumes runs."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._workflows: dict[str, Workflow] = {}
        self._local_segments: set[str] = set()  # segments running in this process

    def workflow(self, function: Workflow) -> Workflow:
        """Register a DBOS workflow, before DBOS.launch(): async, with one argument that JSON can represent."""
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
        """Start a run; it is durable when this returns. The id identifies it forever: a started run is not changed."""
        name = function.__qualname__
        self._find_workflow(name)
        begun = await _status(segment_id(run_id, 1))
        if begun is None:
            await self._save_pause(run_id, {"workflow": name, "given": given, "segment": 1})
        elif begun.name != name:
            raise Conflict(f"{run_id} is a run of {begun.name}. Choose another id for this one.", run_id=run_id)

    async def gated(self, spec: ToolSpec, args: object, function: Callable[..., Any]) -> Any:
        """A gated step of a workflow of this agent. The function gets the approved arguments by name.

        Returns the function's result as JSON, or a message for the model: an answer, or why the call did not complete.
        """
        found = _SEGMENT.fullmatch(DBOS.workflow_id or "")
        if found is None or DBOS.step_id is not None:
            raise Misconfigured(
                "gated() stands in a workflow that begin() began, and neither in its steps nor children."
            )
        name = f"interlock.{spec.name}"
        step = await DBOS.run_step_async({"name": name}, self._attempt_step, found[1], spec, args, function)
        if "model_message" not in step:
            raise SegmentSuspended(step["waits_at"])
        return step["model_message"]

    async def run_worker(self, stop: asyncio.Event | None = None, at_once: int = 10) -> None:
        """Start and resume runs as soon as they are ready, until `stop` is set. Any number of processes may do so."""
        await self._agent.resume_all(self._resume_run, stop, at_once)

    async def result(self, run_id: str) -> Any:
        """Wait without a timeout until the run ends; re-raises an error of its workflow."""
        segment = 1
        while "result" not in (given := await DBOS.get_result_async(segment_id(run_id, segment)) or {}):
            segment += 1
        return given["result"]

    # Inside a segment

    async def _attempt_step(self, run_id: str, spec: ToolSpec, args: object, function: Callable[..., Any]) -> Any:
        """The step that DBOS records. Step numbers are the same in every segment, so they serve as call ids."""
        waits = {"waits_at": DBOS.step_id}
        try:
            call = self._agent.call(spec.name, args, run_id, f"step-{DBOS.step_id}")
            outcome = await attempt_recorded(self._agent, call, spec, functools.partial(call_function, function))
        except InvalidRequest as error:
            return {"model_message": error_message(error, spec.name)}
        except (StoreUnavailable, TooManyRequests):  # the run resumes from here when the backend is available again
            return waits
        return waits if isinstance(outcome, Waiting) else {"model_message": to_model_message(outcome, spec.name)}

    @asynccontextmanager
    async def _with_heartbeat(self, segment: str) -> AsyncIterator[None]:
        """Send heartbeats: DBOS itself does not know which of its processes are alive."""
        beating = asyncio.create_task(
            self._send_heartbeats(segment), context=contextvars.Context()
        )  # must not count as a step of the workflow
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
            with suppress(Exception):  # without heartbeats the segment counts as dead, and is resumed elsewhere
                await DBOS.update_workflow_attributes_async(segment, {"interlock_beats": beats}, merge=True)

    # Between segments

    async def _resume_run(self, pause: Pause) -> None:
        """Run the next segment. Idempotent: a segment starts once, also if this is called again."""
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
            if await _status(segment) is None:  # otherwise another process has started it
                raise

    async def _wait_ended(self, segment: str) -> WorkflowStatus:
        """Wait for the end of a segment.

        One without a heartbeat for the length of a lease is restarted from its last step.
        """
        now = asyncio.get_running_loop().time
        rest, seen, since = FIRST_POLL, None, now()
        while (status := await _status(segment)) is not None and status.status in ACTIVE:
            sign = (status.status, status.executor_id, status.attributes)
            if sign != seen or segment in self._local_segments:
                seen, since = sign, now()
            elif status.status == "PENDING" and now() - since > self._lease:
                await DBOS.resume_workflow_async(segment)
                since = now()
            await asyncio.sleep(rest)
            rest = min(2 * rest, LONGEST_POLL)
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
        return self._agent.interlock.program.lease / 1000


def segment_id(run_id: str, segment: int) -> str:
    """The id of the DBOS workflow of a segment."""
    return f"run:{bounded_id(run_id)}:seg:{segment}"


async def _status(segment: str) -> WorkflowStatus | None:
    return await DBOS.get_workflow_status_async(segment)
