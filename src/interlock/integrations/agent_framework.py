"""Microsoft Agent Framework: a function middleware through which every call of a tool goes, and its pause."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agent_framework import (
    AgentContext,
    AgentResponse,
    AgentSession,
    Content,
    FunctionInvocationContext,
    FunctionTool,
    Message,
    MiddlewareFailure,
    UserInputRequiredException,
)
from pydantic_core import to_jsonable_python

from interlock.core.call import Args, ToolCall, ToolSpec
from interlock.core.canonical import canonical_args
from interlock.core.errors import CallMismatch, Error, InvalidRequest, Misconfigured
from interlock.core.outcome import Outcome, Waiting
from interlock.core.run import Pause
from interlock.sdk.agent import Agent, Executed, edit_note, to_model_message

STATE_KEY = "interlock"  # the key of the session's state under which this module notes things
CALLS, FENCE = "calls", "fence"  # below it: which calls had which id, and which pause the session is in
DELEGATES, WITHIN = "agents", "within"  # sessions of agents that are tools; the call within which a session is
APPROVED_ARGUMENTS_KEY = (
    "_approved_function_arguments"  # what Agent Framework compares with the arguments that are about to run
)
CallNext = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Gate:
    """`Agent(client, tools=[…], middleware=gate.middleware)`. A tool without an effect counts as unknown, and asks.

    With `inline` a call that asks waits where it stands: for agents that run as a tool of another, which cannot pause.
    Without `keep` somebody else keeps the run that stands still, such as a workflow with its checkpoints.
    """

    agent: Agent
    effects: Mapping[str, str] = field(default_factory=dict)
    specs: Mapping[str, ToolSpec] = field(default_factory=dict)
    inline: bool = False
    keep: bool = True

    @property
    def middleware(self) -> list[Any]:
        """The last ones: what stands behind them is given what was approved, and must not change it."""

        async def calls(context: FunctionInvocationContext, call_next: CallNext) -> None:
            await self._call(context, call_next)

        async def runs(context: AgentContext, call_next: CallNext) -> None:
            await self._run(context, call_next)

        return [calls] if self.inline or not self.keep else [calls, runs]

    def sub(self, name: str, tool_approvals: Mapping[str, bool] | None = None) -> Gate:
        """For an agent that this one has as a tool."""
        return replace(self, agent=self.agent.agent(name, tool_approvals), inline=True)

    def as_tool(self, agent: Any, **more: Any) -> FunctionTool:
        """`agent.as_tool(…)`, which pauses with what it calls. The framework's own cannot: there calls wait inline."""
        plain = agent.as_tool(**more)
        (task,) = plain.parameters()["properties"]

        async def delegate(ctx: FunctionInvocationContext, **given: Any) -> str:
            return await _run_delegate(agent, ctx, str(given[task]))

        setattr(delegate, STATE_KEY, DELEGATES)
        schema = plain.parameters()
        return FunctionTool(name=plain.name, description=plain.description, func=delegate, input_model=schema)

    # A run that stands still

    async def resume(self, agent: Any, pause: Pause) -> tuple[AgentSession, AgentResponse]:
        """Goes on with a run that was paused, in whatever process. The session is the program's to keep."""
        session = load_session(pause)
        response = await self.look_again(agent, session)
        await self.agent.resumed(pause)
        return session, response

    async def look_again(self, agent: Any, session: AgentSession) -> AgentResponse:
        """The same with a session that the program has kept itself: all calls that waited are looked at again."""
        return await agent.run(_resume_message(session), session=session)

    async def _run(self, context: AgentContext, call_next: CallNext) -> None:
        """A run that ends with questions is kept, so that any process can go on with it."""
        session = context.session

        async def keep(_: AgentResponse) -> None:
            if session is not None:
                await self._save_pause(session)

        if context.stream:
            context.stream_result_hooks.append(keep)
            return await call_next()
        await call_next()
        return await keep(context.result)

    async def _save_pause(self, session: AgentSession) -> None:
        notes, run_id = session.state.setdefault(STATE_KEY, {}), session.session_id
        fence = notes.pop(FENCE, None)
        if pending_requests(session):
            notes[FENCE] = (await self.agent.pause(run_id, _dump_session(session).encode())).fence
        elif fence is not None:
            await self.agent.resumed(
                Pause(run_id=run_id, agent=self.agent.path[0], state=b"", paused_at=0, fence=fence)
            )

    # A call

    async def _call(self, context: FunctionInvocationContext, call_next: CallNext) -> None:
        if getattr(context.function.func, STATE_KEY, "") == DELEGATES:
            return await call_next()  # what it calls has gates of its own
        attempt = _FunctionAttempt(context, call_next)
        try:
            call, spec = self._make_call(context), self._spec(context.function)
            outcome = await self.agent.attempt(call, spec, attempt.run)
            while isinstance(outcome, Waiting) and self._waits_inline(context):
                await self.agent.wait(outcome.approval_id)
                outcome = await self.agent.attempt(call, spec, attempt.run)
        except Error as error:
            if error is attempt.error:  # the tool's own
                raise
            return _set_error(context, error)
        return _set_result(context, outcome, edit_note(call, spec, outcome, attempt.args))

    def _waits_inline(self, context: FunctionInvocationContext) -> bool:
        return self.inline and WITHIN not in context.session.state.get(STATE_KEY, {})

    def _make_call(self, context: FunctionInvocationContext) -> ToolCall:
        name, session = context.function.name, context.session
        if session is None:
            how = "agent.run(…, session=agent.create_session(session_id=…))"
            raise Misconfigured(f"{name} was not run: the gate has to know the conversation. Pass a session: {how}.")
        return self.agent.call(name, _arguments(context), session.session_id, _call_id(context, session))

    def _spec(self, function: Any) -> ToolSpec:
        name = function.name
        known = self.specs.get(name) or ToolSpec(name, self.effects.get(name, ""))
        return known if known.schema is not None else replace(known, schema=function.parameters())


def load_session(pause: Pause) -> AgentSession:
    if not pause.state:
        raise Misconfigured(f"The run {pause.run_id} was paused without its session: it is not one of Agent Framework.")
    return AgentSession.from_dict(json.loads(pause.state))


def pending_requests(session: AgentSession) -> list[Content]:
    """What Agent Framework itself has noted as asked and not answered, without what runs at the model's provider."""
    noted = session.state.get("tool_approval") or {}
    found = [_content(each) for each in noted.get("pending_approval_requests", ())]
    return [request for request in found if request.function_call is not None and not request.function_call.hosted]


def _dump_session(session: AgentSession) -> str:
    try:
        return json.dumps(session.to_dict())
    except (TypeError, ValueError) as error:
        how = "Register the type with the framework, or leave it out of session.state."
        raise Misconfigured(f"The session {session.session_id} cannot be kept: {error}. {how}") from error


def _resume_message(session: AgentSession) -> Message:
    answers = [request.to_function_approval_response(approved=True) for request in pending_requests(session)]
    if not answers:
        raise InvalidRequest(
            f"Nothing waits in the session {session.session_id}: run the agent with a message instead."
        )
    return Message("user", answers)


async def _run_delegate(agent: Any, context: FunctionInvocationContext, task: str) -> str:
    """The inner agent has a session of its own, which waits in that of the outer one."""
    if "call_id" not in context.metadata or context.session is None:
        raise Misconfigured("gate.as_tool needs an outer agent with middleware=gate.middleware, and a session.")
    key = _call_id(context, context.session)
    kept = context.session.state[STATE_KEY].setdefault(DELEGATES, {})
    session, said = AgentSession(session_id=context.session.session_id), Message("user", [task])
    session.state[STATE_KEY] = {WITHIN: key}
    if key in kept:
        session = AgentSession.from_dict(json.loads(kept[key]))
        said = _resume_message(session)
    response = await agent.run(said, session=session, function_invocation_kwargs=dict(context.kwargs))
    if pending_requests(session):
        kept[key] = _dump_session(session)
        raise UserInputRequiredException(contents=[_approval_request(context)])
    kept.pop(key, None)
    return str(response.text)


@dataclass
class _FunctionAttempt:
    """The arguments that were run, and what the tool itself raised."""

    context: FunctionInvocationContext
    call_next: CallNext
    args: Args | None = None
    error: BaseException | None = None

    async def run(self, args: Args) -> Any:
        """With what was approved. The framework's own "changed after approval" is about ours: let it be."""
        self.args = args
        if canonical_args(args) != canonical_args(_arguments(self.context)):  # to Python, True is 1
            self.context.metadata.pop(APPROVED_ARGUMENTS_KEY, None)
            self.context.arguments = dict(args)
        try:
            await self.call_next()
        except BaseException as error:
            self.error = error
            raise
        return _storable_result(self.context.result)


def _storable_result(result: Any) -> Any:
    """What the model got, in a form that can be stored and given again."""
    if not isinstance(result, list) or not all(isinstance(each, Content) for each in result):
        return result
    if all(each.type == "text" for each in result):
        return "\n".join(each.text for each in result)
    return [each.to_dict() for each in result]


def _set_error(context: FunctionInvocationContext, error: Error) -> None:
    """The model is told what it can mend. Anything else ends the run: nothing runs without the gate."""
    if not isinstance(error, InvalidRequest | CallMismatch):
        raise MiddlewareFailure(error.message) from error
    context.result = json.dumps({"success": False, "error": error.message})


def _set_result(context: FunctionInvocationContext, outcome: Executed | Outcome, edited: str) -> None:
    """What becomes of the call: its result, what the model is told instead, or the framework's own question."""
    match outcome:
        case Waiting():
            context.result = _approval_request(context)
            return
        case Executed():
            pass  # the framework has its result already
        case _:
            said = to_model_message(outcome, context.function.name)
            context.result = [Content.from_text(said if isinstance(said, str) else json.dumps(said))]
    if edited and isinstance(context.result, list):
        context.result = [*context.result, Content.from_text(edited)]


def _approval_request(context: FunctionInvocationContext) -> Content:
    """Its answer means "look again": what was approved is what the gate says."""
    call_id = context.metadata["call_id"]
    occurrence = context.metadata.get("function_call_occurrence_id", call_id)
    args = _arguments(context)
    call = Content.from_function_call(call_id=call_id, name=context.function.name, arguments=args, id=occurrence)
    return Content.from_function_approval_request(id=occurrence, function_call=call)


def _call_id(context: FunctionInvocationContext, session: AgentSession) -> str:
    """The provider's id, with a number where the model has used it before in this conversation.

    The framework's own id is random: a process that died before its session was saved would ask a second time.
    """
    call_id = str(context.metadata.get("call_id") or "")
    if not call_id:
        raise InvalidRequest(f"{context.function.name} was called without an id.")
    occurrence = context.metadata.get("function_call_occurrence_id", call_id)
    notes = session.state.setdefault(STATE_KEY, {})
    seen: list[str] = notes.setdefault(CALLS, {}).setdefault(call_id, [])
    if occurrence not in seen:
        seen.append(occurrence)
    number = seen.index(occurrence) + 1
    own = call_id if number == 1 else f"{call_id}#{number}"
    return f"{notes[WITHIN]}/{own}" if WITHIN in notes else own


def _arguments(context: FunctionInvocationContext) -> dict[str, Any]:
    """As JSON has them, whatever the tool's model made of them."""
    given = context.arguments
    return dict(to_jsonable_python(given if isinstance(given, Mapping) else given.model_dump(exclude_unset=True)))


def _content(value: Any) -> Content:
    return value if isinstance(value, Content) else Content.from_dict(value)
