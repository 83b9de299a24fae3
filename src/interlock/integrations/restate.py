"""Restate: a handler that waits for people as long as it takes, and holds nothing meanwhile.

Each call has an awakeable, whose id is its call id: the channel `restate` resolves it when the decision stands. What it
is resolved or rejected with is never read, so nobody can decide at the ingress; a handler that is woken looks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import restate
from restate.serde import JsonSerde

from interlock.core.call import Args, ToolCall, ToolSpec
from interlock.core.canonical import read_canonical
from interlock.core.errors import Error, InvalidRequest, Stale
from interlock.core.outcome import Outcome, Waiting
from interlock.integrations.workflow_tools import call_function
from interlock.sdk.agent import Agent, Executed, invalid_arguments_message, to_model_message
from interlock.sdk.functions import stored_result

T = TypeVar("T")
RUN_ID_PREFIX = "restate:"  # begins the run id of an invocation: the channel of that name is told of it
LOOK_AGAIN = timedelta(minutes=10)
FIRST_BACKOFF = timedelta(seconds=1)
WORKFLOW_ENDED = "The workflow ended before the call could run."


async def gated(
    ctx: restate.Context,
    agent: Agent,
    spec: ToolSpec,
    args: Mapping[str, object],
    function: Callable[..., Any],
    look_again: timedelta = LOOK_AGAIN,
    **more: Any,
) -> Any:
    """What came of the call, for the model: the function's result, a person's answer, or why it did not run.

    The function, sync or async, gets the approved arguments by name and runs at most once, whatever is killed and
    replayed. `look_again` bounds how long a wake-up that was lost can delay it. `more` are fields of the ToolCall.
    """
    name, woken = ctx.awakeable()
    try:
        call = agent.call(spec.name, args, RUN_ID_PREFIX + ctx.request().id, name, **more)
    except InvalidRequest as error:
        return invalid_arguments_message(error)

    async def look() -> dict[str, Any]:
        return await _finish_if_cancelled(_attempt(agent, call, spec, function))

    found = await _journal_step(ctx, f"ask about {spec.name}", look)
    pause, waits = look_again, [woken]
    while "waiting" in found:
        try:
            timer = ctx.sleep(pause)
            done, _ = await restate.wait_completed(*waits, timer)
            if woken in done:  # it wakes once: should this have been somebody else, only the clock is left
                pause, waits = FIRST_BACKOFF, []
            elif not waits:
                pause = min(2 * pause, look_again)
            found = await _journal_step(ctx, f"look at {spec.name}", look)
        except restate.TerminalError:  # cancelled, or it cannot go on
            await _journal_step(ctx, f"withdraw {spec.name}", partial(_withdraw, agent, found["waiting"]))
            raise
    return found["told"]


async def _journal_step(
    ctx: restate.Context, name: str, action: Callable[[], Awaitable[dict[str, Any]]]
) -> dict[str, Any]:
    found: dict[str, Any] = await ctx.run_typed(name, action, restate.RunOptions(serde=JsonSerde()))
    return found


async def _attempt(agent: Agent, call: ToolCall, spec: ToolSpec, function: Callable[..., Any]) -> dict[str, Any]:
    """Where the call stands, after it ran here if it may: as JSON, for the journal."""
    begun: list[Args] = []

    async def body(args: Args) -> Any:
        begun.append(args)
        return await call_function(function, args)

    try:
        try:
            outcome = await agent.attempt(call, spec, body)
        except Exception:
            if not begun:
                raise
            outcome = await agent.attempt(call, spec, body)  # it ran, and how it ended is on record
        return _journal_entry(outcome, call.tool)
    except InvalidRequest as error:
        return {"told": invalid_arguments_message(error)}
    except Stale as error:  # a replay came with other arguments. All other errors may pass: Restate tries again
        raise restate.TerminalError(error.message, error.status) from error


def _journal_entry(outcome: Executed | Outcome, tool: str) -> dict[str, Any]:
    """A replay gives what the record has, and so does the first time."""
    match outcome:
        case Executed(result):
            return {"told": read_canonical(stored_result(result))}
        case Waiting(approval_id):
            return {"waiting": approval_id}
        case _:
            return {"told": to_model_message(outcome, tool)}


async def _finish_if_cancelled(work: Awaitable[T]) -> T:
    """When Restate hangs up, its SDK cancels what runs. A tool that has begun ends in its own time, and on record."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def _withdraw(agent: Agent, approval_id: str) -> dict[str, Any]:
    """So that nobody approves what nobody will run. What has begun or ended meanwhile stays as it is."""
    try:
        await agent.lock.cancel(approval_id, WORKFLOW_ENDED)
    except Error as error:
        if error.status >= 500:
            raise
    return {}
