"""Pydantic AI: gates every tool of an agent; a run pauses for a decision, or waits inline."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from pydantic import ValidationError
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import (
    AgentRunResult,
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessagesTypeAdapter,
    ModelRetry,
    RunContext,
    ToolDenied,
    ToolReturn,
    UserError,
)
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import to_json, to_jsonable_python

from interlock.core.call import Args, ToolCall, ToolSpec
from interlock.core.canonical import canonical_args
from interlock.core.errors import BindingBroken, EffectUnknown, InvalidRequest, Misconfigured
from interlock.core.outcome import Answered, Finished, Outcome, Refused, Waiting
from interlock.core.run import Pause
from interlock.presenters.model_message import error_message, message_text, refusal_message, to_model_message
from interlock.sdk.agent import Agent, Executed

Effects = Mapping[str, str | ToolSpec]
Wait = Literal["", "pause", "inline"]
CONNECTION_ERRORS = (-32000, -32001)  # codes of MCP for a closed connection, and for a timeout
METADATA_KEY = "interlock"  # in the metadata of a tool: that it is gated; of a request: the approval that it waits for


@dataclass
class Gate(AbstractCapability[Any]):
    """Gates all tools of an agent, from any source, except output tools, which end a run.

    `Agent(model, capabilities=[Gate(lock.agent("support"), effects={"get_weather": "read"})])`. A tool without an
    effect counts as unknown and asks for approval. `wait`: "pause" ends the run with DeferredToolRequests and saves it;
    "inline" waits inside the call, the only option for a sub-agent.
    """

    agent: Agent
    effects: Effects = field(default_factory=dict)
    wait: Wait = ""

    def __post_init__(self) -> None:
        self.wait = resolve_wait(self.agent, self.wait)

    def get_ordering(self) -> CapabilityOrdering:
        """Innermost, so that reviewers see calls as changed by other capabilities."""
        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return GatedToolset(toolset, self.agent, self.effects, self.wait)

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        await save_pause(self.agent, result)
        return result


def gated(toolset: AbstractToolset[Any], agent: Agent, effects: Effects | None = None, wait: Wait = "") -> GatedToolset:
    """Gate one toolset, local or of an MCP server. To pause, pass the result of the run to `save_pause`."""
    return GatedToolset(toolset, agent, effects or {}, resolve_wait(agent, wait))


async def save_pause(agent: Agent, result: AgentRunResult[Any]) -> Pause | None:
    """Save a run that waits for a decision until it is resumed; None for any other run. A `Gate` does so itself."""
    if not isinstance(result.output, DeferredToolRequests):
        return None
    waiting = [call_id for call_id, more in result.output.metadata.items() if METADATA_KEY in more]
    if not waiting:
        return None
    messages = ModelMessagesTypeAdapter.dump_json(result.all_messages())
    return await agent.pause(result.conversation_id, json.dumps(waiting).encode() + b"\n" + messages)


async def resume(
    agent: PydanticAgent[Any, Any], pause: Pause, results: DeferredToolResults | None = None, **more: Any
) -> AgentRunResult[Any]:
    """Resume a saved run. Calls that are still pending pause it again; finished calls are not repeated.

    `results` are for calls that the run deferred for its own reasons; `more` goes to the agent's `run`.
    """
    waiting, _, messages = pause.state.partition(b"\n")
    given = results or DeferredToolResults()
    rechecks = DeferredToolResults(approvals=dict.fromkeys(json.loads(waiting), True), metadata=given.metadata)
    rechecks.calls.update(given.calls)
    rechecks.approvals = {**given.approvals, **rechecks.approvals}
    history = ModelMessagesTypeAdapter.validate_json(messages)
    return await agent.run(
        message_history=history, deferred_tool_results=rechecks, conversation_id=pause.run_id, **more
    )


@dataclass
class GatedToolset(WrapperToolset[Any]):
    """A toolset behind the gate. An approval from the framework only triggers another check at the gate."""

    agent: Agent
    effects: Effects
    wait: Wait

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools; one that requires approval by its own definition always asks, at the gate."""
        return {name: _mark_gated(tool) for name, tool in (await super().get_tools(ctx)).items()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        wanted = _make_call(name, tool_args, ctx, tool, self)
        try:
            outcome = await wanted.attempt()
        except InvalidRequest as error:
            raise ModelRetry(error.message) from error
        except EffectUnknown as error:
            raise ToolFailed(message_text(error_message(error, name))) from error
        except BindingBroken as error:
            raise ToolFailed(f"{name} is not the tool any more that was approved. It was not run.") from error
        return _result(outcome, name)

    def spec(self, name: str, tool: ToolsetTool[Any]) -> ToolSpec:
        """The spec. It includes the tool's description, so that a server that changes it voids the approval."""
        known, definition = self.effects.get(name, ""), tool.tool_def
        schema = {"description": definition.description or "", **definition.parameters_json_schema}
        if isinstance(known, ToolSpec):
            return replace(known, name=name, schema=known.schema or schema)
        return ToolSpec(name, known, schema=schema)


def resolve_wait(agent: Agent, wait: Wait) -> Wait:
    """The wait mode. The run of a sub-agent is part of a call of its parent, and cannot be saved."""
    if wait not in ("", "pause", "inline"):
        raise Misconfigured(f'wait is "pause" or "inline", not {wait!r}.')
    if len(agent.path) == 1:
        return wait or "pause"
    if wait == "pause":
        raise Misconfigured(f'{agent.name} is a sub-agent: its calls wait where they stand. Say wait="inline".')
    return "inline"


@dataclass(frozen=True, kw_only=True)
class _ToolsetCall:
    """One call: reviewers see `model_args`; the tool gets `args` if they are not edited."""

    name: str
    model_args: Args
    args: dict[str, Any]
    ctx: RunContext[Any]
    tool: ToolsetTool[Any]
    gate: GatedToolset

    async def attempt(self) -> Executed | Outcome:
        call, spec, agent = self.call(), self.gate.spec(self.name, self.tool), self.gate.agent
        attempt = agent.attempt_until_decided if self.gate.wait == "inline" else agent.attempt
        return await attempt(call, spec, lambda approved: self.run(call, spec, approved))

    def call(self) -> ToolCall:
        conversation = self.ctx.conversation_id
        if not conversation:
            raise UserError("A gated agent needs the id of its conversation: agent.run(…, conversation_id=…).")
        switch = "" if (self.tool.tool_def.metadata or {}).get(METADATA_KEY) == "gated" else "on"
        return self.gate.agent.call(self.name, self.model_args, conversation, self.call_id(), switch=switch)

    def call_id(self) -> str:
        """The framework's call id, stable across resumes, and made unique, since models reuse ids such as call_1."""
        own, found = str(self.ctx.tool_call_id), _find_model_call(self.ctx)
        if found is None:
            return "/".join((*self.gate.agent.path[1:], own))
        answer = found[0].provider_response_id
        before = sum(own == part.tool_call_id for message in self.ctx.messages for part in _tool_calls(message)) - 1
        parts = (*self.gate.agent.path[1:], answer, own, before and str(before))
        return "/".join(part for part in parts if part)

    async def run(self, call: ToolCall, spec: ToolSpec, approved: Args) -> Any:
        if canonical_args(approved) == call.args:
            return await self.body(self.args)
        result = await self.body(await self.validate_edit(approved))
        note = (
            f"A reviewer changed the arguments of this call. {self.name} ran with: {_edit_text(call, spec, approved)}"
        )
        if not isinstance(result, ToolReturn):
            return ToolReturn(result, content=note)
        before = [result.content] if isinstance(result.content, str) else [*(result.content or [])]
        return replace(result, content=[*before, note])

    async def validate_edit(self, approved: Args) -> dict[str, Any]:
        """Validate edited arguments: they match the schema, but the tool may have stricter checks."""
        try:
            args = _validated(to_json(approved).decode(), self.ctx, self.tool)
            if self.tool.args_validator_func is not None:
                checked = self.tool.args_validator_func(self.ctx, **args)
                if inspect.isawaitable(checked):
                    await checked
        except (ValidationError, ModelRetry, ToolFailed) as error:
            said = f"A reviewer changed the arguments of {self.name} into some that it does not take: it was not run."
            raise ToolFailed(said) from error
        return args

    async def body(self, args: dict[str, Any]) -> Any:
        """Call the tool. Allowed reads are left to the framework; for a started call the ledger must be correct."""
        try:
            return await self.gate.wrapped.call_tool(self.name, args, self.ctx, self.tool)
        except (ApprovalRequired, CallDeferred) as error:
            if self.gate.agent.interlock.execution() is None:
                raise
            said = (
                f"{self.name} was approved, and then asked for itself. Leave that to the gate; only a read can defer."
            )
            raise UserError(said) from error
        except ModelRetry as error:
            if self.gate.agent.interlock.execution() is None or not _is_effect_unknown(error):
                raise
            raise EffectUnknown(error.message) from error


def _make_call(
    name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any], gate: GatedToolset
) -> _ToolsetCall:
    """The call with the model's arguments, or with those that a hook changed, so that reviewers see what would run."""
    found = _find_model_call(ctx)
    if found is not None:
        given = found[1].args or {}
        try:
            read = _validated(given, ctx, tool)
            if read == tool_args or read != _validated(given, ctx, tool):  # or a default differs on each validation
                return _ToolsetCall(
                    name=name, model_args=found[1].args_as_dict(), args=read, ctx=ctx, tool=tool, gate=gate
                )
        except (ValidationError, ModelRetry):
            pass  # a hook corrected them
    return _ToolsetCall(
        name=name, model_args=cast(Args, to_jsonable_python(tool_args)), args=tool_args, ctx=ctx, tool=tool, gate=gate
    )


def _validated(args: str | dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]) -> dict[str, Any]:
    read = tool.args_validator.validate_json if isinstance(args, str) else tool.args_validator.validate_python
    return cast(dict[str, Any], read(args, context=ctx.validation_context))


def _is_effect_unknown(error: ModelRetry) -> bool:
    """Whether a tool timed out or lost its server instead of failing: it may still run, or have run."""
    told = getattr(error.__cause__, "error", None)
    timed_out = isinstance(error.__context__, TimeoutError) and error.__suppress_context__
    return timed_out or getattr(told, "code", None) in CONNECTION_ERRORS


def _mark_gated(tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
    definition = tool.tool_def
    known = definition.metadata or {}
    if METADATA_KEY in known:
        raise UserError(f"{definition.name} stands behind two gates. Keep the Gate of the agent, or the gated toolset.")
    if definition.kind not in ("function", "unapproved"):
        return tool
    mark = "asks" if definition.kind == "unapproved" else "gated"
    return replace(tool, tool_def=replace(definition, kind="function", metadata={**known, METADATA_KEY: mark}))


def _find_model_call(ctx: RunContext[Any]) -> tuple[ModelResponse, ToolCallPart] | None:
    """The call in the model's last response; None for a call made by code."""
    last = next((message for message in reversed(ctx.messages) if isinstance(message, ModelResponse)), None)
    found = [part for part in _tool_calls(last) if part.tool_call_id == ctx.tool_call_id]
    return (last, found[0]) if last and found else None


def _tool_calls(message: object) -> list[ToolCallPart]:
    return list(message.tool_calls) if isinstance(message, ModelResponse) else []


def _edit_text(call: ToolCall, spec: ToolSpec, approved: Args) -> str:
    """The edited arguments for the model; with secrets, only the names of changed arguments."""
    if not spec.secret:
        return json.dumps(approved, ensure_ascii=False)
    names = sorted({*approved, *call.parsed_args})
    return "other values of " + ", ".join(name for name in names if approved.get(name) != call.parsed_args.get(name))


def _result(outcome: Executed | Outcome, tool: str) -> Any:
    match outcome:
        case Executed(result):
            return result
        case Waiting(approval_id):
            raise ApprovalRequired(metadata={METADATA_KEY: approval_id})
        case Finished("succeeded", {"kind": "tool-return", "return_value": value}):
            return value
        case Finished("succeeded") | Answered():
            return to_model_message(outcome, tool)
        case Refused():
            return ToolDenied(message_text(refusal_message(outcome, tool)))
        case _:
            raise ToolFailed(message_text(to_model_message(outcome, tool)))
