"""`interlock serve` as people run it: it starts, stops in order when it is told to, and says what it does."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.serving import Served, keys_at, serving

CALL = {"tool": "delete_file", "args": {"path": "/tmp/x"}, "run_id": "run", "call_id": "c1", "effect": "destructive"}


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/interlock.db"


@pytest.fixture
def keys(database: str) -> dict[str, str]:
    return asyncio.run(keys_at(database))


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "serve.log").read_text().splitlines()]


def test_a_server_stops_in_order(database: str, tmp_path: Path) -> None:
    with serving(database, tmp_path) as server, server.client() as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/readyz").json() == {"status": "ready"}
        assert server.stop() == 0
    told = events(tmp_path)
    assert [line["event"] for line in told] == ["start", "ready", "stopping", "stopped"]
    assert told[0]["database"].endswith("interlock.db")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_long_poll_is_answered_with_what_is_known(
    database: str, tmp_path: Path, keys: dict[str, str], number: signal.Signals
) -> None:
    with (
        serving(database, tmp_path) as server,
        server.client(keys["agent"]) as agent,
        ThreadPoolExecutor(1) as pool,
    ):
        told = agent.post("/api/calls", json=CALL).json()
        waiting = pool.submit(agent.get, f"/api/calls/{told['approval_id']}", params={"wait": "50"})
        wait_for_waiting(server, keys["admin"], 1)
        server.process.send_signal(number)
        answer = waiting.result(timeout=10)
        assert (answer.status_code, answer.json()["outcome"]) == (200, "waiting")
        assert server.process.wait(timeout=10) == 0


def test_a_request_in_flight_gets_its_answer(database: str, tmp_path: Path, keys: dict[str, str]) -> None:
    with serving(database, tmp_path) as server:
        connection, rest = half_sent(server, keys["agent"])
        server.process.send_signal(signal.SIGTERM)
        wait_for_line(tmp_path, "stopping")
        connection.sendall(rest)
        raw = b"".join(iter(lambda: connection.recv(65536), b""))
        assert raw.startswith(b"HTTP/1.1 200")
        assert json.loads(raw.partition(b"\r\n\r\n")[2])["outcome"] == "waiting"
        assert server.process.wait(timeout=10) == 0
        connection.close()


def test_from_the_signal_on_nothing_new_is_taken(database: str, tmp_path: Path, keys: dict[str, str]) -> None:
    with serving(database, tmp_path) as server:
        connection, _ = half_sent(server, keys["agent"])
        server.process.send_signal(signal.SIGTERM)
        wait_for_line(tmp_path, "stopping")
        pause = threading.Event()
        while is_open(server):
            pause.wait(0.01)
        assert server.process.poll() is None
        connection.close()
        assert server.process.wait(timeout=10) == 0


def test_a_second_signal_ends_it_at_once(database: str, tmp_path: Path, keys: dict[str, str]) -> None:
    with serving(database, tmp_path) as server:
        connection, _ = half_sent(server, keys["agent"])
        server.process.send_signal(signal.SIGTERM)
        wait_for_line(tmp_path, "stopping")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=5) == -signal.SIGTERM
        connection.close()


def is_open(server: Served) -> bool:
    parts = urlsplit(server.url)
    try:
        socket.create_connection((parts.hostname, parts.port), timeout=5).close()
    except ConnectionError:
        return False
    return True


def half_sent(server: Served, key: str) -> tuple[socket.socket, bytes]:
    """A request whose body is under way, and what is missing of it."""
    parts = urlsplit(server.url)
    body = json.dumps(CALL).encode()
    head = (
        f"POST /api/calls HTTP/1.1\r\nhost: {parts.netloc}\r\nauthorization: Bearer {key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\nexpect: 100-continue\r\n\r\n"
    )
    connection = socket.create_connection((parts.hostname, parts.port), timeout=20)
    connection.sendall(head.encode())
    assert connection.recv(65536).startswith(b"HTTP/1.1 100")  # the server is reading the body
    connection.sendall(body[:10])
    return connection, body[10:]


def wait_for_line(folder: Path, event: str) -> None:
    pause = threading.Event()
    while event not in [line["event"] for line in events(folder)]:
        pause.wait(0.01)


def wait_for_waiting(server: Served, key: str, count: int) -> None:
    pause = threading.Event()
    with server.client(key) as client:
        while f"interlock_waiting_agents {count}.0" not in client.get("/metrics").text:
            pause.wait(0.01)
