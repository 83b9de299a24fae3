"""Temporal: gated calls as an activity, for which the workflow waits by signal and timer.

    tools = Tools(lock.agent("refunds"))                 # at the worker: activities=tools.activities
    self.calls = Calls()                                 # in the workflow: await self.calls.run("refund", {...})

The signal `interlock_woken` only triggers another check of the call. A timer does too, since signals may be lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError

from interlock.core.errors import Conflict, Expired, Misconfigured, NotFound
from interlock.integrations import workflow_tools as parts
from interlock.integrations.workflow_tools import FIRST_WAIT, LONGEST_WAIT, CallSnapshot, spec_options
from interlock.runtime.functions import FunctionTool
from interlock.sdk.agent import Agent

ENGINE = "temporal"
CHECK_ACTIVITY = "interlock_check_call"
WITHDRAW_ACTIVITY = "interlock_withdraw"
WAKE_SIGNAL = "interlock_woken"
TOOL_TIMEOUT = timedelta(minutes=10)
CANCELLED = "The workflow was cancelled before the call could run."


@dataclass(frozen=True)
class CallRequest:
    """The activity's input. The workflow's own id is not part of it: the activity knows it."""

    tool: str
    call_id: str
    args: dict[str, Any] = field(default_factory=dict)


# At the worker


class Tools:
    """The tools that workflows may call through the gate."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._tools = parts.WorkflowTools(agent)

    @property
    def activities(self) -> list[Callable[..., Any]]:
        """The activities to register at the worker."""
        return [self.check_call, self.withdraw]

    def tool(
        self,
        *,
        effect: str = "",
        describe: str | Callable[[Mapping[str, Any]], str] = "",
        name: str = "",
        secret: Sequence[str] = (),
        decisions: Sequence[str] = (),
    ) -> Callable[[Callable[..., Any]], FunctionTool]:
        """Register a tool. Without an effect it counts as unknown and asks for approval.

        The returned object is not callable, so that the gate cannot be bypassed.
        """
        return lambda body: self._tools.add(body, name, **spec_options(effect, describe, secret, decisions))

    @activity.defn(name=CHECK_ACTIVITY)
    async def check_call(self, request: CallRequest) -> CallSnapshot:
        """Check the call. Safe to retry at any time: a started call is never started again."""
        workflow_id = activity.info().workflow_id
        if not workflow_id:
            raise Misconfigured("This activity looks at calls of workflows. Call it through Calls.")
        return await self._tools.take_snapshot(request.tool, request.args, f"{ENGINE}:{workflow_id}", request.call_id)

    @activity.defn(name=WITHDRAW_ACTIVITY)
    async def withdraw(self, approval_id: str) -> None:
        """Cancel the approval: nobody should approve a call that will not run.

        A started or finished call is left alone.
        """
        with suppress(Conflict, Expired, NotFound):
            await self._agent.interlock.cancel(approval_id, CANCELLED)


# In the workflow: deterministic, with no input but the results of the activity


class Calls:
    """One per workflow, made in its `__init__` or at the start of its `run`.

    `timeout` is how long a tool may run. `poll_interval` is the longest time between two checks of a pending call.
    """

    def __init__(self, timeout: timedelta = TOOL_TIMEOUT, poll_interval: timedelta = LONGEST_WAIT) -> None:
        if workflow.get_signal_handler(WAKE_SIGNAL) is not None:
            raise ApplicationError("A workflow has one Calls: make it once and keep it.", non_retryable=True)
        if poll_interval < timedelta(seconds=1):
            raise ApplicationError("poll_interval is a second at least.", non_retryable=True)
        self._timeout = timeout
        self._poll_interval = poll_interval
        self._count = 0
        self._woken: set[str] = set()
        workflow.set_signal_handler(WAKE_SIGNAL, self._wake)

    async def run(self, tool: str, args: Mapping[str, Any], call_id: str = "") -> Any:
        """The tool's result. Raises an ApplicationError, whose `type` is the reason, if the call did not run.

        The type is refused, answered, failed or unknown; the first detail is the message for the model.
        """
        snapshot = await self._wait_ended(tool, args, call_id)
        if snapshot["state"] == "done":
            return snapshot["result"]
        raise ApplicationError(
            snapshot["message"], snapshot["model_message"], type=snapshot["code"], non_retryable=True
        )

    async def run_for_model(self, tool: str, args: Mapping[str, Any], call_id: str = "") -> Any:
        """The message for the model: the result, a person's answer, or why there is none; raises nothing for these."""
        snapshot = await self._wait_ended(tool, args, call_id)
        return snapshot["result"] if snapshot["state"] == "done" else snapshot["model_message"]

    async def _wait_ended(self, tool: str, args: Mapping[str, Any], call_id: str) -> CallSnapshot:
        """Check the call until it ends. Signals during a check are kept, and trigger the next one."""
        request = CallRequest(tool, self._make_call_id(call_id), dict(args))
        pause = FIRST_WAIT
        while True:
            snapshot: CallSnapshot = await workflow.execute_activity(
                CHECK_ACTIVITY, request, result_type=dict, start_to_close_timeout=self._timeout, summary=tool
            )
            if snapshot["state"] != "waiting":
                return snapshot
            pause = min(pause, self._poll_interval)
            await self._wait_for_signal(snapshot["approval_id"], pause)
            pause *= 2

    async def _wait_for_signal(self, approval_id: str, pause: timedelta) -> None:
        try:
            await workflow.wait_condition(lambda: approval_id in self._woken, timeout=pause)
        except asyncio.TimeoutError:  # noqa: UP041  Temporal raises this class on every Python version
            return
        except asyncio.CancelledError:
            await workflow.execute_activity(WITHDRAW_ACTIVITY, approval_id, start_to_close_timeout=self._timeout)
            raise
        self._woken.discard(approval_id)

    def _make_call_id(self, call_id: str) -> str:
        """The call id. It includes the original run id, so that resetting a workflow runs nothing twice."""
        self._count += 1
        return call_id or f"{workflow.info().original_execution_run_id}:{self._count}"

    def _wake(self, *woken: Any) -> None:
        """Handle the signal. Anybody may send it with any content, so only the approval id is read from it."""
        match woken:
            case [{"approval_id": str(approval_id)}]:
                self._woken.add(approval_id)
            case _:
                workflow.logger.warning("A signal that names no approval was ignored.")
