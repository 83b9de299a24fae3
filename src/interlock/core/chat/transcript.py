"""The transcript of a thread: the state of its turn, its next step, and the messages of the model's prompt.

All of it is computed from the thread's log alone: a thread has no other state.
"""

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
    """One call of the model's last turn; `approval_id` is set once the gate knows it, `decision` once it is final.

    `is_rejected` while a recorded rejection can still be undone. `child` is the thread of the sub-agent that the call
    was delegated to.
    """

    tool_request: ToolRequest
    reply_number: int  # of the reply that holds it: providers restart their numbering in each
    _: KW_ONLY
    approval_id: str = ""
    decision: str = ""
    is_rejected: bool = False
    child: str = ""
    ended: bool = False

    @property
    def id(self) -> str:
        """The call id that the gate knows."""
        return f"{self.reply_number}:{self.tool_request.id}"[:200]


@dataclass(slots=True, kw_only=True)
class TurnState:
    """The state of the turn. Counts are since the last message, as limits are per message."""

    calls: dict[str, PendingCall] = field(default_factory=dict)
    last_message: int = 0  # the entry of the last message
    seen_up_to: int = 0  # the entry up to which the last reply knew everything
    replied: bool = False
    stopped: bool = False
    is_over: bool = True
    attempts: int = 0  # failed attempts since the last reply
    not_before: int = 0
    turns: int = 0
    tokens: int = 0
    work_ms: int = 0

    @property
    def has_unseen(self) -> bool:
        """Whether there is a message that no reply has taken into account."""
        return self.last_message > self.seen_up_to


def read_turn_state(entries: Sequence[ThreadEntry]) -> TurnState:
    state = TurnState()
    for entry in entries:
        _apply_entry(state, entry)
    return state


def prompt_messages(entries: Sequence[ThreadEntry]) -> tuple[PromptMessage, ...]:
    """The prompt: exactly one result for each call, in call order; messages sent during a turn come after it."""
    messages: list[PromptMessage] = []
    user_messages: list[tuple[int, PromptUserMessage]] = []
    tool_requests: tuple[ToolRequest, ...] = ()
    results: dict[str, object] = {}
    for entry in entries:
        match entry.kind:
            case "said":
                user_messages.append((entry.number, PromptUserMessage(str(entry.body["text"]))))
            case "replied":
                messages += _results(tool_requests, results)
                base = cast(int, entry.body["seen"])
                messages += [each for n, each in user_messages if n <= base]
                user_messages = [(n, each) for n, each in user_messages if n > base]
                reply = parse_reply(entry.body)
                tool_requests, results = reply.tool_requests, {}
                messages.append(reply)
            case "resulted":
                results[str(entry.body["call"])] = entry.body["result"]
            case _:
                pass
    return (*messages, *_results(tool_requests, results), *(each for _, each in user_messages))


def parse_reply(body: Mapping[str, Any]) -> ModelReply:
    tool_requests = tuple(ToolRequest(*wish) for wish in body["wishes"])
    return ModelReply(body["text"], tool_requests, body.get("opaque", ""), body.get("tokens", 0))


def last_reply_text(entries: Sequence[ThreadEntry]) -> str:
    """The model's last reply, which a sub-agent returns to its caller."""
    return next((str(entry.body["text"]) for entry in reversed(entries) if entry.kind == "replied"), "")


def _results(tool_requests: Sequence[ToolRequest], results: Mapping[str, object]) -> list[PromptMessage]:
    return [
        ToolResult(tool_request.id, tool_request.tool, results.get(tool_request.id, MISSING_RESULT))
        for tool_request in tool_requests
    ]


def _apply_entry(state: TurnState, entry: ThreadEntry) -> None:
    body = cast(dict[str, Any], entry.body)
    match entry.kind:
        case "said" | "retried":
            _begin_turn(state, entry)
        case "stopped":
            state.stopped = True
        case "replied":
            _apply_reply(state, body, entry.number)
        case "failed":
            state.attempts, state.not_before = body["attempt"], body.get("again_at", 0)
        case "ended":
            state.is_over = True
        case "asked" | "decided" | "delegated" | "resulted":
            if body["call"] in state.calls and "child" not in body:
                _apply_to_call(state, state.calls[body["call"]], entry.kind, body)
        case _:
            pass


def _begin_turn(state: TurnState, entry: ThreadEntry) -> None:
    state.is_over = state.stopped = False
    state.last_message = entry.number if entry.kind == "said" else state.last_message
    state.attempts = state.not_before = state.turns = state.tokens = state.work_ms = 0


def _apply_reply(state: TurnState, body: dict[str, Any], number: int) -> None:
    state.calls = {
        tool_request.id: PendingCall(tool_request, number) for tool_request in parse_reply(body).tool_requests
    }
    state.seen_up_to, state.replied, state.attempts, state.not_before = body["seen"], True, 0, 0
    state.turns += 1
    state.tokens += body.get("tokens", 0)
    state.work_ms += body.get("took", 0)


def _apply_to_call(state: TurnState, call: PendingCall, kind: str, body: dict[str, Any]) -> None:
    match kind:
        case "asked":
            call.approval_id = body["approval"]
            call.decision = "" if body["status"] == "pending" else body["status"]
            call.is_rejected = False
        case "decided" if "release_at" in body:
            call.is_rejected = True
        case "decided":
            call.decision = body["status"]
        case "delegated":
            call.child = body["thread"]
        case _:
            call.ended = True
            state.work_ms += body.get("took", 0)
            state.tokens += body.get("tokens", 0)  # of a sub-agent


MAX_ID = 150  # characters of a call's id


class ToolRequest(NamedTuple):
    """A tool call as the model wrote it; `args` is its own text, which may not be valid JSON."""

    id: str
    tool: str
    args: str


class PromptUserMessage(NamedTuple):
    """A person's message to the agent."""

    text: str


class ModelReply(NamedTuple):
    """A complete turn of the model; `opaque` is state that only its provider reads and needs back.

    `suggestions` are messages that the person could send next, offered as buttons.
    """

    text: str
    tool_requests: tuple[ToolRequest, ...] = ()
    opaque: str = ""
    tokens: int = 0
    suggestions: tuple[str, ...] = ()


class ToolResult(NamedTuple):
    """The result of a call; `content` is JSON."""

    call_id: str
    tool: str
    content: object


PromptMessage = PromptUserMessage | ModelReply | ToolResult


class PromptTool(NamedTuple):
    """A tool as described to a model."""

    name: str
    description: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt in which every tool request of a reply is followed by exactly one result, in request order."""

    instructions: str
    messages: tuple[PromptMessage, ...]
    tools: tuple[PromptTool, ...] = ()


class Delta(NamedTuple):
    """A piece of streamed text."""

    text: str


class ChatModel(Protocol):
    """A chat model; `name` is as in the configuration: `provider:name`."""

    @property
    def name(self) -> str: ...

    def turn(self, prompt: Prompt) -> AsyncIterator[Delta | ModelReply]:
        """Run one turn: yield pieces of text, then the complete reply as the last item. Raises ModelFailed."""


def with_unique_ids(tool_requests: Sequence[ToolRequest]) -> tuple[ToolRequest, ...]:
    """Give each request a unique id: a missing, duplicate or unprintable id of the provider is replaced."""
    given = {tool_request.id for tool_request in tool_requests}
    free = (name for number in count() if (name := f"call_{number}") not in given)
    taken: set[str] = set()
    made: list[ToolRequest] = []
    for tool_request in tool_requests:
        fits = 1 <= len(tool_request.id) <= MAX_ID and tool_request.id.isprintable() and tool_request.id not in taken
        made.append(tool_request if fits else tool_request._replace(id=next(free)))
        taken.add(tool_request.id)
    return tuple(made)


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Limits per message: turns of the model, tokens, and milliseconds that model and tools took together."""

    turns: int = 30
    tokens: int = 500_000
    work_ms: int = 900_000


DEFAULT_LIMITS = TurnLimits()


class CallModel(NamedTuple):
    """Call the model; `attempt` counts from 1, and after a failure `not_before` is the earliest time to retry."""

    attempt: int = 1
    not_before: int = 0


class HandleCalls(NamedTuple):
    """Calls without a result: to propose to the gate, to start, and to wait for.

    `withdrawal`: the turn was stopped or a newer message came, so calls that have not started are withdrawn; the
    loop also sets it if the agent was deleted.
    """

    to_propose: tuple[PendingCall, ...] = ()
    start: tuple[PendingCall, ...] = ()
    to_await: tuple[PendingCall, ...] = ()
    withdrawal: str = ""


class EndTurn(NamedTuple):
    """The turn is over: done, stopped or limit; `reason` is for people."""

    status: str
    reason: str = ""


class Idle(NamedTuple):
    """Nothing to do until the next message."""


ThreadStep = CallModel | HandleCalls | EndTurn | Idle


def next_step(log: Sequence[ThreadEntry], limits: TurnLimits = DEFAULT_LIMITS) -> ThreadStep:
    """The next step of a thread."""
    state = read_turn_state(log)
    waiting = [call for call in state.calls.values() if not call.ended]
    if waiting:
        return _handle_calls(waiting, state)
    if state.is_over:
        return Idle()
    if state.stopped:
        return EndTurn("stopped", "Stopped.")
    if state.replied and not state.calls and not state.has_unseen:
        return EndTurn("done")
    reached = _limit_message(state, limits)
    return EndTurn("limit", reached) if reached else CallModel(state.attempts + 1, state.not_before)


def _handle_calls(waiting: Sequence[PendingCall], state: TurnState) -> HandleCalls:
    fresh = tuple(call for call in waiting if not call.approval_id and not call.child)
    start = tuple(call for call in waiting if call.decision == "approved" and not call.child)
    wait = tuple(call for call in waiting if call not in fresh and call not in start)
    withdrawal = "stopped" if state.stopped else ("said" if state.has_unseen else "")
    return HandleCalls(fresh, start, wait, withdrawal)


def _limit_message(state: TurnState, limits: TurnLimits) -> str:
    more = "Send a message to go on."
    if state.turns >= limits.turns:
        return f"The limit of {limits.turns} model turns for one message is reached. {more}"
    if state.tokens >= limits.tokens:
        return f"The limit of {limits.tokens:,} tokens for one message is reached. {more}"
    if state.work_ms >= limits.work_ms:
        return f"The limit of {limits.work_ms // 1000:,} seconds of work for one message is reached. {more}"
    return ""
