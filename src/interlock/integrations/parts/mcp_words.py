"""What a client is told of a call that did not simply run: results that every client can show to its model."""

from __future__ import annotations

import json
from collections.abc import Mapping

from interlock.core.outcome import Answered, Finished, Outcome, Refused
from interlock.integrations.parts.mcp_frames import Object
from interlock.sdk.agent import told

MAX_ERROR = 2_000
EARLIER = (
    "This call ran before the gate was started again, and this is its result from then: nothing was run now. "
    "To run it once more, call it again."
)


def said(text: str, *, failed: bool, **meta: object) -> Object:
    found: Object = {"content": [{"type": "text", "text": text}], "isError": failed}
    return {**found, "_meta": {f"interlock/{key}": value for key, value in meta.items()}} if meta else found


def pending(tool: str, approval_id: str, place: str, *, has_shape: bool) -> Object:
    """No failure: who takes it for one gives up. Where a tool promises a shape, clients would refuse plain words."""
    text = (
        f"{tool} has not run yet: it waits for a person to approve it. {place} "
        "Once it is decided, call it again with the same arguments to get the result."
    )
    return said(text, failed=has_shape, approval=approval_id, status="pending")


def result_of(outcome: Outcome, tool: str, *, has_shape: bool, earlier: bool) -> Object:
    match outcome:
        case Finished("succeeded", Mapping() as result) if "content" in result:
            return _noted(dict(result)) if earlier else dict(result)
        case Finished("succeeded", result, _, approval_id):
            return said(_text(result), failed=False, approval=approval_id)
        case Answered(message, approval_id):
            return _answered(message, approval_id, has_shape=has_shape)
        case Refused(_, status, approval_id):
            ids = {"approval": approval_id} if approval_id else {}
            return said(_text(told(outcome, tool)), failed=True, **ids, status=status)
        case Finished(status, _, _, approval_id):
            content = told(outcome, tool)
            words = content["error"] if isinstance(content, Mapping) else content
            return said(_text(words), failed=True, approval=approval_id, status=status)
        case _:
            raise TypeError(f"There is nothing to tell of {outcome!r} yet.")


def error_text(result: Mapping[str, object]) -> str:
    """What a server says of a failure, for the record."""
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [str(block.get("text", "")) for block in blocks if isinstance(block, Mapping)]
    return " ".join(filter(None, texts)).replace("\x00", "")[:MAX_ERROR] or "The server gave no reason."


def _answered(message: object, approval_id: str, *, has_shape: bool) -> Object:
    """An answer that is an object may stand for the result; else a promised shape is not there."""
    if has_shape and isinstance(message, Mapping):
        return {**said(_text(message), failed=False, approval=approval_id), "structuredContent": dict(message)}
    return said(_text(message), failed=has_shape, approval=approval_id, status="responded")


def _noted(result: Object) -> Object:
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    return {**result, "content": [*blocks, {"type": "text", "text": EARLIER}]}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
