"""The way to a server: a child process or an address, with a note when it ends, and what a child complains about."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import TracebackType
from typing import IO, Any, cast

import httpx2
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._stream_protocols import ReadStream
from mcp.shared.message import SessionMessage

from interlock.config.models import McpServerSettings

MAX_STDERR = 2_000  # characters
MAX_EVENT = 8 * 1024 * 1024  # bytes
CONNECT, READ = 10.0, 300.0  # seconds; a stream of notices may be silent for long

Message = SessionMessage | Exception


class StderrTail:
    """The last that a child wrote to its standard error."""

    def __init__(self) -> None:
        self._kept = b""

    def add(self, data: bytes) -> None:
        self._kept = (self._kept + data)[-MAX_STDERR:]

    def last(self) -> str:
        """Its last line."""
        lines = self._kept.decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""


@asynccontextmanager
async def open_streams(
    server: McpServerSettings, stderr_tail: StderrTail, on_end: Callable[[], None]
) -> AsyncIterator[Any]:
    """Streams to the server and back; `on_end` is called when nothing more can come."""
    transport = _over_http(server) if server.url else _over_stdio(server, stderr_tail)
    async with transport as (read, write):
        yield EndNotifyingStream(read, on_end), write


@asynccontextmanager
async def _over_http(server: McpServerSettings) -> AsyncIterator[Any]:
    timeout = httpx2.Timeout(CONNECT, read=READ)
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout, trust_env=False) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_EVENT) as streams,
    ):
        yield streams


@asynccontextmanager
async def _over_stdio(server: McpServerSettings, stderr_tail: StderrTail) -> AsyncIterator[Any]:
    parameters = StdioServerParameters(
        command=server.command, args=list(server.args), env=dict(server.env), cwd=server.cwd or None
    )
    with _stderr_pipe(stderr_tail) as errlog:
        async with stdio_client(parameters, errlog=cast(Any, errlog)) as streams:
            yield streams


@contextmanager
def _stderr_pipe(stderr_tail: StderrTail) -> Iterator[IO[bytes]]:
    """A pipe for a child's standard error: it is read, so that the child never has to wait for it."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    loop = asyncio.get_running_loop()

    def hear() -> None:
        with suppress(BlockingIOError):
            data = os.read(reading, 65_536)
            stderr_tail.add(data)
            if not data:
                loop.remove_reader(reading)

    loop.add_reader(reading, hear)
    try:
        with os.fdopen(writing, "wb") as errlog:
            yield errlog
    finally:
        hear()
        loop.remove_reader(reading)
        os.close(reading)


class EndNotifyingStream:
    """A stream that tells when it is at its end: that is how a server that died is missed at once."""

    def __init__(self, inner: ReadStream[Message], on_end: Callable[[], None]) -> None:
        self._inner = inner
        self._on_end = on_end

    @property
    def last_context(self) -> object:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Message:
        return await self._inner.receive()

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> EndNotifyingStream:
        return self

    async def __anext__(self) -> Message:
        try:
            return await self._inner.__anext__()
        except StopAsyncIteration:
            self._on_end()
            raise

    async def __aenter__(self) -> EndNotifyingStream:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)
