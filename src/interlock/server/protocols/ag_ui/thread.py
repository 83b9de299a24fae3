"""Where a run of AG-UI takes place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from interlock.app.workspaces import Doors
from interlock.core.approval.approval import Approval
from interlock.core.chat.thread import Line, Thread, is_thread
from interlock.core.decision import Reviewer
from interlock.core.outcome import status_at
from interlock.core.ports import Query
from interlock.server.state import Site
from interlock.storage.tables.threads import NO_END

MOST_OPEN = 500  # cards of one thread
FEW = 200  # lines that are read first
SEPARATOR = ":"  # in an interrupt's id

Enough = Callable[[Sequence[Line]], bool]


def interrupt_id(approval_id: str, args_sha256: str) -> str:
    """With the digest of what is shown: an answer counts for nothing else, whatever its client knows of that."""
    return f"{approval_id}{SEPARATOR}{args_sha256}"


def approval_of(interrupt_id: str) -> tuple[str, str]:
    """The approval's id, and the digest of what was shown."""
    approval_id, _, args_sha256 = interrupt_id.partition(SEPARATOR)
    return approval_id, args_sha256


def replied(lines: Sequence[Line]) -> bool:
    """Whether it is clear where in a turn they end."""
    return any(line.kind == "replied" for line in lines)


def asks(lines: Sequence[Line], ids: Collection[object]) -> bool:
    """Whether people are asked about all of these there, and the reply is there that wanted the first of them."""
    asked = {line.body.get("approval"): line.n for line in lines if line.kind == "asked"}
    first = min((asked.get(each, 0) for each in ids), default=NO_END)
    return first > 0 and replied([line for line in lines if line.n < first])


class Names(NamedTuple):
    """What the client calls the thread and this run, and the state that it holds: given back, and never read."""

    thread: str
    run: str
    state: object = None


class Room(NamedTuple):
    """The thread in which a run takes place, and for whom."""

    site: Site
    doors: Doors
    thread: Thread
    reviewer: Reviewer

    async def lines(self, enough: Enough, last: int = NO_END - 1) -> Sequence[Line]:
        """The newest, up to this one: as many as are enough, or all."""
        found, few, start, end = list[Line](), FEW, min(last, self.thread.lines), last + 1
        while True:
            start = max(0, start - few)
            read = self.site.store.threads.lines(self.thread.workspace, self.thread.id, start, end)
            found = [*await read, *found]
            if not start or enough(found):
                return found
            few, end = few * 4, start + 1

    async def cards(self) -> list[Approval]:
        """Those that wait for people now, sub-agents' included."""
        query = Query(statuses=("pending",), thread_id=self.thread.id, limit=MOST_OPEN)
        found = [stored.approval for stored in (await self.doors.inbox.list(self.thread.workspace, query)).items]
        ours = [each for each in found if is_thread(each.subject.run_id)]
        return [each for each in ours if status_at(each, self.site.clock()) == "pending"]
