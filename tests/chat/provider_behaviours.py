"""What providers send, over both of OpenAI's interfaces, and what becomes of it: one table for the test and the docs.

`python -m tests.chat.provider_behaviours` prints the table of docs/models.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import NamedTuple

from interlock.core.chat.transcript import ModelReply, ToolRequest
from tests.fakes.model_server import RawAnswer
from tests.fakes.openai_wire_format import Chat, Responses
from tests.fakes.wire_format import Event, Json, ScriptedResponse, truncate, with_ids

Interface = Chat | Responses
CHAT, RESPONSES = Chat(), Responses()
TEXT = "Grüße, 世界 👋"
REFUSAL = "I cannot help with that."
LOOK = ToolRequest("call_1", "t_look", '{"what": "Grüße"}')
SEND = ToolRequest("call_2", "t_send", '{"to": "bob"}')
BODY = {"model": "m", "stream_options": {"include_usage": True}}
JSON_TYPE = "application/json; charset=utf-8"
CUT_NOTE = "[The answer reached the model's limit and ends here.]"
LENGTH = {Chat: "length", Responses: "max_output_tokens"}


@dataclass(frozen=True, kw_only=True)
class Result:
    """What became of it. `text` is the last reply, `told` the status of each call that the model was told of.

    `ran` are the calls that took effect, `waits` the seconds before each retry, `requests` all requests to the
    provider; `end` is done, or the words of the error.
    """

    text: str = "Done."
    told: tuple[str, ...] = ()
    ran: tuple[str, ...] = ()
    end: str = "done"
    waits: tuple[int, ...] = ()
    requests: int = 1

    def __str__(self) -> str:
        """The result in words, for the table."""
        not_run = [status for status in dict.fromkeys(self.told) if status not in ("succeeded", "confirming")]
        retried = f"nothing of it is used; tried again after {_row(self.waits)} s" if self.waits else ""
        parts = [
            _count(len(self.ran), "call runs", "calls run") if self.ran else "",
            f"the call does not run, and the model is told `{not_run[0]}`" if not_run else "",
            retried,
            f"error “… {self.end} …”" if self.end != "done" else "",
            "the turn ends without text" if self.end == "done" and not self.text else "",
            f"“{' '.join(self.text.split())}” is shown" if self.text not in ("", "Done.") else "",
        ]
        return f"{'; '.join(filter(None, parts))} ({_count(self.requests, 'request', 'requests')})"


class Behaviour(NamedTuple):
    """One row: what is sent over an interface, in one answer after the other; and the result, or one for each."""

    name: str
    send: Callable[[Interface], Sequence[RawAnswer]]
    chat: Result
    responses: Result


def row(
    name: str, send: Callable[[Interface], RawAnswer | Sequence[RawAnswer]], result: Result, other: Result | None = None
) -> Behaviour:
    def answers(wire: Interface) -> Sequence[RawAnswer]:
        sent = send(wire)
        return [sent] if isinstance(sent, RawAnswer) else sent

    return Behaviour(name, answers, result, other or result)


def table() -> str:
    lines = ["| the provider sends | over Chat Completions | over Responses |", "|---|---|---|"]
    for each in BEHAVIOURS:
        lines.append(f"| {each.name} | {each.chat} | {'the same' if each.chat == each.responses else each.responses} |")
    return "\n".join(lines) + "\n"


# Answers


def events(wire: Interface, reply: ModelReply, ending: str = "", thoughts: str = "") -> list[Event]:
    return list(wire.events(BODY, ScriptedResponse(reply, 1, thoughts, ending)))


def sse(made: Sequence[Event], ending: str = "") -> RawAnswer:
    return RawAnswer(tuple(encode(event) for event in made), ending=ending)


def encode(event: Event) -> bytes:
    if event.name == "[DONE]":
        return b"data: [DONE]\n\n"
    name = f"event: {event.name}\n" if event.name else ""
    return f"{name}data: {json.dumps(event.data, ensure_ascii=False)}\n\n".encode()


def text(wire: Interface, words: str = TEXT, ending: str = "") -> RawAnswer:
    return sse(events(wire, ModelReply(words), ending))


def calls(wire: Interface, *wishes: ToolRequest, words: str = "") -> RawAnswer:
    return sse(events(wire, ModelReply(words, wishes)))


def arguments(given: str, tool: str = "t_look") -> Callable[[Interface], RawAnswer]:
    return lambda wire: calls(wire, ToolRequest("call_1", tool, given))


def resplit(answer: RawAnswer, size: int = 7) -> RawAnswer:
    """The same bytes in pieces that end anywhere: within a line, and within a character."""
    whole = b"".join(answer.pieces)
    return answer._replace(pieces=tuple(whole[start : start + size] for start in range(0, len(whole), size)))


def error(status: int, message: str = "Told to fail.", retry_after: int = 0) -> Callable[[Interface], RawAnswer]:
    headers = {"retry-after": str(retry_after)} if retry_after else {}

    def send(wire: Interface) -> RawAnswer:
        return RawAnswer((json.dumps(wire.error(status, message)).encode(),), status, JSON_TYPE, headers)

    return send


def cut(answer: RawAnswer, ending: str = "cut") -> RawAnswer:
    return answer._replace(pieces=answer.pieces[: max(2, len(answer.pieces) // 2)], ending=ending)


def change(answer_events: Sequence[Event], edit: Callable[[Json], None]) -> list[Event]:
    made = [Event(deepcopy(event.data), event.name) for event in answer_events]
    for event in made:
        edit(event.data)
    return made


# Changes of single events


def with_ending(wire: Interface, reply: ModelReply, word: str) -> RawAnswer:
    """An answer that ends with this word instead of one that is documented."""

    def edit(data: Json) -> None:
        if wire is CHAT and data.get("choices") and data["choices"][0]["finish_reason"]:
            data["choices"][0]["finish_reason"] = word
        elif data.get("type") == "response.incomplete":
            data["response"]["incomplete_details"] = {"reason": word}

    return sse(change(events(wire, reply, "length"), edit))


def single_characters(wire: Interface) -> RawAnswer:
    return sse([part for event in events(wire, ModelReply("", (LOOK,))) for part in _split_arguments(event)])


def _split_arguments(event: Event) -> Iterator[Event]:
    match event.data:
        case {"choices": [{"delta": {"tool_calls": [{"function": {"arguments": str(args)}}]}}]} if args:
            for character in args:
                data = deepcopy(event.data)
                data["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"] = character
                yield Event(data)
        case {"type": "response.function_call_arguments.delta", "delta": str(args)}:
            yield from (Event({**event.data, "delta": character}, event.name) for character in args)
        case _:
            yield event


def with_id(value: str | None) -> Callable[[Interface], RawAnswer]:
    """A call whose id is this; None leaves it out."""

    def send(wire: Interface) -> RawAnswer:
        def edit(data: Json) -> None:
            for call in _call_objects(data):
                key = "call_id" if wire is RESPONSES else "id"
                if value is None:
                    call.pop(key, None)
                elif key in call:
                    call[key] = value

        return sse(change(events(wire, ModelReply("", (LOOK,))), edit))

    return send


def changing_id(wire: Interface) -> RawAnswer:
    """The later fragments of a call name another id than the first."""
    seen: list[str] = []

    def edit(data: Json) -> None:
        for call in _call_objects(data):
            seen.append("")
            call["call_id" if wire is RESPONSES else "id"] = f"call_{len(seen)}"

    return sse(change(events(wire, ModelReply("", (LOOK,))), edit))


def shared_index(wire: Interface) -> RawAnswer:
    """Two calls that are told apart by nothing but their ids."""

    def edit(data: Json) -> None:
        for call in _call_objects(data):
            call["index" if wire is CHAT else "id"] = 0 if wire is CHAT else "fc_1"
        if "item_id" in data:
            data["item_id"] = "fc_1"

    return sse(change(events(wire, ModelReply("", (LOOK, LOOK._replace(id="call_9")))), edit))


def _call_objects(data: Json) -> list[Json]:
    match data:
        case {"choices": [{"delta": {"tool_calls": list(found)}}]}:
            return found
        case {"item": {"type": "function_call"} as item}:
            return [item]
        case {"response": {"output": list(output)}}:
            return [item for item in output if item["type"] == "function_call"]
        case _:
            return []


def refusal(wire: Interface, *wishes: ToolRequest, words: str = "") -> RawAnswer:
    """A refusal in two fragments, behind the text and the calls."""
    made = events(wire, ModelReply(words, wishes))
    middle = len(REFUSAL) // 2
    fragments = (REFUSAL[:middle], REFUSAL[middle:])
    if wire is CHAT:
        first = deepcopy(made[0].data)
        chunks = [
            Event({**first, "choices": [{"index": 0, "delta": {"refusal": part}, "finish_reason": None}]})
            for part in fragments
        ]
        return sse([*made[:-3], *chunks, *made[-3:]])
    where = {"item_id": "msg_9", "output_index": 7, "content_index": 0, "sequence_number": 99}
    item = {"type": "message", "id": "msg_9", "role": "assistant", "content": [], "status": "in_progress"}
    more = [
        Event({"type": "response.output_item.added", "output_index": 7, "item": item, "sequence_number": 98}),
        *(Event({"type": "response.refusal.delta", **where, "delta": part}) for part in fragments),
        Event({"type": "response.refusal.done", **where, "refusal": REFUSAL}),
    ]
    return sse([*made[:-1], *more, made[-1]])


def reasoning(wire: Interface) -> RawAnswer:
    if wire is RESPONSES:
        return sse(events(wire, ModelReply(TEXT, (LOOK,)), thoughts="c2lnbmVk"))
    made = events(wire, ModelReply(TEXT, (LOOK,)))
    thought = {**deepcopy(made[0].data)}
    thought["choices"] = [{"index": 0, "delta": {"reasoning_content": "Hm."}, "finish_reason": None}]
    return sse([made[0], Event(thought), *made[1:]])


def without_usage(wire: Interface) -> RawAnswer:
    made = events(wire, ModelReply(TEXT))
    if wire is CHAT:
        return sse([event for event in made if "usage" not in event.data])
    return sse(change(made, lambda data: data.get("response", {}).pop("usage", None)))


def other_done(wire: Interface) -> RawAnswer:
    """Chat Completions without its [DONE], and Responses with one that it does not have."""
    made = events(wire, ModelReply(TEXT))
    return sse(made[:-1] if wire is CHAT else [*made, Event({}, "[DONE]")])


def two_answers(wire: Interface) -> RawAnswer:
    """Two choices, or two messages in one response."""
    made = events(wire, ModelReply(TEXT))
    if wire is CHAT:

        def edit(data: Json) -> None:
            for choice in list(data.get("choices", [])):
                other = {**choice, "index": 1}
                other["delta"] = {"content": "Another."} if choice["delta"].get("content") else choice["delta"]
                data["choices"].append(other)

        return sse(change(made, edit))
    second = change(made[2:-1], _rename_item)
    return sse([*made[:-1], *second, made[-1]])


def _rename_item(data: Json) -> None:
    data["output_index"] = 1
    if "item_id" in data:
        data["item_id"] = "msg_2"
    if "item" in data:
        data["item"]["id"] = "msg_2"


def whole(wire: Interface, reply: ModelReply, refused: str = "") -> RawAnswer:
    """The answer as one JSON body, as for a request that asks for no stream."""
    if wire is RESPONSES:
        body = events(wire, reply)[-1].data["response"]
        if refused:
            content = [{"type": "refusal", "refusal": refused}]
            item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content, "status": "completed"}
            body = {**body, "output": [item]}
    else:
        wishes = [
            {"id": wish.id, "type": "function", "function": {"name": wish.tool, "arguments": wish.args}}
            for wish in reply.tool_requests
        ]
        message: Json = {"role": "assistant", "content": reply.text or None, "refusal": refused or None}
        message |= {"tool_calls": wishes} if wishes else {}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if wishes else "stop"}
        usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
        body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return RawAnswer((json.dumps(body, ensure_ascii=False).encode(),), content_type=JSON_TYPE)


def without_finish_reason(wire: Interface) -> RawAnswer:
    answer = whole(wire, ModelReply("", (LOOK,)))
    body = json.loads(answer.pieces[0])
    if wire is CHAT:
        del body["choices"][0]["finish_reason"]
    else:
        del body["status"]
    return answer._replace(pieces=(json.dumps(body).encode(),))


def with_comments(wire: Interface) -> RawAnswer:
    answer = text(wire)
    return answer._replace(pieces=tuple(part for piece in answer.pieces for part in (b": ping\n\n", piece)))


def error_event(wire: Interface) -> RawAnswer:
    made = events(wire, ModelReply(TEXT))
    return sse([*made[:4], wire.error_event() or made[0]])


def with_crlf(answer: RawAnswer) -> RawAnswer:
    return answer._replace(pieces=tuple(piece.replace(b"\n", b"\r\n") for piece in answer.pieces))


def same_ids(wire: Interface) -> RawAnswer:
    return sse(events(wire, with_ids(ModelReply("", (LOOK, SEND)), ["call_1", "call_1"])))


def ten_calls(wire: Interface) -> RawAnswer:
    return calls(wire, *(LOOK._replace(id=f"call_{number}") for number in range(10)))


def stop_with_call(wire: Interface) -> RawAnswer:
    """Responses has one word for both ends."""
    return with_ending(wire, ModelReply("", (LOOK,)), "stop") if wire is CHAT else calls(wire, LOOK)


def half_call(wire: Interface, word: str) -> RawAnswer:
    """A call of which the second half is missing, ended by this word."""
    half = truncate(ScriptedResponse(ModelReply("", (LOOK,)), 1)).reply
    return with_ending(wire, half, word)


def web_page(_: Interface) -> RawAnswer:
    return RawAnswer((b"<html><body>Sign in to continue</body></html>",), content_type="text/html")


def error_in_json(wire: Interface) -> RawAnswer:
    return RawAnswer((json.dumps(wire.error(500, "No capacity.")).encode(),), content_type=JSON_TYPE)


def many_events(wire: Interface) -> RawAnswer:
    """Chunks and events without content, before and between those with some."""
    made = events(wire, ModelReply(TEXT))
    if wire is RESPONSES:
        return sse([made[0], made[1], made[1], *made[2:]])
    empty = {**deepcopy(made[0].data), "choices": []}
    return sse([made[0], made[0], Event(empty), *made[1:]])


def ran(*tools: str) -> Result:
    return Result(told=("succeeded",) * len(tools), ran=tools, requests=2)


def failed(words: str, *waits: int) -> Result:
    return Result(text="", end=words, waits=waits, requests=1 + len(waits))


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _row(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


SHOWN = Result(text=TEXT)
ONE_CALL = ran("t_look")
INVALID = Result(told=("invalid",), requests=2)
RETRIED = Result(waits=(1,), requests=2)
REFUSED = Result(text=REFUSAL)
LONG = '{"what": "' + "x" * 1_100_000 + '"}'
BEHAVIOURS: tuple[Behaviour, ...] = (
    row("text in fragments that end within a character and within a line", lambda wire: resplit(text(wire)), SHOWN),
    row("lines that end with CR LF", lambda wire: with_crlf(text(wire)), SHOWN),
    row("comments that keep the connection alive", with_comments, SHOWN),
    row("chunks and events without content", many_events, SHOWN),
    row("no usage", without_usage, SHOWN),
    row("no `[DONE]` where one is due, or one where none is", other_done, SHOWN),
    row("two choices in one chunk, or two messages", two_answers, SHOWN, Result(text=f"{TEXT}\n\n{TEXT}")),
    row("reasoning before text and a call", reasoning, ONE_CALL),
    row("text and a call together", lambda wire: calls(wire, LOOK, words=TEXT), ONE_CALL),
    row("arguments one character at a time", single_characters, ONE_CALL),
    row("a call with an empty id", with_id(""), ONE_CALL),
    row("a call without an id", with_id(None), ONE_CALL),
    row("a call whose id changes in later fragments", changing_id, ONE_CALL),
    row("two calls with the same id", same_ids, ran("t_look", "t_send")),
    row("two calls under the same index or item", shared_index, INVALID),
    row("a read and a write in one answer", lambda wire: calls(wire, LOOK, SEND), ran("t_look", "t_send")),
    row("ten calls in one answer", ten_calls, ran(*["t_look"] * 10)),
    row("a call of a tool that does not exist", arguments("{}", "t_other"), Result(told=("failed",), requests=2)),
    row("a call without arguments", arguments(""), INVALID),
    row("arguments that are not JSON", arguments('{"what": '), INVALID),
    row("arguments that are an array", arguments('["x"]'), INVALID),
    row("arguments with a duplicate key", arguments('{"what": "a", "what": "b"}'), INVALID),
    row("arguments of more than 1 MiB", arguments(LONG), failed("too long to keep")),
    row("finish reason `stop` with a call", stop_with_call, ONE_CALL),
    row("`length` within the text", lambda wire: text(wire, ending="length"), Result(text=f"{TEXT}\n\n{CUT_NOTE}")),
    row("`length` within a call", lambda wire: half_call(wire, LENGTH[type(wire)]), RETRIED),
    row("`content_filter`", lambda wire: text(wire, ending="content_filter"), failed("refused to answer")),
    row("an unknown finish reason after text", lambda wire: with_ending(wire, ModelReply(TEXT), "odd"), SHOWN),
    row(
        "an unknown finish reason after a complete call",
        lambda wire: with_ending(wire, ModelReply("", (LOOK,)), "odd"),
        ONE_CALL,
    ),
    row("an unknown finish reason within a call", lambda wire: half_call(wire, "odd"), RETRIED),
    row("no finish reason", lambda wire: text(wire, ending="none"), RETRIED),
    row("a refusal", refusal, REFUSED),
    row("a refusal after text", lambda wire: refusal(wire, words=TEXT), Result(text=f"{TEXT}\n\n{REFUSAL}")),
    row("a refusal after a call", lambda wire: refusal(wire, SEND), REFUSED),
    row("nothing, as the first answer", lambda wire: text(wire, ""), RETRIED),
    row(
        "nothing, after the results of calls",
        lambda wire: [calls(wire, LOOK), text(wire, "")],
        replace(ONE_CALL, text=""),
    ),
    row("a JSON body instead of a stream", lambda wire: whole(wire, ModelReply(TEXT)), SHOWN),
    row("a call in a JSON body", lambda wire: whole(wire, ModelReply("", (LOOK,))), ONE_CALL),
    row("a call in a JSON body without a finish reason", without_finish_reason, ONE_CALL),
    row("a refusal in a JSON body", lambda wire: whole(wire, ModelReply(""), REFUSAL), REFUSED),
    row("a stream that is called JSON", lambda wire: text(wire)._replace(content_type=JSON_TYPE), SHOWN),
    row("an error in a JSON body with status 200", error_in_json, RETRIED),
    row("a web page, as from a proxy", web_page, RETRIED),
    row("an error event in the stream", error_event, RETRIED),
    row("a cut within the text", lambda wire: cut(text(wire)), RETRIED),
    row("a cut within a call", lambda wire: cut(calls(wire, SEND)), RETRIED),
    row(
        "a cut in the answer after a write",
        lambda wire: [calls(wire, SEND), cut(text(wire))],
        Result(told=("succeeded",), ran=("t_send",), waits=(1,), requests=3),
    ),
    row("an end within a call", lambda wire: cut(calls(wire, SEND), ""), RETRIED),
    row("a reset before the headers", lambda _: RawAnswer(ending="reset"), RETRIED),
    row("silence before the headers", lambda _: RawAnswer((), ending="hang"), RETRIED),
    row("silence within the text", lambda wire: cut(text(wire), "hang"), RETRIED),
    row("429 with `Retry-After: 7`", error(429, retry_after=7), replace(RETRIED, waits=(7,))),
    row("429 without `Retry-After`", error(429), RETRIED),
    row("500 four times", lambda wire: [error(500)(wire)] * 4, failed("had an error of its own", 1, 4, 15)),
    row("500 once", error(500), RETRIED),
    row("401", error(401), failed("refused the key")),
    row("400 with a message", error(400, "No such option."), failed("did not accept the request: No such option")),
)


if __name__ == "__main__":
    print(table(), end="")
