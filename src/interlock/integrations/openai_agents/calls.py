"""One call of a tool of the OpenAI Agents SDK, on its way by the gate."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import agents
from agents.tool import ToolOriginType, get_function_tool_origin
from agents.tool_context import ToolContext

from interlock.core.call import Args, ToolCall, ToolSpec
from interlock.core.canonical import canonical_args, digest
from interlock.core.errors import EffectUnknown, InvalidRequest, Misconfigured
from interlock.core.outcome import Finished, Outcome, Proceed, Waiting
from interlock.sdk.agent import Agent, Executed, to_model_message

EDITED = "A reviewer changed the arguments before it ran"
CLIENT_SIDE_CODES = (408, -32000, -32001)  # codes that an MCP client gives by itself: too late, and closed
OUTPUTS = (agents.ToolOutputText, agents.ToolOutputImage, agents.ToolOutputFileContent)


class HeldCall(NamedTuple):
    """A call that the SDK holds back, by the names that the gate has for it; empty where it has nothing to wait for."""

    approval_id: str = ""
    call_id: str = ""
    path: Sequence[str] = ()


@dataclass(frozen=True)
class ConversationContext:
    """Where tools are called: in which conversation, and what the gate said so far.

    Inside of an agent that is a tool, `within` is its call, and `path` leads to it: others may have the same agent.
    """

    run_id: str
    within: str = ""
    path: tuple[str, ...] = ()
    asked: dict[str, HeldCall] = field(default_factory=dict)
    free: set[ToolCall] = field(default_factory=set)  # reads that were allowed just now


CURRENT_CONVERSATION: ContextVar[ConversationContext | None] = ContextVar(
    "interlock_openai_agents", default=None
)  # goes with a run into its tasks


@contextmanager
def enter_conversation(here: ConversationContext) -> Iterator[ConversationContext]:
    token = CURRENT_CONVERSATION.set(here)
    try:
        yield here
    finally:
        CURRENT_CONVERSATION.reset(token)


def current_conversation(tool: str) -> ConversationContext:
    here = CURRENT_CONVERSATION.get()
    if here is None:
        raise Misconfigured(
            f"{tool}: nobody said which conversation this is. Use run() of what gated() gave, or put "
            "`with support.conversation(run_id):` around Runner.run."
        )
    return here


@dataclass(frozen=True, eq=False)
class GatedInvoker:
    """Stands in the place of a tool's invoker: what the SDK takes for approved only means that the gate is asked."""

    gate: Agent
    spec: ToolSpec
    tool: Any

    async def asks(self, context: Any, args: dict[str, Any], call_id: str) -> bool:
        """In the place of `needs_approval`."""
        here = current_conversation(self.spec.name)
        try:
            call = await self._call(here, context, args, call_id)
            outcome = await self.gate.lock.check(call, self.spec)
        except InvalidRequest:
            return False  # the model is told when it is invoked
        match outcome:
            case Waiting(approval_id, status) if status != "running":
                here.asked[self._key(call_id, args)] = HeldCall(approval_id, call.call_id, here.path)
                return True
            case Proceed(_, ""):
                here.free.add(call)
                return False
            case _:
                return False

    async def __call__(self, context: ToolContext[Any], text: str) -> Any:
        here, args = current_conversation(self.spec.name), parse_arguments(text)
        if not isinstance(args, dict):
            return _refusal("The arguments are not a JSON object.")
        attempt = ToolAttempt(self.tool, context, self.spec.effect != "read")
        try:
            call = await self._call(here, context, args, context.tool_call_id)
            outcome = await self._attempted(here, call, attempt)
        except Exception as error:  # noqa: BLE001  looked at there, and raised again where it is nobody's to handle
            return await self._raised(attempt, text, error)
        calling = _recorded_arguments(outcome) if self.is_agent else None
        if calling is not None:
            path = (*call.path, self.tool._agent_instance.name)
            return await self._called(replace(here, within=call.call_id, path=path), context, calling)
        return self._said(outcome, call, attempt.args)

    async def _attempted(self, here: ConversationContext, call: ToolCall, attempt: ToolAttempt) -> Executed | Outcome:
        body = attempt.recall if self.is_agent else attempt.run
        if call not in here.free:
            return await self.gate.attempt(call, self.spec, body)
        here.free.remove(call)  # asked about once is enough, and counted once
        return Executed(await body(call.value))

    @property
    def is_agent(self) -> bool:
        return bool(self.tool._is_agent_tool)  # the SDK has no public word for it

    async def _call(self, here: ConversationContext, context: Any, args: Args, call_id: str) -> ToolCall:
        """A model may use an id again later on, so the message that it answers is a part of the name."""
        known = here.asked.get(self._key(call_id, args), HeldCall())
        name = known.call_id if tuple(known.path) == here.path else ""  # others may have the same agent
        name = name or f"{call_id}:{_user_message_digest(here.within, context.turn_input)}"
        own = self.tool.needs_approval  # it can make a call ask, and never frees one
        asks = own(context, args, call_id) if callable(own) else own
        asks = await asks if inspect.isawaitable(asks) else asks
        gate = self._gate(here.path)
        return gate.call(self.spec.name, args, here.run_id, name, switch="on" if asks else "")

    def _key(self, call_id: str, args: Args) -> str:
        return call_key(self.gate.name, self.spec.name, call_id, args)

    def _gate(self, path: tuple[str, ...]) -> Agent:
        """The agent of this tool is the one that was called, or one that it handed off to."""
        name = self.gate.name
        return replace(self.gate, path=path if name == path[-1] else (*path, name)) if path else self.gate

    async def _called(self, here: ConversationContext, context: Any, args: Mapping[str, Any]) -> Any:
        """Another agent: what it does is asked about by itself, and called again it goes on where it stood."""
        with enter_conversation(here):
            return await self.tool.on_invoke_tool(context, json.dumps(args))

    async def _raised(self, attempt: ToolAttempt, text: str, error: Exception) -> Any:
        """What the tool raised goes the SDK's own way, to its `failure_error_function`; what the gate did goes up."""
        if isinstance(error, EffectUnknown):
            return to_text(to_model_message(Finished("unknown"), self.spec.name))
        if isinstance(error, InvalidRequest) and error is not attempt.error:
            return _refusal(error.message)
        handler: Any = copy.copy(self.tool.on_invoke_tool)
        if error is not attempt.error or not hasattr(handler, "_invoke_tool_impl"):
            raise error

        async def again(*_: object) -> Any:
            raise error

        handler._invoke_tool_impl = again
        return await handler(attempt.context, text)

    def _said(self, outcome: Executed | Outcome, call: ToolCall, args: Args | None) -> Any:
        """What the model is told; after an edit also that other arguments were run than it wrote."""
        match outcome:
            case Executed(result):
                edited = args is not None and canonical_args(args) != call.args
                words = f"{EDITED}." if self.spec.secret else f"{EDITED}: {json.dumps(args)}"
                return self._noted(result, words) if edited else result
            case Finished("succeeded", result, args_sha256=ran):
                edited = bool(ran) and not self.spec.secret and ran != digest(call.args)
                return self._noted(result, f"{EDITED}.") if edited else result
            case Waiting(approval_id):
                said = f"{call.tool} was not run: a person has to decide first ({approval_id}). Do not call it again."
                return _refusal(said, "pending")
            case _:
                return to_text(to_model_message(outcome, call.tool))

    def _noted(self, result: Any, note: str) -> Any:
        if self.tool.output_json_schema is not None:
            return result  # only what fits the schema can be said
        parts = result if isinstance(result, list) else [result]
        if all(isinstance(part, OUTPUTS) or (isinstance(part, dict) and "type" in part) for part in parts):
            return [*parts, agents.ToolOutputText(text=note)]
        return f"{result}\n\n{note}"


@dataclass
class ToolAttempt:
    """One attempt at a call: the arguments that were run, and what the tool itself raised."""

    tool: Any
    context: Any
    has_effect: bool
    args: Args | None = None
    error: Exception | None = None

    async def run(self, args: Args) -> Any:
        invoke = self.tool.on_invoke_tool
        raising = getattr(invoke, "_invoke_tool_impl", invoke)  # around it, an error would be a result
        self.args, self.context.tool_arguments = args, json.dumps(args)
        try:
            return await raising(self.context, self.context.tool_arguments)
        except Exception as error:
            self.error = error
            if self.has_effect and _is_unanswered(self.tool, error):
                raise EffectUnknown("The MCP server gave no answer.") from error
            raise

    async def recall(self, args: Args) -> Args:
        """What is on record of a call of another agent are its arguments."""
        return args


def call_key(agent: str, tool: str, call_id: str, args: object) -> str:
    return f"{call_id}:{digest(json.dumps([agent, tool, args], sort_keys=True).encode())}"


def _user_message_digest(within: str, items: list[Any]) -> str:
    """Of the newest message of the user: what lies before it is not the same where a session gives it."""
    told = [item for item in items if isinstance(item, Mapping) and item.get("role") == "user"]
    said = told[-1].get("content") if told else items
    return digest(json.dumps([within, said], sort_keys=True, default=str).encode())[:16]


def parse_arguments(text: str | None) -> object:
    """The arguments; what cannot be read stays a text."""
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def to_text(said: object) -> str:
    return said if isinstance(said, str) else json.dumps(said)


def _is_unanswered(tool: Any, error: Exception) -> bool:
    """Of a call that was sent to an MCP server nobody knows what it did, unless the server says that it failed."""
    origin = get_function_tool_origin(tool)
    if origin is None or origin.type != ToolOriginType.MCP:
        return False
    code = getattr(getattr(error, "error", None), "code", None)
    return code is None or code in CLIENT_SIDE_CODES


def _recorded_arguments(outcome: Executed | Outcome) -> Mapping[str, Any] | None:
    match outcome:
        case Executed(args) | Finished("succeeded", args) if isinstance(args, Mapping):
            return args
        case _:
            return None


def _refusal(said: str, status: str = "invalid") -> str:
    return json.dumps({"success": False, "status": status, "error": said})
