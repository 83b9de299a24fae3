"""A real server in a process or a thread, with keys for each role."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx2

from interlock.app.bootstrap import AppServices, build_services
from interlock.config.models import QuotaSettings, Settings
from interlock.config.models import ServerSettings as Serving
from interlock.server.logs import JsonLogger
from interlock.server.serve import InterlockServer, make_server_state
from tests.audit_events import SERVER_STARTED

INTERLOCK = (sys.executable, "-m", "interlock")


@dataclass
class RunningServer:
    """`output` holds the lines that the server printed until it was ready."""

    url: str
    process: subprocess.Popen[str]
    output: list[str]

    def client(self, key: str = "", **more: Any) -> httpx2.Client:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=30, verify=ssl_context(), **more)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)


@cache
def ssl_context() -> ssl.SSLContext:
    """Shared by all clients: reading the certificates takes 20 ms."""
    return httpx2.create_ssl_context()


@contextmanager
def run_server(
    database: str,
    folder: Path,
    *options: str,
    port: int = 0,
    environ: Mapping[str, str] | None = None,
    program: Sequence[str] = INTERLOCK,
) -> Iterator[RunningServer]:
    """Run the server in `folder`, whose interlock.yaml is its configuration."""
    sys.audit(SERVER_STARTED)
    command = [*program, "serve", "--port", str(port), "--database", database, *options]
    with (folder / "serve.log").open("a") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={
                **os.environ,
                "INTERLOCK_QUOTAS": "off",
                **(environ or {}),
            },  # loads and faults ask as fast as they can
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            yield _wait_until_ready(process, folder)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdout:
                process.stdout.close()


@contextmanager
def run_server_in_thread(database: str) -> Iterator[str]:
    """Run the server in a thread of this process; yields its address."""
    sys.audit(SERVER_STARTED)
    listening = socket.create_server(("127.0.0.1", 0))
    host, port = listening.getsockname()
    ready: Future[Callable[[], object]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_serve_in_thread(database, listening, ready)), name="server")
    thread.start()
    stop = ready.result(timeout=30)
    try:
        yield f"http://{host}:{port}"
    finally:
        stop()
        thread.join()


async def _serve_in_thread(database: str, listening: socket.socket, ready: Future[Callable[[], object]]) -> None:
    try:
        services = build_services(database)
        await services.store.open()
        state = await make_server_state(Settings(server=Serving(quotas=QuotaSettings(0, 0))), services)
        state.log = JsonLogger(services.clock, write=lambda _: None)  # what a test is about is seen elsewhere
        server = InterlockServer(state)
    except BaseException as error:
        ready.set_exception(error)
        raise
    stop = asyncio.Event()
    working = asyncio.create_task(services.worker.run(stop))
    loop = asyncio.get_running_loop()
    ready.set_result(
        lambda: loop.call_soon_threadsafe(server.stop)
    )  # the socket listens already: whoever comes now is answered soon
    try:
        await server.serve(sockets=[listening])
    finally:
        stop.set()
        await working
        await services.store.close()


def _wait_until_ready(process: subprocess.Popen[str], folder: Path) -> RunningServer:
    """Read its output until it prints its address."""
    assert process.stdout is not None
    printed = []
    for line in process.stdout:
        printed.append(line.rstrip())
        if line.startswith("Interlock is running at "):
            return RunningServer(line.split()[-1], process, printed)
    raise AssertionError(f"The server ended: {process.wait()}\n{(folder / 'serve.log').read_text()}")


async def make_keys(services: AppServices, workspace: str = "default") -> dict[str, str]:
    """A key for each role, by role; the people are bob (finance), eve, vic and ada."""
    accounts = services.accounts
    await services.store.secret_key(workspace)
    people = {"reviewer": "bob", "viewer": "vic", "admin": "ada"}
    keys = {"agent": (await accounts.create_key(workspace, "bot", "agent", "test"))[1]}
    for role, name in people.items():
        teams = frozenset({"finance"} if name == "bob" else ())
        await accounts.add_user(workspace, name, role, "test", teams)
        keys[role] = (await accounts.create_key(workspace, f"{name}-key", role, "test", name))[1]
    return keys


async def create_keys(database: str, workspace: str = "default") -> dict[str, str]:
    services = build_services(database)
    await services.store.open()
    try:
        return await make_keys(services, workspace)
    finally:
        await services.store.close()
