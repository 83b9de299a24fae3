"""Real MCP servers behind the gate, with a real client in front: nothing is changed, and nothing is written unasked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.decision import Reject
from interlock.core.ledger.event import Stored
from interlock.core.ports import ApprovalQuery
from tests.frameworks.mcp_conformance_suite import run_server
from tests.frameworks.real_mcp_servers import MAKERS, Call, RealServer, everything_over_http, list_tools
from tests.journeys.shell import Shell
from tests.node_packages import MCP
from tests.support import BOB, approve

pytestmark = pytest.mark.skipif(not MCP.is_installed(), reason=MCP.missing)
TIMEOUT = 90.0  # seconds that something may take on a loaded machine
AT_ONCE = "version: 1\ndefaults: {undo_window: 0s}\n"


@pytest.fixture(params=MAKERS)
def real(request: pytest.FixtureRequest, tmp_path: Path) -> RealServer:
    return make_server(request.param, tmp_path)


@pytest.fixture
async def services(shell: Shell) -> AsyncIterator[AppServices]:
    """What people decide with."""
    services = build_services(shell.url)
    await services.store.open()
    try:
        await services.put_policy("default", AT_ONCE, "ada", {})
        yield services
    finally:
        await services.store.close()


def test_tools_are_listed_as_the_server_sends_them(real: RealServer, shell: Shell) -> None:  # R54
    for revision in ("2025-11-25", "2026-07-28")[: 1 + real.modern]:
        gated = list_tools(gate(shell, real), revision, shell.folder, shell.env())
        assert list(gated.items()) == list(list_without_gate(real, shell, revision).items())


async def test_a_read_passes_and_a_write_asks_and_happens_once(
    real: RealServer, shell: Shell, services: AppServices
) -> None:  # R54
    command, *args = gate(shell, real)
    started = StdioServerParameters(command=command, args=args, env=dict(shell.env()), cwd=shell.folder)
    async with Client(started, read_timeout_seconds=TIMEOUT) as client:
        await assert_reads_pass_and_writes_ask(client, real, services)


async def test_a_server_over_http_is_served_over_http(
    shell: Shell, services: AppServices, tmp_path: Path
) -> None:  # R54
    real = make_server("everything", tmp_path)
    with run_server(everything_over_http(), shell.folder / "server.log") as server:
        (shell.folder / "interlock.yaml").write_text(f"mcp_servers: {{everything: {{url: '{server}'}}}}\n")
        config = ("--config", str(shell.folder / "interlock.yaml"))
        gate = shell.command("mcp-gate", *config, "--trust-hints", "--http", "--port", "0")
        with run_server(gate, shell.folder / "gate.log", env=shell.env(), cwd=shell.folder) as address:
            async with Client(address, read_timeout_seconds=TIMEOUT) as client:
                await assert_reads_pass_and_writes_ask(client, real, services)


async def test_all_of_them_stand_behind_one_gate(shell: Shell, services: AppServices, tmp_path: Path) -> None:  # R54
    reals = []
    for name in MAKERS:
        (tmp_path / name).mkdir()
        reals.append(make_server(name, tmp_path / name))
    servers = {real.name: {"command": real.command[0], "args": real.command[1:]} for real in reals}
    (shell.folder / "interlock.yaml").write_text(json.dumps({"mcp_servers": servers}))
    command, *args = shell.command("mcp-gate", "--config", str(shell.folder / "interlock.yaml"), "--trust-hints")
    started = StdioServerParameters(command=command, args=args, env=dict(shell.env()), cwd=shell.folder)
    async with Client(started, read_timeout_seconds=TIMEOUT) as client:
        offered = [tool.name for tool in (await client.list_tools()).tools]
        assert offered == [name for real in reals for name in list_without_gate(real, shell)]
        for real in reals:
            await assert_reads_pass_and_writes_ask(client, real, services)


async def assert_reads_pass_and_writes_ask(client: Client, real: RealServer, services: AppServices) -> None:
    """A read, a write that a person approves, and one that a person rejects."""
    assert real.expected_read in result_text(await call_tool(client, real.read))
    assert await pending_approvals(services) == []
    assert real.seen() == real.before
    if real.write and real.other:
        asking = asyncio.create_task(call_tool(client, real.write))
        one = await first_pending(services)
        assert real.seen() == real.before
        await approve(services, one.approval.id)
        approved = await asking
        assert real.expected_write in result_text(approved)
        assert not approved.is_error
        assert real.seen() == real.after
        asking = asyncio.create_task(call_tool(client, real.other))
        other = await first_pending(services)
        await services.inbox.decide("default", other.approval.id, Reject("not today"), BOB)
        assert "not today" in result_text(await asking)
        assert real.seen() == real.after


def make_server(name: str, folder: Path) -> RealServer:
    work = folder / "work"
    work.mkdir()
    return MAKERS[name](work)


def list_without_gate(real: RealServer, shell: Shell, revision: str = "2025-11-25") -> dict[str, str]:
    return list_tools(real.command, revision, shell.folder, shell.env())


def gate(shell: Shell, real: RealServer) -> list[str]:
    return shell.command("mcp-gate", "--trust-hints", "--", *real.command)


async def call_tool(client: Client, call: Call) -> CallToolResult:
    return await client.call_tool(call.tool, call.args)


async def first_pending(services: AppServices) -> Stored:
    async with asyncio.timeout(TIMEOUT):
        while not (found := await pending_approvals(services)):  # noqa: ASYNC110  what is waited for is in another process
            await asyncio.sleep(0.01)
    return found[0]


async def pending_approvals(services: AppServices) -> list[Stored]:
    return [*(await services.inbox.list("default", ApprovalQuery(statuses=("pending",)))).items]


def result_text(result: CallToolResult) -> str:
    return "\n".join(getattr(part, "text", "") for part in result.content)
