"""Where a run of AG-UI takes place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from interlock.core.approval import Approval
from interlock.core.decision import Reviewer
from interlock.core.outcome import status_at
from interlock.core.ports import Query
from interlock.core.thread import Line, Thread, is_thread
from interlock.stores.threads import NO_END
from interlock.web.site import Site
from interlock.workspaces import Doors

MOST_OPEN = 500  # cards of one thread
SEPARATOR = ":"  # in an interrupt's id


def interrupt_id(approval_id: str, args_sha256: str) -> str:
    """With the digest of what is shown: an answer counts for nothing else, whatever its client knows of that."""
    return f"{approval_id}{SEPARATOR}{args_sha256}"


def approval_of(interrupt_id: str) -> tuple[str, str]:
    """The approval's id, and the digest of what was shown."""
    approval_id, _, args_sha256 = interrupt_id.partition(SEPARATOR)
    return approval_id, args_sha256


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

    async def lines(self, last: int = NO_END - 1) -> Sequence[Line]:
        return await self.site.store.threads.lines(self.thread.workspace, self.thread.id, before=last + 1)

    async def cards(self) -> list[Approval]:
        """Those that wait for people now, sub-agents' included."""
        query = Query(statuses=("pending",), thread_id=self.thread.id, limit=MOST_OPEN)
        found = [stored.approval for stored in (await self.doors.inbox.list(self.thread.workspace, query)).items]
        ours = [each for each in found if is_thread(each.subject.run_id)]
        return [each for each in ours if status_at(each, self.site.clock()) == "pending"]
