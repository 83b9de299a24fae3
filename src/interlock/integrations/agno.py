"""Agno: gated tools, and runs that pause in Agno's own database until their calls are decided."""

from __future__ import annotations

import functools
import inspect
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from agno.exceptions import StopAgentRun
from agno.tools import Toolkit
from agno.tools.function import Function, FunctionCall, ToolResult

from interlock.core.call import Args, ToolCall, ToolSpec
from interlock.core.errors import CallMismatch, EffectUnknown, Error, InvalidRequest, Misconfigured, ToolFailed
from interlock.core.outcome import Outcome, Waiting
from interlock.core.run import Pause
from interlock.presenters.model_message import error_message, message_text, to_model_message
from interlock.sdk.agent import Agent, Executed, bounded_id, edit_note

INJECTED_ARGUMENTS = (
    "_agent",
    "_team",
    "_run_context",
    "_images",
    "_videos",
    "_audios",
    "_files",
)  # what Agno injects into a tool
GATED_ATTRIBUTE = "interlock"  # attribute of an entrypoint that holds its `_GatedFunction`


@dataclass(frozen=True)
class Gate:
    """The gate of an agent: `Agent(tools=gate.tools(send_mail, toolkit), db=…)`.

    A tool without an effect counts as unknown and asks for approval. Tools that are not reads pause the run before they
    start; a read that needs approval waits inline.
    """

    agent: Agent
    effects: Mapping[str, str] = field(default_factory=dict)
    specs: Mapping[str, ToolSpec] = field(default_factory=dict)
    call_numbers: ContextVar[_CallNumbers | None] = field(
        default_factory=lambda: ContextVar("interlock_numbers", default=None)
    )

    def tools(self, *tools: Any) -> list[Function]:
        """Gate Python functions, Agno's Functions and Toolkits. Connect a toolkit that needs it before."""
        return [self._gate_function(function) for tool in tools for function in _functions(tool)]

    def member(self, name: str, tool_approvals: Mapping[str, bool] | None = None) -> Gate:
        """The gate of a member of a team that this gate's agent leads."""
        return replace(self, agent=self.agent.agent(name, tool_approvals))

    # Runs continue until a call is pending; a run that is returned paused was saved, so any process can resume it

    async def arun(self, agent: Any, input: Any, **more: Any) -> Any:
        """`agent.arun(input, …)` of an agent or a team, continued until the run ends or a call is pending."""
        return await self._continue(agent, await agent.arun(input, **more))

    async def acontinue_run(self, agent: Any, run: Any) -> Any:
        """Continue a paused run, loaded from Agno's database."""
        went_on = await self._continue(agent, run)
        if not went_on.is_paused:
            await self.agent.complete_pause(await self.agent.pause(run.run_id))  # deletes any pause of the run
        return went_on

    async def resume(self, agent: Any, pause: Pause) -> Any:
        """Resume a paused run in a process that has only the pause."""
        kept = json.loads(pause.state or b"{}")
        run = await agent.aget_run_output(pause.run_id, session_id=kept.get("session_id"))
        if run is None:
            how = "Give the agent the db that it had, and an id or a name that stays the same."
            raise Misconfigured(f"Agno's database has no run {pause.run_id} of this agent. {how}")
        run = await self._continue(agent, run)
        await self.agent.complete_pause(pause)
        return run

    def run(self, agent: Any, input: Any, **more: Any) -> Any:
        return self._continue_sync(agent, agent.run(input, **more))

    def continue_run(self, agent: Any, run: Any) -> Any:
        went_on = self._continue_sync(agent, run)
        if not went_on.is_paused:
            self.agent.complete_pause_sync(self.agent.pause_sync(run.run_id))
        return went_on

    async def _continue(self, agent: Any, run: Any) -> Any:
        gated = dict(_gated_functions(agent))
        while paused_calls := _held_calls(run, gated):
            outcomes = [await each.outcome() for each in paused_calls]
            if _should_pause(agent, outcomes):
                await self.agent.pause(run.run_id, _state(run))
                return run
            with self._confirmed_calls(run, paused_calls):
                run = await agent.acontinue_run(run_response=run)
        return run

    def _continue_sync(self, agent: Any, run: Any) -> Any:
        gated, lock = dict(_gated_functions(agent)), self.agent.interlock
        while paused_calls := _held_calls(run, gated):
            lock.open()
            outcomes = [lock.loop_thread.run(each.outcome()) for each in paused_calls]
            if _should_pause(agent, outcomes):
                self.agent.pause_sync(run.run_id, _state(run))
                return run
            with self._confirmed_calls(run, paused_calls):
                run = agent.continue_run(run_response=run)
        return run

    @contextmanager
    def _confirmed_calls(self, run: Any, paused_calls: list[_PausedCall]) -> Iterator[None]:
        """Confirm the calls to Agno, approved or not: the gate's outcome applies when the tools are called."""
        for each in paused_calls:
            each.confirm(run)
        token = self.call_numbers.set(_CallNumbers.from_run(run, paused_calls))
        try:
            yield
        finally:
            self.call_numbers.reset(token)

    # Tools

    def _gate_function(self, inner: Function) -> Function:
        """The tool as the model sees it; its execution goes through the gate, along with Agno's hooks and cache."""
        if inner.external_execution:
            raise Misconfigured(f"{inner.name} runs outside of Agno (external_execution): gate it where it runs.")
        spec = self.specs.get(inner.name) or ToolSpec(inner.name, self.effects.get(inner.name, ""))
        spec = spec if spec.schema is not None else replace(spec, schema=inner.parameters)
        gated_function = _GatedFunction(self.agent, spec, inner, self.call_numbers)
        outer = inner.model_copy(deep=True)
        outer.entrypoint = gated_function.entrypoint()
        outer.skip_entrypoint_processing = True
        outer.tool_hooks = outer.pre_hook = outer.post_hook = None
        outer.cache_results, outer.approval_type = False, None
        outer.requires_confirmation = spec.effect != "read" and not inner.requires_user_input
        return outer


@dataclass(frozen=True)
class _GatedFunction:
    """A gated tool; `inner` is the original."""

    agent: Agent
    spec: ToolSpec
    inner: Function
    call_numbers: ContextVar[_CallNumbers | None]

    def entrypoint(self) -> Callable[..., Any]:
        """The entrypoint, async if the original is. Agno passes the call as `fc`."""
        if inspect.iscoroutinefunction(self.inner.entrypoint) or inspect.isasyncgenfunction(self.inner.entrypoint):

            async def gated(fc: Any, **_: Any) -> Any:
                return await self.run(fc)
        else:

            def gated(fc: Any, **_: Any) -> Any:  # type: ignore[misc]  # alternative definition
                return self.run_sync(fc)

        setattr(gated, GATED_ATTRIBUTE, self)
        return gated

    async def run(self, fc: FunctionCall) -> Any:
        ran: list[Args] = []

        async def body(args: Args) -> Any:
            ran.append(args)
            unsure: list[EffectUnknown] = []
            return _result(await self._inner_call(fc, args, unsure).aexecute(), unsure)

        try:
            call = self._make_current_call(fc)
            outcome = await self.agent.attempt_until_decided(call, self.spec, body)
        except Error as error:
            return _error_result(error, self.spec.name)
        return self._to_model_result(call, outcome, ran)

    def run_sync(self, fc: FunctionCall) -> Any:
        ran: list[Args] = []

        def body(args: Args) -> Any:
            ran.append(args)
            unsure: list[EffectUnknown] = []
            return _result(self._inner_call(fc, args, unsure).execute(), unsure)

        try:
            call = self._make_current_call(fc)
            outcome = self.agent.attempt_until_decided_sync(call, self.spec, body)
        except Error as error:
            return _error_result(error, self.spec.name)
        return self._to_model_result(call, outcome, ran)

    def _to_model_result(self, call: ToolCall, outcome: Executed | Outcome, ran: list[Args]) -> Any:
        edited = edit_note(call, self.spec, outcome, ran[-1] if ran else None)
        if isinstance(outcome, Executed):
            result = outcome.result
        else:
            result = message_text(to_model_message(outcome, self.spec.name))
        if not edited:
            return result
        if isinstance(result, ToolResult):
            return result.model_copy(update={"content": f"{result.content}\n\n{edited}"})
        return f"{result}\n\n{edited}"

    def make_call(self, args: Any, run_id: str, session_id: str, call_id: str, number: int) -> ToolCall:
        """A call whose run is Agno's run and whose thread is Agno's session.

        Call ids that models reuse get a number.
        """
        call_id = call_id if number <= 1 else f"{call_id}#{number}"
        return self.agent.call(self.spec.name, args or {}, run_id, call_id, thread_id=bounded_id(session_id))

    def _make_current_call(self, fc: FunctionCall) -> ToolCall:
        context = fc.function._run_context
        if context is None or not fc.call_id:
            raise Misconfigured(f"{self.spec.name} was called outside of a run of Agno, or without an id.")
        known = self.call_numbers.get()
        number = known.number_for(context.run_id, fc.call_id) if known else _count_calls(fc.call_id, context.messages)
        return self.make_call(fc.arguments, context.run_id, context.session_id, fc.call_id, number)

    def _inner_call(self, fc: FunctionCall, args: Args, unsure: list[EffectUnknown]) -> FunctionCall:
        function = self.inner.model_copy(deep=True)
        function.entrypoint = _collect_unknown(self.inner.entrypoint, unsure)
        for name in INJECTED_ARGUMENTS:
            setattr(function, name, getattr(fc.function, name))
        return FunctionCall(function=function, arguments=dict(args), call_id=fc.call_id)


@dataclass(frozen=True)
class _PausedCall:
    """A call that a paused run waits for."""

    gated_function: _GatedFunction
    requirement: Any
    run_id: str
    session_id: str
    number: int

    @property
    def tool(self) -> Any:
        return self.requirement.tool_execution

    async def outcome(self) -> Outcome:
        tool = self.tool
        call = self.gated_function.make_call(
            tool.tool_args, self.run_id, self.session_id, tool.tool_call_id, self.number
        )
        return await self.gated_function.agent.interlock.check(call, self.gated_function.spec)

    def confirm(self, run: Any) -> None:
        self.requirement.confirm()
        for tool in run.tools or ():
            if tool.tool_call_id == self.tool.tool_call_id and tool.requires_confirmation:
                tool.confirmed = True


@dataclass(frozen=True)
class _CallNumbers:
    """The number of each call among those with its id, in a continued run: Agno then hides its messages from tools."""

    paused_numbers: dict[tuple[str, str], int]
    counts: Counter[tuple[str, str]]

    @classmethod
    def from_run(cls, run: Any, paused_calls: list[_PausedCall]) -> _CallNumbers:
        ids = [(each.run_id, call_id) for each in _with_member_runs(run) for call_id in _call_ids(each.messages)]
        return cls({(each.run_id, each.tool.tool_call_id): each.number for each in paused_calls}, Counter(ids))

    def number_for(self, run_id: str, call_id: str) -> int:
        """The number that the call had when the run was paused; the next number for a new call."""
        held = self.paused_numbers.pop((run_id, call_id), None)
        if held is None:
            self.counts[run_id, call_id] += 1
        return held or self.counts[run_id, call_id]


def _should_pause(agent: Any, outcomes: list[Outcome]) -> bool:
    """Whether to pause.

    Without a database of Agno's a run cannot be resumed later, so the tool waits inline instead.
    """
    return agent.db is not None and any(isinstance(outcome, Waiting) for outcome in outcomes)


def _held_calls(run: Any, gated: Mapping[tuple[str, str], _GatedFunction]) -> list[_PausedCall]:
    """The gated calls that a paused run waits for; none if it is not paused or waits for something else."""
    found: list[_PausedCall] = []
    if not run.is_paused:
        return found
    messages = {each.run_id: each.messages for each in _with_member_runs(run)}
    for requirement in run.active_requirements:
        tool, run_id = requirement.tool_execution, requirement.member_run_id or run.run_id
        gated_function = gated.get((requirement.member_agent_id or "", tool.tool_name)) if tool else None
        if gated_function is None or not requirement.needs_confirmation:
            return []
        number = _count_calls(tool.tool_call_id, messages.get(run_id))
        found.append(_PausedCall(gated_function, requirement, run_id, run.session_id, number))
    return found


def _with_member_runs(run: Any) -> Iterator[Any]:
    """The run, and for a team also the runs of its members."""
    yield run
    for each in getattr(run, "member_responses", None) or ():
        yield from _with_member_runs(each)


def _gated_functions(agent: Any, member: str = "") -> Iterator[tuple[tuple[str, str], _GatedFunction]]:
    """Every gated tool of an agent, or of a team and its members, by the member's id and the tool's name."""
    if callable(agent.tools):
        raise Misconfigured(
            "The gate has to see the tools of the agent: give it a list, not a function that makes one."
        )
    for tool in agent.tools or ():
        by = getattr(getattr(tool, "entrypoint", None), GATED_ATTRIBUTE, None)
        if by is not None:
            yield (member, tool.name), by
    for each in getattr(agent, "members", None) or ():
        yield from _gated_functions(each, each.id or "")


def _functions(tool: Any) -> list[Function]:
    match tool:
        case Toolkit():
            found = {**tool.async_functions, **tool.functions}
            if not found:
                raise Misconfigured(f"The toolkit {tool.name} has no tools yet. Connect it before it is gated.")
            return [_processed(function.model_copy(deep=True), tool) for function in found.values()]
        case Function():
            return [_processed(tool.model_copy(deep=True), tool.source_toolkit)]
        case Mapping():
            raise Misconfigured(f"{tool.get('type', 'This tool')} runs at the model's provider, where no gate stands.")
        case _:
            return [Function.from_callable(tool)]


def _processed(function: Function, toolkit: Toolkit | None) -> Function:
    function.process_entrypoint()
    function.source_toolkit = toolkit
    return function


def _count_calls(call_id: str, messages: Any) -> int:
    return _call_ids(messages).count(call_id)


def _call_ids(messages: Any) -> list[str]:
    """The ids of the calls that the model made in this run."""
    said = [message for message in messages or () if message.tool_calls and not message.from_history]
    return [str(call.get("id")) for message in said for call in message.tool_calls]


def _collect_unknown(entrypoint: Any, unsure: list[EffectUnknown]) -> Any:
    """Wrap the entrypoint to collect EffectUnknown errors, because Agno converts every error to text."""
    if inspect.isgeneratorfunction(entrypoint) or inspect.isasyncgenfunction(entrypoint):
        return entrypoint

    @contextmanager
    def listening() -> Iterator[None]:
        try:
            yield
        except EffectUnknown as error:
            unsure.append(error)
            raise

    if inspect.iscoroutinefunction(entrypoint):

        @functools.wraps(entrypoint)
        async def noted(*args: Any, **kwargs: Any) -> Any:
            with listening():
                return await entrypoint(*args, **kwargs)

        return noted

    @functools.wraps(entrypoint)
    def noted_sync(*args: Any, **kwargs: Any) -> Any:
        with listening():
            return entrypoint(*args, **kwargs)

    return noted_sync


def _result(done: Any, unsure: list[EffectUnknown]) -> Any:
    """The tool's result. An error that Agno converted to text is raised again, so that the ledger records a failure."""
    if unsure:
        raise unsure[-1]
    if done.status != "success":
        raise ToolFailed(done.error or "The tool failed.")
    if inspect.isgenerator(done.result):
        return "".join(str(part) for part in done.result)
    return done.result


def _error_result(error: Error, tool: str) -> Any:
    """Return tool failures, and errors that the model can correct, to the model. Others end the run."""
    if isinstance(error, InvalidRequest | CallMismatch | ToolFailed):
        return message_text(error_message(error, tool))
    raise StopAgentRun(error.message) from error


def _state(run: Any) -> bytes:
    return json.dumps({"session_id": run.session_id}).encode()
