"""A real server in a process of its own, as people start it, with keys to talk to it."""

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
class Served:
    """`printed` is what the server said when it was ready."""

    url: str
    process: subprocess.Popen[str]
    printed: list[str]

    def client(self, key: str = "", **more: Any) -> httpx2.Client:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=30, verify=trusted(), **more)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)


@cache
def trusted() -> ssl.SSLContext:
    """Certificates take 20 ms to read, and every client would read them anew."""
    return httpx2.create_ssl_context()


@contextmanager
def serving(
    database: str,
    folder: Path,
    *options: str,
    port: int = 0,
    environ: Mapping[str, str] | None = None,
    program: Sequence[str] = INTERLOCK,
) -> Iterator[Served]:
    """`folder` is where it runs: an interlock.yaml there is its configuration."""
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
            yield _ready(process, folder)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdout:
                process.stdout.close()


@contextmanager
def serving_here(database: str) -> Iterator[str]:
    """The same in a thread of this process, for tests that need a server each; gives its address."""
    sys.audit(SERVER_STARTED)
    listening = socket.create_server(("127.0.0.1", 0))
    host, port = listening.getsockname()
    ready: Future[Callable[[], object]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_serve_here(database, listening, ready)), name="server")
    thread.start()
    stop = ready.result(timeout=30)
    try:
        yield f"http://{host}:{port}"
    finally:
        stop()
        thread.join()


async def _serve_here(database: str, listening: socket.socket, ready: Future[Callable[[], object]]) -> None:
    try:
        parts = build_services(database)
        await parts.store.open()
        site = await make_server_state(Settings(server=Serving(quotas=QuotaSettings(0, 0))), parts)
        site.log = JsonLogger(parts.clock, write=lambda _: None)  # what a test is about is seen elsewhere
        server = InterlockServer(site)
    except BaseException as error:
        ready.set_exception(error)
        raise
    stop = asyncio.Event()
    working = asyncio.create_task(parts.worker.run(stop))
    loop = asyncio.get_running_loop()
    ready.set_result(
        lambda: loop.call_soon_threadsafe(server.stop)
    )  # the socket listens already: whoever comes now is answered soon
    try:
        await server.serve(sockets=[listening])
    finally:
        stop.set()
        await working
        await parts.store.close()


def _ready(process: subprocess.Popen[str], folder: Path) -> Served:
    """It prints its address when it takes requests."""
    assert process.stdout is not None
    printed = []
    for line in process.stdout:
        printed.append(line.rstrip())
        if line.startswith("Interlock is running at "):
            return Served(line.split()[-1], process, printed)
    raise AssertionError(f"The server ended: {process.wait()}\n{(folder / 'serve.log').read_text()}")


async def make_keys(parts: AppServices, workspace: str = "default") -> dict[str, str]:
    """A key for each role, by role; the people are bob (finance), eve, vic and ada."""
    accounts = parts.accounts
    await parts.store.secret_key(workspace)
    people = {"reviewer": "bob", "viewer": "vic", "admin": "ada"}
    keys = {"agent": (await accounts.create_key(workspace, "bot", "agent", "test"))[1]}
    for role, name in people.items():
        teams = frozenset({"finance"} if name == "bob" else ())
        await accounts.add_user(workspace, name, role, "test", teams)
        keys[role] = (await accounts.create_key(workspace, f"{name}-key", role, "test", name))[1]
    return keys


async def keys_at(database: str, workspace: str = "default") -> dict[str, str]:
    parts = build_services(database)
    await parts.store.open()
    try:
        return await make_keys(parts, workspace)
    finally:
        await parts.store.close()
