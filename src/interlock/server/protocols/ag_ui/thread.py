"""Where a run of AG-UI takes place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from interlock.app.workspaces import WorkspaceServices
from interlock.core.approval.approval import Approval
from interlock.core.chat.thread import Thread, ThreadEntry, is_thread_id
from interlock.core.decision import Reviewer
from interlock.core.outcome import status_at
from interlock.core.ports import ApprovalQuery
from interlock.server.state import ServerState
from interlock.storage.tables.threads import MAX_ENTRY_NUMBER

MAX_OPEN = 500  # cards of one thread
FIRST_READ = 200  # lines that are read first
SEPARATOR = ":"  # in an interrupt's id

IsEnough = Callable[[Sequence[ThreadEntry]], bool]


def interrupt_id(approval_id: str, args_sha256: str) -> str:
    """With the digest of what is shown: an answer counts for nothing else, whatever its client knows of that."""
    return f"{approval_id}{SEPARATOR}{args_sha256}"


def parse_interrupt_id(interrupt_id: str) -> tuple[str, str]:
    """The approval's id, and the digest of what was shown."""
    approval_id, _, args_sha256 = interrupt_id.partition(SEPARATOR)
    return approval_id, args_sha256


def has_reply(lines: Sequence[ThreadEntry]) -> bool:
    """Whether it is clear where in a turn they end."""
    return any(line.kind == "replied" for line in lines)


def includes_requests(lines: Sequence[ThreadEntry], ids: Collection[object]) -> bool:
    """Whether people are asked about all of these there, and the reply is there that wanted the first of them."""
    asked = {line.body.get("approval"): line.n for line in lines if line.kind == "asked"}
    first = min((asked.get(each, 0) for each in ids), default=MAX_ENTRY_NUMBER)
    return first > 0 and has_reply([line for line in lines if line.n < first])


class ClientRun(NamedTuple):
    """What the client calls the thread and this run, and the state that it holds: given back, and never read."""

    thread: str
    run: str
    state: object = None


class AgUiContext(NamedTuple):
    """The thread in which a run takes place, and for whom."""

    site: ServerState
    doors: WorkspaceServices
    thread: Thread
    reviewer: Reviewer

    async def lines(self, enough: IsEnough, last: int = MAX_ENTRY_NUMBER - 1) -> Sequence[ThreadEntry]:
        """The newest, up to this one: as many as are enough, or all."""
        found, few, start, end = list[ThreadEntry](), FIRST_READ, min(last, self.thread.lines), last + 1
        while True:
            start = max(0, start - few)
            read = self.site.store.threads.lines(self.thread.workspace, self.thread.id, start, end)
            found = [*await read, *found]
            if not start or enough(found):
                return found
            few, end = few * 4, start + 1

    async def cards(self) -> list[Approval]:
        """Those that wait for people now, sub-agents' included."""
        query = ApprovalQuery(statuses=("pending",), thread_id=self.thread.id, limit=MAX_OPEN)
        found = [stored.approval for stored in (await self.doors.inbox.list(self.thread.workspace, query)).items]
        ours = [each for each in found if is_thread_id(each.subject.run_id)]
        return [each for each in ours if status_at(each, self.site.clock()) == "pending"]
