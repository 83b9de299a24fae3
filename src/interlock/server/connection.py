"""A connection: head and body of an answer leave in one write, and whoever is slow or one too many is turned away."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from interlock.core.errors import Error, InvalidRequest
from interlock.web.asgi import JSON, TooSlow, encoded

HEAD_SECONDS = 15.0  # for the head of a request to arrive, from the connection or from its first byte
MAX_HEAD = 64 * 1024  # bytes
MOST = 10_000  # connections
PHRASES = {400: "Bad Request", 408: "Request Timeout", 431: "Request Header Fields Too Large"}


class Connection(HttpToolsProtocol):
    """What is refused here was never a request: uvicorn itself waits for heads for ever, and takes any number."""

    __slots__ = ("_head", "_in_head", "_timer")  # Python keeps up to 30 attributes tightly, and uvicorn has 28

    most = MOST
    head_seconds = HEAD_SECONDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._in_head = False
        self._head = 0  # bytes of it so far, at least

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(Joined(transport, self.loop))  # type: ignore[arg-type]  # all that is used of one
        if len(self.connections) > self.most:
            self._refuse(Full("This server has as many connections as it takes. Try again in a few seconds."))
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._in_head:  # as good as always: a head comes in one piece
            return
        self._head += len(data)
        if self._head > MAX_HEAD:
            self._refuse(HeadTooLarge(f"The head of a request has at most {MAX_HEAD:,} bytes."))
        elif self._timer is None:
            self._await_head()

    def on_message_begin(self) -> None:
        """Lets a route look after its connection: one that is closed in order waits for its reader for ever."""
        self._in_head, self._head = True, 0
        super().on_message_begin()
        self.scope["extensions"] = {"interlock.transport": self.transport}  # type: ignore[dict-item]

    def on_header(self, name: bytes, value: bytes) -> None:
        """What comes behind the body is no part of the head: a key in a trailer, which proxies do not see, is none."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_timer()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(InvalidRequest("This is no request that can be read. Is it HTTP/1.1?"))

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(self.head_seconds, self._too_slow)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._refuse(TooSlow(f"The head of the request did not arrive within {self.head_seconds:.0f} seconds."))

    def _refuse(self, error: Error) -> None:
        self._stop_timer()
        self._in_head = False
        if self._is_answering():
            self.transport.close()  # what would be said now would be part of that answer
            return
        body, status = encoded(error.to_json()), error.status
        head = f"HTTP/1.1 {status} {PHRASES.get(status, 'Service Unavailable')}\r\ncontent-length: {len(body)}\r\n"
        kind = b"content-type: %b\r\nconnection: close\r\n\r\n" % JSON
        self.transport.write(head.encode() + kind + body)
        self.transport.close()

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete


class Full(Error):
    code, status = "too_many_connections", 503


class HeadTooLarge(Error):
    code, status = "head_too_large", 431


class Joined:
    """A transport that writes at the end of the loop's turn what was written during it."""

    __slots__ = ("_loop", "_parts", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _flush(self) -> None:
        if self._parts:
            data, self._parts = self._parts, []
            self._transport.write(b"".join(data))
