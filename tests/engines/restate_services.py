"""Restate's real server, a service of it and Interlock's server, as processes that tests kill and restart."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.frameworks.framework_program import TIMEOUT, EffectServer, start_program
from tests.frameworks.reviewer import DatabaseReviewer
from tests.interlock_server import RunningServer, create_keys, run_server
from tests.journeys.shell import wait_until
from tests.node_packages import RESTATE

SERVER = RESTATE.modules / "@restatedev" / "restate-server-linux-x64" / "bin" / "restate-server"
PROGRAM = Path(__file__).parent / "programs" / "restate.py"
ASKING = """\
version: 1
defaults: {undo_window: 0s}
rules:
- {name: payments ask, tools: [pay], then: ask}
- {name: these in a hurry, tools: [pay_soon], then: ask, expires_in: 1s}
"""
CHANNEL = "channels:\n  workflows: {kind: restate, url: 'http://127.0.0.1:%d', allow_private: true}\n"


@dataclass
class RestateServices:
    """All of it, on ports of its own that stay the same. `points` are where the service is on its way."""

    folder: Path
    effects: EffectServer
    points: EffectServer
    ports: dict[str, int]
    keys: dict[str, str] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[Any]] = field(default_factory=dict)
    commands: dict[str, ExitStack] = field(default_factory=dict)

    # What runs

    def start(self, who: str) -> None:
        {"engine": self._engine, "service": self._service, "interlock": self._interlock}[who]()

    def kill(self, who: str) -> None:
        process = self.processes.pop(who)
        process.kill()
        process.communicate()

    def restart(self, who: str) -> None:
        self.kill(who)
        self.start(who)

    def stop(self) -> None:
        for who in list(self.processes):
            self.kill(who)
        for way in self.commands.values():
            way.close()

    # What people and programs do

    def order(self, name: str, **more: Any) -> str:
        """Sent, and not waited for; gives the invocation's id."""
        body = {"order": name, **more}
        answer = httpx2.post(
            f"{self.ingress}/cashier/pay/send", json=body, headers={"idempotency-key": name}, timeout=30
        )
        answer.raise_for_status()
        return str(answer.json()["invocationId"])

    def result(self, invocation: str) -> httpx2.Response:
        """Once the handler has ended."""
        return httpx2.get(f"{self.ingress}/restate/invocation/{invocation}/attach", timeout=TIMEOUT)

    def wait_pending(self, invocation: str = "") -> dict[str, Any]:
        """Its call, or the only one that waits, once that waits."""
        found: list[dict[str, Any]] = []

        def one() -> bool:
            found[:] = self.calls(invocation, "pending")
            return bool(found)

        wait_until(one, "the call waits", TIMEOUT)
        return found[0]

    def calls(self, invocation: str, status: str = "all") -> list[dict[str, Any]]:
        return [
            item for item in self.reviewer.list_approvals(status) if item["run_id"].startswith(f"restate:{invocation}")
        ]

    def decide(self, invocation: str = "", verb: str = "approve", *words: str) -> None:
        self.reviewer.decide(self.wait_pending(invocation)["id"], verb, *words)

    def wait_suspended(self, invocation: str) -> None:
        """Waits until the handler holds nothing."""
        wait_until(lambda: self.status(invocation) == "suspended", "the handler is suspended", TIMEOUT)

    def status(self, invocation: str) -> str:
        query = f"SELECT status FROM sys_invocation WHERE id = '{invocation}'"
        answer = httpx2.post(
            f"{self._admin}/query", json={"query": query}, headers={"accept": "application/json"}, timeout=30
        )
        rows = answer.json()["rows"] if answer.is_success else []
        return str(rows[0]["status"]) if rows else ""

    def cancel(self, invocation: str) -> None:
        httpx2.patch(f"{self._admin}/invocations/{invocation}/cancel", timeout=30).raise_for_status()

    def settle(self, awakeable: str, how: str, body: bytes) -> None:
        """What anybody can do who reaches the ingress."""
        headers = {"content-type": "application/json" if how == "resolve" else "text/plain"}
        url = f"{self.ingress}/restate/awakeables/{awakeable}/{how}"
        httpx2.post(url, content=body, headers=headers, timeout=30).raise_for_status()

    def localize(self, text: str) -> str:
        """The page's text with the ports of this place."""
        for shown, name in ((8080, "ingress"), (9070, "admin"), (9080, "page")):
            text = text.replace(f"127.0.0.1:{shown}", f"127.0.0.1:{self.ports[name]}")
        return text

    def wait_for_point(self, order: str, point: str, times: int = 1) -> None:
        """Waits until it came there."""
        seen = {"point": point, "order": order}
        wait_until(lambda: self.points.calls_to("at").count(seen) >= times, f"{order} came to {point}", TIMEOUT)

    def payments(self, order: str) -> int:
        return self.effects.calls_to("pay").count({"order": order})

    @property
    def ingress(self) -> str:
        return f"http://127.0.0.1:{self.ports['ingress']}"

    @property
    def reviewer(self) -> DatabaseReviewer:
        return DatabaseReviewer(self.database)

    @property
    def database(self) -> str:
        return f"sqlite:///{self.folder / 'interlock.db'}"

    @property
    def _admin(self) -> str:
        return f"http://127.0.0.1:{self.ports['admin']}"

    def _engine(self) -> None:
        self.processes["engine"] = restate_command(self.folder, self.ports)
        wait_until(lambda: is_up(f"{self.ingress}/restate/health"), "Restate is up", TIMEOUT)

    def _service(self) -> None:
        job = {"url": self.url, "key": self.keys["agent"], "port": self.ports["service"]}
        job |= {"effects": self.effects.url, "points": self.points.url}
        self.processes["service"] = start_program("engines", PROGRAM, json.dumps(job), folder=self.folder)
        register(self._admin, self.ports["service"])

    def _interlock(self) -> None:
        way = self.commands["interlock"] = ExitStack()
        served: RunningServer = way.enter_context(run_server(self.database, self.folder, port=self.ports["interlock"]))
        self.processes["interlock"] = served.process

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['interlock']}"


@contextmanager
def run_restate_services(folder: Path) -> Iterator[RestateServices]:
    with EffectServer().serve() as effects, EffectServer().serve() as points:
        names = ("ingress", "admin", "node", "service", "interlock", "page")
        made = RestateServices(folder, effects, points, free_ports(names))
        (folder / "interlock.yaml").write_text(CHANNEL % made.ports["ingress"])
        made.keys = asyncio.run(create_keys(made.database))
        made.reviewer.put_policy(ASKING)
        try:
            for who in ("engine", "interlock", "service"):
                made.start(who)
            yield made
        finally:
            made.stop()


def restate_command(folder: Path, ports: dict[str, int]) -> subprocess.Popen[bytes]:
    """All that it keeps is in the folder."""
    node = f"127.0.0.1:{ports['node']}"
    settings = {
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ports['ingress']}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{ports['admin']}",
        "RESTATE_BIND_ADDRESS": node,
        "RESTATE_ADVERTISED_ADDRESS": f"http://{node}",
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_BASE_DIR": str(folder / "restate"),
        "RESTATE_DISABLE_TELEMETRY": "true",
        "RUST_LOG": "warn",
    }
    with (folder / "restate.log").open("ab") as log:
        return subprocess.Popen([SERVER], env={**os.environ, **settings}, stdout=log, stderr=log, cwd=folder)


def register(admin: str, port: int) -> None:
    """Once the service is up; the second time it changes nothing."""

    def registered() -> bool:
        try:
            answer = httpx2.post(f"{admin}/deployments", json={"uri": f"http://127.0.0.1:{port}"}, timeout=30)
        except httpx2.TransportError:
            return False
        return answer.is_success

    wait_until(registered, "the service is registered", TIMEOUT)


def free_ports(names: Sequence[str]) -> dict[str, int]:
    """Below those that the system gives to connections: nobody takes one while its owner is dead.

    Each process of the tests begins elsewhere.
    """
    found: dict[str, int] = {}
    for port in itertools.count(20_000 + os.getpid() % 1_000 * 12):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            found[names[len(found)]] = port
        if len(found) == len(names):
            break
    return found


def is_up(url: str) -> bool:
    try:
        return httpx2.get(url, timeout=5).is_success
    except httpx2.TransportError:
        return False
