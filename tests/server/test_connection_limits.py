"""Connections that are slow, too many, or not HTTP, against the real protocol on loopback."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any

import pytest
import uvicorn

from interlock.server.http import HttpResponse, Receive, Scope, Send, send_response
from interlock.server.serve import MAX_HEAD_BYTES, HttpConnection

GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
Connect = Callable[[], Any]


async def app(scope: Scope, _: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await send_response(send, HttpResponse(200, b'"ok"'))


class SmallProtocol(HttpConnection):
    most = 3


class ShortTimeoutProtocol(HttpConnection):
    """For heads that do not come: what does come could be late on a loaded machine."""

    head_seconds = 0.2


@asynccontextmanager
async def run_protocol(protocol: type[HttpConnection]) -> AsyncIterator[int]:
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=protocol, ws="none", lifespan="off", log_config=None, timeout_keep_alive=3_600)
    server = uvicorn.Server(config)
    server.capture_signals = leave_signals_alone  # type: ignore[method-assign]  # those of the tests stay theirs
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        await task


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async with run_protocol(SmallProtocol) as port:
        yield port


@pytest.fixture
async def impatient() -> AsyncIterator[int]:
    async with run_protocol(ShortTimeoutProtocol) as port:
        yield port


async def exchange(port: int, *parts: bytes) -> bytes:
    """What comes back until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.02)
        return await reader.read()
    finally:
        writer.close()


def error_code(raw: bytes) -> tuple[int, str]:
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    assert b"content-type: application/json" in head
    assert b"content-length: %d" % len(body) in head
    return int(head.split()[1]), json.loads(body)["error"]


@pytest.mark.parametrize("parts", [(), (b"GET / HT",), (b"GET / HTTP/1.1\r\n", b"host: x\r\n", b"a: b\r\n")])
async def test_a_head_that_does_not_come_is_not_waited_for(impatient: int, parts: tuple[bytes, ...]) -> None:
    assert error_code(await exchange(impatient, *parts)) == (408, "too_slow")


async def test_a_second_head_that_does_not_come_is_not_waited_for_either() -> None:
    class Tiring(HttpConnection):
        """Patient until the first answer is there."""

    async with run_protocol(Tiring) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET)
        assert (await reader.readuntil(b'"ok"')).startswith(b"HTTP/1.1 200 OK")
        Tiring.head_seconds = 0.05
        writer.write(b"GET / HTTP/1.1\r\n")
        assert error_code(await reader.read()) == (408, "too_slow")
        writer.close()


async def test_dripping_does_not_help(impatient: int) -> None:
    """All drops take twenty times the time for a head; each comes well within it."""
    drops = [b"GET / HTTP/1.1\r\n", *(b"h%d: x\r\n" % number for number in range(200))]
    reader, writer = await asyncio.open_connection("127.0.0.1", impatient)
    closed, sent = asyncio.create_task(reader.read()), 0
    try:
        with suppress(ConnectionError):  # it was closed while something was under way
            while sent < len(drops) and not closed.done():
                writer.write(drops[sent])
                await writer.drain()
                sent += 1
                await asyncio.sleep(0.02)
    finally:
        closed.cancel()
        await asyncio.gather(closed, return_exceptions=True)
        writer.close()
    assert sent < len(drops), "the server has to close before the head is there"


async def test_a_head_has_an_end() -> None:
    async with run_protocol(HttpConnection) as port:
        raw = await exchange(port, b"GET / HTTP/1.1\r\nhost: x\r\nlong: ", b"x" * (MAX_HEAD_BYTES + 1))
    assert error_code(raw) == (431, "head_too_large")


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x02\x00\x01\x00", b"HELLO\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n"])
async def test_request_that_is_not_http_gets_an_error(port: int, garbage: bytes) -> None:
    assert error_code(await exchange(port, garbage)) == (400, "invalid_request")


async def test_one_connection_too_many_is_turned_away(port: int) -> None:
    held = []
    for _ in range(SmallProtocol.most):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET)
        assert (await reader.readuntil(b'"ok"')).startswith(b"HTTP/1.1 200")
        held.append(writer)
    assert error_code(await exchange(port)) == (503, "too_many_connections")
    for writer in held:
        writer.close()


async def test_an_idle_connection_that_was_used_stays(port: int) -> None:
    loop = asyncio.get_running_loop()  # of this test alone
    real_time, passed = loop.time, 0.0
    loop.time = lambda: real_time() + passed  # type: ignore[method-assign]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(3):
        writer.write(GET)
        assert (await reader.readuntil(b'"ok"')).startswith(b"HTTP/1.1 200")
        passed += SmallProtocol.head_seconds * 1.5
        await asyncio.sleep(0.01)  # whatever was due meanwhile is done
    writer.close()


def leave_signals_alone() -> Any:
    return nullcontext()
