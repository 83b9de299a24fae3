"""Tools that workflows call: one look at a call, which proposes it, runs it, or says what stands of it.

A look can be taken any number of times, by any process, after any crash: `Agent.attempt` runs the tool at most once.
What it gives is plain JSON, so that an engine can keep it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Literal, TypedDict

from interlock.core.call import Args
from interlock.core.canonical import canonical, read
from interlock.core.errors import Conflict, InvalidRequest, Misconfigured, NotRun
from interlock.core.outcome import Finished, Outcome, Waiting
from interlock.sdk.agent import Agent, Ran, told
from interlock.sdk.functions import Function, function_of, stored_result
from interlock.sdk.session import not_run

FIRST_WAIT = timedelta(seconds=15)  # before a workflow looks again by itself; then twice as long each time
LONGEST_WAIT = timedelta(minutes=15)


class Look(TypedDict, total=False):
    """`state` alone says what it is: any JSON is a result, also null. `told` is what a model is told instead of one."""

    state: Literal["waiting", "done", "not_run"]
    approval_id: str
    result: Any
    code: str
    message: str
    told: Any


class Tools:
    """The tools of one agent, by name."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._functions: dict[str, Function] = {}

    def add(self, body: Callable[..., Any], name: str = "", **options: Any) -> Function:
        function = function_of(body, name, **options)
        if function.spec.name in self._functions:
            raise Misconfigured(f"There is a tool {function.spec.name} already. Choose another name.")
        self._functions[function.spec.name] = function
        return function

    async def look(self, tool: str, args: Mapping[str, object], run_id: str, call_id: str) -> Look:
        """Raises what may pass: a store or a server that is down, and what a read raised."""
        attempt = _Attempt(self._agent, self._function(tool))
        try:
            outcome = await attempt.outcome(args, run_id, call_id)
        except (InvalidRequest, Conflict, NotRun) as error:  # looking again cannot mend these
            words = {"success": False, "status": error.code, "error": error.message}
            return Look(state="not_run", code=error.code, message=error.message, told=words)
        return _look(outcome, tool)

    def _function(self, tool: str) -> Function:
        if tool not in self._functions:
            there = ", ".join(sorted(self._functions)) or "none"
            raise Misconfigured(f"There is no tool {tool} here. There are: {there}.")
        return self._functions[tool]


def options(
    effect: str,
    describe: str | Callable[[Mapping[str, Any]], str],
    secret: Sequence[str],
    decisions: Sequence[str],
) -> dict[str, Any]:
    """As a ToolSpec wants them."""
    return {"effect": effect, "describe": describe, "secret": tuple(secret), "decisions": tuple(decisions)}


class _Attempt:
    """One try. A tool that raised is not told from memory: what the record says of it holds, without its secrets."""

    def __init__(self, agent: Agent, function: Function) -> None:
        self._agent = agent
        self._function = function
        self._is_recorded = False

    async def outcome(self, args: Mapping[str, object], run_id: str, call_id: str) -> Ran | Outcome:
        bound = self._function.bind((), args)
        call = self._agent.call(self._function.spec.name, bound, run_id, call_id)
        try:
            return await self._agent.attempt(call, self._function.spec, self._run)
        except Exception:
            if not self._is_recorded:
                raise
            return await self._agent.attempt(call, self._function.spec, self._run)

    async def _run(self, args: Args) -> Any:
        self._is_recorded = self._agent.lock.execution() is not None
        return await called(self._function.body, self._function.unpack(canonical(args)))


def _look(outcome: Ran | Outcome, tool: str) -> Look:
    match outcome:
        case Ran(result):
            return Look(state="done", result=read(stored_result(result)))
        case Finished("succeeded", result, _, approval_id):
            return Look(state="done", result=result, approval_id=approval_id)
        case Waiting(approval_id):
            return Look(state="waiting", approval_id=approval_id)
        case _:
            error = not_run(outcome, tool)
            ended = Look(state="not_run", code=error.code, message=error.message, told=told(outcome, tool))
            return {**ended, "approval_id": outcome.approval_id}


async def called(function: Callable[..., Any], args: Mapping[str, Any]) -> Any:
    """With its arguments by name; one that is not async has a thread of its own."""
    if inspect.iscoroutinefunction(function):
        return await function(**args)
    given = await asyncio.to_thread(partial(function, **args))
    return await given if inspect.isawaitable(given) else given
