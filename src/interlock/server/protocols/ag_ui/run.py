"""One run of AG-UI as its client is told of it: the lines of a thread and its live words, as events of the protocol."""

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


def empty_run(names: ClientRun) -> bytes:
    """Of a thread in which nothing was said yet."""
    encode, state = EventEncoder().encode, names.state if isinstance(names.state, dict) else {}
    events = (
        RunStartedEvent(thread_id=names.thread, run_id=names.run, protocol_version=VERSION),
        StateSnapshotEvent(snapshot=state),
        MessagesSnapshotEvent(messages=[]),
        RunFinishedEvent(thread_id=names.thread, run_id=names.run, outcome=RunFinishedSuccessOutcome()),
    )
    return "".join([encode(event) for event in events]).encode()


class AgUiRun:
    """Tells events until the turn is over, or until nothing goes on without people: then it ends with interrupts."""

    def __init__(
        self, room: AgUiContext, names: ClientRun, known: Sequence[ThreadEntry], opening: Opening = ""
    ) -> None:
        """`known` are the lines that are not told: the client has them, or gets them as a snapshot first."""
        self.pause: float | None = None
        self.position = _position_after(known)
        self._room = room
        self._names = names
        self._opening = known if opening else None
        self._follower = room.site.assistant.follower(room.thread, self.position)
        self._begun = False
        self._calls = codec.call_ids_by_name(known)
        self._words: tuple[int, str] | None = None  # what is being said: behind which line, and the message's id
        self._parent = (0, "")  # the message that calls belong to, by the line of the reply
        self._cards: Sequence[Approval] = ()

    async def news(self) -> list[StreamEvent]:
        told = [] if self._begun else [StreamEvent(self.position, STARTED, {})]
        self._begun = True
        told += await self._follower.news()
        self.pause = self._follower.pause
        if not told or told[-1].name not in ("delta", *FINAL_EVENTS):
            rest = await self._rest()
            more = [] if rest is None else await self._follower.news()  # what came while we looked goes first
            self.pause = POLL_SOON if more else self.pause
            told += more or ([] if rest is None else [rest])
        return [each for each in told if each.name in STREAMED_EVENTS]

    async def frame(self, told: StreamEvent) -> bytes:
        encode = EventEncoder().encode
        return "".join([encode(event) for event in await self._events(told)]).encode()

    async def _rest(self) -> StreamEvent | None:
        """How it ends, if nothing more comes by itself."""
        mine = self._room.thread
        thread = await self._room.site.store.threads.get(mine.workspace, mine.id)
        if thread.status == "idle":
            return StreamEvent(self.position, "done", {})
        if thread.status != "waiting":
            return None
        self._cards = await self._room.cards()
        if self._cards and not await self._rests_below(thread.id):
            self.pause = POLL_SOON  # nobody is woken when a sub-agent comes to rest
            return None
        return StreamEvent(self.position, INTERRUPT, {}) if self._cards else None

    async def _rests_below(self, thread_id: str) -> bool:
        for child in await self._room.site.store.threads.children(self._room.thread.workspace, thread_id):
            if child.status == "idle":
                continue  # what it began is over too
            if child.status != "waiting" or not await self._rests_below(child.id):
                return False
        return True

    async def _events(self, told: StreamEvent) -> Sequence[BaseEvent]:
        data, line = cast(Mapping[str, Any], told.data), told.position.line
        match told.name:
            case "started":
                return [self._started(), *(() if self._opening is None else await self._snapshots(self._opening))]
            case "delta" if data.get("reset"):  # there is no other way to take words back
                return [
                    *self._silence(),
                    *await self._snapshots(await self._room.lines(codec.fills_snapshot, line)),
                ]
            case "delta":
                return list(self._speak(line, data["content"]))
            case "tool_call_start":
                return await self._call(line, data["tool_call"]["id"])
            case "tool_call_result":
                return [self._result(data["tool_call"])]
            case "error":
                return [*self._silence(), RunErrorEvent(message=data["error"], code=data["status"])]
            case "interrupt":
                cards = [card.id for card in self._cards]
                lines = await self._room.lines(
                    lambda found: codec.fills_snapshot(found) and includes_requests(found, cards)
                )
                outcome = RunFinishedInterruptOutcome(interrupts=await self._interrupts(lines))
                return [*self._silence(), *await self._snapshots(lines), self._finished(outcome)]
            case _:
                ended = RunFinishedCancelledOutcome() if data.get("stopped") else RunFinishedSuccessOutcome()
                return [*self._silence(), *await self._shortened(), self._finished(ended)]

    def _started(self) -> BaseEvent:
        return RunStartedEvent(thread_id=self._names.thread, run_id=self._names.run, protocol_version=VERSION)

    def _finished(self, outcome: Any) -> BaseEvent:
        return RunFinishedEvent(thread_id=self._names.thread, run_id=self._names.run, outcome=outcome)

    def _speak(self, line: int, words: str) -> Iterator[BaseEvent]:
        """Words behind another line are another message."""
        if self._words is None or self._words[0] != line:
            yield from self._silence()
            self._words = line, f"{self._names.run}:{line}-reply"
            yield TextMessageStartEvent(message_id=self._words[1], role="assistant")
        yield TextMessageContentEvent(message_id=self._words[1], delta=words)

    def _silence(self) -> Iterator[BaseEvent]:
        if self._words is not None:
            yield TextMessageEndEvent(message_id=self._words[1])
            self._words = None

    async def _call(self, line: int, name: str) -> list[BaseEvent]:
        """A call of the reply in this line, which has its arguments."""
        room = self._room
        if self._parent[0] != line:
            self._parent = line, self._words[1] if self._words else f"{self._names.run}:{line}-calls"
        [reply] = await room.site.store.threads.lines(room.thread.workspace, room.thread.id, line - 1, line + 1)
        self._calls |= codec.call_ids_by_name([reply])
        calls = codec.reply_tool_calls(reply, await self._wishes())
        call = next(each for each in calls if each.id == self._calls[name])
        return [
            *self._silence(),
            ToolCallStartEvent(
                tool_call_id=call.id, tool_call_name=call.function.name, parent_message_id=self._parent[1]
            ),
            ToolCallArgsEvent(tool_call_id=call.id, delta=call.function.arguments),
            ToolCallEndEvent(tool_call_id=call.id),
        ]

    def _result(self, call: Mapping[str, Any]) -> BaseEvent:
        name = self._calls.get(call["id"], call["id"])
        return ToolCallResultEvent(
            message_id=f"{self._names.run}:{name}-result",
            tool_call_id=name,
            content=codec.result_text(call["result"]),
            role="tool",
            metadata={"status": call["status"]},
        )

    async def _snapshots(self, lines: Sequence[ThreadEntry]) -> list[BaseEvent]:
        """Whatever the client believes, this is how it stands."""
        room = self._room
        thread = await room.site.store.threads.get(room.thread.workspace, room.thread.id)
        waiting = [card.id for card in self._cards]
        ours = {"thread": thread.id, "agent": thread.agent, "status": thread.status, "approvals": waiting}
        given = self._names.state if isinstance(self._names.state, dict) else {}
        messages = codec.newest_messages(await self._messages(lines))
        return [StateSnapshotEvent(snapshot={**given, "interlock": ours}), MessagesSnapshotEvent(messages=messages)]

    async def _shortened(self) -> list[BaseEvent]:
        """Of a long thread the client is told to drop the beginning, or it could not post its next message."""
        messages = await self._messages(await self._room.lines(codec.fills_snapshot))
        kept = codec.newest_messages(messages)
        return [MessagesSnapshotEvent(messages=kept)] if len(kept) < len(messages) else []

    async def _messages(self, lines: Sequence[ThreadEntry]) -> list[Message]:
        return list(codec.to_messages(lines, self._room.thread.id, await self._wishes()))

    async def _interrupts(self, lines: Sequence[ThreadEntry]) -> list[Interrupt]:
        room, begun, found = self._room, codec.delegating_calls(lines), list[Interrupt]()
        asked = {line.body["approval"]: line.n for line in lines if line.kind == "asked"}
        for card in sorted(self._cards, key=lambda each: asked.get(each.id, 0)):
            view = await room.doors.inbox.show(room.thread.workspace, card.id)
            told = approval_json(view, room.site.clock(), room.reviewer)
            link = f"{room.site.public_url}/a/{card.id}"
            found.append(codec.to_interrupt(told, await self._call_of(card, begun), link))
        return found

    async def _call_of(self, card: Approval, begun: Mapping[str, str]) -> str:
        """A sub-agent's calls are not told: what its client knows is the call that began it."""
        thread_id = card.subject.run_id
        if thread_id == self._room.thread.id:
            return card.subject.call_id
        while thread_id and thread_id not in begun:
            thread_id = (await self._room.site.store.threads.get(card.subject.workspace, thread_id)).parent
        return begun.get(thread_id, "")

    async def _wishes(self) -> ToolRequestRedactor:
        site, workspace = self._room.site, self._room.thread.workspace
        specs = {name: tool.spec for name, tool in site.assistant.toolbox.all(workspace).items()}
        return ToolRequestRedactor(specs, await site.store.secret_key(workspace))


def _position_after(lines: Sequence[ThreadEntry]) -> Position:
    """Where a reader is who knows these lines."""
    place = StreamCursor()
    for line in lines:
        _, place = advance_cursor(place, line)
    return Position(place.line, place.pieces)
