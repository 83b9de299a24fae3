"""Frames of the protocol as they are sent: what is looked at in them, and the few that the gate makes itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from interlock.core.call import Args

Reply = JSONRPCResponse | JSONRPCError
Object = dict[str, Any]
GATE_PARAMS = ("name", "arguments", "requestState", "inputResponses")  # of a call; all else goes on as it came
GATE_ID_PREFIX = "interlock-"  # begins the id of each request that the gate makes itself
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
    more = {} if params is None else {"params": params}  # what is not set is not sent
    return JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, **more)


def make_notification(method: str, params: Object | None = None) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method=method, **({} if params is None else {"params": params}))


def make_result(request_id: types.RequestId, value: Object) -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=request_id, result=value)


def make_error(request_id: types.RequestId | None, code: int, message: str, **more: object) -> JSONRPCError:
    """`data` may say more; what is not set is not sent."""
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=message, **more))


def read_meta(message: JSONRPCMessage) -> Mapping[str, Any]:
    params = getattr(message, "params", None) or {}
    meta = params.get("_meta")
    return meta if isinstance(meta, Mapping) else {}


def is_modern(message: JSONRPCMessage) -> bool:
    """Since 2026-07-28 each request carries its version; before, one handshake was for all."""
    return types.PROTOCOL_VERSION_META_KEY in read_meta(message)


def copy_envelope(message: JSONRPCMessage) -> Object:
    """What a request of the gate's own has to carry, so that the server takes it for one of this client."""
    kept = {key: value for key, value in read_meta(message).items() if key in ENVELOPE_KEYS}
    return {"_meta": kept} if kept else {}


def progress_token(message: JSONRPCMessage) -> types.ProgressToken | None:
    token = read_meta(message).get("progressToken")
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None


def make_headers(message: JSONRPCMessage, negotiated: str, schema: object = None) -> dict[str, str]:
    """What a server at an address wants to read without opening the frame."""
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


def make_upstream_call(asked: JSONRPCRequest, tool: str, args: Args, carried: Mapping[str, Any]) -> JSONRPCRequest:
    """The call as it goes to the server: with the arguments that were approved, under the server's own name."""
    given = asked.params or {}
    params: Object = {"name": tool, **{key: value for key, value in given.items() if key not in GATE_PARAMS}, **carried}
    if args or "arguments" in given:
        params["arguments"] = dict(args)
    return asked.model_copy(update={"params": params})
