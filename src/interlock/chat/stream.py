"""A thread as its readers follow it: lines and live words, as events by name, from any point on and without a gap.

A position is `line.n`: all lines before, and n pieces of this one. Behind the last piece of a line, n goes on with the
characters of what the model is saying now.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, cast

from interlock.chat.drafts import Drafts
from interlock.core.errors import InvalidRequest
from interlock.core.ports import Watch
from interlock.core.thread import Line, Thread
from interlock.stores.threads import ENDS_DRAFT, Draft, SqlThreads

LOOK_AGAIN = 5.0  # seconds: a wake-up is only a hint
ELSEWHERE = 0.2  # seconds between looks at what a model says in another process
MOST_DIGITS = 15


class Position(NamedTuple):
    line: int = 0
    n: int = 0

    def __str__(self) -> str:
        return f"{self.line}.{self.n}"


class Told(NamedTuple):
    """One event. `approval` is the id of the approval that goes with it, to be shown as it is now."""

    position: Position
    name: str
    data: Mapping[str, object]
    approval: str = ""


class Place(NamedTuple):
    """Where a reader is: behind the last line that was told, and how many characters of the next turn."""

    line: int = 0
    pieces: int = 0
    spoken: int = 0


def position_of(text: str) -> Position:
    line, _, n = text.partition(".")
    if not all(part.isascii() and part.isdigit() and len(part) <= MOST_DIGITS for part in (line, n or "0")):
        raise InvalidRequest("Last-Event-ID is the id of an event of this thread, as 12.3. Leave it out to begin anew.")
    return Position(int(line), int(n or "0"))


def pieces_of(line: Line) -> list[tuple[str, dict[str, object], str]]:
    """The events that a line gives, but for the words of a reply: name, data, and the approval."""
    body = cast(dict[str, Any], line.body)
    match line.kind:
        case "replied":
            return [("tool_call_start", {"tool_call": {"id": wish[0], "name": wish[1]}}, "") for wish in body["wishes"]]
        case "asked" if body["status"] == "pending":
            return [("approval_request", _path(body), body["approval"])]
        case "decided":
            approved = body["status"] in ("approved", "succeeded", "failed", "unknown")
            data = {"approval_id": body["approval"], "status": body["status"], "approved": approved, **_path(body)}
            data |= {name: body[name] for name in ("reason", "result") if body.get(name)}
            return [("approval_resolved", data, "")]
        case "resulted":
            call = {"id": body["call"], "name": body["tool"], "result": body["result"], "status": body["status"]}
            return [("tool_call_result", {"tool_call": call}, "")]
        case "ended":
            return [_ended(line, body)]
        case _:
            return []


def tell(place: Place, line: Line, skip: int = 0) -> tuple[list[Told], Place]:
    """What a line adds for a reader at this place; `skip` pieces of it were told before."""
    pieces, told = pieces_of(line), list[Told]()
    if line.kind == "replied":
        words = str(line.body["text"])[place.spoken :]
        if words and not skip:
            said = Position(place.line, place.pieces + place.spoken + len(words))
            told.append(Told(said, "delta", {"content": words}))
    elif line.kind in ENDS_DRAFT and place.spoken:
        told.append(Told(Position(line.n, 0), "delta", {"content": "", "reset": True}))
    for number, (name, data, approval) in enumerate(pieces, 1):
        if number > skip:
            told.append(Told(Position(line.n, number), name, data, approval))
    moves = bool(pieces) or line.kind in ENDS_DRAFT
    return told, Place(line.n, len(pieces)) if moves else place


class Follower:
    """Reads one thread for one reader."""

    def __init__(
        self,
        store: SqlThreads,
        drafts: Drafts,
        watch: Callable[[str, str], AbstractAsyncContextManager[Watch]],
        thread: Thread,
    ) -> None:
        self._store = store
        self._drafts = drafts
        self._watch = watch
        self._workspace, self._thread_id = thread.workspace, thread.id
        self._place = Place()
        self._read = 0  # the last line that was looked at

    async def follow(self, after: Position) -> AsyncIterator[Told | None]:
        """Without an end; None when there was nothing to tell for a while, so that a sign of life can be sent."""
        async with self._watch(self._workspace, self._thread_id) as watch:
            for told in await self._catch_up(after):
                yield told
            while True:
                pause = LOOK_AGAIN
                draft = self._drafts.get(self._workspace, self._thread_id)
                if draft is None or draft.line > self._read:  # what is said now comes behind what was written
                    for told in await self._new_lines():
                        yield told
                    draft = self._drafts.get(self._workspace, self._thread_id)
                if draft is None:
                    draft = await self._store.draft(self._workspace, self._thread_id)
                    pause = LOOK_AGAIN if draft is None and not await self._runs() else ELSEWHERE
                words = None if draft is None else self._spoken(draft)
                if words is not None:
                    yield words
                    continue
                await watch.changed(pause)
                yield None

    async def _catch_up(self, after: Position) -> list[Told]:
        """Finds the reader's place again: what it has is not told twice."""
        told: list[Told] = []
        for line in await self._store.lines(self._workspace, self._thread_id):
            self._read = line.n
            pieces = len(pieces_of(line))
            if line.n < after.line:
                _, self._place = tell(self._place, line)
            elif line.n == after.line and after.n >= pieces:
                self._place = Place(line.n, pieces, after.n - pieces)
            elif line.n == after.line:
                more, self._place = tell(self._place, line, skip=after.n)
                told += more
            else:
                more, self._place = tell(self._place, line)
                told += more
        return told

    async def _new_lines(self) -> list[Told]:
        told: list[Told] = []
        for line in await self._store.lines(self._workspace, self._thread_id, self._read):
            self._read = line.n
            more, self._place = tell(self._place, line)
            told += more
        return told

    async def _runs(self) -> bool:
        return (await self._store.get(self._workspace, self._thread_id)).status == "running"

    def _spoken(self, draft: Draft) -> Told | None:
        if draft.line < self._place.line or len(draft.words) <= self._place.spoken:
            return None
        words = draft.words[self._place.spoken :]
        self._place = self._place._replace(spoken=len(draft.words))
        return Told(Position(self._place.line, self._place.pieces + self._place.spoken), "delta", {"content": words})


def _path(body: Mapping[str, Any]) -> dict[str, object]:
    """For what a sub-agent wants: the agents from the outermost to the one that calls."""
    return {"agent_path": body["path"]} if "path" in body else {}


def _ended(line: Line, body: Mapping[str, Any]) -> tuple[str, dict[str, object], str]:
    if body["status"] in ("error", "limit"):
        return "error", {"error": body["reason"], "status": body["status"]}, ""
    done: dict[str, object] = {"message_id": f"{line.n}"}
    return "done", done | ({"stopped": True} if body["status"] == "stopped" else {}), ""
