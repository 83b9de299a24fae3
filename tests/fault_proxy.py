"""What can stand between a program and its server: it loses answers, turns requests away, or answers for itself."""

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

Act = Literal["pass", "lose", "refuse", "busy"]
BUSY = b"HTTP/1.1 429 Too Many\r\nretry-after: 0\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
AWAY = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nAway"
WORDS = b'{"error":"too_many_requests","message":"Later."}'


@dataclass
class Between:
    """`act` is asked for each request, by its number and its first line."""

    url: str = ""
    act: Callable[[int, str], Act] = lambda number, line: "pass"
    lines: list[str] = field(default_factory=list)


@contextmanager
def between(server: str) -> Iterator[Between]:
    """A proxy in a thread of its own; its address is `url`."""
    state = Between()
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
def stranger(answer: bytes) -> Iterator[str]:
    """A server that is not Interlock and says the same to everybody; gives its address."""
    with between("") as state:
        state.act = lambda number, line: "pass"
        state.lines.append(answer.decode("latin-1"))
        yield state.url


async def _serve(state: Between, server: str, ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
    stop, open_now = asyncio.Event(), set[asyncio.StreamWriter]()
    canned = not server

    async def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.add(writer)
        with suppress(OSError, asyncio.IncompleteReadError):
            if canned:
                await _message(reader)
                writer.write(state.lines[0].encode("latin-1"))
                await writer.drain()
            else:
                await _passed(state, server, reader, writer)
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


async def _passed(state: Between, server: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    host, port = urlsplit(server).hostname, urlsplit(server).port
    beyond_reader, beyond = await asyncio.open_connection(host, port)
    try:
        while request := await _message(reader):
            line = request.partition(b"\r\n")[0].decode()
            state.lines.append(line)
            match state.act(len(state.lines), line):
                case "refuse":
                    writer.write(AWAY)
                    continue
                case "busy":
                    writer.write(BUSY % (len(WORDS), WORDS))
                    continue
                case act:
                    beyond.write(request)
                    answer = await _message(beyond_reader)
                    if act == "lose":
                        return
                    writer.write(answer)
                    await writer.drain()
    finally:
        beyond.close()


async def _message(reader: asyncio.StreamReader) -> bytes:
    """One request or answer, to its end; nothing when the other side hung up."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    length = int(lengths[0].partition(b":")[2]) if lengths else 0
    return head + (await reader.readexactly(length) if length else b"")
