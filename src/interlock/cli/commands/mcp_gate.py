"""`interlock mcp-gate`: the gate between an MCP client and MCP servers."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from interlock.cli.context import CommandOptions
from interlock.cli.output import say
from interlock.cli.user_folder import trusted_database, trusted_settings
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


async def run(options: CommandOptions, gate_options: McpGateOptions) -> None:
    """Run the gate. Over stdio, standard output belongs to the protocol, so messages go to standard error."""
    settings = trusted_settings(options.config, options.database)
    lock = _open_interlock(options, settings, gate_options)
    toggles = None if gate_options.url else settings.toggles().get(gate_options.agent)
    upstream_options = UpstreamOptions(
        _servers(settings, gate_options, options.workspace), check_schema, gate_options.trust_hints
    )
    waits = WaitOptions(gate_options.wait, gate_options.public_url or gate_options.url or settings.server.public_url)
    async with mcp_gate(
        lock.agent(gate_options.agent, toggles), upstream_options, waits, gate_options.run, _print_stderr
    ) as gate:
        ended_well = await (_over_http(gate, gate_options) if gate_options.http else _over_stdio(gate))
    if not ended_well:
        sys.exit(1)


def _open_interlock(options: CommandOptions, settings: Settings, gate_options: McpGateOptions) -> Interlock:
    run_id = gate_options.run or None
    if gate_options.url:
        key = gate_options.key or agent_key()
        return Interlock(gate_options.url, agent=gate_options.agent, run_id=run_id, key=key or None)
    more: dict[str, Any] = {"workspace": options.workspace, "policy": _policy(settings)}
    return Interlock(options.database or trusted_database(settings), agent=gate_options.agent, run_id=run_id, **more)


def _policy(settings: Settings) -> str | Path | dict[str, str] | None:
    """The policy in the form that `Interlock` takes."""
    match settings.policy:
        case InlinePolicy(text):
            return text
        case PolicyFile(file, apply):
            return {"file": str(file), "apply": apply}
        case path:
            return path


def _servers(settings: Settings, gate_options: McpGateOptions, workspace: str) -> dict[str, McpServerSettings]:
    """The servers. A program after `--` gets the environment that the client gave to the gate."""
    reads = tuple(pattern.strip() for pattern in gate_options.reads.split(",") if pattern.strip())
    if not gate_options.command:
        known = {name: each for name, each in settings.mcp_servers.items() if workspace in each.workspaces}
        return {name: replace(each, reads=(*each.reads, *reads)) for name, each in known.items()}
    program, *arguments = gate_options.command
    server = McpServerSettings(program, tuple(arguments), env=child_environment(), reads=reads)
    return {_server_name(program, arguments): server}


def _server_name(program: str, arguments: list[str]) -> str:
    """A readable name: the package or the file, not the program that runs it."""
    runner = Path(program).name.rstrip("0123456789.") in ("npx", "uvx", "uv", "python", "node", "bunx", "deno")
    words = [word for word in arguments if not word.startswith("-") and word not in ("run", "tool")]
    found = words[0] if runner and words else Path(program).name
    return "".join(ch for ch in found if ch.isprintable())[-60:] or "server"


async def _over_stdio(gate: McpGate) -> bool:
    stop = asyncio.Event()
    with on_signal(stop.set):
        return await gate.serve_stdio(_print_stderr, stop)


async def _over_http(gate: McpGate, gate_options: McpGateOptions) -> bool:
    from interlock.server.lifecycle import listen, serve_asgi

    token = gate_options.token or gate_token()
    if gate_options.host not in LOOPBACK and not token:
        raise Misconfigured(
            f"Anybody who can reach {gate_options.host} could call the tools: "
            "set a token for clients (INTERLOCK_GATE_TOKEN), or listen on 127.0.0.1."
        )
    listening = listen(gate_options.host, gate_options.port)
    host, port = listening.getsockname()[:2]
    app = gate.make_http_app(HttpAccess(token))
    say(f"The MCP gate is listening at http://{f'[{host}]' if ':' in host else host}:{port}{PATH}")
    try:
        await serve_asgi(app, listening)
    finally:
        await app.close()
    return True


def _print_stderr(line: str) -> None:
    typer.echo(line, err=True)
