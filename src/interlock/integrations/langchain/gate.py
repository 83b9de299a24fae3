"""The gate of a LangChain or LangGraph agent: its middleware, its tool node, and the function that resumes threads."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langgraph.graph import END
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send, interrupt
from pydantic import Field

from interlock.core.call import Args, ToolCall, ToolSpec
from interlock.core.canonical import canonical, digest
from interlock.core.errors import Conflict, Error, InvalidRequest, Misconfigured
from interlock.core.outcome import Finished, Outcome, Waiting
from interlock.core.run import Pause
from interlock.integrations.langchain.interrupts import (
    RECHECK,
    Shape,
    kept_switches,
    parse_decision,
    read_mark,
    read_switch,
)
from interlock.integrations.langchain.steps import (
    INBOX,
    ConcurrentCalls,
    Config,
    GraphLocation,
    Handler,
    PausedInside,
    StepGenerator,
    SyncAsyncAction,
    ToolCallStep,
    ToolReturnedError,
    make_tool_message,
    run_steps,
    run_steps_async,
)
from interlock.integrations.langchain.tools import LangChainTool, find_model_message, inspect_tool, model_text
from interlock.sdk.agent import Agent, Executed

__all__ = [
    "Gate",
    "InterlockMiddleware",
    "approvals_field",
    "gated_subagents",
    "make_resume_function",
    "send_each_call",
]
ReadPerson = Callable[[Config], str]
UNDO_SECONDS = 30.0  # seconds to wait after the reviewer's own rejection, while it can be undone


@dataclass
class Gate:
    """One agent's gate. `effects` maps tools to "read", "write", "destructive", or to a complete ToolSpec.

    A tool in `delegates` hands over to another agent, whose calls have their own gate: it needs approval only if it
    also has an effect, and then once, before it starts. `reviewer` and `requester` return names of people from the
    config of the run. With a `reviewer`, answers from front ends are decisions of that person; without one they decide
    nothing. A tool that `tool_approvals` of a config marks needs approval; with `from_config` the others do not.
    """

    agent: Agent
    effects: Mapping[str, str | ToolSpec] = field(default_factory=dict)
    _: KW_ONLY
    delegates: Collection[str] = ()
    shape: Shape = "hitl"
    reviewer: ReadPerson | None = None
    requester: ReadPerson | None = None
    from_config: bool = False
    messages_key: str = "messages"
    _tools: dict[str, LangChainTool] = field(default_factory=dict, init=False, repr=False)
    _concurrent_calls: ConcurrentCalls = field(default_factory=ConcurrentCalls, init=False, repr=False)
    _interrupt_lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def tool_node(self, tools: Sequence[Any], **more: Any) -> ToolNode:
        """A ToolNode whose calls go through this gate. Send it one call at a time: see `send_each_call`."""
        return ToolNode(tools, wrap_tool_call=self.wrap_tool_call, awrap_tool_call=self.awrap_tool_call, **more)

    def wrap_tool_call(self, request: Any, handler: Handler) -> Any:
        step = self._make_step(request)
        if not isinstance(step, ToolCallStep):
            return handler(request) if step is None else step
        return step.to_tool_message(run_steps(self._run_call(step, handler)))

    async def awrap_tool_call(self, request: Any, handler: Handler) -> Any:
        step = self._make_step(request)
        if not isinstance(step, ToolCallStep):
            return await handler(request) if step is None else step
        with self._concurrent_calls.enter(step.location):
            return step.to_tool_message(await run_steps_async(self._run_call(step, handler)))

    def run(self, tool: Any, args: Args, call_id: str = "") -> Any:
        """Run a tool from a custom node; returns its result, or the message for the model if it did not run.

        Without a `call_id`, the same tool with the same arguments in one step is one call.
        """
        step = self._own_step(tool, args, call_id)
        return step.to_plain_result(run_steps(self._run_call(step, tool.invoke)))

    async def arun(self, tool: Any, args: Args, call_id: str = "") -> Any:
        step = self._own_step(tool, args, call_id)
        with self._concurrent_calls.enter(step.location):
            return step.to_plain_result(await run_steps_async(self._run_call(step, tool.ainvoke)))

    # Calls

    def _make_step(self, request: Any) -> ToolCallStep | ToolMessage | None:
        """The step for a call; None for a call without this gate, a message if there is no such tool to run."""
        tool_call = request.tool_call
        name, ident = tool_call["name"], tool_call["id"]
        if name in self.delegates and name not in self.effects:
            return None
        if request.tool is None and name not in self.effects:
            return make_tool_message(tool_call, f"Error: {name} is not a valid tool.", "error")
        if not ident:
            raise Misconfigured(f"The model gave its call of {name} no id, so its result could not be matched to it.")
        turn, location = find_model_message(request.state, self.messages_key, ident), GraphLocation.current()
        known_tool = self._find_tool(request.tool, name)
        try:
            args = known_tool.to_json_args(tool_call["args"])
            call_id = f"{turn.id if turn and turn.id else location.task}:{ident}"
            call, spec = self._call(known_tool, args, location, call_id, model_text(turn))
        except InvalidRequest as error:
            return make_tool_message(tool_call, error.message, "error")
        return ToolCallStep(call=call, spec=spec, location=location, request=request)

    def _own_step(self, tool: Any, args: Args, call_id: str) -> ToolCallStep:
        location, known_tool = GraphLocation.current(), self._find_tool(tool, tool.name)
        plain = known_tool.to_json_args(args)
        own = call_id or f"{location.task}:{tool.name}:{digest(canonical(plain))}"
        call, spec = self._call(known_tool, plain, location, own, "")
        return ToolCallStep(call=call, spec=spec, location=location, request=None)

    def _call(
        self, known_tool: LangChainTool, args: Args, location: GraphLocation, call_id: str, says: str
    ) -> tuple[ToolCall, ToolSpec]:
        spec, more = known_tool.spec, {"agent_says": says}
        if switch := read_switch(location.configurable, spec.name, from_config=self.from_config):
            more["switch"] = switch
            spec = spec if spec.effect else replace(spec, effect="write")
        if self.requester is not None:
            more["requester"] = self.requester(location.config)
        return self.agent.call(spec.name, args, location.thread, call_id, **more), spec

    def _find_tool(self, tool: Any, name: str) -> LangChainTool:
        found = self._tools.get(name)
        if found is None or found.tool is not tool:
            found = self._tools[name] = inspect_tool(tool, self.effects.get(name, ""), name)
            if found.spec.name != name:
                raise Misconfigured(f"The ToolSpec of {name} names another tool: {found.spec.name}.")
            if name in self.delegates and found.spec.secret:
                raise Misconfigured(f"{name} hands over to an agent: its arguments cannot be secret.")
        return found

    def _run_call(self, step: ToolCallStep, handler: Handler) -> StepGenerator:
        """Process a call, from the model's request to its outcome."""
        delegated = step.call.tool in self.delegates
        try:
            outcome = yield from self._wait_until_runnable(step, None if delegated else handler)
        except InvalidRequest as error:
            return step.invalid_arguments_result(error)
        except ToolReturnedError as report:
            return Executed(report.result)
        except PausedInside as pause:
            raise pause.cause from None
        match outcome:
            case Executed(permission) | Finished("succeeded", permission) if delegated:
                again = isinstance(outcome, Finished)
                return Executed((yield step.delegate(handler, permission, again=again)))
            case Executed():
                return Executed(step.result)
            case _:
                return outcome

    def _wait_until_runnable(self, step: ToolCallStep, handler: Handler | None) -> StepGenerator:
        """Attempt the call; raises the graph's interrupt while a decision is pending."""
        outcome: Executed | Outcome = yield step.attempt(self.agent, handler)
        problem = ""
        if isinstance(outcome, Waiting) and self.reviewer is not None:
            problem = yield from self._apply_answer(step, outcome, self.reviewer)
            outcome = yield step.attempt(self.agent, handler)
        if isinstance(outcome, Waiting):
            yield self._save_pause(step)
            yield SyncAsyncAction(lambda: None, lambda: self._concurrent_calls.wait_for_others(step.location))
            self._interrupt(step, outcome, problem)
        return outcome

    def _save_pause(self, step: ToolCallStep) -> SyncAsyncAction:
        """Save the pause before the interrupt, so that an immediate decision finds the run."""
        kept = kept_switches(step.location.configurable)
        state, thread, agent = json.dumps(kept).encode(), step.location.thread, self.agent
        return SyncAsyncAction(lambda: agent.pause_sync(thread, state), lambda: agent.pause(thread, state))

    def _interrupt(self, step: ToolCallStep, waiting: Waiting, problem: str) -> None:
        """Raise the interrupt. Resume values of earlier interrupts are consumed first: they were already processed."""
        with self._interrupt_lock:  # tools of one node in several threads share a list of resume values
            interrupt(step.make_interrupt(waiting, problem, len(step.load_answers())).value(self.shape))

    def _sync_async(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> SyncAsyncAction:
        def now() -> Any:
            self.agent.interlock.open()
            return self.agent.interlock.loop_thread.run(work())

        return SyncAsyncAction(now, work)

    # Answers from front ends, if the graph names the reviewer

    def _apply_answer(
        self, step: ToolCallStep, waiting: Waiting, reviewer: ReadPerson
    ) -> Generator[SyncAsyncAction, Any, str]:
        """Decide as the reviewer, if there is an answer to the current interrupt; returns what is wrong with it."""
        with self._interrupt_lock:
            given = step.load_answers()
        shown = yield step.location.read_shown_mark()
        if shown is None or shown.approval_id != waiting.approval_id or len(given) != shown.answered + 1:
            return ""
        if given[-1] == RECHECK:
            return ""
        try:
            name = reviewer(step.location.config)
            if not name or step.spec.secret:
                return f"This answer cannot count here. {INBOX}"
            decision = parse_decision(given[-1], step.spec, shown)
            lock = self.agent.interlock
            yield self._sync_async(lambda: lock.decide(waiting.approval_id, decision, name))
            if decision.kind == "reject":
                yield self._sync_async(lambda: self.agent.wait(waiting.approval_id, UNDO_SECONDS))
        except Error as error:
            return error.message
        return ""


class InterlockMiddleware(AgentMiddleware):
    """The gate as a middleware for `create_agent` and deep agents, with the options of `Gate`."""

    def __init__(self, agent: Agent, effects: Mapping[str, str | ToolSpec] | None = None, **options: Any) -> None:
        super().__init__()
        self.gate = Gate(agent, effects or {}, **options)

    def wrap_tool_call(self, request: Any, handler: Handler) -> Any:
        return self.gate.wrap_tool_call(request, handler)

    async def awrap_tool_call(self, request: Any, handler: Handler) -> Any:
        return await self.gate.awrap_tool_call(request, handler)


def send_each_call(node: str = "tools", messages_key: str = "messages") -> Callable[[Any], list[Send] | str]:
    """For `add_conditional_edges`: route each call of the last message to the node separately, or to the end.

    Each call then pauses separately, and resuming one does not repeat the others.
    """

    def route(state: Any) -> list[Send] | str:
        messages = state[messages_key] if isinstance(state, Mapping) else getattr(state, messages_key)
        calls = getattr(messages[-1], "tool_calls", ())
        return [Send(node, [call]) for call in calls] or END

    return route


def approvals_field(tools: Sequence[str] = (), **more: Any) -> Any:
    """A field for a graph's configuration, which the Open Agent Platform shows as one switch per tool.

    An empty map means that nothing needs approval, unless a rule of the policy says so. Use it with `from_config=True`.
    """
    shown = {"type": "tool_approvals", "default": {}, "tools": list(tools), **more}
    return Field(default_factory=dict, json_schema_extra={"x_oap_ui_config": shown})


def gated_subagents(
    agent: Agent,
    specs: Sequence[Mapping[str, Any]] = (),
    effects: Mapping[str, str | ToolSpec] | None = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """For `create_deep_agent(subagents=…)`: give each sub-agent its own gate, by its name below `agent`.

    A spec may have `tool_approvals`, and `effects` that take precedence over the common ones. The general-purpose
    sub-agent, which deep agents would add without a gate, is included. A compiled sub-agent is left unchanged.
    """
    named = {spec["name"] for spec in specs}
    general = [] if GENERAL_SUBAGENT["name"] in named else [GENERAL_SUBAGENT]
    return [_gate_subagent(agent, dict(spec), effects or {}, options) for spec in (*general, *specs)]


GENERAL_SUBAGENT = {
    "name": "general-purpose",
    "description": "For research and for tasks of several steps, with all tools of the main agent.",
    "system_prompt": "Complete your task with the tools that you have. Only your last message is seen: answer in it.",
}


def _gate_subagent(
    agent: Agent, spec: dict[str, Any], effects: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    if "runnable" in spec:
        return spec
    below = agent.agent(spec["name"], spec.pop("tool_approvals", None))
    gate = InterlockMiddleware(below, {**effects, **spec.pop("effects", {})}, **options)
    return {**spec, "middleware": [*spec.get("middleware", ()), gate]}


MAX_BUSY_ATTEMPTS = 3  # attempts that find a thread running before its process counts as dead


def make_resume_function(
    graph: Any, config: Callable[[Pause], Mapping[str, Any]] | None = None
) -> Callable[[Pause], Awaitable[None]]:
    """For `agent.resume_all` and `interlock runs resume`. `config` returns more config of a thread, such as its user.

    A thread that was continued manually meanwhile is left alone, and so are interrupts of others.
    """

    async def resume(pause: Pause) -> None:
        where = thread_config(pause, config(pause) if config else {})
        state, go = await _read_state(graph, where)
        waiting = [each.id for each in state.interrupts if read_mark(each.value)]
        if waiting:
            await go(Command(resume=dict.fromkeys(waiting, RECHECK)), where)
        elif state.next and not state.interrupts:
            if pause.attempts <= MAX_BUSY_ATTEMPTS:
                raise Conflict("The thread is under way, or has not come to its pause yet. It is looked at again.")
            await go(None, where)

    return resume


def thread_config(pause: Pause, more: Mapping[str, Any]) -> dict[str, Any]:
    kept = json.loads(pause.state) if pause.state else {}
    return {**more, "configurable": {**kept, **more.get("configurable", {}), "thread_id": pause.run_id}}


async def _read_state(graph: Any, where: Mapping[str, Any]) -> tuple[Any, Callable[..., Awaitable[Any]]]:
    """The thread's state, and the function that resumes it; a checkpointer may be synchronous only."""
    try:
        return await graph.aget_state(where), graph.ainvoke
    except NotImplementedError:
        return await asyncio.to_thread(graph.get_state, where), partial(asyncio.to_thread, graph.invoke)
