"""Sends the head and the body of an answer in one go: the protocol writes them one by one, and each write is a call."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Connection(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(Joined(transport, self.loop))  # type: ignore[arg-type]  # all that is used of one

    def on_message_begin(self) -> None:
        """Lets a route cut off a reader who takes nothing: to close in order would wait for that reader for ever."""
        super().on_message_begin()
        self.scope["extensions"] = {"interlock.abort": self.transport.abort}  # type: ignore[dict-item]


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
