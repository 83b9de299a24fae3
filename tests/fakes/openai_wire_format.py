"""OpenAI's two interfaces, Chat Completions and Responses, streamed.

Rules, and where each is from. Schema: the vendor's OpenAPI document. Documented: every call has its results, names of
tools, a key in `Authorization`. Seen: `[DONE]` ends a chat stream, and the order of events, in what the SDK expects;
texts that go back need no `logprobs`, which the schema wants and the SDK's own types do not. Assumed: keys that the
schema does not know are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

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

CREATED = 1_700_000_000
_TYPES = {400: "invalid_request_error", 401: "invalid_request_error", 404: "invalid_request_error"}
_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded", 413: "context_length_exceeded"}


class OpenAI:
    """What both interfaces share."""

    vendor = ""
    request = ""
    event = ""

    def prompt(self, body: Json) -> Prompt:
        raise NotImplementedError

    def refusals(self, body: Json, headers: Mapping[str, str]) -> Iterator[str]:
        misfit = schema_errors(self.vendor, self.request, _with_logprobs(body))
        yield from misfit
        if misfit:
            return  # the rest can only be said of what has the right shape
        yield from (f"unknown key {key}" for key in body.keys() - schema_properties(self.vendor, self.request))
        if not body.get("stream"):
            yield "the stand-in only streams"
        prompt = self.prompt(body)
        yield from invalid_tool_names(prompt)
        yield from unanswered(prompt.messages)

    def schema_errors(self, event: Event) -> list[str]:
        return schema_errors(self.vendor, self.event, event.data)

    def error(self, status: int, message: str) -> Json:
        if status == 413:
            message = "This model's maximum context length is 1 token."
        kind = _TYPES.get(status, "server_error")
        return {"error": {"message": message, "type": kind, "param": None, "code": _CODES.get(status)}}

    def has_key(self, headers: Mapping[str, str]) -> bool:
        return headers.get("authorization", "").startswith("Bearer ") and not headers["authorization"].endswith("wrong")


def _with_logprobs(value: object) -> object:
    match value:
        case {"type": "output_text", **rest}:
            return {"type": "output_text", "logprobs": [], **rest}
        case dict():
            return {key: _with_logprobs(inner) for key, inner in value.items()}
        case list():
            return [_with_logprobs(inner) for inner in value]
        case _:
            return value


class Chat(OpenAI):
    path = "/v1/chat/completions"
    vendor, request, event = "openai/chat", "CreateChatCompletionRequest", "CreateChatCompletionStreamResponse"

    def prompt(self, body: Json) -> Prompt:
        reader, instructions = PromptReader(), ""
        for message in body["messages"]:
            text = plain_text(message.get("content"))
            match message["role"]:
                case "system" | "developer":
                    instructions += text
                case "user":
                    reader.messages.append(PromptUserMessage(text))
                case "assistant":
                    reader.text(text)
                    for call in message.get("tool_calls") or []:
                        reader.call(ToolRequest(call["id"], call["function"]["name"], call["function"]["arguments"]))
                case "tool":
                    reader.result(message["tool_call_id"], message["content"])
        functions = [tool["function"] for tool in body.get("tools", [])]
        offers = tuple(PromptTool(f["name"], f.get("description", ""), f.get("parameters", {})) for f in functions)
        return Prompt(instructions, tuple(reader.messages), offers)

    def events(self, body: Json, answer: ScriptedResponse) -> Iterator[Event]:
        def chunk(delta: Json, finish: str | None = None) -> Event:
            return Event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        base = {"id": f"chatcmpl-{answer.turn}", "object": "chat.completion.chunk", "created": CREATED}
        base["model"] = body["model"]
        yield chunk({"role": "assistant", "content": ""})
        for piece in answer.pieces:
            yield chunk({"content": piece})
        for index, wish in enumerate(answer.reply.tool_requests):
            named = {"index": index, "type": "function", "function": {"name": wish.tool, "arguments": ""}}
            yield chunk({"tool_calls": [{**named, "id": wish.id} if wish.id else named]})
            for part in split_in_half(wish.args):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        ending = answer.ending or ("tool_calls" if answer.reply.tool_requests else "stop")
        if ending != "none":
            yield chunk({}, ending)
        if (body.get("stream_options") or {}).get("include_usage"):
            read, written = answer.tokens
            usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
            yield Event({**base, "choices": [], "usage": usage})
        yield Event({}, "[DONE]")

    def error_event(self) -> Event | None:
        return Event(self.error(500, "The server had an error while processing your request."))


class Responses(OpenAI):
    path = "/v1/responses"
    vendor, request, event = "openai/responses", "CreateResponse", "ResponseStreamEvent"

    def prompt(self, body: Json) -> Prompt:
        reader, instructions = PromptReader(), body.get("instructions") or ""
        given = body["input"]
        for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
            match item:
                case {"type": "function_call"}:
                    reader.call(ToolRequest(item["call_id"], item["name"], item["arguments"]))
                case {"type": "function_call_output"}:
                    reader.result(item["call_id"], item["output"])
                case {"role": "assistant", "content": content}:
                    reader.text(plain_text(content))
                case {"role": "user", "content": content}:
                    reader.messages.append(PromptUserMessage(plain_text(content)))
                case {"role": "system" | "developer", "content": content}:
                    instructions += plain_text(content)
        tools = [tool for tool in body.get("tools", []) if tool["type"] == "function"]
        offers = tuple(PromptTool(t["name"], t.get("description") or "", t.get("parameters") or {}) for t in tools)
        return Prompt(instructions, tuple(reader.messages), offers)

    def events(self, body: Json, answer: ScriptedResponse) -> Iterator[Event]:
        numbers = count()

        def event(kind: str, **data: object) -> Event:
            return Event({"type": kind, "sequence_number": next(numbers), **data}, kind)

        response = self._response(body, answer)
        yield event("response.created", response=response)
        yield event("response.in_progress", response=response)
        output: list[Json] = []
        if answer.thoughts:
            thought = {"type": "reasoning", "id": f"rs_{answer.turn}", "summary": []}
            yield event("response.output_item.added", output_index=0, item=thought)
            output.append({**thought, "encrypted_content": answer.thoughts})
            yield event("response.output_item.done", output_index=0, item=output[0])
        if answer.reply.text:
            yield from self._message(event, answer, output)
        for number, wish in enumerate(answer.reply.tool_requests):
            yield from self._call(event, f"fc_{answer.turn}_{number}", wish, output)
        if answer.ending == "none":
            return
        read, written = answer.tokens
        usage = {
            "input_tokens": read,
            "output_tokens": written,
            "total_tokens": read + written,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        ended = {**response, "output": output, "usage": usage, "status": "completed"}
        if answer.ending == "length":
            ended |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        if answer.ending == "content_filter":
            ended |= {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
        yield event(f"response.{ended['status']}", response=ended)

    def error_event(self) -> Event | None:
        data = {"type": "error", "code": "server_is_overloaded", "message": "Overloaded.", "param": None}
        return Event({**data, "sequence_number": 3}, "error")

    def _message(self, event: object, answer: ScriptedResponse, output: list[Json]) -> Iterator[Event]:
        assert callable(event)
        where = {"item_id": f"msg_{answer.turn}", "output_index": len(output), "content_index": 0}
        item = {"type": "message", "id": where["item_id"], "role": "assistant", "content": [], "status": "in_progress"}
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        yield event("response.output_item.added", output_index=len(output), item=item)
        yield event("response.content_part.added", **where, part=part)
        for piece in answer.pieces:
            yield event("response.output_text.delta", **where, delta=piece, logprobs=[])
        whole = {**part, "text": answer.reply.text}
        yield event("response.output_text.done", **where, text=answer.reply.text, logprobs=[])
        yield event("response.content_part.done", **where, part=whole)
        done = {**item, "content": [whole], "status": "completed"}
        yield event("response.output_item.done", output_index=len(output), item=done)
        output.append(done)

    def _call(self, event: object, own: str, wish: ToolRequest, output: list[Json]) -> Iterator[Event]:
        assert callable(event)
        where = {"item_id": own, "output_index": len(output)}
        item = {"type": "function_call", "id": own, "call_id": wish.id, "name": wish.tool, "arguments": ""}
        yield event("response.output_item.added", output_index=len(output), item={**item, "status": "in_progress"})
        for part in split_in_half(wish.args):
            yield event("response.function_call_arguments.delta", **where, delta=part)
        yield event("response.function_call_arguments.done", **where, name=wish.tool, arguments=wish.args)
        done = {**item, "arguments": wish.args, "status": "completed"}
        yield event("response.output_item.done", output_index=len(output), item=done)
        output.append(done)

    def _response(self, body: Json, answer: ScriptedResponse) -> Json:
        return {
            "id": f"resp_{answer.turn}",
            "object": "response",
            "created_at": CREATED,
            "status": "in_progress",
            "model": body["model"],
            **dict.fromkeys(("error", "incomplete_details", "instructions")),
            "tools": body.get("tools", []),
            "tool_choice": body.get("tool_choice", "auto"),
            "output": [],
            "parallel_tool_calls": True,
            "metadata": {},
            "temperature": 1.0,
            "top_p": 1.0,
            "store": body.get("store", True),
        }
