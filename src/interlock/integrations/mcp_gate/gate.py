"""The gate between an MCP client and MCP servers, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mcp_types import INVALID_REQUEST, JSONRPCMessage, RequestId

from interlock.chat.mcp.definition import StoredDefinitionHistory
from interlock.core.errors import Misconfigured
from interlock.integrations.mcp_gate.call import ToolCallHandler
from interlock.integrations.mcp_gate.frames import BadFrame, Rejections, make_error, read_frame_async
from interlock.integrations.mcp_gate.http import PATH, HttpAccess, HttpGate
from interlock.integrations.mcp_gate.session import EndUnanswered, GateSession, SendFrame, UpstreamOptions
from interlock.sdk.agent import Agent

__all__ = ["PATH", "HttpAccess", "McpGate", "UpstreamOptions", "WaitOptions", "mcp_gate"]
MAX_LINE = 16 * 1024 * 1024  # maximum bytes of a frame


@dataclass(frozen=True)
class WaitOptions:
    """`wait` is how many seconds a call is held; `public_url` is the base address of the pages of approvals."""

    wait: float = 60.0
    public_url: str = ""


@dataclass(frozen=True)
class McpGate:
    """The gate of one process; `run_id` is its run, within which repeated calls are numbered."""

    handler: ToolCallHandler
    upstream_options: UpstreamOptions
    run_id: str
    has_fixed_run: bool = False

    async def serve_stdio(self, say: Callable[[str], None], stop: asyncio.Event) -> bool:
        """Serve until the client or the server ends, or `stop` is set; False if the server ended."""
        reader, send = await _open_stdio()

        async def tell(message: JSONRPCMessage, _: RequestId | None) -> None:
            await send(message.model_dump_json(by_alias=True, exclude_unset=True).encode())

        session = GateSession(self.handler, self.upstream_options, self.run_id, tell)
        hearing = asyncio.create_task(read_frames(reader, session, self.handler.rejections))
        others = [asyncio.create_task(event.wait()) for event in (session.ended, stop)]
        try:
            await asyncio.wait([hearing, *others], return_when=asyncio.FIRST_COMPLETED)
        finally:
            by_server = session.ended.is_set() and not hearing.done()
            for task in (hearing, *others):
                task.cancel()
            await session.drain(stop)
            await self.close()  # clients kill a process that does not end at once, and a server may take long
            await session.close()
        if by_server:
            say(f"The MCP server is gone: {session.close_reason}")
        return not by_server

    async def close(self) -> None:
        """Close the connection; the run stays open while calls are pending, so that the next start continues it."""
        finished = not self.handler.waiting_calls
        await asyncio.to_thread(lambda: self.handler.agent.interlock.close(finished=finished))

    def make_http_app(self, access: HttpAccess) -> HttpGate:
        """The ASGI application; each HTTP session is a separate run, unless a run was named for all."""

        def opened(name: str, tell: SendFrame, unanswered: EndUnanswered | None) -> GateSession:
            run_id = f"{self.run_id}:{name[:16]}" if name and not self.has_fixed_run else self.run_id
            return GateSession(self.handler, self.upstream_options, run_id, tell, unanswered)

        return HttpGate(opened, access, self.handler.rejections)


@asynccontextmanager
async def mcp_gate(
    agent: Agent,
    upstream_options: UpstreamOptions,
    waits: WaitOptions,
    run_id: str = "",
    log: Callable[[str], None] | None = None,
) -> AsyncIterator[McpGate]:
    """Open the gate; the next start of the same agent continues calls that are still pending when this ends.

    `log` gets a line about client frames that reached no server.
    """
    if not upstream_options.servers:
        raise Misconfigured(
            "There is no MCP server. Name one after --: interlock mcp-gate -- COMMAND. Or list servers under "
            "mcp_servers: in a file that --config names; an interlock.yaml in the working folder is not read."
        )
    lock = agent.interlock
    session = await asyncio.to_thread(lock.open)
    key = await session.backend.call_id_key()
    definition_history = StoredDefinitionHistory(session.backend.tool_items())
    handler = ToolCallHandler(
        agent,
        key,
        wait=waits.wait,
        public_url=waits.public_url,
        rejections=Rejections(log),
        definition_history=definition_history,
    )
    gate = McpGate(handler, upstream_options, run_id or session.run_id, bool(run_id))
    try:
        yield gate
    finally:
        await gate.close()


async def read_frames(reader: asyncio.StreamReader, session: GateSession, rejections: Rejections) -> None:
    """Process the client's frames, one per line, until it disconnects."""
    while line := await _read_line(reader, session):
        if not line.strip():
            continue
        try:
            message = await read_frame_async(line, MAX_LINE)
        except BadFrame as bad:
            rejections.count(bad)
            await session.send_frame(make_error(bad.request_id, bad.code, bad.message), None)
            continue
        await session.receive_frame(message)


async def _read_line(reader: asyncio.StreamReader, session: GateSession) -> bytes:
    """The next line; empty at the end, and after a frame that is too long, since the next one cannot be found."""
    try:
        return await reader.readline()
    except ValueError:
        words = f"A frame takes at most {MAX_LINE:,} bytes. Nothing after it is read."
        await session.send_frame(make_error(None, INVALID_REQUEST, words), None)
        return b""


async def _open_stdio() -> tuple[asyncio.StreamReader, Callable[[bytes], Awaitable[None]]]:
    """Reserve stdin and stdout for the protocol; other output is redirected to standard error."""
    loop = asyncio.get_running_loop()
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    reader = asyncio.StreamReader(limit=MAX_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), incoming)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, outgoing)
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)

    async def send(line: bytes) -> None:
        writer.write(line + b"\n")
        await writer.drain()

    return reader, send
