"""The agent that chats, with the tools of a real MCP server: what is told when nobody knows, and after a restart."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from interlock.app.bootstrap import AppServices
from interlock.chat.agents import AgentDirectory
from interlock.chat.assistant import Assistant
from interlock.chat.loop import ThreadLoop
from interlock.chat.mcp.connection import ConnectionTimeouts, McpServers
from interlock.chat.stream import Drafts
from interlock.chat.tool import ToolContext
from interlock.chat.tool_registry import ToolRegistry
from interlock.chat.turn import TurnContext
from interlock.config.models import AgentSettings, McpServerSettings, Settings
from interlock.core.chat.transcript import Delta, ModelReply, Prompt, ToolRequest, ToolResult
from interlock.core.identity import Principal
from interlock.core.ports import ApprovalQuery
from interlock.runtime.json_schema import check_schema
from interlock.runtime.process_identity import is_dead, make_runner_id
from interlock.server.serve import make_server_state
from tests.support import approve, every_kind, status
from tests.tools.small import QUICK, ROOT, command, small

BOB = Principal("default", "bob", "reviewer")


@dataclass
class Wishes:
    """A model that makes one call and then says what came of it."""

    tool: str
    name: str = "test:wishes"

    async def turn(self, prompt: Prompt) -> AsyncIterator[Delta | ModelReply]:
        results = [message for message in prompt.messages if isinstance(message, ToolResult)]
        if results:
            yield ModelReply(json.dumps(results[-1].content))
        else:
            yield ModelReply("", (ToolRequest("call", self.tool, '{"text": "hello"}'),))


@asynccontextmanager
async def chatting(
    parts: AppServices, server: McpServerSettings, tool: str, pace: ConnectionTimeouts = QUICK
) -> AsyncIterator[Assistant]:
    """While it lasts, threads are advanced."""
    store, servers = parts.store, McpServers({"files": server}, check_schema, print, timeouts=pace)
    site = await make_server_state(Settings(), parts)
    agents = AgentDirectory({"assistant": AgentSettings(tools=("files",))})
    toolbox = ToolRegistry(lambda workspace, _: ToolContext(workspace, store.records(workspace)), [servers.tools])
    drafts = Drafts(store.threads.write_draft, store.announce, store.clock)
    chat = TurnContext(
        threads=store.threads,
        agents=agents,
        tool_registry=toolbox,
        open_model=lambda _: Wishes(tool),
        drafts=drafts,
        clock=store.clock,
        runner=make_runner_id(),
    )
    loop = ThreadLoop(chat, site.workspaces.services, store.watch, is_dead, site.log.write_exception)
    assistant = replace(site.assistant, agents=agents, tool_registry=toolbox, loop=loop, mcp=servers)
    stop = asyncio.Event()
    async with assistant.open():
        working = asyncio.gather(*(chore(stop) for chore in assistant.background_tasks))
        try:
            yield assistant
        finally:
            stop.set()
            await working


async def say(parts: AppServices, assistant: Assistant, text: str) -> None:
    site = await make_server_state(Settings(), parts)
    await assistant.threads.say(await site.workspaces.services("default"), BOB, text)


async def asked(parts: AppServices) -> str:
    async with asyncio.timeout(30), parts.store.watch("default") as watch:
        while not (found := (await parts.store.list("default", ApprovalQuery(statuses=("pending",)))).items):
            await watch.wait(0.1)
    return found[0].approval.id


async def ended(parts: AppServices, approval_id: str) -> str:
    async with asyncio.timeout(30), parts.store.watch("default", approval_id) as watch:
        while (now := await status(parts, approval_id)) in ("pending", "approved", "running"):
            await watch.wait(0.1)
    return now


async def test_a_call_without_an_answer_ends_as_unknown_and_is_not_repeated(parts: AppServices, tmp_path: Path) -> None:
    with small("child", tmp_path) as server:  # R46
        async with chatting(parts, server, "files_hang", replace(QUICK, call_timeout=0.2)) as assistant:
            await say(parts, assistant, "go")
            approval_id = await asked(parts)
            await approve(parts, approval_id)
            assert await ended(parts, approval_id) == "unknown"
    assert (await every_kind(parts)).count("started") == 1


async def test_an_approved_call_waits_for_its_server_after_a_restart(parts: AppServices, tmp_path: Path) -> None:
    """Before the server is connected its tool is not known; the approval must not be taken back for that."""
    slowly = ("-c", 'sleep 1; exec "$@"', "sh", sys.executable, *command(tmp_path))
    server = McpServerSettings("sh", slowly, cwd=str(ROOT))
    async with chatting(parts, server, "files_note") as assistant:
        await say(parts, assistant, "go")
        approval_id = await asked(parts)
    await approve(parts, approval_id)
    async with chatting(parts, server, "files_note"):
        assert await ended(parts, approval_id) == "succeeded"
    assert (tmp_path / "ran").read_text() == "hello\n"
