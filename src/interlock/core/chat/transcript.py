"""Reads a thread's lines: where its turn stands, and what its model has to be told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import count
from typing import Any, NamedTuple, Protocol, cast

from interlock.core.chat.thread import ThreadEntry

MISSING_RESULT: Mapping[str, object] = {
    "success": False,
    "status": "unknown",
    "error": "There is no record of a result.",
}


@dataclass(slots=True)
class PendingCall:
    """One call of the model's last turn; `approval` once the gate knows it.

    `decided` once people said something; `running` if it was found at work in another process.
    """

    wish: ToolRequest
    line: int  # of the reply that it is in: providers number calls anew in each
    _: KW_ONLY
    approval: str = ""
    decided: str = ""
    child: str = ""
    ended: bool = False

    @property
    def id(self) -> str:
        """As the gate knows it."""
        return f"{self.line}:{self.wish.id}"[:200]


@dataclass(slots=True, kw_only=True)
class TurnState:
    """Where the turn stands. The counts are since the last message: they are what limits are about."""

    calls: dict[str, PendingCall] = field(default_factory=dict)
    said: int = 0  # the line of the last message
    seen: int = 0  # the line up to which the last reply knew everything
    replied: bool = False
    stopped: bool = False
    over: bool = True
    attempts: int = 0  # that failed since the last reply
    not_before: int = 0
    turns: int = 0
    tokens: int = 0
    took: int = 0

    @property
    def unseen(self) -> bool:
        """Whether something was said that no reply knew."""
        return self.said > self.seen


def read_turn_state(lines: Sequence[ThreadEntry]) -> TurnState:
    story = TurnState()
    for line in lines:
        _apply_entry(story, line)
    return story


def prompt_messages(lines: Sequence[ThreadEntry]) -> tuple[PromptMessage, ...]:
    """Exactly one result for each call, in the order of the calls; what was said during a turn comes behind it."""
    messages: list[PromptMessage] = []
    said: list[tuple[int, PromptUserMessage]] = []
    wishes: tuple[ToolRequest, ...] = ()
    results: dict[str, object] = {}
    for line in lines:
        match line.kind:
            case "said":
                said.append((line.n, PromptUserMessage(str(line.body["text"]))))
            case "replied":
                messages += _results(wishes, results)
                base = cast(int, line.body["seen"])
                messages += [each for n, each in said if n <= base]
                said = [(n, each) for n, each in said if n > base]
                reply = parse_reply(line.body)
                wishes, results = reply.wishes, {}
                messages.append(reply)
            case "resulted":
                results[str(line.body["call"])] = line.body["result"]
            case _:
                pass
    return (*messages, *_results(wishes, results), *(each for _, each in said))


def parse_reply(body: Mapping[str, Any]) -> ModelReply:
    wishes = tuple(ToolRequest(*wish) for wish in body["wishes"])
    return ModelReply(body["text"], wishes, body.get("opaque", ""), body.get("tokens", 0))


def last_reply_text(lines: Sequence[ThreadEntry]) -> str:
    """What the model said last, which is what a sub-agent hands to its caller."""
    return next((str(line.body["text"]) for line in reversed(lines) if line.kind == "replied"), "")


def _results(wishes: Sequence[ToolRequest], results: Mapping[str, object]) -> list[PromptMessage]:
    return [ToolResult(wish.id, wish.tool, results.get(wish.id, MISSING_RESULT)) for wish in wishes]


def _apply_entry(story: TurnState, line: ThreadEntry) -> None:
    body = cast(dict[str, Any], line.body)
    match line.kind:
        case "said" | "retried":
            _begin_turn(story, line)
        case "stopped":
            story.stopped = True
        case "replied":
            _apply_reply(story, body, line.n)
        case "failed":
            story.attempts, story.not_before = body["attempt"], body.get("again_at", 0)
        case "ended":
            story.over = True
        case "asked" | "decided" | "delegated" | "resulted":
            if body["call"] in story.calls and "child" not in body:
                _apply_to_call(story, story.calls[body["call"]], line.kind, body)
        case _:
            pass


def _begin_turn(story: TurnState, line: ThreadEntry) -> None:
    story.over = story.stopped = False
    story.said = line.n if line.kind == "said" else story.said
    story.attempts = story.not_before = story.turns = story.tokens = story.took = 0


def _apply_reply(story: TurnState, body: dict[str, Any], number: int) -> None:
    story.calls = {wish.id: PendingCall(wish, number) for wish in parse_reply(body).wishes}
    story.seen, story.replied, story.attempts, story.not_before = body["seen"], True, 0, 0
    story.turns += 1
    story.tokens += body.get("tokens", 0)
    story.took += body.get("took", 0)


def _apply_to_call(story: TurnState, call: PendingCall, kind: str, body: dict[str, Any]) -> None:
    match kind:
        case "asked":
            call.approval = body["approval"]
            call.decided = "" if body["status"] == "pending" else body["status"]
        case "decided":
            call.decided = body["status"]
        case "delegated":
            call.child = body["thread"]
        case _:
            call.ended = True
            story.took += body.get("took", 0)
            story.tokens += body.get("tokens", 0)  # of a sub-agent


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
