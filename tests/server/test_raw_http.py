"""Raw HTTP over a socket: requests that two programs would parse differently."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interlock_server import RunningServer, create_keys, run_server

TIMEOUT = 50.0  # seconds for the server to end the connection, on a loaded machine
HIDDEN = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
HEAD = b"POST /api/calls HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wire")


@pytest.fixture(scope="module")
def key(folder: Path) -> bytes:
    return asyncio.run(create_keys(f"sqlite:///{folder}/interlock.db"))["agent"].encode()


@pytest.fixture(scope="module")
def server(folder: Path, key: bytes) -> Iterator[RunningServer]:
    with run_server(f"sqlite:///{folder}/interlock.db", folder) as served:
        yield served


def exchange(server: RunningServer, request: bytes) -> bytes:
    """All that comes back until the server closes the connection."""
    port = int(server.url.rpartition(":")[2])
    parts = []
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as connection:
        connection.sendall(request)
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        b"Content-Length: 4\r\nContent-Length: 52\r\n",
        b"Content-Length: 4\r\nContent-Length: 4\r\n",
        b"Content-Length: 4, 4\r\n",
        b"Content-Length: +4\r\n",
        b"Content-Length: 0x4\r\n",
        b"Content-Length : 4\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n",
    ],
)
def test_no_request_is_hidden_in_the_body_of_another(server: RunningServer, framing: bytes) -> None:  # R36
    """A proxy that reads the length otherwise would let the second one through as somebody else's."""
    answer = exchange(server, HEAD + framing + b"\r\n0\r\n\r\n" + HIDDEN)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), answer[:200]
    assert b'"status":"ok"' not in answer


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"GET /healthz HTTP/1.0\r\nConnection: close\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        b"GET http://evil.example/healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n Host: 127.0.0.1\r\n\r\n",
        b"TRACE /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Secret: mirrored\r\nConnection: close\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
    ],
)
def test_an_odd_request_gets_nothing(server: RunningServer, request_: bytes) -> None:
    answer = exchange(server, request_)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), answer[:200]
    assert b"mirrored" not in answer
    assert b'"status":"ok"' not in answer


CALL = b'{"tool": "read_it", "args": {}, "run_id": "run", "call_id": "c", "effect": "read"}'
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def chunked(trailer: bytes = b"") -> bytes:
    return b"\r\n%x\r\n%b\r\n0\r\n%b\r\n" % (len(CALL), CALL, trailer)


def test_a_key_behind_the_body_is_no_key(server: RunningServer, key: bytes) -> None:
    """A proxy that checks keys does not look there."""
    named = b"Authorization: Bearer %b\r\n" % key
    head = HEAD + CHUNKED + b"Connection: close\r\n"
    assert exchange(server, head + named + chunked()).startswith(b"HTTP/1.1 200")
    assert exchange(server, head + chunked(named)).startswith(b"HTTP/1.1 401")
    assert exchange(server, head + b"Trailer: Authorization\r\n" + chunked(named)).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("framing", ["length", "chunks"])
@pytest.mark.parametrize("size", [2 << 20, 12 << 20])
@pytest.mark.parametrize("pause", [0.0, 0.002])
def test_oversized_request_is_answered_however_fast_it_is_sent(
    server: RunningServer, framing: str, size: int, pause: float
) -> None:
    """They look for an answer when all is sent; one that is cut off in between never sees it."""
    part = b"x" * (256 << 10)
    head = HEAD + (b"Content-Length: %d\r\n\r\n" % size if framing == "length" else CHUNKED + b"\r\n")
    framed = part if framing == "length" else b"%x\r\n%b\r\n" % (len(part), part)
    answers = []
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=TIMEOUT) as connection:
            connection.sendall(head)
            for _ in range(size // len(part)):
                connection.sendall(framed)
                time.sleep(pause)
            connection.sendall(b"0\r\n\r\n" if framing == "chunks" else b"")
            answers.append(b"".join(iter(lambda: connection.recv(65_536), b"")))
    assert [answer[:12] for answer in answers] == [b"HTTP/1.1 413"] * 3
    assert all(b'"error":"too_large"' in answer for answer in answers)


def test_the_server_is_still_there(server: RunningServer) -> None:
    """So that the tests above are not about a server that fell over."""
    assert b'"status":"ok"' in exchange(server, HIDDEN)
