"""JSON-RPC frames of MCP: parsing, validation, headers, and the frames that the gate makes itself."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, cast

import mcp_types as types
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from mcp_types.methods import CLIENT_NOTIFICATIONS, CLIENT_REQUESTS
from pydantic import BaseModel, ValidationError

from interlock.core.call import Args
from interlock.core.canonical import parse_json
from interlock.core.errors import InvalidRequest

Reply = JSONRPCResponse | JSONRPCError
Object = dict[str, Any]
GATE_PARAMS = ("name", "arguments", "requestState", "inputResponses")  # set by the gate; others are forwarded
GATE_ID_PREFIX = "interlock-"  # prefix of the ids of requests that the gate makes itself
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
ENVELOPE_KEYS = (types.PROTOCOL_VERSION_META_KEY, types.CLIENT_CAPABILITIES_META_KEY, types.CLIENT_INFO_META_KEY)
LIST_METHODS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


def make_request(request_id: types.RequestId, method: str, params: Object | None = None) -> JSONRPCRequest:
    more = {} if params is None else {"params": params}  # unset fields are not sent
    return JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, **more)


def make_notification(method: str, params: Object | None = None) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method=method, **({} if params is None else {"params": params}))


def make_result(request_id: types.RequestId, value: Object) -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=request_id, result=value)


def make_error(request_id: types.RequestId | None, code: int, message: str, **more: object) -> JSONRPCError:
    """An error frame; `more` may set `data`. Unset fields are not sent."""
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=message, **more))


def read_meta(message: JSONRPCMessage) -> Mapping[str, Any]:
    params = getattr(message, "params", None) or {}
    meta = params.get("_meta")
    return meta if isinstance(meta, Mapping) else {}


def is_modern(message: JSONRPCMessage) -> bool:
    """Whether the request carries its protocol version, as since 2026-07-28; before, a handshake set it once."""
    return types.PROTOCOL_VERSION_META_KEY in read_meta(message)


def copy_envelope(message: JSONRPCMessage) -> Object:
    """The `_meta` that the gate's own requests need, so that the server takes them for this client's."""
    kept = {key: value for key, value in read_meta(message).items() if key in ENVELOPE_KEYS}
    return {"_meta": kept} if kept else {}


def progress_token(message: JSONRPCMessage) -> types.ProgressToken | None:
    token = read_meta(message).get("progressToken")
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None


def make_headers(message: JSONRPCMessage, negotiated: str, schema: object = None) -> dict[str, str]:
    """The HTTP headers that mirror the frame for a server over HTTP."""
    if not isinstance(message, JSONRPCRequest | JSONRPCNotification):
        return {}
    version = read_meta(message).get(types.PROTOCOL_VERSION_META_KEY)
    if not isinstance(version, str):
        known = negotiated if message.method != "initialize" else ""
        return {MCP_PROTOCOL_VERSION_HEADER: known} if known else {}
    headers = {MCP_PROTOCOL_VERSION_HEADER: version, MCP_METHOD_HEADER: message.method}
    params = message.params or {}
    name = params.get(NAME_BEARING_METHODS.get(message.method, ""))
    if isinstance(name, str):
        headers[MCP_NAME_HEADER] = encode_header_value(name)
    arguments = params.get("arguments")
    if isinstance(schema, Mapping) and isinstance(arguments, Mapping) and find_invalid_x_mcp_header(schema) is None:
        headers |= mcp_param_headers(x_mcp_header_map(schema), arguments)
    return headers


def make_upstream_call(
    request: JSONRPCRequest, tool: str, args: Args, upstream_params: Mapping[str, Any]
) -> JSONRPCRequest:
    """The call for the server, with the approved arguments and the server's own tool name."""
    given = request.params or {}
    params: Object = {
        "name": tool,
        **{key: value for key, value in given.items() if key not in GATE_PARAMS},
        **upstream_params,
    }
    if args or "arguments" in given:
        params["arguments"] = dict(args)
    return request.model_copy(update={"params": params})


OFFLOAD_BYTES = 64 * 1024  # bytes
MAX_REMEMBERED = 1_000  # ids that may still get a response
MAX_ID = 200  # characters
MAX_NUMBER = 2**53 - 1  # JavaScript servers would round a larger number
TASKS = ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update")  # not in the SDK
METHODS = frozenset({*(method for method, _ in CLIENT_REQUESTS), *TASKS})
NOTIFICATIONS = frozenset({*(method for method, _ in CLIENT_NOTIFICATIONS), "notifications/tasks/status"})
CALL_MEMBERS = frozenset({"name", "arguments", "_meta", "task", "requestState", "inputResponses"})


class BadFrame(Exception):
    """An invalid frame; `request_id` is None if there is no id to respond to."""

    def __init__(self, message: str, request_id: RequestId | None = None, code: int = INVALID_REQUEST) -> None:
        super().__init__(message)
        self.message = message
        self.request_id = request_id
        self.code = code


class Rejections:
    """Counts of dropped frames by reason; logged at 1, 10, 100 and so on, since a client can send many."""

    def __init__(self, write: Callable[[str], None] | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self._write = write

    def count(self, bad: BadFrame) -> None:
        """Count a frame that gets no response under its id. The log line leaves out the client's own text."""
        if bad.request_id is not None:
            return
        reason = bad.message.partition(":")[0].rstrip(".")
        self.counts[reason] += 1
        count = self.counts[reason]
        if self._write is not None and str(count).rstrip("0") == "1":
            self._write(f"A frame of the client got to no server ({count:,} so far): {reason}.")


async def read_frame_async(data: bytes, most: int) -> JSONRPCMessage:
    """`read_frame`, in another thread for a large frame, so as not to block the event loop."""
    if len(data) <= OFFLOAD_BYTES:
        return read_frame(data, most)
    return await asyncio.to_thread(read_frame, data, most)


def read_frame(data: bytes, most: int) -> JSONRPCMessage:
    """Parse one request, notification or response; raises BadFrame for anything else, including batches."""
    frame = _object(data, most)
    known = frame.get("id")
    request_id = cast(RequestId, known) if is_proper_id(known) else None
    if frame.get("jsonrpc") != "2.0":
        raise BadFrame('A frame of JSON-RPC says "jsonrpc": "2.0".', request_id)
    if "id" in frame and request_id is None and "error" not in frame:
        raise BadFrame("The id of a request is a string or a whole number: nothing else gets to a server.")
    if sum(member in frame for member in ("method", "result", "error")) != 1:
        raise BadFrame("A frame has one of method, result and error.", request_id)
    if "method" not in frame:
        kind: type[BaseModel] = JSONRPCResponse if "result" in frame else JSONRPCError
    else:
        kind = JSONRPCRequest if "id" in frame else JSONRPCNotification
    try:
        return cast(JSONRPCMessage, kind.model_validate(frame))
    except ValidationError:
        raise BadFrame("The method is a text, and params, a result or an error is an object.", request_id) from None


def is_proper_id(value: object) -> bool:
    """Whether a value is a valid request id; booleans are not, although Python treats them as integers."""
    if isinstance(value, str):
        return len(value) <= MAX_ID
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER


def normalize_id(value: RequestId) -> str:
    """The id as text: some servers and transports treat "1" and 1 as equal, so both must not be in flight."""
    return str(value)


def remember_id(ids: dict[RequestId, None], request_id: RequestId) -> None:
    """Remember an id; the oldest is dropped above MAX_REMEMBERED."""
    ids[request_id] = None
    if len(ids) > MAX_REMEMBERED:
        del ids[next(iter(ids))]


def _object(data: bytes, most: int) -> dict[str, Any]:
    try:
        frame = parse_json(data, most)
    except InvalidRequest as error:
        if _is_json(data):
            raise BadFrame(f"This frame can be read in two ways, or is too large: {error.message}") from None
        raise BadFrame("This is not a frame of JSON-RPC.", code=PARSE_ERROR) from None
    if isinstance(frame, list):
        raise BadFrame("Batches are not accepted. Send one frame at a time.")
    if not isinstance(frame, dict):
        raise BadFrame("A frame of JSON-RPC is an object.")
    return frame


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True
