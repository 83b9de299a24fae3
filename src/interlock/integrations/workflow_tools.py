"""Tools for workflow engines: a snapshot of a call, which proposes it, runs it, or returns its state.

It can be taken any number of times, by any process, after any crash: `Agent.attempt` runs the tool at most once. The
result is plain JSON, so that an engine can store it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Literal, TypedDict

from interlock.core.call import Args, ToolCall, ToolSpec
from interlock.core.canonical import canonical, read_canonical
from interlock.core.errors import CallUnknown, Conflict, InvalidRequest, Misconfigured, NotRun
from interlock.core.outcome import Finished, Outcome, Waiting
from interlock.presenters.model_message import error_message
from interlock.runtime.functions import FunctionTool, declare_function, stored_result
from interlock.sdk.agent import Agent, Executed
from interlock.sdk.session import to_not_run_error

FIRST_WAIT = timedelta(seconds=15)  # before a workflow first checks again by itself; doubled each time
LONGEST_WAIT = timedelta(minutes=15)


class CallSnapshot(TypedDict, total=False):
    """The state of a call.

    `state` decides: a result may be any JSON, also null.
    """

    state: Literal["waiting", "done", "not_run"]
    approval_id: str
    result: Any
    code: str
    message: str
    model_message: Any


class WorkflowTools:
    """The tools of one agent, by name."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._functions: dict[str, FunctionTool] = {}

    def add(self, body: Callable[..., Any], name: str = "", **options: Any) -> FunctionTool:
        function = declare_function(body, name, options)
        if function.spec.name in self._functions:
            raise Misconfigured(f"There is a tool {function.spec.name} already. Choose another name.")
        self._functions[function.spec.name] = function
        return function

    async def take_snapshot(self, tool: str, args: Mapping[str, object], run_id: str, call_id: str) -> CallSnapshot:
        """Attempt the call. Raises temporary errors, such as an unavailable store or server, and errors of a read."""
        function = self._function(tool)

        async def run(approved: Args) -> Any:
            return await call_function(function.body, function.unpack(canonical(approved)))

        try:
            call = self._agent.call(tool, function.bind((), args), run_id, call_id)
            outcome = await attempt_recorded(self._agent, call, function.spec, run)
        except (InvalidRequest, Conflict, NotRun) as error:  # a retry cannot fix these
            model_message = error_message(error, tool)
            return CallSnapshot(state="not_run", code=error.code, message=error.message, model_message=model_message)
        return _call_snapshot(outcome, tool)

    def _function(self, tool: str) -> FunctionTool:
        if tool not in self._functions:
            there = ", ".join(sorted(self._functions)) or "none"
            raise Misconfigured(f"There is no tool {tool} here. There are: {there}.")
        return self._functions[tool]


def spec_options(
    effect: str,
    describe: str | Callable[[Mapping[str, Any]], str],
    secret: Sequence[str],
    decisions: Sequence[str],
) -> dict[str, Any]:
    """Options of a ToolSpec."""
    return {"effect": effect, "describe": describe, "secret": tuple(secret), "decisions": tuple(decisions)}


async def attempt_recorded(
    agent: Agent, call: ToolCall, spec: ToolSpec, tool: Callable[[Args], Awaitable[Any]]
) -> Outcome:
    """`Agent.attempt` with the outcome as the ledger has it, so that a replay gets the same, without secrets.

    Raises errors of the gate, and of reads, which are not recorded: the engine may try again.
    """
    recorded: list[Exception] = []

    async def body(args: Args) -> Any:
        try:
            return await tool(args)
        except Exception as error:
            if agent.interlock.execution() is not None:
                recorded.append(error)
            raise

    try:
        outcome = await agent.attempt(call, spec, body)
    except Exception as error:
        if error not in recorded and not isinstance(error, CallUnknown):
            raise
        outcome = await agent.attempt(call, spec, body)
    if isinstance(outcome, Executed):
        return Finished("succeeded", read_canonical(stored_result(outcome.result)))
    return outcome


def _call_snapshot(outcome: Outcome, tool: str) -> CallSnapshot:
    match outcome:
        case Finished("succeeded", result):
            return CallSnapshot(state="done", result=result)
        case Waiting(approval_id):
            return CallSnapshot(state="waiting", approval_id=approval_id)
        case _:
            error = to_not_run_error(outcome, tool)
            ended = CallSnapshot(state="not_run", code=error.code, message=error.message, model_message=error.result)
            return {**ended, "approval_id": outcome.approval_id}


async def call_function(function: Callable[..., Any], args: Mapping[str, Any]) -> Any:
    """Call a function with its arguments by name; a synchronous one in a separate thread."""
    if inspect.iscoroutinefunction(function):
        return await function(**args)
    given = await asyncio.to_thread(partial(function, **args))
    return await given if inspect.isawaitable(given) else given
