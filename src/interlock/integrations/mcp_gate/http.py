"""Streamable HTTP for clients: sessions of the handshake protocols, and single exchanges of 2026-07-28.

It is long because the transport and one exchange over it share every limit.
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import anyio
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, EventMessage, StreamableHTTPServerTransport
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from interlock.integrations.mcp_gate.frames import (
    NOTIFICATIONS,
    SUBSCRIPTION,
    BadFrame,
    Object,
    Rejections,
    Reply,
    make_error,
    make_notification,
    progress_token,
    read_frame_async,
    read_meta,
)
from interlock.integrations.mcp_gate.session import EndUnanswered, GateSession, SendFrame

PATH = "/mcp"
MAX_BODY = 4 * 1024 * 1024
MAX_SESSIONS = 1_000
MAX_KEPT = 200  # frames per session
MAX_KEPT_BYTES = 4 * 1024 * 1024
SSE_RETRY = 500  # milliseconds
IDLE_TIMEOUT = 30 * 60.0  # seconds
LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
OpenSession = Callable[
    [str, SendFrame, EndUnanswered | None], GateSession
]  # the first argument is the id of an HTTP session, or empty


class FrameStream(Protocol):
    """The write stream of a transport of the SDK."""

    async def send(self, message: SessionMessage) -> None: ...


@dataclass(frozen=True)
class HttpAccess:
    """Access control. Without a token only local programs have access; web pages in a browser do not."""

    token: str = ""
    hosts: tuple[str, ...] = LOCAL_HOSTS

    def find_rejection(self, headers: Mapping[str, str]) -> tuple[int, str] | None:
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
    """The last frames of one session, so that a client can resume after a broken connection."""

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
        """Replay later frames of the stream; None if the event is not stored any more."""
        if last_event_id not in self._frames:
            return None
        stream, after = self._frames[last_event_id][0], int(last_event_id)
        for name, (where, message, _) in list(self._frames.items()):
            if where == stream and int(name) > after and message is not None:
                await send_callback(EventMessage(message, name))
        return stream


@dataclass
class HttpSession:
    """An HTTP session: its transport and the gate's session."""

    transport: StreamableHTTPServerTransport
    task: asyncio.Task[None] | None = None
    session: GateSession | None = None


class HttpGate:
    """An ASGI application at /mcp."""

    def __init__(self, open_session: OpenSession, access: HttpAccess, rejections: Rejections) -> None:
        self._open_session = open_session
        self._access = access
        self._rejections = rejections
        self._sessions: dict[str, HttpSession] = {}
        self._stateless_handler = StatelessHandler(lambda tell: open_session("", tell, None), rejections)
        self._limited = RequestBodyLimitMiddleware(self._answer, MAX_BODY)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", ())}
        refused = (
            (404, "Not Found") if scope.get("path", "").rstrip("/") != PATH else self._access.find_rejection(headers)
        )
        if refused is not None:
            await send_response(send, *refused, {"www-authenticate": "Bearer"} if refused[0] == 401 else {})
            return
        await self._limited(scope, receive, send)

    async def close(self) -> None:
        await self._stateless_handler.close()
        for client in list(self._sessions.values()):
            await client.transport.terminate()
            if client.task is not None:
                await asyncio.gather(client.task, return_exceptions=True)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._stateless_handler.answer(scope, receive, send)
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
        """Open a session. Only a handshake can: any other request without a session is refused and leaves no state."""
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
                session = client.session = self._open_session(name, _make_sender(write), _make_stream_end(ways))
                watching = asyncio.create_task(_end_with(session, transport))
                ready.set()
                try:
                    with transport.idle_scope or anyio.CancelScope(), suppress(anyio.ClosedResourceError):
                        async for item in read:
                            if isinstance(item, SessionMessage):
                                _remember_stream_end(ways, item)
                                await session.receive_frame(item.message)
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
    """Validate the frame before the transport sees it, and pass on exactly what was parsed. Raises BadFrame."""
    message = await read_frame_async(await read_body(receive), MAX_BODY)
    wrong = client.session.validate_frame(message) if client is not None and client.session is not None else None
    if wrong is not None and wrong.code == INVALID_REQUEST:  # others get a response on the stream of their request
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
    """Remember how to end the stream of a request that gets no response."""
    end = item.metadata.on_request_unanswered if isinstance(item.metadata, ServerMessageMetadata) else None
    if isinstance(item.message, JSONRPCRequest) and end is not None:
        ways[item.message.id] = end


def _make_stream_end(ways: dict[RequestId, Callable[[], Awaitable[None]]]) -> EndUnanswered:
    async def unanswered(request_id: RequestId) -> None:
        if end := ways.pop(request_id, None):
            await end()

    return unanswered


async def _end_with(session: GateSession, transport: StreamableHTTPServerTransport) -> None:
    """End the HTTP session when the server is gone: the client has to open a new session, with a new server."""
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


MAX_FRAME = 4 * 1024 * 1024  # bytes
PING_SECONDS = 15.0  # seconds; intermediaries close a stream that is silent for long
SSE_HEADERS = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
SINGLE_FRAME_ONLY = "Body must be a single JSON-RPC request or notification object"


class HttpRejected(Exception):
    def __init__(self, status: int, reply: JSONRPCError | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.reply = reply


@dataclass
class StatelessRequest:
    """One request, with a unique id and progress token towards the server, since those of clients may collide."""

    name: str
    request: JSONRPCRequest
    frames: asyncio.Queue[JSONRPCMessage] = field(default_factory=asyncio.Queue)

    def to_upstream(self) -> JSONRPCRequest:
        params = dict(self.request.params or {})
        if progress_token(self.request) is not None:
            params["_meta"] = {**read_meta(self.request), "progressToken": self.name}
        return self.request.model_copy(update={"id": self.name, "params": params})

    def to_client(self, message: JSONRPCMessage) -> JSONRPCMessage:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            return message.model_copy(update={"id": self.request.id, **self._restore_result(message)})
        params = dict(message.params or {})
        if message.method == "notifications/progress":
            params["progressToken"] = progress_token(self.request)
        return message.model_copy(update={"params": self._restore_subscription_id(params)} if params else {})

    def _restore_result(self, message: Reply) -> Object:
        return {"result": self._restore_subscription_id(message.result)} if isinstance(message, JSONRPCResponse) else {}

    def _restore_subscription_id(self, content: Object) -> Object:
        meta = content.get("_meta")
        if not isinstance(meta, Mapping) or SUBSCRIPTION not in meta:
            return content
        return {**content, "_meta": {**meta, SUBSCRIPTION: self.request.id}}


class StatelessHandler:
    def __init__(self, open_session: Callable[[SendFrame], GateSession], rejections: Rejections) -> None:
        self._open_session = open_session
        self._rejections = rejections
        self._session: GateSession | None = None
        self._active: dict[RequestId, StatelessRequest] = {}
        self._count = itertools.count(1)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def answer(self, scope: Any, receive: Any, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            _check_post(scope["method"], headers)
            message = _check_headers(await self._read(receive), headers, scope["headers"])
            if isinstance(message, JSONRPCNotification):
                await send_response(send, 202, "", {})  # in this revision no notification needs handling
                return
            await self._check_parameters(message, headers)
        except HttpRejected as rejected:
            await _send_rejection(send, rejected)
            return
        await self._exchange(message, receive, send)

    async def _read(self, receive: Any) -> JSONRPCRequest | JSONRPCNotification:
        try:
            message = await read_frame_async(await read_body(receive), MAX_FRAME)
        except BadFrame as bad:
            self._rejections.count(bad)
            raise HttpRejected(400, make_error(bad.request_id, bad.code, bad.message)) from None
        is_answer = isinstance(message, JSONRPCResponse | JSONRPCError)
        if is_answer or (isinstance(message, JSONRPCNotification) and message.method not in NOTIFICATIONS):
            self._rejections.count(BadFrame(SINGLE_FRAME_ONLY))
            raise HttpRejected(400, make_error(None, INVALID_REQUEST, SINGLE_FRAME_ONLY))
        return cast(JSONRPCRequest | JSONRPCNotification, message)

    async def _exchange(self, request: JSONRPCRequest, receive: Any, send: Send) -> None:
        exchange = StatelessRequest(f"x{next(self._count)}", request)
        self._active[exchange.name] = exchange
        session = self._ensure_session()
        leaving = asyncio.create_task(_wait_disconnect(receive))
        answering = asyncio.create_task(_send_answer(exchange, send))
        try:
            await session.receive_frame(exchange.to_upstream())
            await asyncio.wait([leaving, answering], return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():  # the client closed the stream: cancel the request
                await session.receive_frame(make_notification("notifications/cancelled", {"requestId": exchange.name}))
        finally:
            self._active.pop(exchange.name, None)
            for task in (leaving, answering):
                task.cancel()
            await asyncio.gather(leaving, answering, return_exceptions=True)

    def _ensure_session(self) -> GateSession:
        """The session that all exchanges share; a new one, with a new server, if its server is gone."""
        if self._session is None or self._session.ended.is_set():
            self._session = self._open_session(self._send_frame)
        return self._session

    async def _send_frame(self, message: JSONRPCMessage, related: RequestId | None) -> None:
        target = message.id if isinstance(message, JSONRPCResponse | JSONRPCError) else related
        exchange = self._active.get(target) if target is not None else None
        if exchange is not None and not isinstance(message, JSONRPCRequest):
            exchange.frames.put_nowait(exchange.to_client(message))

    async def _check_parameters(self, request: JSONRPCRequest, headers: Mapping[str, str]) -> None:
        """Check that the mirrored headers match the arguments of the call."""
        given = (request.params or {}).get("arguments")
        mirrored = any(name.startswith("mcp-param-") for name in headers)
        if request.method != "tools/call" or not (given or mirrored) or not isinstance(given or {}, Mapping):
            return
        schema = await self._ensure_session().schema(request)
        found = validate_mcp_param_headers(schema, given or {}, headers) if schema is not None else None
        if found is not None:
            raise _to_http_rejected(request.id, found)


def _check_post(method: str, headers: Mapping[str, str]) -> None:
    if method != "POST":
        raise HttpRejected(405)
    if not headers.get("content-type", "").lower().startswith("application/json"):
        raise HttpRejected(400)
    accepted = {kind.partition(";")[0].strip().lower() for kind in headers.get("accept", "").split(",")}
    takes = [bool(accepted & {"*/*", f"{kind.partition('/')[0]}/*", kind}) for kind in ("application/json", SSE_TYPE)]
    if not all(takes):
        raise HttpRejected(406)


SSE_TYPE = "text/event-stream"


def _check_headers(
    message: JSONRPCRequest | JSONRPCNotification, headers: Mapping[str, str], raw: list[tuple[bytes, bytes]]
) -> JSONRPCRequest | JSONRPCNotification:
    """Check that the headers match the frame."""
    if isinstance(message, JSONRPCNotification):
        unsupported = unsupported_protocol_version_rejection(headers.get(MCP_PROTOCOL_VERSION_HEADER, ""))
        if unsupported is not None:
            raise _to_http_rejected(None, unsupported)
        return message
    twice = find_duplicated_routing_header((name.decode("latin-1"), value.decode("latin-1")) for name, value in raw)
    if twice is not None:
        raise HttpRejected(400, make_error(message.id, HEADER_MISMATCH, f"{twice} header appears more than once"))
    verdict = classify_inbound_request(message.model_dump(by_alias=True, exclude_unset=True), headers=headers)
    if isinstance(verdict, InboundLadderRejection):
        raise _to_http_rejected(message.id, verdict)
    return message


def _to_http_rejected(request_id: RequestId | None, found: InboundLadderRejection) -> HttpRejected:
    data = ErrorData(code=found.code, message=found.message, data=found.data)
    reply = JSONRPCError(jsonrpc="2.0", id=request_id, error=data)
    return HttpRejected(ERROR_CODE_HTTP_STATUS.get(found.code, 200), reply)


async def _send_rejection(send: Send, rejected: HttpRejected) -> None:
    allow = {"allow": "POST"} if rejected.status == 405 else {}
    if rejected.reply is None:
        await send_response(send, rejected.status, "", allow)
        return
    await send_response(send, rejected.status, _json(rejected.reply), {"content-type": "application/json"})


async def _send_answer(exchange: StatelessRequest, send: Send) -> None:
    """Send JSON if the response is the first frame and comes soon; otherwise a stream."""
    first = await _next_frame(exchange)
    if isinstance(first, JSONRPCResponse | JSONRPCError):
        status = ERROR_CODE_HTTP_STATUS.get(first.error.code, 200) if isinstance(first, JSONRPCError) else 200
        await send_response(send, status, _json(first), {"content-type": "application/json"})
        return
    await _send_head(send, 200, SSE_HEADERS)
    message: JSONRPCMessage | None = first
    while True:
        over = isinstance(message, JSONRPCResponse | JSONRPCError)
        body = b": ping\r\n\r\n" if message is None else f"event: message\r\ndata: {_json(message)}\r\n\r\n".encode()
        await send({"type": "http.response.body", "body": body, "more_body": not over})
        if over:
            return
        message = await _next_frame(exchange)


async def _next_frame(exchange: StatelessRequest) -> JSONRPCMessage | None:
    """The next frame; None if a keep-alive ping is due."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PING_SECONDS):
            return await exchange.frames.get()
    return None


async def read_body(receive: Any) -> bytes:
    found = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise HttpRejected(400)
        found += bytes(message.get("body", b""))
        if not message.get("more_body", False):
            return found


async def _wait_disconnect(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_response(send: Send, status: int, body: str, headers: Mapping[str, str]) -> None:
    data = body.encode()
    await _send_head(send, status, {"content-length": str(len(data)), **headers})
    await send({"type": "http.response.body", "body": data, "more_body": False})


async def _send_head(send: Send, status: int, headers: Mapping[str, str]) -> None:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})


def _json(message: JSONRPCMessage) -> str:
    return message.model_dump_json(by_alias=True, exclude_unset=True)
