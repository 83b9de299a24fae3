"""Event stream of a thread: entries and live model output, as named events, resumable at any position without gaps.

A position is `line.n`: all lines before, and n pieces of this one. After the last piece of a line, n continues with the
characters of the model's current output.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from interlock.core.approval.approval import APPROVED_STATUSES
from interlock.core.chat.thread import Thread, ThreadEntry
from interlock.core.errors import InvalidRequest
from interlock.core.ports import Clock
from interlock.storage.tables.threads import DRAFT_ENDING_KINDS, MAX_ENTRY_NUMBER, Draft, SqlThreads

DRAFT_POLL = 0.2  # seconds between polls of a draft in another process
SLOW_DRAFT_POLL = 1.0  # the same, after nothing came for a while
POLLS_BEFORE_SLOW = 25  # polls
MOST_DIGITS = 15


class Position(NamedTuple):
    line: int = 0
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.line}.{self.offset}"


class StreamEvent(NamedTuple):
    """One event. `approval` is the id of its approval, to be shown in its current state."""

    position: Position
    name: str
    data: Mapping[str, object]
    approval: str = ""


class StreamCursor(NamedTuple):
    """Position of a reader: after the last sent line, and the number of characters sent of the next turn."""

    line: int = 0
    event_count: int = 0
    draft_length: int = 0


def parse_position(text: str) -> Position:
    line, _, n = text.partition(".")
    if not all(part.isascii() and part.isdigit() and len(part) <= MOST_DIGITS for part in (line, n or "0")):
        raise InvalidRequest("Last-Event-ID is the id of an event of this thread, as 12.3. Leave it out to begin anew.")
    return Position(int(line), int(n or "0"))


def line_events(entry: ThreadEntry) -> list[tuple[str, dict[str, object], str]]:
    """Return the events of a line, except for a reply's text: name, data, and the approval."""
    body = cast(dict[str, Any], entry.body)
    match entry.kind:
        case "replied":
            return [("tool_call_start", {"tool_call": {"id": wish[0], "name": wish[1]}}, "") for wish in body["wishes"]]
        case "asked" if body["status"] == "pending":
            return [("approval_request", _agent_path(body), body["approval"])]
        case "decided":
            approved = body["status"] in APPROVED_STATUSES
            data = {
                "approval_id": body["approval"],
                "status": body["status"],
                "approved": approved,
                **_agent_path(body),
            }
            data |= {name: body[name] for name in ("reason", "release_at") if body.get(name)}
            data |= {"result": body["result"]} if "result" in body else {}  # an answer, which may be 0 or false
            return [("approval_resolved", data, "")]
        case "resulted":
            call = {"id": body["call"], "name": body["tool"], "result": body["result"], "status": body["status"]}
            return [("tool_call_result", {"tool_call": call}, "")]
        case "ended":
            return [_end_event(entry, body)]
        case _:
            return []


def advance_cursor(cursor: StreamCursor, entry: ThreadEntry, skip: int = 0) -> tuple[list[StreamEvent], StreamCursor]:
    """Return the events of a line for a reader at this position; `skip` of its pieces were sent before."""
    entry_events, events, ends = line_events(entry), list[StreamEvent](), entry.kind in DRAFT_ENDING_KINDS
    if entry.kind == "replied":
        words = str(entry.body["text"])[cursor.draft_length :]
        if words and not skip:
            position = Position(cursor.line, cursor.event_count + cursor.draft_length + len(words))
            events.append(StreamEvent(position, "delta", {"content": words}))
    elif ends and cursor.draft_length:
        events.append(StreamEvent(Position(entry.number, 0), "delta", {"content": "", "reset": True}))
    draft_length = 0 if ends else cursor.draft_length  # the current output continues after this line
    for number, (name, data, approval) in enumerate(entry_events, 1):
        if number > skip:
            at = number + (draft_length if number == len(entry_events) else 0)
            events.append(StreamEvent(Position(entry.number, at), name, data, approval))
    return events, StreamCursor(entry.number, len(entry_events), draft_length) if entry_events or ends else cursor


class ThreadFollower:
    """Reads one thread for one reader. `poll_after`: seconds until the next poll; None if a wake-up will come.

    Lines from `before` on are not sent.
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
        self.poll_after: float | None = None
        self._store = store
        self._drafts = drafts
        self._clock = clock
        self._workspace, self._thread_id = thread.workspace, thread.id
        self._after = after
        self._before = before
        self._cursor = StreamCursor(draft_length=0 if after.line else after.offset)
        self._last_read = max(0, after.line - 1)  # the last line that was read
        self._draft_valid_from = after.line  # output before this line is complete
        self._empty_polls = 0  # consecutive polls without events

    async def read_events(self) -> list[StreamEvent]:
        """Return new events. The current output comes after the stored lines."""
        draft = self._drafts.get(self._workspace, self._thread_id)
        self.poll_after = None
        if draft is not None and draft.entry_number <= self._last_read:
            return self._draft_events(draft)
        thread = await self._store.get(self._workspace, self._thread_id)
        events = await self._read_entries() if thread.entry_count > self._last_read else []
        draft = self._drafts.get(self._workspace, self._thread_id)
        if draft is None and thread.status == "running":
            draft = await self._store.draft(self._workspace, self._thread_id)
        events += self._draft_events(draft) if draft is not None and draft.entry_number <= self._last_read else []
        self._empty_polls = 0 if events else self._empty_polls + 1
        self.poll_after = self._poll_delay(thread)
        return events

    async def _read_entries(self) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for entry in await self._store.entries(self._workspace, self._thread_id, self._last_read, self._before):
            self._last_read = entry.number
            events += self._entry_events(entry)
            self._draft_valid_from = entry.number if entry.kind in DRAFT_ENDING_KINDS else self._draft_valid_from
        return events

    def _entry_events(self, entry: ThreadEntry) -> list[StreamEvent]:
        """Return the events of an entry; for the reader's own position, without the pieces it has."""
        skip, pieces = 0, len(line_events(entry))
        if entry.number == self._after.line:
            skip = self._after.offset
            if skip >= pieces:
                self._cursor = StreamCursor(entry.number, pieces, skip - pieces)
                return []
        events, self._cursor = advance_cursor(self._cursor, entry, skip)
        return events

    def _draft_events(self, draft: Draft) -> list[StreamEvent]:
        cursor = self._cursor
        if draft.entry_number < self._draft_valid_from or len(draft.text) <= cursor.draft_length:
            return []
        words = draft.text[cursor.draft_length :]
        self._cursor = cursor._replace(draft_length=len(draft.text))
        at = Position(cursor.line, cursor.event_count + len(draft.text))
        return [StreamEvent(at, "delta", {"content": words})]

    def _poll_delay(self, thread: Thread) -> float | None:
        """Return the delay until the next poll: the output of a model in another process causes no wake-up."""
        if thread.status in ("running", "ready"):
            return DRAFT_POLL if self._empty_polls < POLLS_BEFORE_SLOW else SLOW_DRAFT_POLL
        if thread.status == "waiting" and thread.due_at is not None:
            return max(DRAFT_POLL, (thread.due_at - self._clock()) / 1000)
        return None


def _agent_path(body: Mapping[str, Any]) -> dict[str, object]:
    """Return the agents from the outermost to the caller, for a call of a sub-agent."""
    return {"agent_path": body["path"]} if "path" in body else {}


def _end_event(entry: ThreadEntry, body: Mapping[str, Any]) -> tuple[str, dict[str, object], str]:
    if body["status"] in ("error", "limit"):
        return "error", {"error": body["reason"], "status": body["status"]}, ""
    done: dict[str, object] = {"message_id": str(body.get("message") or entry.number)}
    done |= {"stopped": True} if body["status"] == "stopped" else {}
    return "done", done | ({"suggestions": body["suggestions"]} if "suggestions" in body else {}), ""


SAVE_INTERVAL = 200  # milliseconds

ThreadKey = tuple[str, str]
SaveDraft = Callable[[str, str, Draft], Awaitable[None]]
Announce = Callable[[dict[str, set[str]]], None]


@dataclass(slots=True)
class DraftBuffer:
    """The output of a turn in progress, after a line of its thread."""

    line: int
    chunks: list[str] = field(default_factory=list)
    saved_at: int = 0

    @property
    def text(self) -> str:
        if len(self.chunks) > 1:
            self.chunks = ["".join(self.chunks)]
        return self.chunks[0] if self.chunks else ""


class Drafts:
    def __init__(self, save: SaveDraft, announce: Announce, clock: Clock) -> None:
        self._save = save
        self._announce = announce
        self._clock = clock
        self._buffers: dict[ThreadKey, DraftBuffer] = {}

    def begin(self, workspace: str, thread_id: str, line: int) -> None:
        self._buffers[workspace, thread_id] = DraftBuffer(line, saved_at=self._clock())

    async def add(self, workspace: str, thread_id: str, text: str) -> None:
        buffer = self._buffers.get((workspace, thread_id))
        if buffer is None:
            return
        buffer.chunks.append(text)
        self._announce({workspace: {thread_id}})
        if self._clock() - buffer.saved_at >= SAVE_INTERVAL:
            buffer.saved_at = self._clock()
            await self._save(workspace, thread_id, Draft(buffer.line, buffer.text))

    def end(self, workspace: str, thread_id: str) -> None:
        self._buffers.pop((workspace, thread_id), None)

    def get(self, workspace: str, thread_id: str) -> Draft | None:
        buffer = self._buffers.get((workspace, thread_id))
        return None if buffer is None else Draft(buffer.line, buffer.text)
