"""Restate: a durable handler that waits for an awakeable, with a server of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import httpx
import restate
from hypercorn.asyncio import serve
from hypercorn.config import Config

from benchmarks.peers import REPOSITORY, TOOL, PeerDatabase, Tool, arguments

TITLE = "Restate"
DATABASES = ("own",)
PACKAGES = ("restate-sdk",)
ENVIRONMENT = ".venv-frameworks/engines"
SERVERS = REPOSITORY / ".venv-bench" / "restate" / "node_modules" / "@restatedev"
PATIENCE = 40.0  # seconds for the server to come up


class Peer:
    async def open(self, place: PeerDatabase, tool: Tool) -> str:
        self._asked: dict[str, asyncio.Future[str]] = {}
        self._done: dict[str, asyncio.Event] = {}
        ingress, admin, node, handlers = free_ports(4)
        self._server = start_server(place.folder, ingress, admin, node)
        self._stop = asyncio.Event()
        config = Config.from_mapping(bind=[f"127.0.0.1:{handlers}"], loglevel="ERROR")
        app: Any = restate.app([self._service(tool)])
        self._serving = asyncio.create_task(serve(app, config, shutdown_trigger=self._stop.wait, mode="asgi"))
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=64)
        self._client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{ingress}", timeout=60, limits=limits)
        await self._register(f"http://127.0.0.1:{admin}/deployments", f"http://127.0.0.1:{handlers}")
        return durability()

    async def propose(self, key: str) -> str:
        self._asked[key] = asyncio.get_running_loop().create_future()
        self._done[key] = asyncio.Event()
        await self._post("/bench/ask_and_run/send", key)
        return await self._asked[key]

    async def decide(self, key: str, paused: str) -> None:
        await self._post(f"/restate/awakeables/{paused}/resolve", "approve")
        await self._done[key].wait()

    async def close(self) -> None:
        self._stop.set()
        await self._client.aclose()
        self._server.terminate()
        self._server.wait(20)
        await self._serving

    def _service(self, tool: Tool) -> Any:
        service = restate.Service("bench")

        @service.handler()
        async def ask_and_run(ctx: restate.Context, key: str) -> str:
            name, decision = ctx.awakeable(type_hint=str)
            call: dict[str, Any] = await ctx.run_typed("model", lambda: {"tool": TOOL, "args": arguments(key)})
            if not self._asked[key].done():
                self._asked[key].set_result(name)  # what the model wants is on the disk
            if await decision == "approve":
                await ctx.run_typed("tool", lambda: tool.run(call["args"]["key"]))
            self._done[key].set()
            return "done"

        return service

    async def _post(self, path: str, body: str) -> None:
        answer = await self._client.post(path, json=body)
        answer.raise_for_status()

    async def _register(self, deployments: str, handlers: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    answer = await self._client.post(deployments, json={"uri": handlers})
                    if answer.is_success:
                        return
                except httpx.TransportError:
                    pass  # not up yet
                await asyncio.sleep(0.2)


def durability() -> str:
    """What its own list of settings says of its logs."""
    version = ask_option("--version").split("(")[0].strip()
    logs = sorted({line for line in ask_option("--dump-config").splitlines() if "disable-wal-fsync" in line})
    return f"the log of {version}, {', '.join(logs)}"


def ask_option(option: str) -> str:
    return subprocess.run([find_program(), option], capture_output=True, text=True, check=True).stdout


def start_server(folder: Path, ingress: int, admin: int, node: int) -> subprocess.Popen[bytes]:
    settings = {
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
        "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}",
        "RESTATE_ADVERTISED_ADDRESS": f"http://127.0.0.1:{node}",
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_BASE_DIR": str(folder / "restate"),
        "RESTATE_DISABLE_TELEMETRY": "true",
        "RUST_LOG": "warn",
    }
    with (folder / "restate.log").open("wb") as log:
        return subprocess.Popen([find_program()], env=os.environ | settings, stdout=log, stderr=log, cwd=folder)


def find_program() -> str:
    installed = sorted(SERVERS.glob("restate-server-*/bin/restate-server"))
    found = str(installed[0]) if installed else shutil.which("restate-server")
    if found is None:
        raise ModuleNotFoundError("restate-server")
    return found


def free_ports(count: int) -> list[int]:
    """Held together, so that they differ."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
