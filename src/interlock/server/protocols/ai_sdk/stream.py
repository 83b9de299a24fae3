"""A turn of a thread as one AI SDK message: its parts, until the turn is over or this person has to answer.

Parts may be sent twice: the client finds a call's part by its id, and keeps the last state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from interlock.app.inbox import ApprovalDetails
from interlock.app.workspaces import WorkspaceServices
from interlock.chat.calls import WITHDRAWAL_REASONS
from interlock.chat.stream import Position, StreamEvent
from interlock.config.agents import AGENT_TOOL_PREFIX
from interlock.core.approval.approval import APPROVED_STATUSES, needs_reviewer
from interlock.core.call import QUESTION_TOOL
from interlock.core.chat.thread import Thread, ThreadEntry
from interlock.core.decision import Reviewer
from interlock.core.identity import Principal
from interlock.presenters.approval import approval_json, shown_args
from interlock.server.state import ServerState
from interlock.server.streams.thread_stream import ToolRequestRedactor
from interlock.storage.tables.threads import MAX_ENTRY_NUMBER, SqlThreads

Part = dict[str, object]
RawToolRequest = tuple[str, str, str]
NOT_RUN = frozenset({"rejected", "expired", "cancelled"})
FAILED = frozenset({"failed", "unknown", "invalid", "denied", *NOT_RUN})
CARD_FIELDS = (
    *("id", "tool", "status", "sentence", "risk", "args", "args_sha256", "findings", "decisions", "may_decide"),
    *("needed", "quorum", "editors", "expires_at"),
)
FINISH_REASONS = {"stopped": "interrupted"}  # the others ended by themselves
NO_RESULT = "The turn ended before this had a result."
MAX_ID = 200


class MessagePosition(NamedTuple):
    """The message, by the number of its entry. `step` is the last reply that the client has; 0 for none."""

    message_line: int
    step: int = 0


class AiSdkContext(NamedTuple):
    """The reader of a stream."""

    state: ServerState
    services: WorkspaceServices
    principal: Principal

    @property
    def reviewer(self) -> Reviewer:
        return self.services.reviewer(self.principal, self.state.clock())


def message_id(thread: Thread, said: int) -> str:
    return f"{thread.id}.{said}"


def call_id(step: int, body: Mapping[str, object]) -> str:
    """The id of a call for the client, unique in the thread. A sub-agent's call is identified by its approval."""
    return f"{step}:{body['approval' if 'child' in body else 'call']}"[:MAX_ID]


class MessageStream:
    """Streams one message to one reader. `lines` are the entries of the thread so far."""

    def __init__(
        self, context: AiSdkContext, thread: Thread, begin: MessagePosition, lines: Sequence[ThreadEntry]
    ) -> None:
        self._context = context
        self._thread = thread
        self._message_line = begin.message_line
        self._lines = {entry.number: entry for entry in lines if entry.number >= begin.message_line}
        self._known_step = self._step = begin.step
        self._open_calls = (
            _reply_calls(self._lines[begin.step]) if begin.step else {}
        )  # calls without a result, and their tools
        self._shown_calls = {
            number for number, wish in self._open_calls.items() if not _is_delegated(wish)
        }  # calls with a part
        self._pending_calls: dict[str, str] = {}  # the calls of pending approvals
        self._approval_states: dict[str, str] = {}  # approvals as the client shows them: open or answered
        self._calls_with_approval: set[str] = set()  # calls whose part has an approval
        self._text_id = ""  # the part that is being streamed
        self._in_step = self._replied = bool(begin.step)
        self._has_started = False
        after = Position(begin.step, len(self._open_calls)) if begin.step else Position(begin.message_line)
        self._follower = context.state.assistant.follower(thread, after, self._replaced_at or MAX_ENTRY_NUMBER)

    @property
    def poll_after(self) -> float | None:
        return self._follower.poll_after

    async def read_events(self) -> list[StreamEvent]:
        """The events that are new to the reader; an `end` is the last."""
        before = await self._store.get(self._thread.workspace, self._thread.id)
        told = await self._follower.read_events()
        await self._read(max([before.entry_count, *(each.position.line for each in told)]))
        parts: list[Part] = [] if self._has_started else [self._start()]
        replaced = self._replaced_at
        for each in _events_before(told, replaced) if replaced else told:
            parts += await self._event_parts(each)
            if parts and parts[-1]["type"] in ("finish", "error"):
                return [_stream_event("end", parts)]
        if replaced:
            return [_stream_event("end", [*parts, *self._finish_unresolved("other", WITHDRAWAL_REASONS["said"])])]
        if _is_waiting(before) and (asked := await self._open_requests()) is not None:
            return [_stream_event("end", [*parts, *asked, *self._finish("tool-calls")])]
        return [_stream_event("parts", parts)] if parts else []

    @property
    def _store(self) -> SqlThreads:
        return self._context.state.store.threads

    @property
    def _replaced_at(self) -> int:
        """The entry of the next message, if there is one: entries after it belong to that."""
        return min(
            (n for n, entry in self._lines.items() if entry.kind == "said" and n > self._message_line), default=0
        )

    async def _read(self, until: int) -> None:
        last = max(self._lines, default=0)
        if until > last:
            found = await self._store.entries(self._thread.workspace, self._thread.id, last)
            self._lines |= {entry.number: entry for entry in found}

    def _start(self) -> Part:
        self._has_started = True
        return {"type": "start", "messageId": message_id(self._thread, self._message_line)}

    async def _event_parts(self, stream_event: StreamEvent) -> Iterable[Part]:
        if stream_event.name == "delta":
            return list(self._text_parts(stream_event))
        entry = self._lines[stream_event.position.line]
        match entry.kind:
            case "replied" if entry.number > self._step:
                return await self._reply(entry)
            case "asked" if "reopened" not in entry.body:
                return await self._card(entry)
            case "decided" if "release_at" not in entry.body:  # a client could not take back a rejection
                return await self._decided(entry)
            case "resulted":
                return await self._result(cast(dict[str, Any], entry.body))
            case "ended" if not self._was_retried(entry.number):
                return list(self._ended(cast(dict[str, Any], entry.body)))
            case _:
                return ()

    def _text_parts(self, stream_event: StreamEvent) -> Iterator[Part]:
        if stream_event.data.get("reset"):  # the text starts over
            self._text_id = ""
            yield {"type": "reset-step"}
            return
        if self._text_id != str(stream_event.position.line):
            yield from self._next_step() if self._text_id or self._replied or not self._in_step else ()
            self._text_id = str(stream_event.position.line)
            yield {"type": "text-start", "id": self._text_id}
        yield {"type": "text-delta", "id": self._text_id, "delta": stream_event.data["content"]}

    async def _reply(self, entry: ThreadEntry) -> list[Part]:
        """The parts of a reply, whose text was streamed before, if it has any."""
        parts = list(self._next_step() if self._replied or not self._in_step else self._end_text())
        self._step, self._replied = entry.number, True
        self._open_calls |= _reply_calls(entry)
        for number, wish in _reply_calls(entry).items():
            if not _is_delegated(wish):
                parts.append(self._input(number, wish[1], await self._args(wish)))
        return parts

    async def _args(self, wish: RawToolRequest) -> object:
        state, workspace = self._context.state, self._thread.workspace
        specs = {name: tool.spec for name, tool in state.assistant.tool_registry.all(workspace).items()}
        return ToolRequestRedactor(specs, await state.store.secret_key(workspace)).redact(wish)["args"]

    async def _card(self, entry: ThreadEntry) -> list[Part]:
        """The parts of a call that people are asked about, in its current state."""
        view = await self._view(entry)
        approval, number, is_below = view.stored.approval, call_id(self._step, entry.body), "child" in entry.body
        self._pending_calls[approval.id] = number
        self._open_calls |= {number: (number, approval.subject.tool, "")} if is_below else {}
        parts: list[Part] = []
        if number not in self._shown_calls or approval.editors or self._step == self._known_step:
            parts.append(self._input(number, approval.subject.tool, shown_args(view.stored.payload)))
        return [*parts, self._data(view), *self._status_parts(view, number)]

    def _status_parts(self, view: ApprovalDetails, number: str) -> Iterator[Part]:
        """Only what this person has to answer is a request; a question is answered by an output."""
        approval, reviewer = view.stored.approval, self._context.reviewer
        if approval.subject.tool == QUESTION_TOOL or view.status == "responded":
            return
        voted = view.status == "pending" and any(vote.by == reviewer.name for vote in approval.votes)
        if view.status != "pending" or voted:
            yield self._request(view, number, "answered")
            yield _response(approval.id, _reason(view), approved=voted or view.status in APPROVED_STATUSES)
        elif needs_reviewer(approval, reviewer, self._context.state.clock()):
            yield self._request(view, number, "open")

    async def _decided(self, entry: ThreadEntry) -> list[Part]:
        body = cast(dict[str, Any], entry.body)
        number, status = self._pending_calls.pop(body["approval"], ""), body["status"]
        if not number:
            return []  # of an earlier message
        view = await self._view(entry)
        approval, parts = view.stored.approval, list[Part]()
        if approval.editors and status in APPROVED_STATUSES:
            parts.append(self._input(number, approval.subject.tool, shown_args(view.stored.payload)))
        if status != "responded" and approval.subject.tool != QUESTION_TOOL:
            parts += [] if approval.id in self._approval_states else [self._request(view, number, "answered")]
            parts.append(_response(approval.id, body["reason"], approved=status in APPROVED_STATUSES))
        parts.append(self._data(view))
        return [*parts, *(self._subagent_parts(number, body) if "child" in body else ())]

    def _subagent_parts(self, number: str, body: Mapping[str, Any]) -> Iterator[Part]:
        """The end of a sub-agent's call; its result goes to the sub-agent only."""
        self._open_calls.pop(number, None)
        if body["status"] in NOT_RUN:
            yield {"type": "tool-output-denied", "toolCallId": number}
        else:
            yield _output(number, body.get("result", {"status": body["status"]}))

    async def _result(self, body: Mapping[str, Any]) -> list[Part]:
        number = call_id(self._step, {"call": body["call"]})
        wish = self._open_calls.pop(number, None)
        if wish is None:
            return []  # of an earlier message
        part = self._outcome(number, body["status"], body["result"])
        return [part] if number in self._shown_calls else [self._input(number, wish[1], await self._args(wish)), part]

    def _outcome(self, number: str, status: str, result: object) -> Part:
        if status in NOT_RUN and number in self._calls_with_approval:
            return {"type": "tool-output-denied", "toolCallId": number}
        if status in FAILED:
            words = result.get("reason") or result.get("error") if isinstance(result, dict) else ""
            return _error(number, str(words or status))
        return _output(number, result)

    def _ended(self, body: Mapping[str, Any]) -> Iterator[Part]:
        if body["status"] in ("error", "limit"):
            yield from self._end_text()
            yield {"type": "error", "errorText": str(body["reason"])}
        else:
            yield from self._finish_unresolved(FINISH_REASONS.get(body["status"], "stop"), NO_RESULT)

    async def _open_requests(self) -> list[Part] | None:
        """Parts that show every pending request of this person as open when the stream ends; None if there is none."""
        parts, waits = list[Part](), False
        for approval_id, number in self._pending_calls.items():
            view = await self._context.services.inbox.show(self._thread.workspace, approval_id)
            if needs_reviewer(view.stored.approval, self._context.reviewer, self._context.state.clock()):
                waits = True
                is_question = view.stored.approval.subject.tool == QUESTION_TOOL
                if not is_question and self._approval_states.get(approval_id) != "open":
                    parts += [self._data(view), self._request(view, number, "open")]
        return parts if waits else None

    def _finish_unresolved(self, finish_reason: str, error_text: str) -> Iterator[Part]:
        """Give each call without a result an error: a client would resend an answer to such a call forever."""
        for number in sorted(self._open_calls.keys() & self._shown_calls):
            yield _error(number, error_text)
        self._open_calls.clear()
        yield from self._finish(finish_reason)

    def _finish(self, finish_reason: str) -> Iterator[Part]:
        yield from self._end_text()
        yield {"type": "finish-step"}
        yield {"type": "finish", "finishReason": finish_reason}

    def _next_step(self) -> Iterator[Part]:
        yield from self._end_text()
        if self._in_step:
            yield {"type": "finish-step"}
        self._in_step, self._replied = True, False
        yield {"type": "start-step"}

    def _end_text(self) -> Iterator[Part]:
        if self._text_id:
            yield {"type": "text-end", "id": self._text_id}
        self._text_id = ""

    def _input(self, number: str, tool: str, args: object) -> Part:
        self._shown_calls.add(number)
        return {"type": "tool-input-available", "toolCallId": number, "toolName": tool, "input": args, "dynamic": True}

    def _request(self, view: ApprovalDetails, number: str, shown: str) -> Part:
        """The client returns the descriptor with the answer: it identifies the arguments that the person saw."""
        approval = view.stored.approval
        self._approval_states[approval.id] = shown
        self._calls_with_approval.add(number)
        return {
            "type": "tool-approval-request",
            "approvalId": approval.id,
            "toolCallId": number,
            "approvalDescriptor": {"args_sha256": approval.args_sha256},
            "reason": view.card.sentence,
        }

    def _data(self, view: ApprovalDetails) -> Part:
        shown = approval_json(view, self._context.state.clock(), self._context.reviewer)
        card = {name: shown[name] for name in CARD_FIELDS}
        return {"type": "data-approval", "id": view.stored.approval.id, "data": card}

    async def _view(self, entry: ThreadEntry) -> ApprovalDetails:
        return await self._context.services.inbox.show(self._thread.workspace, str(entry.body["approval"]))

    def _was_retried(self, number: int) -> bool:
        retries = [n for n, entry in self._lines.items() if entry.kind == "retried" and n > number]
        return bool(retries) and not 0 < self._replaced_at < retries[0]


def _is_waiting(thread: Thread) -> bool:
    """Whether the thread is waiting; one that was woken has news, though no worker has leased it yet."""
    return thread.status == "waiting" and not thread.wake_count


def _events_before(told: Sequence[StreamEvent], line: int) -> Sequence[StreamEvent]:
    """The events before an entry; text belongs to the entry after it."""
    own = [n for n, each in enumerate(told, 1) if each.name != "delta" and each.position.line < line]
    return told[: own[-1]] if own else ()


def _reply_calls(entry: ThreadEntry) -> dict[str, RawToolRequest]:
    return {call_id(entry.number, {"call": wish[0]}): wish for wish in cast(list[RawToolRequest], entry.body["wishes"])}


def _is_delegated(wish: RawToolRequest) -> bool:
    """Whether a sub-agent is called: shown with its result, since a client sends no answers beside an open call."""
    return wish[1].startswith(AGENT_TOOL_PREFIX)


def _stream_event(name: str, parts: list[Part]) -> StreamEvent:
    return StreamEvent(Position(), name, {"parts": parts})


def _output(number: str, result: object) -> Part:
    return {"type": "tool-output-available", "toolCallId": number, "output": result, "dynamic": True}


def _error(number: str, words: str) -> Part:
    return {"type": "tool-output-error", "toolCallId": number, "errorText": words, "dynamic": True}


def _response(approval_id: str, reason: str, *, approved: bool) -> Part:
    part: Part = {"type": "tool-approval-response", "approvalId": approval_id, "approved": approved}
    return part | ({"reason": reason} if reason else {})


def _reason(view: ApprovalDetails) -> str:
    decision_record = view.stored.approval.decision
    return decision_record.reason if decision_record else ""
