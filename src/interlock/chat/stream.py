"""A thread as its readers follow it: lines and live words, as events by name, from any point on and without a gap.

A position is `line.n`: all lines before, and n pieces of this one. Behind the last piece of a line, n goes on with the
characters of what the model is saying now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from interlock.core.chat.thread import Thread, ThreadEntry
from interlock.core.errors import InvalidRequest
from interlock.core.ports import Clock
from interlock.storage.tables.threads import DRAFT_ENDING_KINDS, MAX_ENTRY_NUMBER, Draft, SqlThreads

DRAFT_POLL = 0.2  # seconds between looks at what a model says in another process
SLOW_DRAFT_POLL = 1.0  # the same, once nothing came for a while
POLLS_BEFORE_SLOW = 25  # looks
MOST_DIGITS = 15


class Position(NamedTuple):
    line: int = 0
    n: int = 0

    def __str__(self) -> str:
        return f"{self.line}.{self.n}"


class StreamEvent(NamedTuple):
    """One event. `approval` is the id of the approval that goes with it, to be shown as it is now."""

    position: Position
    name: str
    data: Mapping[str, object]
    approval: str = ""


class StreamCursor(NamedTuple):
    """Where a reader is: behind the last line that was told, and how many characters of the next turn."""

    line: int = 0
    pieces: int = 0
    spoken: int = 0


def parse_position(text: str) -> Position:
    line, _, n = text.partition(".")
    if not all(part.isascii() and part.isdigit() and len(part) <= MOST_DIGITS for part in (line, n or "0")):
        raise InvalidRequest("Last-Event-ID is the id of an event of this thread, as 12.3. Leave it out to begin anew.")
    return Position(int(line), int(n or "0"))


def line_events(line: ThreadEntry) -> list[tuple[str, dict[str, object], str]]:
    """The events that a line gives, but for the words of a reply: name, data, and the approval."""
    body = cast(dict[str, Any], line.body)
    match line.kind:
        case "replied":
            return [("tool_call_start", {"tool_call": {"id": wish[0], "name": wish[1]}}, "") for wish in body["wishes"]]
        case "asked" if body["status"] == "pending":
            return [("approval_request", _agent_path(body), body["approval"])]
        case "decided":
            approved = body["status"] in ("approved", "succeeded", "failed", "unknown")
            data = {
                "approval_id": body["approval"],
                "status": body["status"],
                "approved": approved,
                **_agent_path(body),
            }
            data |= {name: body[name] for name in ("reason", "result") if body.get(name)}
            return [("approval_resolved", data, "")]
        case "resulted":
            call = {"id": body["call"], "name": body["tool"], "result": body["result"], "status": body["status"]}
            return [("tool_call_result", {"tool_call": call}, "")]
        case "ended":
            return [_end_event(line, body)]
        case _:
            return []


def advance_cursor(place: StreamCursor, line: ThreadEntry, skip: int = 0) -> tuple[list[StreamEvent], StreamCursor]:
    """What a line adds for a reader at this place; `skip` pieces of it were told before."""
    pieces, told, ends = line_events(line), list[StreamEvent](), line.kind in DRAFT_ENDING_KINDS
    if line.kind == "replied":
        words = str(line.body["text"])[place.spoken :]
        if words and not skip:
            said = Position(place.line, place.pieces + place.spoken + len(words))
            told.append(StreamEvent(said, "delta", {"content": words}))
    elif ends and place.spoken:
        told.append(StreamEvent(Position(line.n, 0), "delta", {"content": "", "reset": True}))
    spoken = 0 if ends else place.spoken  # what is being said goes on behind this line
    for number, (name, data, approval) in enumerate(pieces, 1):
        if number > skip:
            at = number + (spoken if number == len(pieces) else 0)
            told.append(StreamEvent(Position(line.n, at), name, data, approval))
    return told, StreamCursor(line.n, len(pieces), spoken) if pieces or ends else place


class ThreadFollower:
    """Reads one thread for one reader. `pause`: in how many seconds to look again; None if a wake-up says when.

    Nothing is told from the line `before` on.
    """

    def __init__(
        self,
        store: SqlThreads,
        drafts: Drafts,
        clock: Clock,
        thread: Thread,
        after: Position,
        before: int = MAX_ENTRY_NUMBER,
    ) -> None:
        self.pause: float | None = None
        self._store = store
        self._drafts = drafts
        self._clock = clock
        self._workspace, self._thread_id = thread.workspace, thread.id
        self._after = after
        self._before = before
        self._place = StreamCursor(spoken=0 if after.line else after.n)
        self._read = max(0, after.line - 1)  # the last line that was looked at
        self._since = after.line  # what was being said before this line is over
        self._quiet = 0  # looks that brought nothing, one after the other

    async def news(self) -> list[StreamEvent]:
        """What the reader does not know yet. What is being said now comes behind what was written."""
        draft = self._drafts.get(self._workspace, self._thread_id)
        self.pause = None
        if draft is not None and draft.line <= self._read:
            return self._spoken(draft)
        thread = await self._store.get(self._workspace, self._thread_id)
        told = await self._lines() if thread.lines > self._read else []
        draft = self._drafts.get(self._workspace, self._thread_id)
        if draft is None and thread.status == "running":
            draft = await self._store.draft(self._workspace, self._thread_id)
        told += self._spoken(draft) if draft is not None and draft.line <= self._read else []
        self._quiet = 0 if told else self._quiet + 1
        self.pause = self._look_again(thread)
        return told

    async def _lines(self) -> list[StreamEvent]:
        told: list[StreamEvent] = []
        for line in await self._store.lines(self._workspace, self._thread_id, self._read, self._before):
            self._read = line.n
            told += self._of_line(line)
            self._since = line.n if line.kind in DRAFT_ENDING_KINDS else self._since
        return told

    def _of_line(self, line: ThreadEntry) -> list[StreamEvent]:
        """The first one may be where the reader is: what it has of that is not told twice."""
        skip, pieces = 0, len(line_events(line))
        if line.n == self._after.line:
            skip = self._after.n
            if skip >= pieces:
                self._place = StreamCursor(line.n, pieces, skip - pieces)
                return []
        told, self._place = advance_cursor(self._place, line, skip)
        return told

    def _spoken(self, draft: Draft) -> list[StreamEvent]:
        place = self._place
        if draft.line < self._since or len(draft.words) <= place.spoken:
            return []
        words = draft.words[place.spoken :]
        self._place = place._replace(spoken=len(draft.words))
        at = Position(place.line, place.pieces + len(draft.words))
        return [StreamEvent(at, "delta", {"content": words})]

    def _look_again(self, thread: Thread) -> float | None:
        """What a model begins to say in another process, nobody is told of."""
        if thread.status in ("running", "ready"):
            return DRAFT_POLL if self._quiet < POLLS_BEFORE_SLOW else SLOW_DRAFT_POLL
        if thread.status == "waiting" and thread.due_at is not None:
            return max(DRAFT_POLL, (thread.due_at - self._clock()) / 1000)
        return None


def _agent_path(body: Mapping[str, Any]) -> dict[str, object]:
    """For what a sub-agent wants: the agents from the outermost to the one that calls."""
    return {"agent_path": body["path"]} if "path" in body else {}


def _end_event(line: ThreadEntry, body: Mapping[str, Any]) -> tuple[str, dict[str, object], str]:
    if body["status"] in ("error", "limit"):
        return "error", {"error": body["reason"], "status": body["status"]}, ""
    done: dict[str, object] = {"message_id": str(body.get("message") or line.n)}
    return "done", done | ({"stopped": True} if body["status"] == "stopped" else {}), ""


SAVE_INTERVAL = 200  # milliseconds

ThreadKey = tuple[str, str]
SaveDraft = Callable[[str, str, Draft], Awaitable[None]]
Announce = Callable[[dict[str, set[str]]], None]


@dataclass(slots=True)
class DraftBuffer:
    """One turn that is being said, behind a line of its thread."""

    line: int
    parts: list[str] = field(default_factory=list)
    kept_at: int = 0

    @property
    def words(self) -> str:
        if len(self.parts) > 1:
            self.parts = ["".join(self.parts)]
        return self.parts[0] if self.parts else ""


class Drafts:
    def __init__(self, keep: SaveDraft, announce: Announce, clock: Clock) -> None:
        self._keep = keep
        self._announce = announce
        self._clock = clock
        self._speeches: dict[ThreadKey, DraftBuffer] = {}

    def begin(self, workspace: str, thread_id: str, line: int) -> None:
        self._speeches[workspace, thread_id] = DraftBuffer(line, kept_at=self._clock())

    async def add(self, workspace: str, thread_id: str, text: str) -> None:
        speech = self._speeches.get((workspace, thread_id))
        if speech is None:
            return
        speech.parts.append(text)
        self._announce({workspace: {thread_id}})
        if self._clock() - speech.kept_at >= SAVE_INTERVAL:
            speech.kept_at = self._clock()
            await self._keep(workspace, thread_id, Draft(speech.line, speech.words))

    def end(self, workspace: str, thread_id: str) -> None:
        self._speeches.pop((workspace, thread_id), None)

    def get(self, workspace: str, thread_id: str) -> Draft | None:
        speech = self._speeches.get((workspace, thread_id))
        return None if speech is None else Draft(speech.line, speech.words)
