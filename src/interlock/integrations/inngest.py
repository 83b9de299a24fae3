"""Inngest: a function's calls are looked at in steps, and the function waits for people by event and time-out.

    gate = Gate(lock.agent("refunds"))
    await gate.run(ctx, "refund", {"order": "A7", "amount": 40})     # in an async function of Inngest

The event `hitl.approval.resolved` says "look again" and nothing else. A time-out looks too: events are hints, and one
that comes before the function waits is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, cast
from uuid import uuid4

import inngest  # type: ignore[import-not-found, unused-ignore]  # it lies in an environment of its own

from interlock.core.errors import Misconfigured, NotRun
from interlock.integrations.workflow_tools import FIRST_WAIT, LONGEST_WAIT, CallSnapshot, WorkflowTools, spec_options
from interlock.sdk.agent import Agent
from interlock.sdk.functions import FunctionTool

ENGINE = "inngest"
SHOWN = 8  # characters of a call's id in the names of its steps
REQUESTED, RESOLVED = "ui.approval.requested", "hitl.approval.resolved"


class Gate:
    """What functions may call; `look_every` is the longest time without a look."""

    def __init__(self, agent: Agent, look_every: timedelta = LONGEST_WAIT) -> None:
        if look_every < timedelta(seconds=1) or look_every.microseconds:
            raise Misconfigured("look_every is a number of whole seconds, and at least one.")
        self._tools = WorkflowTools(agent)
        self._poll_interval = look_every

    def tool(
        self,
        *,
        effect: str = "",
        describe: str | Callable[[Mapping[str, Any]], str] = "",
        name: str = "",
        secret: Sequence[str] = (),
        decisions: Sequence[str] = (),
    ) -> Callable[[Callable[..., Any]], FunctionTool]:
        """Without an effect the tool counts as unknown, and asks. What this gives cannot be called past the gate."""
        return lambda body: self._tools.add(body, name, **spec_options(effect, describe, secret, decisions))

    async def run(self, ctx: Any, tool: str, args: Mapping[str, Any]) -> Any:
        """The tool's result. Raises a NonRetriableError, caused by a NotRun that says why, if the call did not run."""
        snapshot = await self._wait_ended(ctx, tool, args)
        if snapshot["state"] == "done":
            return snapshot["result"]
        why = NotRun(snapshot["message"], snapshot["told"], reason=snapshot["code"])
        raise inngest.NonRetriableError(snapshot["message"]) from why

    async def told(self, ctx: Any, tool: str, args: Mapping[str, Any]) -> Any:
        """What a model is told: the result, a person's answer, or why there is none. Raises nothing for these."""
        snapshot = await self._wait_ended(ctx, tool, args)
        return snapshot["result"] if snapshot["state"] == "done" else snapshot["told"]

    async def _wait_ended(self, ctx: Any, tool: str, args: Mapping[str, Any]) -> CallSnapshot:
        """The call's id is a step of its own: Inngest keeps it before anything is asked under it."""
        call_id = str(await ctx.step.run(f"{tool} (call)", _new_id))
        name = f"{tool} {call_id[:SHOWN]}"  # of its own, so that calls at once do not share steps
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

    async def _take_snapshot(self, ctx: Any, name: str, asked: tuple[str, Mapping[str, Any], str]) -> CallSnapshot:
        """Safe to retry at any time: a call that was started is never started again."""
        tool, args, call_id = asked

        async def look() -> dict[str, Any]:
            return dict(await self._tools.take_snapshot(tool, args, f"{ENGINE}:{ctx.run_id}", call_id))

        return cast(CallSnapshot, await ctx.step.run(f"{name} (look)", look))


async def _new_id() -> str:
    return str(uuid4())


def _requested_event(ctx: Any, tool: str, snapshot: CallSnapshot) -> Any:
    """For whoever shows what waits. No arguments: events are kept and shown by others."""
    data = {"eventId": snapshot["approval_id"], "tool": tool, "runId": ctx.run_id}
    return inngest.Event(name=REQUESTED, id=f"{snapshot['approval_id']}.requested", data=data)
