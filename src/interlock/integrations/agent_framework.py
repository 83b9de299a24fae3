"""Microsoft Agent Framework: a function middleware that gates every tool call, and pausing and resuming of runs."""

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
from interlock.presenters.model_message import error_message, message_text, to_model_message
from interlock.sdk.agent import Agent, Executed, edit_note

STATE_KEY = "interlock"  # key of this module's entries in the session's state
CALLS, FENCE = "calls", "fence"  # entries: the calls of each id, and the fence of the session's pause
DELEGATES, WITHIN = "agents", "within"  # entries: sessions of agents used as tools; the outer call of a session
APPROVED_ARGUMENTS_KEY = (
    "_approved_function_arguments"  # Agent Framework compares this with the arguments that are about to run
)
CallNext = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Gate:
    """The gate of an agent: `Agent(client, tools=[…], middleware=gate.middleware)`.

    A tool without an effect counts as unknown and asks for approval. With `inline` a pending call waits inside the run:
    for a tool of another agent, which cannot pause. Without `saves_pauses` paused runs are not saved,
    because something else does it, such as a workflow with its checkpoints.
    """

    agent: Agent
    effects: Mapping[str, str] = field(default_factory=dict)
    specs: Mapping[str, ToolSpec] = field(default_factory=dict)
    inline: bool = False
    saves_pauses: bool = True

    @property
    def middleware(self) -> list[Any]:
        """The middleware. Put it last: a later middleware gets the approved arguments and must not change them."""

        async def calls(context: FunctionInvocationContext, call_next: CallNext) -> None:
            await self._call(context, call_next)

        async def runs(context: AgentContext, call_next: CallNext) -> None:
            await self._run(context, call_next)

        return [calls] if self.inline or not self.saves_pauses else [calls, runs]

    def sub(self, name: str, tool_approvals: Mapping[str, bool] | None = None) -> Gate:
        """The gate of an agent that this agent uses as a tool."""
        return replace(self, agent=self.agent.agent(name, tool_approvals), inline=True)

    def as_tool(self, agent: Any, **more: Any) -> FunctionTool:
        """`agent.as_tool(…)` that can pause with its inner calls. With the framework's own, calls wait inline."""
        plain = agent.as_tool(**more)
        (task,) = plain.parameters()["properties"]

        async def delegate(ctx: FunctionInvocationContext, **given: Any) -> str:
            return await _run_delegate(agent, ctx, str(given[task]))

        setattr(delegate, STATE_KEY, DELEGATES)
        schema = plain.parameters()
        return FunctionTool(name=plain.name, description=plain.description, func=delegate, input_model=schema)

    # Paused runs

    async def resume(self, agent: Any, pause: Pause) -> tuple[AgentSession, AgentResponse]:
        """Resume a paused run, in any process. Saving the returned session is up to the program."""
        session = load_session(pause)
        response = await self.recheck(agent, session)
        await self.agent.complete_pause(pause)
        return session, response

    async def recheck(self, agent: Any, session: AgentSession) -> AgentResponse:
        """Resume with a session that the program saved itself: every pending call is checked again."""
        return await agent.run(_resume_message(session), session=session)

    async def _run(self, context: AgentContext, call_next: CallNext) -> None:
        """Save a run that ends with approval requests, so that any process can resume it."""
        session = context.session

        async def save(_: AgentResponse) -> None:
            if session is not None:
                await self._save_pause(session)

        if context.stream:
            context.stream_result_hooks.append(save)
            return await call_next()
        await call_next()
        return await save(context.result)

    async def _save_pause(self, session: AgentSession) -> None:
        notes, run_id = session.state.setdefault(STATE_KEY, {}), session.session_id
        fence = notes.pop(FENCE, None)
        if pending_requests(session):
            notes[FENCE] = (await self.agent.pause(run_id, _dump_session(session).encode())).fence
        elif fence is not None:
            await self.agent.complete_pause(
                Pause(run_id=run_id, agent=self.agent.path[0], state=b"", paused_at=0, fence=fence)
            )

    # Calls

    async def _call(self, context: FunctionInvocationContext, call_next: CallNext) -> None:
        if getattr(context.function.func, STATE_KEY, "") == DELEGATES:
            return await call_next()  # the calls of the inner agent are gated themselves
        attempt = _FunctionAttempt(context, call_next)
        try:
            call, spec = self._make_call(context), self._spec(context.function)
            waits = self._waits_inline(context)
            outcome = await (self.agent.attempt_until_decided if waits else self.agent.attempt)(call, spec, attempt.run)
        except Error as error:
            if error is attempt.error:  # raised by the tool itself
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
    """Approval requests that Agent Framework recorded as unanswered, except for tools hosted by the model provider."""
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
    """Run the inner agent in its own session, which is stored in the outer session while calls are pending."""
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
    """The arguments that ran, and the error that the tool itself raised."""

    context: FunctionInvocationContext
    call_next: CallNext
    args: Args | None = None
    error: BaseException | None = None

    async def run(self, args: Args) -> Any:
        """Run the tool with the approved arguments.

        A reviewer's edit must not trip the framework's check for arguments changed after approval, so its entry is
        removed.
        """
        self.args = args
        if canonical_args(args) != canonical_args(_arguments(self.context)):  # as JSON: in Python, True == 1
            self.context.metadata.pop(APPROVED_ARGUMENTS_KEY, None)
            self.context.arguments = dict(args)
        try:
            await self.call_next()
        except BaseException as error:
            self.error = error
            raise
        return _storable_result(self.context.result)


def _storable_result(result: Any) -> Any:
    """The result as the model gets it, in a form that can be stored and returned again."""
    if not isinstance(result, list) or not all(isinstance(each, Content) for each in result):
        return result
    if all(each.type == "text" for each in result):
        return "\n".join(each.text for each in result)
    return [each.to_dict() for each in result]


def _set_error(context: FunctionInvocationContext, error: Error) -> None:
    """Return errors that the model can correct to the model. Others end the run: no tool runs without the gate."""
    if not isinstance(error, InvalidRequest | CallMismatch):
        raise MiddlewareFailure(error.message) from error
    context.result = message_text(error_message(error, context.function.name))


def _set_result(context: FunctionInvocationContext, outcome: Executed | Outcome, edited: str) -> None:
    """Set the result of the call: the tool's result, a message for the model, or the framework's approval request."""
    match outcome:
        case Waiting():
            context.result = _approval_request(context)
            return
        case Executed():
            pass  # the framework has the result already
        case _:
            said = message_text(to_model_message(outcome, context.function.name))
            context.result = [Content.from_text(said)]
    if edited and isinstance(context.result, list):
        context.result = [*context.result, Content.from_text(edited)]


def _approval_request(context: FunctionInvocationContext) -> Content:
    """The framework's approval request. Its response only triggers another check: the decision is the gate's."""
    call_id = context.metadata["call_id"]
    occurrence = context.metadata.get("function_call_occurrence_id", call_id)
    args = _arguments(context)
    call = Content.from_function_call(call_id=call_id, name=context.function.name, arguments=args, id=occurrence)
    return Content.from_function_approval_request(id=occurrence, function_call=call)


def _call_id(context: FunctionInvocationContext, session: AgentSession) -> str:
    """The provider's call id, with a number if the model used it before in this conversation.

    The framework's own id is random: after a crash before the session was saved, it would cause a second approval.
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
    """The arguments as plain JSON, also if the framework validated them into a model."""
    given = context.arguments
    return dict(to_jsonable_python(given if isinstance(given, Mapping) else given.model_dump(exclude_unset=True)))


def _content(value: Any) -> Content:
    return value if isinstance(value, Content) else Content.from_dict(value)
