"""A minimal HTTP/1.1 client, so that the load generator is not the bottleneck."""

from __future__ import annotations

import asyncio
from typing import cast
from urllib.parse import urlsplit


class HttpConnection(asyncio.Protocol):
    """One request at a time; the answer has a Content-Length."""

    def __init__(self) -> None:
        self._got = b""
        self._waiting: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, found, body = self._got.partition(b"\r\n\r\n")
        if not found or self._waiting is None:
            return
        place = head.index(b"content-length: ") + 16
        length = int(head[place : place + 10].partition(b"\r")[0])
        if len(body) >= length:
            self._got = body[length:]
            waiting, self._waiting = self._waiting, None
            waiting.set_result((int(head[9:12]), body[:length]))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(exc or ConnectionError("closed"))

    async def request(self, request: bytes) -> tuple[int, bytes]:
        assert self._transport is not None
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._waiting

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def connect(url: str) -> HttpConnection:
    parts = urlsplit(url)
    where = (parts.hostname or "127.0.0.1", parts.port or 80)
    _, protocol = await asyncio.get_running_loop().create_connection(HttpConnection, *where)
    return protocol


def post(url: str, key: str, path: str, body: bytes, more: str = "") -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    )
    return head.encode() + body


def get(url: str, key: str, path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
