"""Anthropic's Messages interface, streamed.

Rules, and where each is from. Schema: generated from the types of Anthropic's own SDK, as Anthropic publishes no other.
Documented: a key in `x-api-key`, `anthropic-version`, results right behind the calls, the first message is the user's,
names of tools, ids of calls, the error types. Seen: the order of events, in what the SDK expects; the SDK's key comes
as a bearer. Assumed: keys that the schema does not know are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from interlock.core.chat.transcript import Prompt, PromptTool, PromptUserMessage, ToolRequest
from tests.fakes.vendor_schema import schema_errors, schema_properties
from tests.fakes.wire_format import (
    Event,
    Json,
    PromptReader,
    ScriptedResponse,
    invalid_tool_names,
    plain_text,
    split_in_half,
    unanswered,
)

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_ENDINGS = {"length": "max_tokens", "content_filter": "refusal"}


class Messages:
    path = "/v1/messages"

    def refusals(self, body: Json, headers: Mapping[str, str]) -> Iterator[str]:
        misfit = schema_errors("anthropic", "request", body)
        yield from misfit
        if misfit:
            return  # the rest can only be said of what has the right shape
        yield from (f"unknown key {key}" for key in body.keys() - schema_properties("anthropic", "request"))
        if "anthropic-version" not in headers:
            yield "anthropic-version: header is required"
        if body["messages"][0]["role"] != "user":
            yield "the first message must be the user's"
        prompt = self.prompt(body)
        yield from invalid_tool_names(prompt)
        calls = [block for block in _blocks(body) if block["type"] == "tool_use"]
        yield from (f"call id {each['id']}" for each in calls if not re.fullmatch(r"[a-zA-Z0-9_-]+", each["id"]))
        yield from unanswered(prompt.messages)

    def prompt(self, body: Json) -> Prompt:
        reader = PromptReader()
        for message in body["messages"]:
            content = message["content"]
            for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                match block:
                    case {"type": "text", "text": text} if message["role"] == "assistant":
                        reader.text(text)
                    case {"type": "text", "text": text}:
                        reader.messages.append(PromptUserMessage(text))
                    case {"type": "tool_use"}:
                        reader.call(ToolRequest(block["id"], block["name"], json.dumps(block["input"])))
                    case {"type": "tool_result"}:
                        reader.result(block["tool_use_id"], block.get("content", ""))
        offers = [PromptTool(t["name"], t.get("description", ""), t["input_schema"]) for t in body.get("tools", [])]
        return Prompt(plain_text(body.get("system", "")), tuple(reader.messages), tuple(offers))

    def events(self, body: Json, answer: ScriptedResponse) -> Iterator[Event]:
        def event(kind: str, **data: object) -> Event:
            return Event({"type": kind, **data}, kind)

        read, written = answer.tokens
        message = {
            "id": f"msg_{answer.turn}",
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": body["model"],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": read, "output_tokens": 1},
        }
        yield event("message_start", message=message)
        for index, (block, deltas) in enumerate(_content(answer)):
            yield event("content_block_start", index=index, content_block=block)
            for delta in deltas:
                yield event("content_block_delta", index=index, delta=delta)
            yield event("content_block_stop", index=index)
        if answer.ending == "none":
            return
        ending = _ENDINGS.get(answer.ending) or ("tool_use" if answer.reply.tool_requests else "end_turn")
        delta = {"stop_reason": ending, "stop_sequence": None}
        yield event("message_delta", delta=delta, usage={"output_tokens": written})
        yield event("message_stop")

    def schema_errors(self, event: Event) -> list[str]:
        return schema_errors("anthropic", "stream-event", event.data)

    def error(self, status: int, message: str) -> Json:
        if status == 413:
            status, message = 400, "prompt is too long: 2 tokens > 1 maximum"
        return {"type": "error", "error": {"type": _ERRORS.get(status, "api_error"), "message": message}}

    def error_event(self) -> Event | None:
        return Event(self.error(529, "Overloaded"), "error")

    def has_key(self, headers: Mapping[str, str]) -> bool:
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        return given not in ("", "wrong")


def _content(answer: ScriptedResponse) -> Iterator[tuple[Json, list[Json]]]:
    if answer.thoughts:
        signed = [
            {"type": "thinking_delta", "thinking": "Hm."},
            {"type": "signature_delta", "signature": answer.thoughts},
        ]
        yield {"type": "thinking", "thinking": "", "signature": ""}, signed
    if answer.reply.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in answer.pieces]
    for wish in answer.reply.tool_requests:
        block = {"type": "tool_use", "id": wish.id, "name": wish.tool, "input": {}}
        yield block, [{"type": "input_json_delta", "partial_json": part} for part in split_in_half(wish.args)]


def _blocks(body: Json) -> Iterator[Json]:
    for message in body["messages"]:
        if not isinstance(message["content"], str):
            yield from message["content"]
