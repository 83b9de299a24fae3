"""The agent that chats, with the tools of a real MCP server: what is told when nobody knows, and after a restart."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from interlock.app.bootstrap import Parts
from interlock.chat.agents import Agents
from interlock.chat.assistant import Assistant
from interlock.chat.drafts import Drafts
from interlock.chat.loop import Loop
from interlock.chat.mcp.connection import Pace
from interlock.chat.mcp.servers import McpServers
from interlock.chat.tool import Kit
from interlock.chat.tool_registry import Toolbox
from interlock.chat.turn import Parts as Chat
from interlock.config.models import Agent, McpServer, Settings
from interlock.core.chat.prompt import Delta, Prompt, Replied, Result, Wish
from interlock.core.identity import Principal
from interlock.core.ports import Query
from interlock.runtime.json_schema import check_schema
from interlock.runtime.process_identity import is_dead, this_runner
from interlock.server.serve import site_of
from tests.support import approve, every_kind, status
from tests.tools.small import QUICK, ROOT, command, small

BOB = Principal("default", "bob", "reviewer")


@dataclass
class Wishes:
    """A model that makes one call and then says what came of it."""

    tool: str
    name: str = "test:wishes"

    async def turn(self, prompt: Prompt) -> AsyncIterator[Delta | Replied]:
        results = [message for message in prompt.messages if isinstance(message, Result)]
        if results:
            yield Replied(json.dumps(results[-1].content))
        else:
            yield Replied("", (Wish("call", self.tool, '{"text": "hello"}'),))


@asynccontextmanager
async def chatting(parts: Parts, server: McpServer, tool: str, pace: Pace = QUICK) -> AsyncIterator[Assistant]:
    """While it lasts, threads are advanced."""
    store, servers = parts.store, McpServers({"files": server}, check_schema, print, pace=pace)
    site = await site_of(Settings(), parts)
    agents = Agents({"assistant": Agent(tools=("files",))})
    toolbox = Toolbox(lambda workspace, _: Kit(workspace, store.records(workspace)), [servers.tools])
    drafts = Drafts(store.threads.write_draft, store.announce, store.clock)
    chat = Chat(store.threads, agents, toolbox, lambda _: Wishes(tool), drafts, store.clock, this_runner())
    loop = Loop(chat, site.workspaces.doors, store.watch, is_dead, site.log.failed)
    assistant = replace(site.assistant, agents=agents, toolbox=toolbox, loop=loop, mcp=servers)
    stop = asyncio.Event()
    async with assistant.open():
        working = asyncio.gather(*(chore(stop) for chore in assistant.chores))
        try:
            yield assistant
        finally:
            stop.set()
            await working


async def say(parts: Parts, assistant: Assistant, text: str) -> None:
    site = await site_of(Settings(), parts)
    await assistant.threads.say(await site.workspaces.doors("default"), BOB, text)


async def asked(parts: Parts) -> str:
    async with asyncio.timeout(30), parts.store.watch("default") as watch:
        while not (found := (await parts.store.list("default", Query(statuses=("pending",)))).items):
            await watch.changed(0.1)
    return found[0].approval.id


async def ended(parts: Parts, approval_id: str) -> str:
    async with asyncio.timeout(30), parts.store.watch("default", approval_id) as watch:
        while (now := await status(parts, approval_id)) in ("pending", "approved", "running"):
            await watch.changed(0.1)
    return now


async def test_a_call_without_an_answer_ends_as_unknown_and_is_not_repeated(parts: Parts, tmp_path: Path) -> None:
    with small("child", tmp_path) as server:  # R46
        async with chatting(parts, server, "files_hang", replace(QUICK, call=0.2)) as assistant:
            await say(parts, assistant, "go")
            approval_id = await asked(parts)
            await approve(parts, approval_id)
            assert await ended(parts, approval_id) == "unknown"
    assert (await every_kind(parts)).count("started") == 1


async def test_an_approved_call_waits_for_its_server_after_a_restart(parts: Parts, tmp_path: Path) -> None:
    """Before the server is connected its tool is not known; the approval must not be taken back for that."""
    slowly = ("-c", 'sleep 1; exec "$@"', "sh", sys.executable, *command(tmp_path))
    server = McpServer("sh", slowly, cwd=str(ROOT))
    async with chatting(parts, server, "files_note") as assistant:
        await say(parts, assistant, "go")
        approval_id = await asked(parts)
    await approve(parts, approval_id)
    async with chatting(parts, server, "files_note"):
        assert await ended(parts, approval_id) == "succeeded"
    assert (tmp_path / "ran").read_text() == "hello\n"
