"""The MCP test server over each transport, and helpers to call its tools."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from interlock.chat.mcp.connection import ConnectionTimeouts, McpServers
from interlock.chat.tool import Tool, ToolInvocation
from interlock.config.models import McpServerSettings
from interlock.runtime.json_schema import check_schema
from tests.tools.ports import reserved_port

TIMEOUT = 100  # seconds for a program that starts on a loaded machine
QUICK = ConnectionTimeouts(
    initial_backoff=0.05,
    max_backoff=0.2,
    min_refresh_interval=0.02,
    poll_interval=0.2,
    response_timeout=TIMEOUT,
    call_timeout=TIMEOUT,
    connect_timeout=TIMEOUT,
)
ROOT = Path(__file__).parents[2]
TRANSPORTS = ("child", "old child", "address")


def command(folder: Path, *options: str) -> tuple[str, ...]:
    return ("-m", "tests.tools.mcp_server", str(folder), *options)


@contextmanager
def server_settings(way: str, folder: Path) -> Iterator[McpServerSettings]:
    """As the configuration would name it."""
    if way != "address":
        yield McpServerSettings(
            sys.executable, command(folder, *(["--old"] if way == "old child" else [])), cwd=str(ROOT)
        )
        return
    with reserved_port() as port, run_http_server(folder, port):
        yield McpServerSettings(url=f"http://127.0.0.1:{port}/mcp")


@contextmanager
def run_http_server(folder: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """Once it listens."""
    program = [sys.executable, *command(folder, "--port", str(port))]
    process = subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert int(process.stdout.readline()) == port
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@asynccontextmanager
async def connect_servers(
    pace: ConnectionTimeouts = QUICK, tell: Callable[[str], None] = print, **servers: McpServerSettings
) -> AsyncIterator[McpServers]:
    async with McpServers(servers, check_schema, tell, timeouts=pace) as all_of_them:
        async with asyncio.timeout(TIMEOUT):
            await all_of_them.wait_attempted()
        yield all_of_them


def find_tool(servers: McpServers, name: str) -> Tool:
    return next(tool for tool in servers.tools("default") if tool.name == name)


async def run(servers: McpServers, name: str, **args: object) -> object:
    return await find_tool(servers, name).run(ToolInvocation(args, "key"))


async def wait_until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not true():  # noqa: ASYNC110  what another process does sets no event here
            await asyncio.sleep(0.01)
