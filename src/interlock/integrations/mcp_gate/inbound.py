"""What a client of the gate may send on to a server: one strict reading of a frame, and the methods that there are.

A server gets frames that the gate wrote itself, from what it read here: two readers never see two things in one frame.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

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

from interlock.core.canonical import parse_json
from interlock.core.errors import InvalidRequest

OFFLOAD_BYTES = 64 * 1024  # bytes
MAX_REMEMBERED = 1_000  # ids that may still be answered
MAX_ID = 200  # characters
MAX_NUMBER = 2**53 - 1  # servers in JavaScript take a larger one for its neighbour
TASKS = ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update")  # which the SDK does not have
METHODS = frozenset({*(method for method, _ in CLIENT_REQUESTS), *TASKS})
NOTIFICATIONS = frozenset({*(method for method, _ in CLIENT_NOTIFICATIONS), "notifications/tasks/status"})
CALL_MEMBERS = frozenset({"name", "arguments", "_meta", "task", "requestState", "inputResponses"})


class BadFrame(Exception):
    """`request_id` is None where there is none to answer to."""

    def __init__(self, message: str, request_id: RequestId | None = None, code: int = INVALID_REQUEST) -> None:
        super().__init__(message)
        self.message = message
        self.request_id = request_id
        self.code = code


class Rejections:
    """How many frames got no further, by reason; told after one, ten, a hundred: a client can send many."""

    def __init__(self, write: Callable[[str], None] | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self._write = write

    def count(self, bad: BadFrame) -> None:
        """Only what has no answer under its id: the others know it already. The words of the client are left out."""
        if bad.request_id is not None:
            return
        reason = bad.message.partition(":")[0].rstrip(".")
        self.counts[reason] += 1
        count = self.counts[reason]
        if self._write is not None and str(count).rstrip("0") == "1":
            self._write(f"A frame of the client got to no server ({count:,} so far): {reason}.")


async def read_frame_async(data: bytes, most: int) -> JSONRPCMessage:
    """As `read_frame`; a large one in another thread, so that others go on meanwhile."""
    if len(data) <= OFFLOAD_BYTES:
        return read_frame(data, most)
    return await asyncio.to_thread(read_frame, data, most)


def read_frame(data: bytes, most: int) -> JSONRPCMessage:
    """One request, notification or response; raises BadFrame for all else, batches included."""
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
    """A truth value is a whole number to Python, and to nobody else."""
    if isinstance(value, str):
        return len(value) <= MAX_ID
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER


def normalize_id(value: RequestId) -> str:
    """Servers and transports that take "1" and 1 for the same must not get both at once."""
    return str(value)


def remember_id(ids: dict[RequestId, None], request_id: RequestId) -> None:
    """The newest; whoever is silent for so long is not waited for."""
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
