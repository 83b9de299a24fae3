"""CrewAI: gated tools that wait inline for a decision, since a crew cannot be paused inside a tool."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from crewai.tools.base_tool import BaseTool, Tool
from crewai.tools.tool_failure import ToolFailure, ToolFailureReason
from pydantic import PrivateAttr

from interlock.core.call import Args, ToolCall, ToolSpec
from interlock.core.canonical import canonical, digest
from interlock.core.errors import Error, Misconfigured
from interlock.core.outcome import Finished, Outcome
from interlock.presenters.model_message import plain_text
from interlock.sdk.agent import Agent, Executed, bounded_id


def gated(
    tools: Iterable[BaseTool],
    agent: Agent,
    effects: Mapping[str, str] | None = None,
    secret: Mapping[str, tuple[str, ...]] | None = None,
) -> list[GatedTool]:
    """Gate tools of CrewAI.

    `Agent(role="Clerk", tools=gated([send_mail], crew.agent("clerk"), effects={"get_weather": "read"}))`. A tool
    without an effect counts as unknown and asks for approval. `secret` names arguments that nobody may see.
    """
    tools, effects, secret = list(tools), effects or {}, secret or {}
    unknown = {*effects, *secret} - {tool.name for tool in tools}
    if unknown:
        raise Misconfigured(f"There is no tool {', '.join(sorted(unknown))} among these.")
    return [_gate_tool(tool, agent, effects.get(tool.name, ""), secret.get(tool.name, ())) for tool in tools]


def _gate_tool(tool: BaseTool, agent: Agent, effect: str, secret: tuple[str, ...]) -> GatedTool:
    if isinstance(tool, GatedTool):
        raise Misconfigured(f"{tool.name} has a gate already.")
    made = GatedTool(
        name=tool.name,
        description=tool.description,
        env_vars=tool.env_vars,
        args_schema=tool.args_schema,
        result_schema=tool.result_schema,
        cache_function=tool.cache_function if effect == "read" else never_cache,
        result_as_answer=tool.result_as_answer,
        max_usage_count=tool.max_usage_count,
        tool_failure_policy=tool.tool_failure_policy,
    )
    made.put(tool, agent, ToolSpec(tool.name, effect, schema=_schema(tool), secret=secret))
    return made


def never_cache(_args: Any = None, _result: Any = None) -> bool:
    """A `cache_function` that disables caching: every call of a tool that is not a read must reach the gate."""
    return False


class ToolReportedFailure(Exception):
    """Raised if the tool returned a failure instead of raising."""

    def __init__(self, failure: ToolFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class GatedTool(BaseTool):
    """A tool with a gate, unchanged for the model.

    One restored from a checkpoint has lost its gate and does not run.
    """

    _tool: BaseTool | None = PrivateAttr(default=None)
    _agent: Any = PrivateAttr(default=None)
    _spec: Any = PrivateAttr(default=None)

    def put(self, tool: BaseTool, agent: Agent, spec: ToolSpec) -> None:
        self._tool, self._agent, self._spec = tool, agent, spec

    def format_output_for_agent(self, raw_result: Any) -> str:
        """Format results as the original tool does; failures as CrewAI does."""
        tool = None if isinstance(raw_result, ToolFailure) else self._tool
        return str(
            super().format_output_for_agent(raw_result) if tool is None else tool.format_output_for_agent(raw_result)
        )

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the tool; waits for a decision in this thread, without a timeout."""
        try:
            tool, agent, spec = self._gate()
            agent.interlock.open()
            call = agent.interlock.loop_thread.run(self._call(agent, spec, _json_arguments(tool, args, kwargs)))
            outcome = agent.attempt_until_decided_sync(call, spec, _sync_body(tool))
        except Exception as error:  # noqa: BLE001  CrewAI would immediately retry a tool that raises
            return _to_tool_failure(error)
        return _to_tool_result(outcome, self.name)

    async def _arun(self, *args: Any, **kwargs: Any) -> Any:
        try:
            tool, agent, spec = self._gate()
            if not agent.interlock.is_open:
                await asyncio.to_thread(agent.interlock.open)
            call = await self._call(agent, spec, _json_arguments(tool, args, kwargs))
            outcome = await agent.attempt_until_decided(call, spec, _async_body(tool))
        except Exception as error:  # noqa: BLE001  as above
            return _to_tool_failure(error)
        return _to_tool_result(outcome, self.name)

    def _gate(self) -> tuple[BaseTool, Agent, ToolSpec]:
        if self._tool is None:
            raise Misconfigured(f"{self.name} came back from a checkpoint without its gate. Give the crew gated tools.")
        return self._tool, self._agent, self._spec

    async def _call(self, agent: Agent, spec: ToolSpec, args: Mapping[str, object]) -> ToolCall:
        """Make the call; CrewAI gives a tool neither run nor call id, so the program's run and a counter are used.

        The agent's path is part of the id, so that an agent cannot use the approval of another one.
        """
        counted = await agent.interlock.open().make_call(spec, args)
        call_id = bounded_id(f"{digest(canonical(agent.path))[:16]}:{counted.call_id}")
        named = replace(counted, call_id=call_id, thread_id=counted.run_id, setting="paused")
        return replace(named, agent=agent.name, agent_path=agent.path)


# The original tool


def _json_arguments(tool: BaseTool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, object]:
    """The arguments as JSON, so that a reviewer sees what the tool will get."""
    given = dict(zip(tool.args_schema.model_fields, args, strict=False)) | kwargs
    if not tool.args_schema.model_fields:
        return given
    return dict(tool.args_schema.model_validate(given).model_dump(mode="json"))


def _sync_body(tool: BaseTool) -> Callable[[Args], Any]:
    def run(args: Args) -> Any:
        given = tool._run(**tool._validate_kwargs(dict(args)))
        return _raise_if_failed(asyncio.run(_await_value(given)) if inspect.isawaitable(given) else given)

    return run


def _async_body(tool: BaseTool) -> Callable[[Args], Awaitable[Any]]:
    async def run(args: Args) -> Any:
        if _is_async(tool):
            return _raise_if_failed(await tool._arun(**tool._validate_kwargs(dict(args))))
        return await asyncio.to_thread(_sync_body(tool), args)

    return run


def _is_async(tool: BaseTool) -> bool:
    if isinstance(tool, Tool):
        return inspect.iscoroutinefunction(tool.func)
    return type(tool)._arun is not BaseTool._arun


async def _await_value(given: Any) -> Any:
    return await given


def _raise_if_failed(result: Any) -> Any:
    if isinstance(result, ToolFailure):
        raise ToolReportedFailure(result)
    return result


def _to_tool_result(outcome: Executed | Outcome, name: str) -> Any:
    """The result for CrewAI. A call that did not run is a failure, so that it never becomes the answer of a task."""
    match outcome:
        case Executed(result) | Finished("succeeded", result):
            return result
        case _:
            return ToolFailure(message=plain_text(outcome, name))


def _to_tool_failure(error: Exception) -> ToolFailure:
    """The failure for the model; CrewAI records it and does not retry the tool by itself."""
    match error:
        case ToolReportedFailure():
            return error.failure
        case Error():
            return ToolFailure(message=error.message, code=error.code)
        case _:
            words = f"{type(error).__name__}: {error}"
            return ToolFailure(message=words, reason=ToolFailureReason.EXCEPTION)


def _schema(tool: BaseTool) -> dict[str, object] | None:
    """The schema for the reviewer's form; unknown arguments are refused, since CrewAI would silently drop them."""
    if not tool.args_schema.model_fields:
        return None
    schema: dict[str, object] = tool.args_schema.model_json_schema()
    schema.pop("title", None)
    return {"additionalProperties": False, **schema}
