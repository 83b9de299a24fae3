"""The protocol of 2026-07-28 over HTTP: each POST is one request with all that it needs, answered on its own stream."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
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

from interlock.integrations.mcp_gate.frames import (
    SUBSCRIPTION,
    Object,
    Reply,
    make_error,
    make_notification,
    progress_token,
    read_meta,
)
from interlock.integrations.mcp_gate.inbound import NOTIFICATIONS, BadFrame, Rejections, read_frame_async
from interlock.integrations.mcp_gate.session import GateSession, SendFrame

MAX_FRAME = 4 * 1024 * 1024  # bytes
PING_SECONDS = 15.0  # seconds: a stream that is silent for long is closed by what lies between
SSE_HEADERS = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
SINGLE_FRAME_ONLY = "Body must be a single JSON-RPC request or notification object"

Send = Callable[[Any], Awaitable[None]]


class HttpRejected(Exception):
    def __init__(self, status: int, reply: JSONRPCError | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.reply = reply


@dataclass
class Exchange:
    """Ids and tokens of several clients may be the same: on the way to the server each exchange has its own."""

    name: str
    asked: JSONRPCRequest
    frames: asyncio.Queue[JSONRPCMessage] = field(default_factory=asyncio.Queue)

    def outward(self) -> JSONRPCRequest:
        params = dict(self.asked.params or {})
        if progress_token(self.asked) is not None:
            params["_meta"] = {**read_meta(self.asked), "progressToken": self.name}
        return self.asked.model_copy(update={"id": self.name, "params": params})

    def inward(self, message: JSONRPCMessage) -> JSONRPCMessage:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            return message.model_copy(update={"id": self.asked.id, **self._answered(message)})
        params = dict(message.params or {})
        if message.method == "notifications/progress":
            params["progressToken"] = progress_token(self.asked)
        return message.model_copy(update={"params": self._marked(params)} if params else {})

    def _answered(self, message: Reply) -> Object:
        return {"result": self._marked(message.result)} if isinstance(message, JSONRPCResponse) else {}

    def _marked(self, content: Object) -> Object:
        meta = content.get("_meta")
        if not isinstance(meta, Mapping) or SUBSCRIPTION not in meta:
            return content
        return {**content, "_meta": {**meta, SUBSCRIPTION: self.asked.id}}


class Exchanges:
    def __init__(self, opened: Callable[[SendFrame], GateSession], rejections: Rejections) -> None:
        self._open = opened
        self._rejections = rejections
        self._session: GateSession | None = None
        self._now: dict[RequestId, Exchange] = {}
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
                await send_response(send, 202, "", {})  # there is nothing in this revision that a notice could be for
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

    async def _exchange(self, asked: JSONRPCRequest, receive: Any, send: Send) -> None:
        exchange = Exchange(f"x{next(self._count)}", asked)
        self._now[exchange.name] = exchange
        session = self._shared()
        leaving = asyncio.create_task(_wait_disconnect(receive))
        answering = asyncio.create_task(_send_answer(exchange, send))
        try:
            await session.hear(exchange.outward())
            await asyncio.wait([leaving, answering], return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():  # whoever closes the stream wants no answer any more
                await session.hear(make_notification("notifications/cancelled", {"requestId": exchange.name}))
        finally:
            self._now.pop(exchange.name, None)
            for task in (leaving, answering):
                task.cancel()
            await asyncio.gather(leaving, answering, return_exceptions=True)

    def _shared(self) -> GateSession:
        """One for all exchanges; a server that is gone is started anew for the next."""
        if self._session is None or self._session.ended.is_set():
            self._session = self._open(self._tell)
        return self._session

    async def _tell(self, message: JSONRPCMessage, related: RequestId | None) -> None:
        target = message.id if isinstance(message, JSONRPCResponse | JSONRPCError) else related
        exchange = self._now.get(target) if target is not None else None
        if exchange is not None and not isinstance(message, JSONRPCRequest):
            exchange.frames.put_nowait(exchange.inward(message))

    async def _check_parameters(self, asked: JSONRPCRequest, headers: Mapping[str, str]) -> None:
        """What the headers say of a call has to be what its arguments say."""
        given = (asked.params or {}).get("arguments")
        mirrored = any(name.startswith("mcp-param-") for name in headers)
        if asked.method != "tools/call" or not (given or mirrored) or not isinstance(given or {}, Mapping):
            return
        schema = await self._shared().schema(asked)
        found = validate_mcp_param_headers(schema, given or {}, headers) if schema is not None else None
        if found is not None:
            raise _to_http_rejected(asked.id, found)


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
    """Checks the headers, which have to say what the frame says."""
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


async def _send_answer(exchange: Exchange, send: Send) -> None:
    """As JSON if the answer is the first that comes, and comes soon; else as a stream."""
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


async def _next_frame(exchange: Exchange) -> JSONRPCMessage | None:
    """None when it is time for a sign of life."""
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
