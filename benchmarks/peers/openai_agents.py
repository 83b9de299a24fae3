"""OpenAI Agents: the run ends with its interruptions, and the application keeps the state that continues it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from agents import Agent, Runner, RunState, function_tool, set_tracing_disabled
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from benchmarks import state_table
from benchmarks.peers import CALLS, TOOL, PeerDatabase, Tool, Turns, UnaskedGates, arguments, gates
from interlock.integrations.openai_agents import gated

TITLE = "OpenAI Agents"
DATABASES = ("sqlite",)
PACKAGES = ("openai-agents",)
ENVIRONMENT = ".venv-frameworks/openai_agents"


class Peer:
    async def open(self, place: PeerDatabase, tool: Tool) -> str:
        set_tracing_disabled(True)
        self._table = await state_table.open_table(place)
        self._agent = Agent(name="bench", model=FakeModel(1), tools=[make_tool(tool, asked=True)])
        return f"a table of the application, {await self._table.durability()}"

    async def propose(self, key: str) -> None:
        found = await Runner.run(self._agent, key)
        assert found.interruptions
        await self._table.insert(key, found.to_state().to_string())

    async def decide(self, key: str, paused: None) -> None:
        state = await RunState.from_string(self._agent, await self._table.state(key))
        for interruption in state.get_interruptions():
            state.approve(interruption)
        await self._table.mark(key, "approved", "")
        found = await Runner.run(self._agent, state)
        await self._table.mark(key, "done", found.final_output)

    async def close(self) -> None:
        await self._table.close()


def build_unasked(folder: Path) -> UnaskedGates:
    """A tool that never asks, and one that has to be looked at by a function, which says no."""
    set_tracing_disabled(True)
    names = itertools.count()

    async def no_need(context: Any, args: Any, call_id: str) -> bool:
        return False

    def turns(asked: Any) -> Turns:
        agent = Agent(name="bench", model=FakeModel(CALLS), tools=[make_tool(Tool(), asked=asked)])

        async def run() -> None:
            found = await Runner.run(agent, "x", max_turns=CALLS + 5)
            assert found.final_output == "done"

        return run

    def behind(gate: Any, effect: str) -> Turns:
        agent = gated(
            Agent(name="bench", model=FakeModel(CALLS), tools=[make_tool(Tool(), asked=False)]), gate, {TOOL: effect}
        )

        async def run() -> None:
            found = await agent.run("x", run_id=f"conversation {next(names)}", max_turns=CALLS + 5)
            assert found.final_output == "done"

        return run

    sides = (behind(gate, effect) for gate, effect in zip(gates(folder), ("read", "write"), strict=True))
    return UnaskedGates(turns(False), turns(no_need), *sides)


def make_tool(tool: Tool, *, asked: Any) -> Any:
    @function_tool(name_override=TOOL, needs_approval=asked)
    async def delete_file(path: str, key: str) -> str:
        """Deletes a file."""
        return tool.run(key)

    return delete_file


class FakeModel(Model):
    """A model that wants the tool so many times and is done then."""

    def __init__(self, calls: int) -> None:
        self._calls = calls

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> Any:
        items = [{"content": input}] if isinstance(input, str) else input
        done = sum(item.get("type") == "function_call_output" for item in items)
        wanted = (
            text_response("done")
            if done == self._calls
            else tool_call_response(items[0]["content"] if self._calls == 1 else done)
        )
        return ModelResponse(output=[wanted], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError


def tool_call_response(key: Any) -> Any:
    args = json.dumps(arguments(str(key)))
    return ResponseFunctionToolCall(
        id=f"item_{key}", call_id=f"call_{key}", type="function_call", name=TOOL, arguments=args
    )


def text_response(text: str) -> Any:
    content = [ResponseOutputText(text=text, type="output_text", annotations=[])]
    return ResponseOutputMessage(id="said", type="message", role="assistant", status="completed", content=content)
