"""What a model is given and what it answers: one turn of a conversation, in no provider's words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, Protocol

MAX_ID = 150  # characters of a call's id


class ToolRequest(NamedTuple):
    """A call as the model wrote it; `args` is its own text, which need not even be JSON."""

    id: str
    tool: str
    args: str


class PromptUserMessage(NamedTuple):
    """What a person told the agent."""

    text: str


class ModelReply(NamedTuple):
    """A whole turn of the model. `opaque` is what its provider wants to see again, and only its provider reads it."""

    text: str
    wishes: tuple[ToolRequest, ...] = ()
    opaque: str = ""
    tokens: int = 0


class ToolResult(NamedTuple):
    """What became of a call; `content` is JSON."""

    call_id: str
    tool: str
    content: object


PromptMessage = PromptUserMessage | ModelReply | ToolResult


class PromptTool(NamedTuple):
    """A tool as a model is told of it."""

    name: str
    description: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Prompt:
    """Every wish of a reply has exactly one result behind it, in the order of the wishes."""

    instructions: str
    messages: tuple[PromptMessage, ...]
    tools: tuple[PromptTool, ...] = ()


class Delta(NamedTuple):
    """A piece of the text, as it comes."""

    text: str


class ChatModel(Protocol):
    """`name` is as in the configuration: `provider:name`."""

    @property
    def name(self) -> str: ...

    def turn(self, prompt: Prompt) -> AsyncIterator[Delta | ModelReply]:
        """One turn: pieces of text, then the whole of it as the last item. Raises ModelFailed."""


def with_unique_ids(wishes: Sequence[ToolRequest]) -> tuple[ToolRequest, ...]:
    """With an id of its own for each: what a provider left out, gave twice or made odd is replaced."""
    given = {wish.id for wish in wishes}
    free = (name for number in count() if (name := f"call_{number}") not in given)
    taken: set[str] = set()
    made: list[ToolRequest] = []
    for wish in wishes:
        fits = 1 <= len(wish.id) <= MAX_ID and wish.id.isprintable() and wish.id not in taken
        made.append(wish if fits else wish._replace(id=next(free)))
        taken.add(wish.id)
    return tuple(made)
