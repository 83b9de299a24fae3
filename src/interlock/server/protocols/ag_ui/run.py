"""The AG-UI events of one run, made from the entries and the live text of a thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from ag_ui.core import (
    BaseEvent,
    Interrupt,
    Message,
    MessagesSnapshotEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from ag_ui.encoder import EventEncoder

from interlock.chat.stream import Position, StreamCursor, StreamEvent, advance_cursor
from interlock.core.approval.approval import Approval
from interlock.core.chat.thread import ThreadEntry
from interlock.presenters.approval import approval_json
from interlock.server.protocols.ag_ui import codec
from interlock.server.protocols.ag_ui.codec import AgUiContext, ClientRun, includes_requests
from interlock.server.streams.thread_stream import ToolRequestRedactor

VERSION = "1.0"  # of the protocol
POLL_SOON = 0.2  # seconds
STARTED, INTERRUPT = "started", "interrupt"
FINAL_EVENTS = frozenset({"done", "error", INTERRUPT})
STREAMED_EVENTS = frozenset({STARTED, "delta", "tool_call_start", "tool_call_result", *FINAL_EVENTS})

Opening = Literal["", "snapshots"]


def empty_run(client_run: ClientRun) -> bytes:
    """The events of a run in a thread where nothing was said yet."""
    encode, state = EventEncoder().encode, client_run.state if isinstance(client_run.state, dict) else {}
    events = (
        RunStartedEvent(thread_id=client_run.thread_id, run_id=client_run.run_id, protocol_version=VERSION),
        StateSnapshotEvent(snapshot=state),
        MessagesSnapshotEvent(messages=[]),
        RunFinishedEvent(thread_id=client_run.thread_id, run_id=client_run.run_id, outcome=RunFinishedSuccessOutcome()),
    )
    return "".join([encode(event) for event in events]).encode()


class AgUiRun:
    """Emits events until the turn is over, or until nothing proceeds without people: then it ends with interrupts."""

    def __init__(
        self, context: AgUiContext, client_run: ClientRun, known: Sequence[ThreadEntry], opening: Opening = ""
    ) -> None:
        """`known` are the entries that are not emitted: the client has them, or gets them as a snapshot first."""
        self.poll_after: float | None = None
        self.position = _position_after(known)
        self._context = context
        self._client_run = client_run
        self._opening = known if opening else None
        self._follower = context.state.assistant.follower(context.thread, self.position)
        self._has_started = False
        self._call_ids = codec.call_ids_by_name(known)
        self._open_text: tuple[int, str] | None = None  # streamed text: the entry before it, and the message's id
        self._parent = (0, "")  # the message that calls belong to, by the number of the reply's entry
        self._pending_approvals: Sequence[Approval] = ()

    async def read_events(self) -> list[StreamEvent]:
        told = [] if self._has_started else [StreamEvent(self.position, STARTED, {})]
        self._has_started = True
        told += await self._follower.read_events()
        self.poll_after = self._follower.poll_after
        if not told or told[-1].name not in ("delta", *FINAL_EVENTS):
            final_event = await self._final_event()
            more = (
                [] if final_event is None else await self._follower.read_events()
            )  # events that arrived meanwhile go first
            self.poll_after = POLL_SOON if more else self.poll_after
            told += more or ([] if final_event is None else [final_event])
        return [each for each in told if each.name in STREAMED_EVENTS]

    async def encode(self, stream_event: StreamEvent) -> bytes:
        encode = EventEncoder().encode
        return "".join([encode(event) for event in await self._events(stream_event)]).encode()

    async def _final_event(self) -> StreamEvent | None:
        """The event that ends the run, if nothing more comes by itself."""
        mine = self._context.thread
        thread = await self._context.state.store.threads.get(mine.workspace, mine.id)
        if thread.status == "idle":
            return StreamEvent(self.position, "done", {})
        if thread.status != "waiting":
            return None
        self._pending_approvals = await self._context.load_pending_approvals()
        if self._pending_approvals and not await self._are_subagents_idle(thread.id):
            self.poll_after = POLL_SOON  # nothing wakes this stream when a sub-agent becomes idle
            return None
        return StreamEvent(self.position, INTERRUPT, {}) if self._pending_approvals else None

    async def _are_subagents_idle(self, thread_id: str) -> bool:
        for child in await self._context.state.store.threads.children(self._context.thread.workspace, thread_id):
            if child.status == "idle":
                continue  # its own sub-agents are done too
            if child.status != "waiting" or not await self._are_subagents_idle(child.id):
                return False
        return True

    async def _events(self, stream_event: StreamEvent) -> Sequence[BaseEvent]:
        data, line = cast(Mapping[str, Any], stream_event.data), stream_event.position.line
        match stream_event.name:
            case "started":
                return [self._started(), *(() if self._opening is None else await self._snapshots(self._opening))]
            case "delta" if data.get("reset"):  # AG-UI has no other way to retract text
                return [
                    *self._end_text(),
                    *await self._snapshots(await self._context.read_entries(codec.fills_snapshot, line)),
                ]
            case "delta":
                return list(self._text_events(line, data["content"]))
            case "tool_call_start":
                return await self._call(line, data["tool_call"]["id"])
            case "tool_call_result":
                return [self._result(data["tool_call"])]
            case "error":
                return [*self._end_text(), RunErrorEvent(message=data["error"], code=data["status"])]
            case "interrupt":
                cards = [card.id for card in self._pending_approvals]
                lines = await self._context.read_entries(
                    lambda found: codec.fills_snapshot(found) and includes_requests(found, cards)
                )
                outcome = RunFinishedInterruptOutcome(interrupts=await self._interrupts(lines))
                return [*self._end_text(), *await self._snapshots(lines), self._finished(outcome)]
            case _:
                ended = RunFinishedCancelledOutcome() if data.get("stopped") else RunFinishedSuccessOutcome()
                return [*self._end_text(), *await self._trim_history(), self._finished(ended)]

    def _started(self) -> BaseEvent:
        return RunStartedEvent(
            thread_id=self._client_run.thread_id, run_id=self._client_run.run_id, protocol_version=VERSION
        )

    def _finished(self, outcome: Any) -> BaseEvent:
        return RunFinishedEvent(thread_id=self._client_run.thread_id, run_id=self._client_run.run_id, outcome=outcome)

    def _text_events(self, line: int, words: str) -> Iterator[BaseEvent]:
        """Text after another entry is another message."""
        if self._open_text is None or self._open_text[0] != line:
            yield from self._end_text()
            self._open_text = line, f"{self._client_run.run_id}:{line}-reply"
            yield TextMessageStartEvent(message_id=self._open_text[1], role="assistant")
        yield TextMessageContentEvent(message_id=self._open_text[1], delta=words)

    def _end_text(self) -> Iterator[BaseEvent]:
        if self._open_text is not None:
            yield TextMessageEndEvent(message_id=self._open_text[1])
            self._open_text = None

    async def _call(self, line: int, name: str) -> list[BaseEvent]:
        """The events of a call in the reply at this entry, which has the arguments."""
        context = self._context
        if self._parent[0] != line:
            self._parent = line, self._open_text[1] if self._open_text else f"{self._client_run.run_id}:{line}-calls"
        [reply] = await context.state.store.threads.entries(
            context.thread.workspace, context.thread.id, line - 1, line + 1
        )
        self._call_ids |= codec.call_ids_by_name([reply])
        calls = codec.reply_tool_calls(reply, await self._make_redactor())
        call = next(each for each in calls if each.id == self._call_ids[name])
        return [
            *self._end_text(),
            ToolCallStartEvent(
                tool_call_id=call.id, tool_call_name=call.function.name, parent_message_id=self._parent[1]
            ),
            ToolCallArgsEvent(tool_call_id=call.id, delta=call.function.arguments),
            ToolCallEndEvent(tool_call_id=call.id),
        ]

    def _result(self, call: Mapping[str, Any]) -> BaseEvent:
        name = self._call_ids.get(call["id"], call["id"])
        return ToolCallResultEvent(
            message_id=f"{self._client_run.run_id}:{name}-result",
            tool_call_id=name,
            content=codec.result_text(call["result"]),
            role="tool",
            metadata={"status": call["status"]},
        )

    async def _snapshots(self, lines: Sequence[ThreadEntry]) -> list[BaseEvent]:
        """The current state and messages, which replace what the client has."""
        context = self._context
        thread = await context.state.store.threads.get(context.thread.workspace, context.thread.id)
        waiting = [card.id for card in self._pending_approvals]
        ours = {"thread": thread.id, "agent": thread.agent, "status": thread.status, "approvals": waiting}
        given = self._client_run.state if isinstance(self._client_run.state, dict) else {}
        messages = codec.newest_messages(await self._messages(lines))
        return [StateSnapshotEvent(snapshot={**given, "interlock": ours}), MessagesSnapshotEvent(messages=messages)]

    async def _trim_history(self) -> list[BaseEvent]:
        """Make the client of a long thread drop the beginning: else its next request would be too large."""
        messages = await self._messages(await self._context.read_entries(codec.fills_snapshot))
        kept = codec.newest_messages(messages)
        return [MessagesSnapshotEvent(messages=kept)] if len(kept) < len(messages) else []

    async def _messages(self, lines: Sequence[ThreadEntry]) -> list[Message]:
        return list(codec.to_messages(lines, self._context.thread.id, await self._make_redactor()))

    async def _interrupts(self, lines: Sequence[ThreadEntry]) -> list[Interrupt]:
        context, begun, found = self._context, codec.delegating_calls(lines), list[Interrupt]()
        asked = {entry.body["approval"]: entry.number for entry in lines if entry.kind == "asked"}
        for card in sorted(self._pending_approvals, key=lambda each: asked.get(each.id, 0)):
            view = await context.services.inbox.show(context.thread.workspace, card.id)
            told = approval_json(view, context.state.clock(), context.reviewer)
            link = f"{context.state.public_url}/a/{card.id}"
            found.append(codec.to_interrupt(told, await self._parent_call_id(card, begun), link))
        return found

    async def _parent_call_id(self, card: Approval, begun: Mapping[str, str]) -> str:
        """The call that the client knows: for a sub-agent's call, which is not emitted, the one that started it."""
        thread_id = card.subject.run_id
        if thread_id == self._context.thread.id:
            return card.subject.call_id
        while thread_id and thread_id not in begun:
            thread_id = (await self._context.state.store.threads.get(card.subject.workspace, thread_id)).parent
        return begun.get(thread_id, "")

    async def _make_redactor(self) -> ToolRequestRedactor:
        state, workspace = self._context.state, self._context.thread.workspace
        specs = {name: tool.spec for name, tool in state.assistant.tool_registry.all(workspace).items()}
        return ToolRequestRedactor(specs, await state.store.secret_key(workspace))


def _position_after(lines: Sequence[ThreadEntry]) -> Position:
    """The stream position of a reader who knows these entries."""
    cursor = StreamCursor()
    for entry in lines:
        _, cursor = advance_cursor(cursor, entry)
    return Position(cursor.line, cursor.event_count)
