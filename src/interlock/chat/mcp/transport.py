"""Transports to MCP servers: a child process or HTTP, with end-of-stream detection and the child's standard error."""

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
CONNECT, READ = 10.0, 300.0  # seconds; a stream of notifications may be silent for long

Message = SessionMessage | Exception


class StderrTail:
    """The last part of a child's standard error."""

    def __init__(self) -> None:
        self._kept = b""

    def add(self, data: bytes) -> None:
        self._kept = (self._kept + data)[-MAX_STDERR:]

    def last(self) -> str:
        """Return the last line."""
        lines = self._kept.decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""


@asynccontextmanager
async def open_streams(
    server: McpServerSettings, stderr_tail: StderrTail, on_end: Callable[[], None]
) -> AsyncIterator[Any]:
    """Open the streams from and to the server; `on_end` is called at the end of the stream."""
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
    """Make a pipe for a child's standard error, read continuously so that the child never blocks."""
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
    """A stream that reports its end, so that a dead server is detected at once."""

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
