"""The connection to one upstream server: sends frames, matches responses, and makes the gate's own requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import anyio
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse, RequestId

from interlock.chat.mcp.transport import StderrTail, open_streams
from interlock.config.models import McpServerSettings
from interlock.integrations.mcp_gate.frames import GATE_ID_PREFIX, Object, Reply, is_modern, make_headers, make_request

MAX_TOOLS = 1_000
MAX_PAGES = 100
LIST_TIMEOUT = 30.0  # seconds, for requests that the gate makes itself
MIN_SECRET_LENGTH = 8  # characters; a shorter value could not be told apart from other text
STREAM_CLOSED = (anyio.ClosedResourceError, anyio.BrokenResourceError)


class UpstreamLost(Exception):
    """The server is gone, or could not be started; the message is for people."""


class Upstream:
    def __init__(
        self,
        name: str,
        server: McpServerSettings,
        on_message: Callable[[Upstream, JSONRPCMessage], Awaitable[None]],
        on_lost: Callable[[Upstream], Awaitable[None]],
    ) -> None:
        """`on_message` gets every frame that does not answer a pending request; `on_lost` is called once at the end."""
        self.name = name
        self.server = server
        self.version = ""  # negotiated in the handshake
        self.is_modern: bool | None = None  # set by the first request of a connection: some servers keep it
        self._on_message = on_message
        self._on_lost = on_lost
        self._write: Any = None
        self._open = asyncio.Event()
        self._close_reason = ""
        self._pending: dict[RequestId, asyncio.Future[Reply]] = {}
        self._count = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def is_gone(self) -> bool:
        return bool(self._close_reason)

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"mcp {self.name}")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def reopen(self) -> None:
        """Prepare a new connection; requests pending on the old one fail with UpstreamLost."""
        await self.close()
        self._task, self._close_reason, self.version, self.is_modern = None, "", "", None
        self._open = asyncio.Event()

    async def send(self, message: JSONRPCMessage, schema: object = None) -> None:
        """Send a frame; raises UpstreamLost. `schema` is the input schema of a called tool."""
        self.start()
        if self.is_modern is None and isinstance(message, JSONRPCRequest):
            self.is_modern = is_modern(message)
        await self._open.wait()
        if self._close_reason:
            raise UpstreamLost(self._close_reason)
        headers = make_headers(message, self.version, schema) if self.server.url else {}
        metadata = ClientMessageMetadata(headers=headers) if headers else None
        try:
            await self._write.send(SessionMessage(message, metadata))
        except STREAM_CLOSED:
            raise UpstreamLost("it ended the connection") from None

    async def request(self, message: JSONRPCRequest, schema: object = None) -> Reply:
        """Send a request and wait for its response; raises UpstreamLost if the connection ends."""
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._pending[message.id] = answer
        try:
            await self.send(message, schema)
            return await answer
        finally:
            self._pending.pop(message.id, None)

    async def gate_request(self, method: str, params: Object) -> Reply:
        """A request of the gate itself, not forwarded for the client."""
        self._count += 1
        async with asyncio.timeout(LIST_TIMEOUT):
            return await self.request(make_request(f"{GATE_ID_PREFIX}{self._count}", method, params))

    async def list_all(self, method: str, key: str, envelope: Object) -> list[Mapping[str, Any]] | JSONRPCError:
        """The items of all pages, unchanged."""
        found: list[Mapping[str, Any]] = []
        more: Object = {}
        for _ in range(MAX_PAGES):
            reply = await self.gate_request(method, {**envelope, **more})
            if isinstance(reply, JSONRPCError):
                return reply
            found += [each for each in reply.result.get(key) or () if isinstance(each, Mapping)]
            cursor = reply.result.get("nextCursor")
            if not isinstance(cursor, str) or len(found) > MAX_TOOLS:
                break
            more = {"cursor": cursor}
        return found

    async def _run(self) -> None:
        stderr_tail = StderrTail()
        ended = "it ended the connection"
        try:
            async with open_streams(self.server, stderr_tail, lambda: None) as (read, write):
                self._write = write
                self._open.set()
                async for message in read:
                    if isinstance(message, SessionMessage):
                        await self._dispatch(message.message)
        except Exception as error:  # noqa: BLE001  any error fails the pending requests
            cause: BaseException = error
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            ended = str(cause) or type(cause).__name__
        finally:
            said = stderr_tail.last()
            self._close_reason = self._redact(f"{ended} ({said})" if said else ended)
            self._open.set()
            for answer in self._pending.values():
                if not answer.done():
                    answer.set_exception(UpstreamLost(self._close_reason))
        with suppress(*STREAM_CLOSED):
            await self._on_lost(self)

    async def _dispatch(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            answer = self._pending.get(message.id) if message.id is not None else None
            if answer is not None:
                if not answer.done():
                    answer.set_result(message)
                return
            if isinstance(message.id, str) and message.id.startswith(GATE_ID_PREFIX):
                return
        await self._on_message(self, message)

    @property
    def close_reason(self) -> str:
        return self._close_reason

    def _redact(self, text: str) -> str:
        secrets = {*self.server.headers.values(), *self.server.env.values(), self.server.url}
        for secret in sorted(secrets, key=len, reverse=True):
            if len(secret) >= MIN_SECRET_LENGTH:
                text = text.replace(secret, "…")
        return text
