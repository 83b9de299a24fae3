"""The interface of a model provider's wire format, and helpers that all formats share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from interlock.core.chat.transcript import ModelReply, Prompt, PromptMessage, ToolRequest, ToolResult

Json = dict[str, Any]
TOOL_NAME = r"[a-zA-Z0-9_-]{1,64}"


class Event(NamedTuple):
    """One event of the stream; `name` is empty where the vendor sends data alone."""

    data: Json
    name: str = ""


@dataclass(frozen=True)
class ScriptedResponse:
    """A reply and how it is to be sent: with signed thoughts before it, or ended by something else than its end."""

    reply: ModelReply
    turn: int
    thoughts: str = ""
    ending: str = ""

    @property
    def pieces(self) -> Iterator[str]:
        text = self.reply.text
        return (text[start : start + 16] for start in range(0, len(text), 16))

    @property
    def tokens(self) -> tuple[int, int]:
        """Made up, but the same for the same turn: a token is four characters."""
        written = len(self.reply.text) + sum(len(wish.args) for wish in self.reply.tool_requests)
        return 100, 1 + written // 4


class WireFormat(Protocol):
    path: str

    def refusals(self, body: Json, headers: Mapping[str, str]) -> Iterator[str]:
        """Why the vendor would answer with 400."""

    def prompt(self, body: Json) -> Prompt: ...

    def events(self, body: Json, answer: ScriptedResponse) -> Iterator[Event]: ...

    def schema_errors(self, event: Event) -> list[str]:
        """What the vendor's schema says against an event."""

    def error(self, status: int, message: str) -> Json: ...

    def error_event(self) -> Event | None:
        """An error inside of a stream that began well; not every vendor has one."""

    def has_key(self, headers: Mapping[str, str]) -> bool: ...


class PromptReader:
    """Puts messages together: what an assistant said and called in a row is one reply."""

    def __init__(self) -> None:
        self.messages: list[PromptMessage] = []

    def text(self, text: str) -> None:
        last = self._open()
        self.messages[-1] = replace_reply(last, text=last.text + text)

    def call(self, wish: ToolRequest) -> None:
        last = self._open()
        self.messages[-1] = replace_reply(last, tool_requests=(*last.tool_requests, wish))

    def result(self, call_id: str, content: object) -> None:
        tools = {
            wish.id: wish.tool for each in self.messages if isinstance(each, ModelReply) for wish in each.tool_requests
        }
        self.messages.append(ToolResult(call_id, tools.get(call_id, ""), parse_json(content)))

    def _open(self) -> ModelReply:
        if not self.messages or not isinstance(self.messages[-1], ModelReply):
            self.messages.append(ModelReply(""))
        last = self.messages[-1]
        assert isinstance(last, ModelReply)
        return last


def replace_reply(reply: ModelReply, **changes: Any) -> ModelReply:
    return reply._replace(**changes)


def plain_text(content: object) -> str:
    """The text of a message, whichever way it was written."""
    match content:
        case str():
            return content
        case list():
            return "".join(str(part.get("text", "")) for part in content)
        case _:
            return ""


def parse_json(content: object) -> object:
    try:
        return json.loads(plain_text(content))
    except ValueError:
        return plain_text(content)


def invalid_tool_names(prompt: Prompt) -> Iterator[str]:
    """Names of tools that are offered (documented) or were called (seen: OpenAI refuses these too)."""
    called = [wish.tool for each in prompt.messages if isinstance(each, ModelReply) for wish in each.tool_requests]
    names = [*(offer.name for offer in prompt.tools), *called]
    yield from (f"tool name {name}" for name in names if not re.fullmatch(TOOL_NAME, name))


def unanswered(messages: Sequence[PromptMessage]) -> Iterator[str]:
    """Every call has exactly one result, before anything else is said. (Documented by both vendors.)"""
    waiting: list[str] = []
    for message in messages:
        match message:
            case ToolResult(call_id):
                if call_id not in waiting:
                    yield f"a result for {call_id}, which nobody called or which has a result already"
                else:
                    waiting.remove(call_id)
            case _:
                yield from (f"no result for {call_id}" for call_id in waiting)
                waiting = [wish.id for wish in message.tool_requests] if isinstance(message, ModelReply) else []
    yield from (f"no result for {call_id}" for call_id in waiting)


def split_in_half(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def with_ids(reply: ModelReply, ids: Sequence[str]) -> ModelReply:
    return reply._replace(
        tool_requests=tuple(wish._replace(id=own) for wish, own in zip(reply.tool_requests, ids, strict=True))
    )


def truncate(answer: ScriptedResponse) -> ScriptedResponse:
    """Cut off within its last call, as by a limit of tokens."""
    *first, last = answer.reply.tool_requests
    cut = last._replace(args=split_in_half(last.args)[0])
    return replace(answer, reply=answer.reply._replace(tool_requests=(*first, cut)), ending="length")
