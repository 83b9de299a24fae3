"""Pydantic AI: the run ends with deferred requests, and the application keeps the messages that continue it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, FunctionToolset
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from benchmarks import state_table
from benchmarks.peers import CALLS, TOOL, PeerDatabase, Tool, Turns, UnaskedGates, arguments, gates
from interlock.integrations.pydantic_ai import gated

TITLE = "Pydantic AI"
DATABASES = ("sqlite", "postgresql")
PACKAGES = ("pydantic-ai-slim",)


class Peer:
    async def open(self, place: PeerDatabase, tool: Tool) -> str:
        self._table = await state_table.open_table(place)
        self._agent = agent(call_once, toolset(tool).approval_required())
        return f"a table of the application, {await self._table.durability()}"

    async def propose(self, key: str) -> None:
        found = await self._agent.run(key)
        assert isinstance(found.output, DeferredToolRequests)
        await self._table.insert(key, found.all_messages_json().decode())

    async def decide(self, key: str, paused: None) -> None:
        messages = ModelMessagesTypeAdapter.validate_json(await self._table.state(key))
        calls = [part.tool_call_id for part in messages[-1].parts if isinstance(part, ToolCallPart)]
        await self._table.mark(key, "approved", "")
        results = DeferredToolResults(approvals=dict.fromkeys(calls, True))
        found = await self._agent.run(message_history=messages, deferred_tool_results=results)
        await self._table.mark(key, "done", found.output)

    async def close(self) -> None:
        await self._table.close()


def build_unasked(folder: Path) -> UnaskedGates:
    """A plain toolset, and one that has to be looked at by a function, which says no."""

    names = itertools.count()

    def turns(tools: Any) -> Turns:
        asking = agent(call_repeatedly, tools)

        async def run() -> None:
            assert (await asking.run("x", conversation_id=f"conversation {next(names)}")).output == "done"

        return run

    asked = toolset(Tool()).approval_required(lambda context, definition, args: False)
    sides = (
        turns(gated(toolset(Tool()), gate, {TOOL: effect}))
        for gate, effect in zip(gates(folder), ("read", "write"), strict=True)
    )
    return UnaskedGates(turns(toolset(Tool())), turns(asked), *sides)


def agent(model: Any, tools: Any) -> Any:
    return Agent(FunctionModel(model), output_type=[str, DeferredToolRequests], toolsets=[tools])


def toolset(tool: Tool) -> Any:
    async def delete_file(path: str, key: str) -> str:
        return tool.run(key)

    tools: Any = FunctionToolset()
    tools.add_function(delete_file, name=TOOL)
    return tools


def call_once(messages: Any, info: Any) -> Any:
    """A model that wants the tool once and is done then."""
    last = messages[-1].parts[-1]
    return text_response() if isinstance(last, ToolReturnPart) else tool_call_response(last.content)


def call_repeatedly(messages: Any, info: Any) -> Any:
    """Wants it CALLS times."""
    count = sum(isinstance(part, ToolReturnPart) for message in messages for part in message.parts)
    return text_response() if count == CALLS else tool_call_response(str(count))


def tool_call_response(key: str) -> Any:
    return ModelResponse(parts=[ToolCallPart(TOOL, arguments(key), tool_call_id=f"call_{key}")])


def text_response() -> Any:
    return ModelResponse(parts=[TextPart("done")])
