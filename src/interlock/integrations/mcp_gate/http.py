"""Streamable HTTP to the clients: sessions of the handshake protocols, and single exchanges of 2026-07-28."""

from __future__ import annotations

import asyncio
import hmac
import itertools
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import anyio
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, EventMessage, StreamableHTTPServerTransport
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import INVALID_REQUEST, JSONRPCMessage, JSONRPCRequest, RequestId
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from interlock.integrations.mcp_gate.frames import make_error
from interlock.integrations.mcp_gate.http_exchange import Exchanges, read_body, send_response
from interlock.integrations.mcp_gate.inbound import BadFrame, Rejections, read_frame_async
from interlock.integrations.mcp_gate.session import EndUnanswered, GateSession, SendFrame

PATH = "/mcp"
MAX_BODY = 4 * 1024 * 1024
MAX_SESSIONS = 1_000
MAX_KEPT = 200  # frames of a session
MAX_KEPT_BYTES = 4 * 1024 * 1024
SSE_RETRY = 500  # milliseconds
IDLE_TIMEOUT = 30 * 60.0  # seconds
LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
OpenSession = Callable[
    [str, SendFrame, EndUnanswered | None], GateSession
]  # the first is the id of an HTTP session, or empty


class FrameStream(Protocol):
    """What a transport of the SDK gives."""

    async def send(self, message: SessionMessage) -> None: ...


@dataclass(frozen=True)
class HttpAccess:
    """Who may come in. Without a token only programs of this machine can, and no page that a browser shows."""

    token: str = ""
    hosts: tuple[str, ...] = LOCAL_HOSTS

    def refuses(self, headers: Mapping[str, str]) -> tuple[int, str] | None:
        if self.token:
            shown = headers.get("authorization", "").encode()
            known = hmac.compare_digest(shown, f"Bearer {self.token}".encode())
            return None if known else (401, "A bearer token is needed.")
        if _host(headers.get("host", "")) not in self.hosts:
            return 421, "Invalid Host header"
        origin = headers.get("origin")
        if origin is not None and _host(origin.partition("://")[2]) not in self.hosts:
            return 403, "Invalid Origin header"
        return None


class ReplayBuffer:
    """The last frames of one session, so that a client whose connection broke can go on where it was."""

    def __init__(self) -> None:
        self._frames: dict[str, tuple[str, JSONRPCMessage | None, int]] = {}
        self._bytes = 0
        self._count = itertools.count(1)

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        name = str(next(self._count))
        size = len(message.model_dump_json(exclude_unset=True)) if message is not None else 0
        self._frames[name] = stream_id, message, size
        self._bytes += size
        while len(self._frames) > MAX_KEPT or self._bytes > MAX_KEPT_BYTES:
            self._bytes -= self._frames.pop(next(iter(self._frames)))[2]
        return name

    async def replay_events_after(
        self, last_event_id: str, send_callback: Callable[[EventMessage], Awaitable[None]]
    ) -> str | None:
        """None where it is not known any more."""
        if last_event_id not in self._frames:
            return None
        stream, after = self._frames[last_event_id][0], int(last_event_id)
        for name, (where, message, _) in list(self._frames.items()):
            if where == stream and int(name) > after and message is not None:
                await send_callback(EventMessage(message, name))
        return stream


@dataclass
class HttpSession:
    """An HTTP session: how frames come in, and where they go."""

    transport: StreamableHTTPServerTransport
    task: asyncio.Task[None] | None = None
    session: GateSession | None = None


class HttpGate:
    """An ASGI application at /mcp."""

    def __init__(self, opened: OpenSession, door: HttpAccess, rejections: Rejections) -> None:
        self._open = opened
        self._door = door
        self._rejections = rejections
        self._sessions: dict[str, HttpSession] = {}
        self._exchanges = Exchanges(lambda tell: opened("", tell, None), rejections)
        self._limited = RequestBodyLimitMiddleware(self._answer, MAX_BODY)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", ())}
        refused = (404, "Not Found") if scope.get("path", "").rstrip("/") != PATH else self._door.refuses(headers)
        if refused is not None:
            await send_response(send, *refused, {"www-authenticate": "Bearer"} if refused[0] == 401 else {})
            return
        await self._limited(scope, receive, send)

    async def close(self) -> None:
        await self._exchanges.close()
        for client in list(self._sessions.values()):
            await client.transport.terminate()
            if client.task is not None:
                await asyncio.gather(client.task, return_exceptions=True)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._exchanges.answer(scope, receive, send)
            return
        wanted = headers.get(MCP_SESSION_ID_HEADER)
        client = self._sessions.get(wanted) if wanted is not None else None
        if wanted is not None and client is None:
            await _refuse(send, 404, "Session not found")
            return
        try:
            again = await _check_frame(client, receive) if scope["method"] == "POST" else receive
        except BadFrame as bad:
            self._rejections.count(bad)
            await _refuse(send, 400, bad.message, bad)
            return
        if client is None:
            await self._begin(scope, again, send)
        else:
            await client.transport.handle_request(scope, again, send)

    async def _begin(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Only a handshake can begin a session: what else comes without one is refused, and leaves nothing."""
        if len(self._sessions) >= MAX_SESSIONS:
            await _refuse(send, 503, "Too many open sessions")
            return
        name = uuid.uuid4().hex
        kept: Any = ReplayBuffer()
        transport = StreamableHTTPServerTransport(
            name, event_store=kept, retry_interval=SSE_RETRY, idle_timeout=IDLE_TIMEOUT
        )
        ready = asyncio.Event()
        client = self._sessions[name] = HttpSession(transport)
        client.task = asyncio.create_task(self._run(name, client, ready), name=f"mcp session {name[:8]}")
        statuses: list[int] = []

        async def noted(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        try:
            await ready.wait()
            await transport.handle_request(scope, receive, noted)
        finally:
            if not statuses or statuses[0] >= 400:
                self._sessions.pop(name, None)
                with anyio.CancelScope(shield=True):
                    await transport.terminate()

    async def _run(self, name: str, client: HttpSession, ready: asyncio.Event) -> None:
        transport = client.transport
        ways: dict[RequestId, Callable[[], Awaitable[None]]] = {}
        try:
            async with transport.connect() as (read, write):
                session = client.session = self._open(name, _make_sender(write), _make_stream_end(ways))
                watching = asyncio.create_task(_end_with(session, transport))
                ready.set()
                try:
                    with transport.idle_scope or anyio.CancelScope(), suppress(anyio.ClosedResourceError):
                        async for item in read:
                            if isinstance(item, SessionMessage):
                                _remember_stream_end(ways, item)
                                await session.hear(item.message)
                finally:
                    watching.cancel()
                    with anyio.CancelScope(shield=True):
                        await session.close()
        finally:
            self._sessions.pop(name, None)
            ready.set()
            if not transport.is_terminated:
                await transport.terminate()


async def _check_frame(client: HttpSession | None, receive: Receive) -> Receive:
    """What the transport is given is what was read here. Raises BadFrame, before it knows of the request."""
    message = await read_frame_async(await read_body(receive), MAX_BODY)
    wrong = client.session.problem_of(message) if client is not None and client.session is not None else None
    if wrong is not None and wrong.code == INVALID_REQUEST:  # others are answered on the stream of their request
        raise wrong
    body = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    frames = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Any:
        return frames.pop() if frames else await receive()

    return again


def _make_sender(write: FrameStream) -> SendFrame:
    async def tell(message: JSONRPCMessage, related: RequestId | None) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await write.send(SessionMessage(message, ServerMessageMetadata(related_request_id=related)))

    return tell


def _remember_stream_end(ways: dict[RequestId, Callable[[], Awaitable[None]]], item: SessionMessage) -> None:
    """How the stream of a request ends that gets no answer."""
    end = item.metadata.on_request_unanswered if isinstance(item.metadata, ServerMessageMetadata) else None
    if isinstance(item.message, JSONRPCRequest) and end is not None:
        ways[item.message.id] = end


def _make_stream_end(ways: dict[RequestId, Callable[[], Awaitable[None]]]) -> EndUnanswered:
    async def unanswered(request_id: RequestId) -> None:
        if end := ways.pop(request_id, None):
            await end()

    return unanswered


async def _end_with(session: GateSession, transport: StreamableHTTPServerTransport) -> None:
    """A server that is gone takes its session with it: the client has to begin a new one, with a new server."""
    await session.ended.wait()
    await transport.terminate()


async def _refuse(send: Send, status: int, message: str, bad: BadFrame | None = None) -> None:
    told = (
        make_error(bad.request_id, bad.code, message) if bad is not None else make_error(None, INVALID_REQUEST, message)
    )
    body = told.model_dump_json(exclude_unset=True)
    await send_response(send, status, body, {"content-type": "application/json"})


def _host(value: str) -> str:
    return value.rpartition(":")[0] if not value.endswith("]") and ":" in value else value
