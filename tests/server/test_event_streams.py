"""Event streams of a real server: readers that reconnect or stall, and a server that is killed."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvloop

from interlock.app.bootstrap import AppServices
from interlock.config.models import Settings
from interlock.core.decision import Reject
from interlock.server.serve import InterlockServer, make_server_state
from interlock.server.streams import sse
from tests.databases import Database
from tests.interlock_server import RunningServer, create_keys, make_keys, run_server
from tests.support import BOB, Clock, open_services, propose_pending

READERS, CALLS = 6, 120
CONNECTION_ERRORS = (HTTPException, OSError)


@dataclass
class Reader:
    """Reads as a browser does, hangs up at random, and comes back with the last id that it saw."""

    server: Callable[[], RunningServer]
    key: str
    seed: int
    last: int = 0
    seen: list[tuple[int, str]] = field(default_factory=list)
    connections: int = 0

    def read(self, newest: Callable[[], int | None]) -> None:
        """Until it is as far as `newest` says, which is None while there is more to come."""
        chance = random.Random(self.seed)
        until = time.monotonic() + 120
        while self.last != newest():
            assert time.monotonic() < until, f"stopped at {self.last} of {newest()}"
            try:
                self._connect(chance.randint(1, 60), newest)
            except CONNECTION_ERRORS:
                time.sleep(0.05)  # nobody is there just now

    def _connect(self, patience: int, newest: Callable[[], int | None]) -> None:
        with closing(_connection(self.server())) as connection:
            connection.request("GET", "/api/events", headers=_key(self.key) | {"Last-Event-ID": str(self.last)})
            answer = connection.getresponse()
            assert answer.status == 200
            self.connections += 1
            found: dict[str, str] = {}
            for line in answer:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    found[name] = value
                    continue
                patience -= self._apply(found)
                found = {}
                if patience <= 0 or self.last == newest():
                    return

    def _apply(self, found: dict[str, str]) -> int:
        self.last = int(found.get("id", self.last))
        if "data" not in found:
            return 0
        assert json.loads(found["data"])["seq"] == self.last
        self.seen.append((self.last, found["event"]))
        return 1


class ReviewerClient:
    """Proposes and approves until all is done, whatever becomes of the server meanwhile."""

    def __init__(self, where: Callable[[], RunningServer], keys: dict[str, str]) -> None:
        self._server = where
        self._keys = keys
        self.decided = 0

    def work(self) -> None:
        for number in range(CALLS):
            while not self._approve_one(str(number)):
                time.sleep(0.05)
            self.decided += 1

    def _approve_one(self, call_id: str) -> bool:
        call = {"tool": "delete", "args": {}, "run_id": "run", "call_id": call_id, "effect": "destructive"}
        try:
            with closing(_connection(self._server())) as connection:
                told = _post(connection, self._keys["agent"], "/api/calls", call)
                said = {"kind": "approve", "args_sha256": told["args_sha256"]}
                shown = _post(
                    connection, self._keys["reviewer"], f"/api/approvals/{told['approval_id']}/decision", said
                )
        except CONNECTION_ERRORS:
            return False
        return shown.get("status", "") == "approved" or shown.get("error", "") == "already_decided"


def _connection(served: RunningServer) -> HTTPConnection:
    parts = urlsplit(served.url)
    return HTTPConnection(parts.hostname or "", parts.port, timeout=10)


def _post(connection: HTTPConnection, key: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    connection.request("POST", path, json.dumps(body), _key(key) | {"Content-Type": "application/json"})
    told: dict[str, Any] = json.load(connection.getresponse())
    return told


def _key(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


# R4
def test_readers_who_come_back_miss_nothing_and_see_nothing_twice(database: Database, tmp_path: Path) -> None:
    keys = asyncio.run(create_keys(database.url))
    newest: list[int] = []
    with run_server(database.url, tmp_path) as first:
        served = [first]
        deciding = ReviewerClient(lambda: served[-1], keys)
        readers = [Reader(lambda: served[-1], keys["admin"], seed) for seed in range(READERS)]
        reading = [
            threading.Thread(target=each.read, args=(lambda: newest[0] if newest else None,)) for each in readers
        ]
        working = threading.Thread(target=deciding.work)
        for thread in (*reading, working):
            thread.start()
        while deciding.decided < CALLS // 2:
            time.sleep(0.01)
        first.kill()
        with run_server(database.url, tmp_path) as second:
            served.append(second)
            working.join()
            ledger = database.sql("select seq, kind from events where workspace = 'default' order by seq")
            newest.append(ledger[-1][0])
            for thread in reading:
                thread.join()
    assert deciding.decided == CALLS
    for reader in readers:
        assert reader.seen == ledger
        assert reader.connections > 2


# R4
def test_stalled_readers_are_dropped_while_decisions_go_through(
    database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "STALL_TIMEOUT", 0.5)

    async def scene() -> tuple[int, int, int]:
        async with open_services(database, clock) as services:
            state = await make_server_state(Settings(), services)
            keys = await make_keys(services)
            server, listening = InterlockServer(state), socket.create_server(("127.0.0.1", 0))
            running = asyncio.create_task(server.serve(sockets=[listening]))
            port = listening.getsockname()[1]
            idle = await asyncio.gather(*(_open(port, keys["viewer"], "?kinds=nothing") for _ in range(100)))
            stalled = await asyncio.gather(*(_open(port, keys["viewer"], "") for _ in range(10)))
            decided = 0
            async with asyncio.timeout(60):
                while len(server.server_state.connections) > len(idle):
                    decided += await _reject(services, await propose_pending(services, f"{decided}")) == "rejected"
            left = len(server.server_state.connections)
            server.stop()  # as a signal does: the streams are ended, so that nobody waits for them
            await running
            for _, writer in (*idle, *stalled):
                writer.close()
            return decided, left, len(server.server_state.tasks)

    decided, left, tasks = uvloop.run(scene())
    assert decided > 0
    assert (left, tasks) == (100, 0)


async def _reject(services: AppServices, approval_id: str) -> str:
    return (await services.inbox.decide("default", approval_id, Reject("no" * 50_000), BOB)).status


async def _open(port: int, key: str, query: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A stream that has begun; what comes after that is not read, beyond what fits into a small buffer."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=connection, limit=1024)
    writer.write(f"GET /api/events{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
    await reader.readuntil(b"retry: ")
    return reader, writer
