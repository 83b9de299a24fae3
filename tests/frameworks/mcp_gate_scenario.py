"""The MCP gate as a process in front of the MCP test server, and a client of the SDK."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.session import ElicitationFnT
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.approval.approval import Approval
from interlock.core.decision import Acknowledgement, Approve, Decision
from interlock.core.ports import ApprovalQuery
from tests.support import ADA

ROOT = Path(__file__).parents[2]
TIMEOUT = 60.0  # seconds, on a loaded machine
POLICY = "version: 1\ndefaults:\n  undo_window: 0s\n  expires_in: {chat: 120s, queue: 5m, paused: 30m}\n"
GATE = (sys.executable, "-m", "interlock", "mcp-gate")
PAGES = "https://interlock.example.com"

Question = ElicitationFnT


@dataclass
class McpGateScenario:
    """A database, the folder in which the server counts its effects, and the gate's command."""

    folder: Path
    services: AppServices
    servers: Sequence[str] = field(default_factory=list)

    @property
    def written_notes(self) -> list[str]:
        """The notes that were really written."""
        file = self.folder / "ran"
        return file.read_text().splitlines() if file.exists() else []

    def define_tools(self, **tools: Any) -> None:
        """From now on the server says that its tools are these."""
        (self.folder / "tools.json").write_text(json.dumps(tools))

    def command(self, *options: str, behind: Sequence[str] | None = None) -> list[str]:
        server = [sys.executable, "-m", "tests.tools.mcp_server", str(self.folder)]
        behind = ["--", *server] if behind is None else behind
        return [*GATE, "--database", self.url, "--reads", "lo*,add", *options, *behind]

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'interlock.db'}"

    # People

    async def pending_approvals(self) -> list[Approval]:
        page = await self.services.store.list("default", ApprovalQuery(statuses=("pending",)))
        return [stored.approval for stored in page.items]

    async def wait_pending(self) -> str:
        """The id of the one that waits, as soon as there is one."""
        await wait_until(self.pending_approvals)
        (found,) = await self.pending_approvals()
        return found.id

    async def decide(self, approval_id: str, decision: Decision | None = None) -> None:
        approval = (await self.services.store.get("default", approval_id)).approval
        agreed = Approve(Acknowledgement(approval.args_sha256, approval.findings.alarms))
        await self.services.inbox.decide("default", approval_id, decision or agreed, ADA)

    async def status(self, approval_id: str) -> str:
        return (await self.services.store.get("default", approval_id)).approval.status

    # Clients

    @asynccontextmanager
    async def client(
        self, way: str, *options: str, behind: Sequence[str] | None = None, ask: Question | None = None
    ) -> AsyncIterator[Client]:
        """`way` is how it is reached and how new its protocol is, such as "stdio legacy"."""
        transport, _, mode = way.partition(" ")
        command = self.command(*options, behind=behind)
        if transport == "stdio":
            stdio = StdioServerParameters(command=command[0], args=command[1:], env=environment(), cwd=ROOT)
            with Path(os.devnull).open("w") as quiet:  # noqa: ASYNC230  it is nothing
                async with Client(
                    stdio_client(stdio, quiet), mode=mode, cache=None, elicitation_callback=ask
                ) as client:
                    yield client
            return
        with run_http_gate(command) as (_, url):
            async with open_http_client(url, mode, ask) as client:
                yield client


@asynccontextmanager
async def open_http_client(url: str, mode: str = "auto", ask: Question | None = None) -> AsyncIterator[Client]:
    async with Client(streamable_http_client(url), mode=mode, cache=None, elicitation_callback=ask) as client:
        yield client


@contextmanager
def run_http_gate(command: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The gate over HTTP, and its address."""
    where = command.index("--") if "--" in command else len(command)
    whole = [*command[:where], "--http", "--port", "0", *command[where:]]
    process = subprocess.Popen(whole, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment())
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().split()[-1]
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT)
        process.stdout.close()


def environment() -> dict[str, str]:
    return {**os.environ, "NO_COLOR": "1"}


@asynccontextmanager
async def open_mcp_gate_scenario(folder: Path, policy: str = POLICY) -> AsyncIterator[McpGateScenario]:
    services = build_services(f"sqlite:///{folder / 'interlock.db'}")
    await services.store.open()
    try:
        await services.put_policy("default", policy, "ada", {})
        yield McpGateScenario(folder, services)
    finally:
        await services.store.close()


class RawClient:
    """A client that sends raw frames over standard streams."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def send(self, **frame: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")
        await self.process.stdin.drain()

    async def read_frame(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(TIMEOUT):
            line = await self.process.stdout.readline()
        assert line, "it ended"
        return dict(json.loads(line))

    async def request(self, number: int | str, method: str, **params: Any) -> dict[str, Any]:
        await self.send(id=number, method=method, params=params)
        while True:
            frame = await self.read_frame()
            if frame.get("id") == number and "method" not in frame:
                return frame

    async def initialize(self, version: str = "2025-11-25", **capabilities: Any) -> dict[str, Any]:
        about = {
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "raw", "version": "1"},
        }
        answer = await self.request(0, "initialize", **about)
        await self.send(method="notifications/initialized")
        return answer


@asynccontextmanager
async def open_raw_client(command: Sequence[str]) -> AsyncIterator[RawClient]:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment(),
        limit=2**24,
    )
    try:
        yield RawClient(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(TIMEOUT):
            await process.wait()


async def wait_until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not await condition():  # noqa: ASYNC110  what changes is in another process
            await asyncio.sleep(0.02)


def result_text(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


def find_approval_id(result: types.CallToolResult) -> str:
    assert result.meta is not None
    return str(result.meta["interlock/approval"])


TRANSPORTS = [
    pytest.param(f"{how} {mode}", id=f"{how}-{mode}") for how in ("stdio", "http") for mode in ("legacy", "auto")
]
