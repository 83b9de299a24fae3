"""What models are saying right now: known here at once, and kept every so often for readers in other processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from interlock.core.ports import Clock
from interlock.storage.tables.threads import Draft

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
