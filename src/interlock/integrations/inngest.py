"""Inngest: gated calls as steps of a function, which waits for a decision by event and timeout.

    gate = Gate(lock.agent("refunds"))
    await gate.run(ctx, "refund", {"order": "A7", "amount": 40})     # in an async function of Inngest

The event `hitl.approval.resolved` only triggers another check of the call. A timeout does too, since events may be
lost: one that arrives before the function waits is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, cast
from uuid import uuid4

import inngest  # type: ignore[import-not-found, unused-ignore]  # installed in a separate environment

from interlock.core.errors import Misconfigured, NotRun
from interlock.integrations.workflow_tools import FIRST_WAIT, LONGEST_WAIT, CallSnapshot, WorkflowTools, spec_options
from interlock.runtime.functions import FunctionTool
from interlock.sdk.agent import Agent

ENGINE = "inngest"
SHOWN = 8  # characters of a call id in the names of its steps
REQUESTED, RESOLVED = "ui.approval.requested", "hitl.approval.resolved"


class Gate:
    """The gate of a function's tools; `poll_interval` is the longest time between two checks of a pending call."""

    def __init__(self, agent: Agent, poll_interval: timedelta = LONGEST_WAIT) -> None:
        if poll_interval < timedelta(seconds=1) or poll_interval.microseconds:
            raise Misconfigured("poll_interval is a number of whole seconds, and at least one.")
        self._tools = WorkflowTools(agent)
        self._poll_interval = poll_interval

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

    async def run(self, ctx: Any, tool: str, args: Mapping[str, Any]) -> Any:
        """The tool's result.

        Raises a NonRetriableError, caused by a NotRun with the reason, if the call did not run.
        """
        snapshot = await self._wait_ended(ctx, tool, args)
        if snapshot["state"] == "done":
            return snapshot["result"]
        why = NotRun(snapshot["message"], snapshot["model_message"], reason=snapshot["code"])
        raise inngest.NonRetriableError(snapshot["message"]) from why

    async def run_for_model(self, ctx: Any, tool: str, args: Mapping[str, Any]) -> Any:
        """The message for the model: the result, a person's answer, or why there is none; raises nothing for these."""
        snapshot = await self._wait_ended(ctx, tool, args)
        return snapshot["result"] if snapshot["state"] == "done" else snapshot["model_message"]

    async def _wait_ended(self, ctx: Any, tool: str, args: Mapping[str, Any]) -> CallSnapshot:
        """Wait until the call ends. Its id is a separate step, so that Inngest stores it before it is used."""
        call_id = str(await ctx.step.run(f"{tool} (call)", _new_id))
        name = f"{tool} {call_id[:SHOWN]}"  # unique, so that concurrent calls do not share steps
        snapshot = await self._take_snapshot(ctx, name, (tool, args, call_id))
        pause = FIRST_WAIT
        if snapshot["state"] == "waiting":
            await ctx.step.send_event(f"{name} (requested)", _requested_event(ctx, tool, snapshot))
        while snapshot["state"] == "waiting":
            pause = min(pause, self._poll_interval)
            only = f"async.data.eventId == '{snapshot['approval_id']}'"
            await ctx.step.wait_for_event(f"{name} (wait)", event=RESOLVED, if_exp=only, timeout=pause)
            snapshot = await self._take_snapshot(ctx, name, (tool, args, call_id))
            pause *= 2
        return snapshot

    async def _take_snapshot(self, ctx: Any, name: str, request: tuple[str, Mapping[str, Any], str]) -> CallSnapshot:
        """Check the call in a step. Safe to retry at any time: a started call is never started again."""
        tool, args, call_id = request

        async def check_call() -> dict[str, Any]:
            return dict(await self._tools.take_snapshot(tool, args, f"{ENGINE}:{ctx.run_id}", call_id))

        return cast(CallSnapshot, await ctx.step.run(f"{name} (check)", check_call))


async def _new_id() -> str:
    return str(uuid4())


def _requested_event(ctx: Any, tool: str, snapshot: CallSnapshot) -> Any:
    """An event for dashboards of pending approvals. It has no arguments, since Inngest stores and shows events."""
    data = {"eventId": snapshot["approval_id"], "tool": tool, "runId": ctx.run_id}
    return inngest.Event(name=REQUESTED, id=f"{snapshot['approval_id']}.requested", data=data)
