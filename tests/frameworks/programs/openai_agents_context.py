"""Where the scenes of the OpenAI Agents SDK play: an agent, its tools, what they did, and people who decide."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

from agents import Agent, function_tool
from agents.mcp import MCPServer
from mcp import MCPError
from mcp.types import CallToolResult, TextContent
from mcp.types import Tool as McpTool

from interlock import Interlock
from interlock.integrations.openai_agents import GatedAgent, gated
from tests.frameworks.programs.model_scripts import Call
from tests.frameworks.programs.openai_agents_model import ScriptedModel

REFUND = Call("call_1", "refund", {"order": "A1"})
OTHER = Call("call_2", "refund", {"order": "B2"})
LOOK = Call("call_3", "look_up", {"order": "A1"})
EFFECTS = {"refund": "write", "look_up": "read"}
POLICY = """\
version: 1
defaults: {undo_window: 0s}
rules:
  - {name: never, tools: [wipe], then: deny, reason: Nobody wipes.}
"""


class ScenarioContext:
    """The tools, what they did, and people who decide."""

    def __init__(self, lock: Interlock, folder: Path) -> None:
        self.lock, self.folder = lock, folder
        self.calls: list[str] = []

    def tools(self, **options: Any) -> list[Any]:
        async def refund(order: str) -> str:
            self.calls.append(f"refund {order}")
            return f"refunded {order}"

        def look_up(order: str) -> str:
            self.calls.append(f"look_up {order}")
            return f"{order} is paid"

        return [function_tool(refund, **options), function_tool(look_up)]

    def support(self, *calls: Call, tools: list[Any] | None = None, effects: Any = EFFECTS, **more: Any) -> GatedAgent:
        made = Agent("support", tools=self.tools() if tools is None else tools, model=scripted_model(*calls), **more)
        return gated(made, self.lock.agent("support"), effects)

    def approvals(self, run: str) -> list[dict[str, Any]]:
        with sqlite3.connect(self.folder / "approvals.db") as database:
            found = database.execute(
                "select id, tool, agent_path, status, call_id from approvals where run_id = ? order by call_id", (run,)
            )
            named = ("id", "tool", "path", "status", "call_id")
            return [dict(zip(named, (*row[:2], json.loads(row[2]), *row[3:]), strict=True)) for row in found]

    def statuses(self, run: str) -> list[str]:
        return [row["status"] for row in self.approvals(run)]

    async def decide(self, run: str, *decisions: Any) -> None:
        """On those that wait, in the order of their ids."""
        waiting = [row["id"] for row in self.approvals(run) if row["status"] == "pending"]
        for approval_id, decision in zip(waiting, decisions, strict=False):
            await self.lock.decide(approval_id, decision, "ada")

    async def ready(self, run: str) -> Any:
        """The one that can go on; others have to be over."""
        (pause,) = await self.lock.agent("support").acquire_ready_pauses(0)
        assert pause.run_id == run
        return pause


def scripted_model(*calls: Call) -> ScriptedModel:
    """Wants the calls, then says what it was told."""
    return ScriptedModel(lambda told: calls if len(told) < len(calls) else " | ".join(told))


class FakeMcpServer(MCPServer):
    """A server without a process."""

    def __init__(self, context: ScenarioContext) -> None:
        super().__init__()
        self.world = context

    @property
    def name(self) -> str:
        return "files"

    async def connect(self) -> None: ...
    async def cleanup(self) -> None: ...
    async def list_prompts(self) -> Any: ...
    async def get_prompt(self, name: str, arguments: Any = None) -> Any: ...

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[Any]:
        schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
        return [McpTool(name=name, inputSchema=schema) for name in ("read_file", "delete_file")]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> Any:
        self.world.calls.append(f"{tool_name} {arguments['path']}")
        if arguments["path"] == "lost":
            raise ConnectionError("it went away")
        if arguments["path"] == "refused":
            raise MCPError(code=-32602, message="no such file")
        return CallToolResult(content=[TextContent(type="text", text=f"{tool_name} ok")])


async def drain(result: Any) -> None:
    async for _ in result.stream_events():
        pass


async def wait_until(true: Any) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110  it is another process' or the database's
            await asyncio.sleep(0.01)
