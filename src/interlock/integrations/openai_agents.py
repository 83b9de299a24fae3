"""OpenAI Agents SDK: gates every function tool, and saves runs that wait for a decision until they are resumed.

It is long because each framework is one file.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import agents
from agents.tool import ToolOriginType, get_function_tool_origin
from agents.tool_context import ToolContext

from interlock.core.call import Args, ToolCall, ToolSpec
from interlock.core.canonical import digest
from interlock.core.errors import EffectUnknown, InvalidRequest, Misconfigured
from interlock.core.outcome import Answered, Finished, Outcome, Proceed, Refused, Waiting
from interlock.core.run import Pause
from interlock.presenters.model_message import error_message, message_text, problem_message, to_model_message
from interlock.sdk.agent import Agent, Executed, edit_note

__all__ = ["GatedAgent", "gated"]


def gated(
    agent: agents.Agent[Any],
    gate: Agent,
    effects: Mapping[str, str | ToolSpec] | None = None,
    *,
    ungated: Collection[str] = (),
) -> GatedAgent:
    """Gate, in place, the tools of an agent, of its handoff targets and of the agents that it uses as tools.

    `effects` maps tools to "read", "write", "destructive", or to a complete ToolSpec. A tool that cannot be gated, such
    as one that the model provider runs, is refused unless `ungated` names it.
    """
    made = GatedAgent(agent, gate, dict(effects or {}), frozenset(ungated))
    made.gate_new_tools()
    return made


@dataclass(frozen=True)
class GatedAgent:
    """An agent with gated tools.

    `run` and `resume` save paused runs; put `conversation` around a direct use of `Runner`.
    """

    agent: agents.Agent[Any]
    gate: Agent
    effects: Mapping[str, str | ToolSpec]
    ungated: frozenset[str]

    async def run(self, input: Any, run_id: str = "", **options: Any) -> agents.RunResult:
        """`Runner.run` in the conversation `run_id`, or that of the session; a run with interruptions is saved.

        Options are those of `Runner.run`.
        """
        with self.conversation(run_id or _session_id(options)) as conversation:
            result = await agents.Runner.run(self.agent, input, **options)
            return await self._continue(conversation, result, options)

    async def resume(self, pause: Pause, **options: Any) -> agents.RunResult | None:
        """Resume a run as far as decisions allow; None if there is no new one. Pass session and context again."""
        state, held_calls = await self._restore_state(pause, options)
        with self.conversation(pause.run_id, held_calls) as conversation:
            if not await self._apply_decisions(conversation, state):
                await self.gate.pause(pause.run_id, pause.state)
                return None
            result = await agents.Runner.run(self.agent, state, **options)
            result = await self._continue(conversation, result, options)
        await self.gate.complete_pause(pause)
        return result

    @asynccontextmanager
    async def run_streamed(
        self, input: Any, run_id: str = "", **options: Any
    ) -> AsyncIterator[agents.RunResultStreaming]:
        """`Runner.run_streamed`: consume the events inside; a run that waits for a decision at the end is saved."""
        with self.conversation(run_id or _session_id(options)) as conversation:
            result = agents.Runner.run_streamed(self.agent, input, **options)  # its task inherits the conversation
        yield result
        await self._save_pause(conversation, result)

    @asynccontextmanager
    async def resume_streamed(self, pause: Pause, **options: Any) -> AsyncIterator[agents.RunResultStreaming]:
        """`run_streamed` for a paused run."""
        state, held_calls = await self._restore_state(pause, options)
        with self.conversation(pause.run_id, held_calls) as conversation:
            await self._apply_decisions(conversation, state)
            result = agents.Runner.run_streamed(self.agent, state, **options)
        yield result
        await self._save_pause(conversation, result)
        if result.is_complete:
            await self.gate.complete_pause(pause)

    @contextmanager
    def conversation(
        self, run_id: str, held_calls: Mapping[str, HeldCall] | None = None
    ) -> Iterator[ConversationContext]:
        """Assign what `Runner` does inside to this conversation."""
        if not run_id:
            raise Misconfigured("A run needs a name: pass run_id, the id of the conversation, or a session.")
        self.gate_new_tools()
        with enter_conversation(ConversationContext(run_id, held_calls=dict(held_calls or {}))) as conversation:
            yield conversation

    async def save_pause(self, result: agents.RunResultBase) -> Pause | None:
        """Save a run that waits for a decision, inside `conversation`, so that any process can resume it."""
        return await self._save_pause(current_conversation("save_pause"), result)

    async def _save_pause(self, conversation: ConversationContext, result: Any) -> Pause | None:
        with enter_conversation(conversation):
            if not result.interruptions or not await self._ask_held(conversation, result):
                return None
        kept = {"state": result.to_state().to_json(), "asked": conversation.held_calls}
        return await self.gate.pause(conversation.run_id, json.dumps(kept).encode())

    # Decisions, applied to the SDK's state

    async def _continue(self, conversation: ConversationContext, result: Any, options: Mapping[str, Any]) -> Any:
        """Continue while interruptions are decided; save the run if none is."""
        while result.interruptions:
            await self._ask_held(conversation, result)
            state = result.to_state()
            if not await self._apply_decisions(conversation, state):
                await self._save_pause(conversation, result)
                break
            result = await agents.Runner.run(self.agent, state, **options)
        return result

    async def _ask_held(self, conversation: ConversationContext, result: Any) -> bool:
        """Check interrupted calls that have not been checked yet; returns whether all of them are gated."""
        for item in result.interruptions:
            args = parse_arguments(item.arguments)
            if self._key(item) in conversation.held_calls:
                continue
            tools = await item.agent.get_all_tools(result.context_wrapper)
            named = [tool for tool in tools if getattr(tool, "qualified_name", "") == item.qualified_name]
            gateways = [tool.on_invoke_tool for tool in named if isinstance(tool.on_invoke_tool, GatedInvoker)]
            if not gateways:
                return False
            if not isinstance(args, dict) or not await gateways[0].needs_approval(
                result.context_wrapper, args, item.call_id
            ):
                conversation.held_calls[self._key(item)] = HeldCall()
        return True

    async def _apply_decisions(self, conversation: ConversationContext, state: Any) -> bool:
        """Apply decisions to the interrupted calls; returns whether there were any."""
        news = False
        for item in state.get_interruptions():
            known = conversation.held_calls.get(self._key(item))
            if known is None:
                continue
            outcome = await self.gate.wait(known.approval_id, 0) if known.approval_id else None
            match outcome:
                case Waiting(status=status) if status != "running":
                    continue
                case Refused() | Answered():
                    said = message_text(to_model_message(outcome, item.qualified_name))
                    state.reject(item, rejection_message=said)
                case _:
                    state.approve(item)  # only makes the SDK call the gate, which checks the decision
            news = True
        return news

    async def _restore_state(self, pause: Pause, options: Mapping[str, Any]) -> tuple[Any, dict[str, HeldCall]]:
        kept, given = json.loads(pause.state), options.get("context")
        again = None if given is None else lambda _: given
        state = await agents.RunState.from_json(self.agent, kept["state"], context_deserializer=again)
        return state, {name: HeldCall(*each) for name, each in kept["asked"].items()}

    def _key(self, item: Any) -> str:
        name = self.gate.name if item.agent.name == self.agent.name else item.agent.name
        return call_key(name, item.qualified_name, item.call_id, parse_arguments(item.arguments))

    # Gating

    def gate_new_tools(self) -> None:
        """Gate tools and agents that may have been added since."""
        seen: set[int] = set()
        ahead = deque([(self.agent, self.gate)])
        while ahead:
            agent, gate = ahead.popleft()
            if id(agent) not in seen:
                seen.add(id(agent))
                self._gate_tools(agent, gate)
                self._gate_servers(agent, gate)
                ahead.extend((other, gate.agent(other.name)) for other in self._sub_agents(agent, gate))

    def _gate_tools(self, agent: Any, gate: Agent) -> None:
        tools = [self._tool(tool, agent, gate) for tool in agent.tools]
        if any(new is not old for new, old in zip(tools, agent.tools, strict=True)):
            agent.tools = tools

    def _gate_servers(self, agent: Any, gate: Agent) -> None:
        """Move the MCP servers behind the gate: a clone of the agent then has none, rather than ungated ones."""
        for server in agent.mcp_servers:
            if getattr(server, "max_retry_attempts", 0):
                raise Misconfigured(f"The MCP server {server.name} may send a call twice. Set max_retry_attempts=0.")
        if not agent.mcp_servers:
            return
        before, owner = agent.__dict__.get("get_mcp_tools"), agent.clone()
        agent.mcp_servers = []

        async def get_mcp_tools(context: Any) -> list[Any]:
            found = [*(await before(context) if before else ()), *await owner.get_mcp_tools(context)]
            return [self._tool(tool, agent, gate) for tool in found]

        agent.get_mcp_tools = get_mcp_tools

    def _sub_agents(self, agent: Any, gate: Agent) -> Iterator[Any]:
        """The agents that it hands off to, and those that it uses as tools."""
        for other in agent.handoffs:
            target = other if isinstance(other, agents.Agent) else _handoff_agent(other)
            if target is None:
                self._gate_when_known(other, gate)
            else:
                yield target
        for tool in agent.tools:
            gateway = getattr(tool, "on_invoke_tool", None)
            if isinstance(gateway, GatedInvoker) and gateway.is_agent:
                yield tool._agent_instance  # the SDK has no public name for it

    def _gate_when_known(self, handoff: Any, gate: Agent) -> None:
        """Gate the target of a custom handoff when it happens, since it is not known before."""
        invoke = handoff.on_invoke_handoff
        if hasattr(invoke, "gates"):
            return

        async def on_invoke_handoff(context: Any, text: str) -> Any:
            other = await invoke(context, text)
            replace(self, agent=other, gate=gate.agent(other.name)).gate_new_tools()
            return other

        on_invoke_handoff.gates = True  # type: ignore[attr-defined]
        handoff.on_invoke_handoff = on_invoke_handoff

    def _tool(self, tool: Any, agent: Any, gate: Agent) -> Any:
        if not isinstance(tool, agents.FunctionTool):
            return self._check_ungated(tool, agent)
        there = tool.on_invoke_tool
        if not isinstance(there, GatedInvoker):
            mine = copy.copy(tool)  # the same tool may also belong to another agent, with another gate
            mine.on_invoke_tool = gateway = GatedInvoker(gate, self._spec(tool), tool)
            mine.needs_approval = gateway.needs_approval
            return mine
        if there.gate != gate:
            whose = " > ".join(there.gate.path)
            raise Misconfigured(f"{tool.name} of {agent.name} is gated as one of {whose}. Make an agent for each gate.")
        return tool

    def _check_ungated(self, tool: Any, agent: Any) -> Any:
        if tool.name in self.ungated:
            return tool
        raise Misconfigured(
            f"{tool.name} of the agent {agent.name} cannot be gated: it is no function tool. Take it away, or accept "
            f"that it asks nobody: gated(…, ungated=[{tool.name!r}])."
        )

    def _spec(self, tool: Any) -> ToolSpec:
        """The spec of a tool.

        Without an effect it counts as unknown and asks for approval; an agent as a tool defaults to a read.
        """
        name = tool.qualified_name
        said = self.effects.get(name, "read" if tool._is_agent_tool else "")
        spec = said if isinstance(said, ToolSpec) else ToolSpec(name, said)
        return replace(spec, name=name, schema=tool.params_json_schema)


def _session_id(options: Mapping[str, Any]) -> str:
    return str(getattr(options.get("session"), "session_id", ""))


def _handoff_agent(handoff: Any) -> Any:
    known = handoff._agent_ref  # the SDK has no public name for it
    return known() if known is not None else None


CLIENT_SIDE_CODES = (408, -32000, -32001)  # codes that an MCP client sets itself: timeout and connection closed
OUTPUTS = (agents.ToolOutputText, agents.ToolOutputImage, agents.ToolOutputFileContent)


class HeldCall(NamedTuple):
    """A call that the SDK interrupted, with the gate's ids for it; empty if it has no approval to wait for."""

    approval_id: str = ""
    call_id: str = ""
    path: Sequence[str] = ()


@dataclass(frozen=True)
class ConversationContext:
    """The current conversation, and the gate's outcomes so far.

    Inside an agent that is used as a tool, `parent_call` is that call and `path` leads to it: the same agent may also
    be used elsewhere.
    """

    run_id: str
    parent_call: str = ""
    path: tuple[str, ...] = ()
    held_calls: dict[str, HeldCall] = field(default_factory=dict)
    allowed_reads: set[ToolCall] = field(default_factory=set)  # reads that were allowed just now


CURRENT_CONVERSATION: ContextVar[ConversationContext | None] = ContextVar(
    "interlock_openai_agents", default=None
)  # inherited by the tasks of a run


@contextmanager
def enter_conversation(conversation: ConversationContext) -> Iterator[ConversationContext]:
    token = CURRENT_CONVERSATION.set(conversation)
    try:
        yield conversation
    finally:
        CURRENT_CONVERSATION.reset(token)


def current_conversation(tool: str) -> ConversationContext:
    conversation = CURRENT_CONVERSATION.get()
    if conversation is None:
        raise Misconfigured(
            f"{tool}: nobody said which conversation this is. Use run() of what gated() gave, or put "
            "`with support.conversation(run_id):` around Runner.run."
        )
    return conversation


@dataclass(frozen=True, eq=False)
class GatedInvoker:
    """Replaces a tool's invoker: an approval by the SDK only makes it ask the gate."""

    gate: Agent
    spec: ToolSpec
    tool: Any

    async def needs_approval(self, context: Any, args: dict[str, Any], call_id: str) -> bool:
        """Replaces the tool's `needs_approval`."""
        conversation = current_conversation(self.spec.name)
        try:
            call = await self._call(conversation, context, args, call_id)
            outcome = await self.gate.interlock.check(call, self.spec)
        except InvalidRequest:
            return False  # the error is returned to the model when the tool is invoked
        match outcome:
            case Waiting(approval_id, status) if status != "running":
                conversation.held_calls[self._key(call_id, args)] = HeldCall(
                    approval_id, call.call_id, conversation.path
                )
                return True
            case Proceed(_, ""):
                conversation.allowed_reads.add(call)
                return False
            case _:
                return False

    async def __call__(self, context: ToolContext[Any], text: str) -> Any:
        conversation, args = current_conversation(self.spec.name), parse_arguments(text)
        if not isinstance(args, dict):
            return message_text(problem_message("invalid", "The arguments are not a JSON object."))
        attempt = ToolAttempt(self.tool, context, self.spec.effect != "read")
        try:
            call = await self._call(conversation, context, args, context.tool_call_id)
            outcome = await self._attempt(conversation, call, attempt)
        except Exception as error:  # noqa: BLE001  handled there, or raised again
            return await self._handle_error(attempt, text, error)
        calling = _recorded_arguments(outcome) if self.is_agent else None
        if calling is not None:
            path = (*call.path, self.tool._agent_instance.name)
            return await self._run_agent_tool(
                replace(conversation, parent_call=call.call_id, path=path), context, calling
            )
        return self._to_model_result(outcome, call, attempt.args)

    async def _attempt(
        self, conversation: ConversationContext, call: ToolCall, attempt: ToolAttempt
    ) -> Executed | Outcome:
        body = attempt.recall if self.is_agent else attempt.run
        if call not in conversation.allowed_reads:
            return await self.gate.attempt(call, self.spec, body)
        conversation.allowed_reads.remove(call)  # already checked and counted once
        return Executed(await body(call.parsed_args))

    @property
    def is_agent(self) -> bool:
        return bool(self.tool._is_agent_tool)  # the SDK has no public name for it

    async def _call(self, conversation: ConversationContext, context: Any, args: Args, call_id: str) -> ToolCall:
        """The call. Its id includes a digest of the user's message, since a model may reuse call ids later."""
        known = conversation.held_calls.get(self._key(call_id, args), HeldCall())
        name = known.call_id if tuple(known.path) == conversation.path else ""  # the same agent may be used elsewhere
        name = name or f"{call_id}:{_user_message_digest(conversation.parent_call, context.turn_input)}"
        own = self.tool.needs_approval  # it can require approval, but never waive it
        asks = own(context, args, call_id) if callable(own) else own
        asks = await asks if inspect.isawaitable(asks) else asks
        gate = self._gate(conversation.path)
        return gate.call(self.spec.name, args, conversation.run_id, name, switch="on" if asks else "")

    def _key(self, call_id: str, args: Args) -> str:
        return call_key(self.gate.name, self.spec.name, call_id, args)

    def _gate(self, path: tuple[str, ...]) -> Agent:
        """The gate for the path to this tool: its agent is the one that was called, or one that it handed off to."""
        name = self.gate.name
        return replace(self.gate, path=path if name == path[-1] else (*path, name)) if path else self.gate

    async def _run_agent_tool(self, conversation: ConversationContext, context: Any, args: Mapping[str, Any]) -> Any:
        """Run another agent as a tool: its own calls are gated, and if called again it continues where it stopped."""
        with enter_conversation(conversation):
            return await self.tool.on_invoke_tool(context, json.dumps(args))

    async def _handle_error(self, attempt: ToolAttempt, text: str, error: Exception) -> Any:
        """Pass errors of the tool to the SDK's `failure_error_function`; raise errors of the gate."""
        if isinstance(error, EffectUnknown) or (isinstance(error, InvalidRequest) and error is not attempt.error):
            return message_text(error_message(error, self.spec.name))
        handler: Any = copy.copy(self.tool.on_invoke_tool)
        if error is not attempt.error or not hasattr(handler, "_invoke_tool_impl"):
            raise error

        async def again(*_: object) -> Any:
            raise error

        handler._invoke_tool_impl = again
        return await handler(attempt.context, text)

    def _to_model_result(self, outcome: Executed | Outcome, call: ToolCall, args: Args | None) -> Any:
        """The result for the model, with a note if a reviewer edited the arguments."""
        match outcome:
            case Executed(result) | Finished("succeeded", result):
                edited = edit_note(call, self.spec, outcome, args)
                return self._with_note(result, edited) if edited else result
            case Waiting(approval_id):
                said = f"{call.tool} was not run: a person has to decide first ({approval_id}). Do not call it again."
                return message_text(problem_message("pending", said))
            case _:
                return message_text(to_model_message(outcome, call.tool))

    def _with_note(self, result: Any, note: str) -> Any:
        if self.tool.output_json_schema is not None:
            return result  # a note would not match the schema
        parts = result if isinstance(result, list) else [result]
        if all(isinstance(part, OUTPUTS) or (isinstance(part, dict) and "type" in part) for part in parts):
            return [*parts, agents.ToolOutputText(text=note)]
        return f"{result}\n\n{note}"


@dataclass
class ToolAttempt:
    """One attempt at a call: the arguments that ran, and the error that the tool itself raised."""

    tool: Any
    context: Any
    has_effect: bool
    args: Args | None = None
    error: Exception | None = None

    async def run(self, args: Args) -> Any:
        invoke = self.tool.on_invoke_tool
        raising = getattr(invoke, "_invoke_tool_impl", invoke)  # the wrapper would turn an error into a result
        self.args, self.context.tool_arguments = args, json.dumps(args)
        try:
            return await raising(self.context, self.context.tool_arguments)
        except Exception as error:
            self.error = error
            if self.has_effect and _is_unanswered(self.tool, error):
                raise EffectUnknown("The MCP server gave no answer.") from error
            raise

    async def recall(self, args: Args) -> Args:
        """Return the arguments: they are what the ledger records for a call of another agent."""
        return args


def call_key(agent: str, tool: str, call_id: str, args: object) -> str:
    return f"{call_id}:{digest(json.dumps([agent, tool, args], sort_keys=True).encode())}"


def _user_message_digest(within: str, items: list[Any]) -> str:
    """A digest of the user's newest message: earlier items may differ if a session provides them."""
    told = [item for item in items if isinstance(item, Mapping) and item.get("role") == "user"]
    said = told[-1].get("content") if told else items
    return digest(json.dumps([within, said], sort_keys=True, default=str).encode())[:16]


def parse_arguments(text: str | None) -> object:
    """Parse the arguments; invalid JSON is returned as text."""
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def _is_unanswered(tool: Any, error: Exception) -> bool:
    """Whether the effect of a call to an MCP server is unknown: any error, unless the server itself reported it."""
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
