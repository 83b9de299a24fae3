"""A proxy between a program and its server that loses responses, refuses requests or answers them itself."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

Action = Literal["pass", "lose", "refuse", "busy"]
BUSY = b"HTTP/1.1 429 Too Many\r\nretry-after: 0\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nAway"
BUSY_BODY = b'{"error":"too_many_requests","message":"Later."}'


@dataclass
class FaultProxy:
    """`action` is called for each request, with its number and its first line."""

    url: str = ""
    action: Callable[[int, str], Action] = lambda number, line: "pass"
    lines: list[str] = field(default_factory=list)


@contextmanager
def fault_proxy(server: str) -> Iterator[FaultProxy]:
    """Run a proxy in a thread; its address is `url`."""
    state = FaultProxy()
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(state, server, ready)), name="between")
    thread.start()
    loop, stop = ready.result(timeout=10)
    try:
        yield state
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@contextmanager
def foreign_server(answer: bytes) -> Iterator[str]:
    """Run a server that is not Interlock and gives every request the same response; yields its address."""
    with fault_proxy("") as state:
        state.action = lambda number, line: "pass"
        state.lines.append(answer.decode("latin-1"))
        yield state.url


async def _serve(
    state: FaultProxy, server: str, ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]
) -> None:
    stop, open_now = asyncio.Event(), set[asyncio.StreamWriter]()
    canned = not server

    async def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.add(writer)
        with suppress(OSError, asyncio.IncompleteReadError):
            if canned:
                await _read_message(reader)
                writer.write(state.lines[0].encode("latin-1"))
                await writer.drain()
            else:
                await _forward(state, server, reader, writer)
        open_now.discard(writer)
        writer.close()

    listening = await asyncio.start_server(taken, "127.0.0.1", 0, family=socket.AF_INET)
    state.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    ready.set_result((asyncio.get_running_loop(), stop))
    await stop.wait()
    listening.close()
    for writer in list(open_now):
        writer.transport.abort()
    await asyncio.sleep(0)


async def _forward(state: FaultProxy, server: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    host, port = urlsplit(server).hostname, urlsplit(server).port
    beyond_reader, beyond = await asyncio.open_connection(host, port)
    try:
        while request := await _read_message(reader):
            line = request.partition(b"\r\n")[0].decode()
            state.lines.append(line)
            match state.action(len(state.lines), line):
                case "refuse":
                    writer.write(UNAVAILABLE)
                    continue
                case "busy":
                    writer.write(BUSY % (len(BUSY_BODY), BUSY_BODY))
                    continue
                case act:
                    beyond.write(request)
                    answer = await _read_message(beyond_reader)
                    if act == "lose":
                        return
                    writer.write(answer)
                    await writer.drain()
    finally:
        beyond.close()


async def _read_message(reader: asyncio.StreamReader) -> bytes:
    """One whole request or response; empty when the other side closed the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    length = int(lengths[0].partition(b":")[2]) if lengths else 0
    return head + (await reader.readexactly(length) if length else b"")
