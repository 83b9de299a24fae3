"""`interlock mcp-gate`: between an MCP client and MCP servers."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from interlock.cli.context import CommandOptions
from interlock.cli.output import say
from interlock.cli.trusted_config import trusted_database, trusted_settings
from interlock.config.load import agent_key, child_environment, gate_token
from interlock.config.models import InlinePolicy, McpServerSettings, PolicyFile
from interlock.core.errors import Misconfigured
from interlock.integrations.mcp_gate.gate import PATH, HttpAccess, McpGate, UpstreamOptions, WaitOptions, mcp_gate
from interlock.runtime.json_schema import check_schema
from interlock.sdk.interlock import Interlock
from interlock.server.lifecycle import on_signal

if TYPE_CHECKING:
    from interlock.config.load import Settings

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, kw_only=True)
class McpGateOptions:
    command: list[str]
    http: bool
    host: str
    port: int
    url: str
    key: str
    agent: str
    run: str
    reads: str
    trust_hints: bool
    wait: float
    public_url: str
    token: str


async def run(options: CommandOptions, wanted: McpGateOptions) -> None:
    """Over standard streams the output belongs to the protocol, so people are told on standard error."""
    settings = trusted_settings(options.config, options.database)
    lock = _open_interlock(options, settings, wanted)
    toggles = None if wanted.url else settings.toggles().get(wanted.agent)
    offer = UpstreamOptions(_servers(settings, wanted, options.workspace), check_schema, wanted.trust_hints)
    waits = WaitOptions(wanted.wait, wanted.public_url or wanted.url or settings.server.public_url)
    async with mcp_gate(lock.agent(wanted.agent, toggles), offer, waits, wanted.run, _print_stderr) as gate:
        ended_well = await (_over_http(gate, wanted) if wanted.http else _over_stdio(gate))
    if not ended_well:
        sys.exit(1)


def _open_interlock(options: CommandOptions, settings: Settings, wanted: McpGateOptions) -> Interlock:
    run_id = wanted.run or None
    if wanted.url:
        key = wanted.key or agent_key()
        return Interlock(wanted.url, agent=wanted.agent, run_id=run_id, key=key or None)
    more: dict[str, Any] = {"workspace": options.workspace, "policy": _policy(settings)}
    return Interlock(options.database or trusted_database(settings), agent=wanted.agent, run_id=run_id, **more)


def _policy(settings: Settings) -> str | Path | dict[str, str] | None:
    """As the library takes it."""
    match settings.policy:
        case InlinePolicy(text):
            return text
        case PolicyFile(file, apply):
            return {"file": str(file), "apply": apply}
        case path:
            return path


def _servers(settings: Settings, wanted: McpGateOptions, workspace: str) -> dict[str, McpServerSettings]:
    """A program after `--` gets the environment that its client gave to the gate."""
    reads = tuple(pattern.strip() for pattern in wanted.reads.split(",") if pattern.strip())
    if not wanted.command:
        known = {name: each for name, each in settings.mcp_servers.items() if workspace in each.workspaces}
        return {name: replace(each, reads=(*each.reads, *reads)) for name, each in known.items()}
    program, *arguments = wanted.command
    server = McpServerSettings(program, tuple(arguments), env=child_environment(), reads=reads)
    return {_server_name(program, arguments): server}


def _server_name(program: str, arguments: list[str]) -> str:
    """What people call it: the package or the file rather than what runs it."""
    runner = Path(program).name.rstrip("0123456789.") in ("npx", "uvx", "uv", "python", "node", "bunx", "deno")
    words = [word for word in arguments if not word.startswith("-") and word not in ("run", "tool")]
    found = words[0] if runner and words else Path(program).name
    return "".join(ch for ch in found if ch.isprintable())[-60:] or "server"


async def _over_stdio(gate: McpGate) -> bool:
    stop = asyncio.Event()
    with on_signal(stop.set):
        return await gate.over_stdio(_print_stderr, stop)


async def _over_http(gate: McpGate, wanted: McpGateOptions) -> bool:
    from interlock.server.lifecycle import listen, serve_asgi

    token = wanted.token or gate_token()
    if wanted.host not in LOOPBACK and not token:
        raise Misconfigured(
            f"Whoever reaches {wanted.host} could call the tools: give clients a token (INTERLOCK_GATE_TOKEN), or "
            "listen on 127.0.0.1."
        )
    listening = listen(wanted.host, wanted.port)
    host, port = listening.getsockname()[:2]
    app = gate.over_http(HttpAccess(token))
    say(f"The MCP gate is at http://{f'[{host}]' if ':' in host else host}:{port}{PATH}")
    try:
        await serve_asgi(app, listening)
    finally:
        await app.close()
    return True


def _print_stderr(line: str) -> None:
    typer.echo(line, err=True)
