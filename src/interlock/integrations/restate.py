"""Restate: a handler that waits for a decision without a timeout, and holds no resources meanwhile.

Each call has an awakeable, whose id is its call id: the channel `restate` resolves it after the decision. Its value is
never read, so nobody can decide at the ingress; the handler checks the call at the gate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import restate
from restate.serde import JsonSerde

from interlock.core.call import ToolCall, ToolSpec
from interlock.core.errors import Error, InvalidRequest, Stale
from interlock.core.outcome import Waiting
from interlock.integrations.workflow_tools import attempt_recorded, call_function
from interlock.presenters.model_message import error_message, to_model_message
from interlock.sdk.agent import Agent

T = TypeVar("T")
RUN_ID_PREFIX = "restate:"  # prefix of an invocation's run id, by which the channel `restate` finds its calls
RECHECK_AFTER = timedelta(minutes=10)
FIRST_BACKOFF = timedelta(seconds=1)
WORKFLOW_ENDED = "The workflow ended before the call could run."


async def gated(
    ctx: restate.Context,
    agent: Agent,
    spec: ToolSpec,
    args: Mapping[str, object],
    function: Callable[..., Any],
    recheck_after: timedelta = RECHECK_AFTER,
    **more: Any,
) -> Any:
    """The message for the model: the function's result, a person's answer, or why it did not run.

    The function, sync or async, gets the approved arguments by name and runs at most once, despite crashes and replays.
    `recheck_after` bounds the delay after a lost wake-up. `more` are fields of the ToolCall.
    """
    name, woken = ctx.awakeable()
    try:
        call = agent.call(spec.name, args, RUN_ID_PREFIX + ctx.request().id, name, **more)
    except InvalidRequest as error:
        return error_message(error, spec.name)

    async def check_call() -> dict[str, Any]:
        return await _finish_if_cancelled(_attempt(agent, call, spec, function))

    found = await _journal_step(ctx, f"ask about {spec.name}", check_call)
    pause, waits = recheck_after, [woken]
    while "waiting" in found:
        try:
            timer = ctx.sleep(pause)
            done, _ = await restate.wait_completed(*waits, timer)
            if woken in done:  # it resolves only once: if it was not the decision, only polling is left
                pause, waits = FIRST_BACKOFF, []
            elif not waits:
                pause = min(2 * pause, recheck_after)
            found = await _journal_step(ctx, f"check {spec.name}", check_call)
        except restate.TerminalError:  # cancelled, or it cannot continue
            await _journal_step(ctx, f"withdraw {spec.name}", partial(_withdraw, agent, found["waiting"]))
            raise
    return found["model_message"]


async def _journal_step(
    ctx: restate.Context, name: str, action: Callable[[], Awaitable[dict[str, Any]]]
) -> dict[str, Any]:
    found: dict[str, Any] = await ctx.run_typed(name, action, restate.RunOptions(serde=JsonSerde()))
    return found


async def _attempt(agent: Agent, call: ToolCall, spec: ToolSpec, function: Callable[..., Any]) -> dict[str, Any]:
    """Attempt the call; returns its state as JSON for the journal."""
    try:
        outcome = await attempt_recorded(agent, call, spec, partial(call_function, function))
    except InvalidRequest as error:
        return {"model_message": error_message(error, call.tool)}
    except Stale as error:  # a replay with other arguments; other errors may be temporary, and Restate retries
        raise restate.TerminalError(error.message, error.status) from error
    if isinstance(outcome, Waiting):
        return {"waiting": outcome.approval_id}
    return {"model_message": to_model_message(outcome, call.tool)}


async def _finish_if_cancelled(work: Awaitable[T]) -> T:
    """Let a started tool end and be recorded when Restate disconnects and its SDK cancels the handler."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def _withdraw(agent: Agent, approval_id: str) -> dict[str, Any]:
    """Cancel the approval: nobody should approve a call that will not run. A started or finished call is left alone."""
    try:
        await agent.interlock.cancel(approval_id, WORKFLOW_ENDED)
    except Error as error:
        if error.status >= 500:
            raise
    return {}
