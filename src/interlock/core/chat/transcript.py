"""Reads a thread's lines: where its turn stands, and what its model has to be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from interlock.core.chat.prompt import Message, Replied, Result, Said, Wish
from interlock.core.chat.thread import Line

LOST: Mapping[str, object] = {"success": False, "status": "unknown", "error": "There is no record of a result."}


@dataclass(slots=True)
class Call:
    """One call of the model's last turn; `approval` once the gate knows it.

    `decided` once people said something; `running` if it was found at work in another process.
    """

    wish: Wish
    line: int  # of the reply that it is in: providers number calls anew in each
    approval: str = ""
    decided: str = ""
    child: str = ""
    ended: bool = False

    @property
    def id(self) -> str:
        """As the gate knows it."""
        return f"{self.line}:{self.wish.id}"[:200]


@dataclass(slots=True)
class Story:
    """Where the turn stands. The counts are since the last message: they are what limits are about."""

    calls: dict[str, Call] = field(default_factory=dict)
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


def story_of(lines: Sequence[Line]) -> Story:
    story = Story()
    for line in lines:
        _read(story, line)
    return story


def messages_of(lines: Sequence[Line]) -> tuple[Message, ...]:
    """Exactly one result for each call, in the order of the calls; what was said during a turn comes behind it."""
    messages: list[Message] = []
    said: list[tuple[int, Said]] = []
    wishes: tuple[Wish, ...] = ()
    results: dict[str, object] = {}
    for line in lines:
        match line.kind:
            case "said":
                said.append((line.n, Said(str(line.body["text"]))))
            case "replied":
                messages += _results(wishes, results)
                base = cast(int, line.body["seen"])
                messages += [each for n, each in said if n <= base]
                said = [(n, each) for n, each in said if n > base]
                reply = reply_of(line.body)
                wishes, results = reply.wishes, {}
                messages.append(reply)
            case "resulted":
                results[str(line.body["call"])] = line.body["result"]
            case _:
                pass
    return (*messages, *_results(wishes, results), *(each for _, each in said))


def reply_of(body: Mapping[str, Any]) -> Replied:
    wishes = tuple(Wish(*wish) for wish in body["wishes"])
    return Replied(body["text"], wishes, body.get("opaque", ""), body.get("tokens", 0))


def last_text(lines: Sequence[Line]) -> str:
    """What the model said last, which is what a sub-agent hands to its caller."""
    return next((str(line.body["text"]) for line in reversed(lines) if line.kind == "replied"), "")


def _results(wishes: Sequence[Wish], results: Mapping[str, object]) -> list[Message]:
    return [Result(wish.id, wish.tool, results.get(wish.id, LOST)) for wish in wishes]


def _read(story: Story, line: Line) -> None:
    body = cast(dict[str, Any], line.body)
    match line.kind:
        case "said" | "retried":
            _begin(story, line)
        case "stopped":
            story.stopped = True
        case "replied":
            _reply(story, body, line.n)
        case "failed":
            story.attempts, story.not_before = body["attempt"], body.get("again_at", 0)
        case "ended":
            story.over = True
        case "asked" | "decided" | "delegated" | "resulted":
            if body["call"] in story.calls and "child" not in body:
                _of_call(story, story.calls[body["call"]], line.kind, body)
        case _:
            pass


def _begin(story: Story, line: Line) -> None:
    story.over = story.stopped = False
    story.said = line.n if line.kind == "said" else story.said
    story.attempts = story.not_before = story.turns = story.tokens = story.took = 0


def _reply(story: Story, body: dict[str, Any], number: int) -> None:
    story.calls = {wish.id: Call(wish, number) for wish in reply_of(body).wishes}
    story.seen, story.replied, story.attempts, story.not_before = body["seen"], True, 0, 0
    story.turns += 1
    story.tokens += body.get("tokens", 0)
    story.took += body.get("took", 0)


def _of_call(story: Story, call: Call, kind: str, body: dict[str, Any]) -> None:
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
