"""`interlock serve` as people run it: it starts, stops in order when it is told to, and says what it does."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.interlock_server import RunningServer, create_keys, run_server
from tests.journeys.shell import TIMEOUT, Shell, wait_until

CALL = {"tool": "delete_file", "args": {"path": "/tmp/x"}, "run_id": "run", "call_id": "c1", "effect": "destructive"}


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/interlock.db"


@pytest.fixture
def keys(database: str) -> dict[str, str]:
    return asyncio.run(create_keys(database))


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "serve.log").read_text().splitlines()]


@pytest.mark.smoke
def test_a_server_stops_in_order(database: str, tmp_path: Path) -> None:
    with run_server(database, tmp_path) as server, server.client() as client:
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
        run_server(database, tmp_path) as server,
        server.client(keys["agent"]) as agent,
        ThreadPoolExecutor(1) as pool,
    ):
        told = agent.post("/api/calls", json=CALL).json()
        waiting = pool.submit(agent.get, f"/api/calls/{told['approval_id']}", params={"wait": "50"})
        wait_for_long_polls(server, keys["admin"], 1)
        server.process.send_signal(number)
        answer = waiting.result(timeout=30)  # less than it would wait for
        assert (answer.status_code, answer.json()["outcome"]) == (200, "waiting")
        assert server.process.wait(TIMEOUT) == 0


def test_a_request_in_flight_gets_its_answer(database: str, tmp_path: Path, keys: dict[str, str]) -> None:
    with run_server(database, tmp_path) as server:
        connection, rest = send_half(server, keys["agent"])
        server.process.send_signal(signal.SIGTERM)
        wait_for_line(tmp_path, "stopping")
        connection.sendall(rest)
        raw = b"".join(iter(lambda: connection.recv(65536), b""))
        assert raw.startswith(b"HTTP/1.1 200")
        assert json.loads(raw.partition(b"\r\n\r\n")[2])["outcome"] == "waiting"
        assert server.process.wait(TIMEOUT) == 0
        connection.close()


def test_from_the_signal_on_nothing_new_is_taken(database: str, tmp_path: Path, keys: dict[str, str]) -> None:
    with run_server(database, tmp_path) as server:
        connection, _ = send_half(server, keys["agent"])
        server.process.send_signal(signal.SIGTERM)
        wait_for_line(tmp_path, "stopping")
        wait_until(lambda: not is_open(server), "it takes no connection any more")
        assert server.process.poll() is None
        connection.close()
        assert server.process.wait(TIMEOUT) == 0


def test_a_second_signal_ends_it_at_once(database: str, tmp_path: Path, keys: dict[str, str]) -> None:
    with run_server(database, tmp_path) as server:
        connection, _ = send_half(server, keys["agent"])
        server.process.send_signal(signal.SIGTERM)
        wait_for_line(tmp_path, "stopping")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(TIMEOUT) == -signal.SIGTERM
        connection.close()


@pytest.mark.smoke
def test_the_demo_fills_an_empty_workspace_once(database: str, tmp_path: Path, keys: dict[str, str]) -> None:
    for _ in range(2):
        with run_server(database, tmp_path, "--demo") as server, server.client(keys["reviewer"]) as bob:
            found = bob.get("/api/approvals").json()["items"]
            assert sorted((item["tool"], item["status"]) for item in found) == [
                ("cms_delete_page", "rejected"),
                ("config_update", "pending"),
                ("fund_transfer", "pending"),
                ("linear_create_issue", "pending"),
                ("request_human_input", "pending"),
                ("send_email", "pending"),
            ]
            assert {item["agent"] for item in found} == {"demo"}
            mail = next(item for item in found if item["tool"] == "send_email")
            assert bob.get(f"/api/approvals/{mail['id']}").json()["findings"]
            assert server.stop() == 0
    assert "not-a-real-password" not in json.dumps(found)


def test_the_first_start_prints_a_link_for_the_first_admin(database: str, tmp_path: Path) -> None:
    with run_server(database, tmp_path) as server:
        link = server.process.stdout.readline() if server.process.stdout else ""
    assert re.search(rf"{re.escape(server.url)}/welcome#[\w-]{{43}}$", link.strip())


@pytest.mark.smoke
def test_the_worker_keeps_deadlines_without_a_server(
    database: str, tmp_path: Path, keys: dict[str, str], shell: Shell
) -> None:
    def is_expired() -> bool:
        return rows.execute("select status from approvals").fetchall() == [("expired",)]

    with run_server(database, tmp_path, "--no-worker") as server, server.client(keys["agent"]) as agent:
        told = agent.post("/api/calls", json={**CALL, "expires_in": "1s"}).json()
        worker = shell.start("worker", "--database", database)
        assert told["status"] == "pending"
        with closing(sqlite3.connect(tmp_path / "interlock.db")) as rows:
            wait_until(is_expired, "the call is expired")
        worker.send_signal(signal.SIGTERM)
        _, lines = worker.communicate(timeout=TIMEOUT)
        assert worker.returncode == 0
        assert [json.loads(line)["event"] for line in lines.splitlines()] == ["start", "stopping", "stopped"]


def is_open(server: RunningServer) -> bool:
    parts = urlsplit(server.url)
    try:
        socket.create_connection((parts.hostname, parts.port), timeout=5).close()
    except ConnectionError:
        return False
    return True


def send_half(server: RunningServer, key: str) -> tuple[socket.socket, bytes]:
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
    wait_until(lambda: event in [line["event"] for line in events(folder)], f"the server says that it is {event}")


def wait_for_long_polls(server: RunningServer, key: str, count: int) -> None:
    with server.client(key) as client:
        gauge = f"interlock_waiting_agents {count}.0"
        wait_until(lambda: gauge in client.get("/metrics").text, f"{count} agents wait")
