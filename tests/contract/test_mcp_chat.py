"""The chat with a real MCP server: unknown outcomes, and a restart."""

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
from interlock.chat.mcp.connection import ConnectionTimeouts, McpServers
from interlock.chat.stream import Drafts
from interlock.chat.threads import ThreadLoop
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
from tests.support import all_event_kinds, approve, status
from tests.tools.mcp_harness import QUICK, ROOT, command, server_settings

BOB = Principal("default", "bob", "reviewer")


@dataclass
class CallingModel:
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
async def run_assistant(
    services: AppServices, server: McpServerSettings, tool: str, pace: ConnectionTimeouts = QUICK
) -> AsyncIterator[Assistant]:
    """While it lasts, threads are advanced."""
    store, servers = services.store, McpServers({"files": server}, check_schema, print, timeouts=pace)
    site = await make_server_state(Settings(), services)
    agents = AgentDirectory({"assistant": AgentSettings(tools=("files",))})
    toolbox = ToolRegistry(lambda workspace, _: ToolContext(workspace, store.tool_items(workspace)), [servers.tools])
    drafts = Drafts(store.threads.write_draft, store.announce, store.clock)
    chat = TurnContext(
        threads=store.threads,
        agents=agents,
        tool_registry=toolbox,
        open_model=lambda _: CallingModel(tool),
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


async def send_message(services: AppServices, assistant: Assistant, text: str) -> None:
    site = await make_server_state(Settings(), services)
    await assistant.threads.say(await site.workspaces.services("default"), BOB, text)


async def wait_for_pending(services: AppServices) -> str:
    async with asyncio.timeout(30), services.store.watch("default") as watch:
        while not (found := (await services.store.list("default", ApprovalQuery(statuses=("pending",)))).items):
            await watch.wait(0.1)
    return found[0].approval.id


async def wait_for_end(services: AppServices, approval_id: str) -> str:
    async with asyncio.timeout(30), services.store.watch("default", approval_id) as watch:
        while (now := await status(services, approval_id)) in ("pending", "approved", "running"):
            await watch.wait(0.1)
    return now


# R46
async def test_a_call_without_an_answer_ends_as_unknown_and_is_not_repeated(
    services: AppServices, tmp_path: Path
) -> None:
    with server_settings("child", tmp_path) as server:
        async with run_assistant(services, server, "files_hang", replace(QUICK, call_timeout=0.2)) as assistant:
            await send_message(services, assistant, "go")
            approval_id = await wait_for_pending(services)
            await approve(services, approval_id)
            assert await wait_for_end(services, approval_id) == "unknown"
    assert (await all_event_kinds(services)).count("started") == 1


async def test_an_approved_call_waits_for_its_server_after_a_restart(services: AppServices, tmp_path: Path) -> None:
    """Before the server is connected its tool is not known; the approval must not be taken back for that."""
    slowly = ("-c", 'sleep 1; exec "$@"', "sh", sys.executable, *command(tmp_path))
    server = McpServerSettings("sh", slowly, cwd=str(ROOT))
    async with run_assistant(services, server, "files_note") as assistant:
        await send_message(services, assistant, "go")
        approval_id = await wait_for_pending(services)
    await approve(services, approval_id)
    async with run_assistant(services, server, "files_note"):
        assert await wait_for_end(services, approval_id) == "succeeded"
    assert (tmp_path / "ran").read_text() == "hello\n"
