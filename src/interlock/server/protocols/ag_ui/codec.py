"""Messages and interrupts as AG-UI has them, made from the lines of a thread and its cards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from ag_ui.core import AssistantMessage, FunctionCall, Interrupt, Message, ToolCall, ToolMessage, UserMessage

from interlock.core.call import QUESTION
from interlock.core.chat.prompt import Wish
from interlock.core.chat.thread import Line
from interlock.core.chat.transcript import Call, reply_of
from interlock.core.decision import MAX_COMMENT, MAX_MESSAGE
from interlock.server.protocols.ag_ui.thread import interrupt_id
from interlock.server.streams.thread_stream import Wishes

Json = Mapping[str, Any]
MOST_RESULT = 50_000  # characters
MOST_HISTORY = 500_000  # bytes
LEAST = 80  # bytes of a message beside its text
TEXT = {"type": "string", "minLength": 1, "maxLength": MAX_MESSAGE}


def message_id(thread_id: str, line: int) -> str:
    """Of a message in a snapshot. While it is told live it has another: a client puts what it knows before what it
    does not, and so the order is right only if a snapshot knows nothing of what was streamed.
    """
    return f"{thread_id}:{line}"


def text_of(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def result_of(value: object) -> str:
    text = text_of(value)
    return text if len(text) <= MOST_RESULT else f"{text[:MOST_RESULT]}… ({len(text) - MOST_RESULT:,} more characters)"


def fill(lines: Sequence[Line]) -> bool:
    """Whether a snapshot of these is as long as one can be: what is before them has no place in it."""
    return sum(_least(line) for line in lines) > MOST_HISTORY


def _least(line: Line) -> int:
    match line.kind:
        case "said" | "replied":
            return LEAST + len(str(line.body["text"]))
        case "resulted":
            return LEAST + min(len(text_of(line.body["result"])), MOST_RESULT)
        case _:
            return 0


def recent(messages: Sequence[Message]) -> list[Message]:
    """The newest: a client posts all that it has each time, and a body is bounded. Results follow their calls."""
    left, first = MOST_HISTORY, len(messages)
    for number in range(len(messages) - 1, -1, -1):
        left -= len(messages[number].model_dump_json())
        if left < 0:
            break
        first = number
    while first < len(messages) and messages[first].role == "tool":
        first += 1
    return list(messages[first:])


def names_of(lines: Sequence[Line]) -> dict[str, str]:
    """The calls of the last reply by the names that its model gave them: a model may use those again."""
    reply = next((line for line in reversed(lines) if line.kind == "replied"), None)
    return {} if reply is None else {wish.id: _call_id(reply, wish) for wish in reply_of(reply.body).wishes}


def delegations_of(lines: Sequence[Line]) -> dict[str, str]:
    """The calls that sub-agents were begun by, by their threads."""
    found, names = dict[str, str](), dict[str, str]()
    for line in lines:
        if line.kind == "replied":
            names = names_of([line])
        if line.kind == "delegated":
            found[str(line.body["thread"])] = names.get(str(line.body["call"]), "")
    return found


def tool_calls_of(reply: Line, wishes: Wishes) -> list[ToolCall]:
    return [_tool_call(reply, wish, wishes) for wish in reply_of(reply.body).wishes]


def messages_of(lines: Sequence[Line], thread_id: str, wishes: Wishes) -> Iterator[Message]:
    names: dict[str, str] = {}
    for line in lines:
        body, name = line.body, message_id(thread_id, line.n)
        match line.kind:
            case "said":
                yield UserMessage(id=name, content=str(body["text"]))
            case "replied":
                names, calls = names_of([line]), tool_calls_of(line, wishes)
                yield AssistantMessage(id=name, content=str(body["text"]) or None, tool_calls=calls or None)
            case "resulted":
                call = names.get(str(body["call"]), str(body["call"]))
                yield ToolMessage(id=name, tool_call_id=call, content=result_of(body["result"]))
            case _:
                pass


def interrupt_of(view: Json, tool_call_id: str, link: str) -> Interrupt:
    """`view` is an approval as our own front ends get it."""
    question = view["tool"] == QUESTION
    return Interrupt(
        id=interrupt_id(view["id"], view["args_sha256"]),
        reason="input_required" if question else "tool_call",
        message=view["sentence"],
        tool_call_id=tool_call_id,
        response_schema=answer_schema(view["args"] or {}) if question else _decision_schema(view),
        expires_at=view["expires_at"],
        metadata={
            "approvalId": view["id"],
            "argsSha256": view["args_sha256"],
            "tool": view["tool"],
            "args": view["args"],
            "sentence": view["sentence"],
            "risk": view["risk"],
            "findings": view["findings"],
            "mayDecide": view["may_decide"],
            "needed": view["needed"],
            "agentPath": view["agent_path"],
            "link": link,
        },
    )


def answer_schema(asked: Json) -> dict[str, Any]:
    """Of the answer to a question: data by its schema, one of its choices, or a text."""
    if asked.get("schema") is not None:
        return dict(asked["schema"])
    return {"type": "string", "enum": list(asked["choices"])} if asked.get("choices") else TEXT


def _decision_schema(view: Json) -> dict[str, Any]:
    """`editedArgs` and `response` only where the rule allows them: that they are there is what a client goes by."""
    text = {"type": "string", "maxLength": MAX_COMMENT}
    properties: dict[str, Any] = {"approved": {"type": "boolean"}, "reason": text}
    if "edit" in view["decisions"]:
        properties["editedArgs"] = {
            **_nested(view["schema"]),
            "description": "All arguments, in place of the old ones.",
        }
    if "respond" in view["decisions"]:
        properties["response"] = {**TEXT, "description": "What the agent is told in place of a run; not approved."}
    if view["alarms"]:
        properties["acknowledged"] = {"type": "array", "items": {"enum": list(view["alarms"])}}
    properties["argsSha256"] = {"const": view["args_sha256"]}
    return {"type": "object", "properties": properties, "required": ["approved"], "additionalProperties": False}


def _nested(schema: Json | None) -> dict[str, Any]:
    """References lead to the top of a schema, where it is not any more."""
    if schema is None or '"$ref"' in json.dumps(schema):
        return {"type": "object"}
    return dict(schema)


def _tool_call(reply: Line, wish: Wish, wishes: Wishes) -> ToolCall:
    args = wishes.shown(cast(tuple[str, str, str], tuple(wish)))["args"]
    call = FunctionCall(name=wish.tool, arguments="" if args is None else text_of(args))
    return ToolCall(id=_call_id(reply, wish), function=call)


def _call_id(reply: Line, wish: Wish) -> str:
    """As the gate knows it."""
    return Call(wish, reply.n).id
