"""What the live view knows: what is pending, what was just decided, what is selected and open, what is being asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from rich.console import RenderableType

from interlock.app.inbox import ApprovalDetails
from interlock.cli.context import CommandContext
from interlock.core.approval.approval import Approval, needs_reviewer
from interlock.core.decision import Reviewer
from interlock.core.errors import Error, NotFound
from interlock.core.ledger.event import Stored
from interlock.core.outcome import status_at
from interlock.core.ports import ApprovalQuery

DECIDED_SHOWN_FOR = 6_000  # milliseconds that a decided call stays in the list, greyed
MAX_ROWS = 200
SLOW_DATABASE_SECONDS = 2.0  # seconds after which waiting for the database is worth a line


@dataclass(slots=True)
class BoardPrompt:
    """With `expected` only that text is a yes; `about` is the digest that the person has before them.

    `key`: one key is the answer; all others are a line that Enter ends.
    """

    label: str
    act: Callable[[str], Awaitable[str]]
    expected: str = ""
    about: str = ""
    key: bool = False
    typed: str = ""


@dataclass(slots=True)
class WatchState:
    desk: CommandContext
    whose: Reviewer | None = None  # only what waits for them
    pending: dict[str, Stored] = field(default_factory=dict)
    gone: dict[str, tuple[Stored, int]] = field(default_factory=dict)  # with the moment at which they leave the list
    selected: str = ""
    view: ApprovalDetails | None = None
    page: RenderableType | None = None  # shown instead of the open card
    offset: int = 0
    seen_to: int = 0  # lines of the open card that were on the screen
    height: int = 0  # lines of the open card
    full: bool = False
    helping: bool = False
    question: BoardPrompt | None = None
    note: str = ""
    trouble: str = ""

    def rows(self) -> list[Stored]:
        """Pending and just decided together, each where it stood."""
        both = [*self.pending.values(), *(stored for stored, _ in self.gone.values())]
        return sorted(both, key=lambda stored: (stored.approval.expires_at, stored.approval.id))

    def chosen(self) -> Stored | None:
        return next((stored for stored in self.rows() if stored.approval.id == self.selected), None)

    def open_id(self) -> str:
        return self.view.stored.approval.id if self.view else ""

    def move(self, steps: int) -> None:
        ids = [stored.approval.id for stored in self.rows()]
        if ids:
            at = ids.index(self.selected) if self.selected in ids else 0
            self.selected = ids[min(max(at + steps, 0), len(ids) - 1)]

    def close(self) -> None:
        self.view, self.page, self.question, self.offset, self.seen_to = None, None, None, 0, 0

    def turn_to(self, page: RenderableType | None) -> None:
        self.page, self.offset, self.seen_to = page, 0, 0

    async def open(self, approval_id: str) -> None:
        self.close()
        self.view = await self.desk.parts.inbox.show(self.desk.workspace, approval_id)

    async def refresh(self) -> None:
        """A database that is locked or gone leaves the last picture and a line about it."""
        try:
            self.desk.parts.store.check()
            await self._list()
            await self._reopen()
            self.trouble = ""
        except Error as error:
            self.trouble = error.message

    async def _list(self) -> None:
        now, workspace = self.desk.now(), self.desk.workspace
        page = await self.desk.parts.inbox.list(workspace, ApprovalQuery(("pending",), limit=MAX_ROWS))
        found = {s.approval.id: s for s in page.items if self._belongs(s.approval, now)}
        for approval_id in self.pending.keys() - found.keys():
            await self._leave(approval_id, now)
        self.pending = found
        self.gone = {name: (s, until) for name, (s, until) in self.gone.items() if now < until and name not in found}
        if self.chosen() is None:
            self.selected = ""
            self.move(0)

    def _belongs(self, approval: Approval, now: int) -> bool:
        return status_at(approval, now) == "pending" and (
            self.whose is None or needs_reviewer(approval, self.whose, now)
        )

    async def _leave(self, approval_id: str, now: int) -> None:
        try:
            stored = await self.desk.parts.store.get(self.desk.workspace, approval_id)
        except NotFound:
            return
        self.gone[approval_id] = (stored, max(now + DECIDED_SHOWN_FOR, stored.approval.release_at or 0))

    async def _reopen(self) -> None:
        """The open card follows the row; a question about what it said before is withdrawn."""
        if self.view is None:
            return
        before = self.view.stored.approval
        self.view = await self.desk.parts.inbox.show(self.desk.workspace, before.id)
        after = self.view.stored.approval
        if after.args_sha256 != before.args_sha256:
            self.seen_to = self.offset = 0
        stale = after.args_sha256 != before.args_sha256 or self.view.status != "pending"
        if stale and self.question is not None and self.question.about:
            self.question = self.page = None
            self.note = "Nothing was decided: the call changed while you were asked. Look again."


class BackgroundSweeper:
    """Lets time pass without a server, in the background: a locked database must not freeze the view."""

    def __init__(self, desk: CommandContext, done: Callable[[], None]) -> None:
        self._desk = desk
        self._done = done
        self._task: asyncio.Task[int] | None = None
        self._since = 0.0
        self.trouble = ""

    def step(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._task is not None and not self._task.done():
            if now - self._since > SLOW_DATABASE_SECONDS:
                self.trouble = "The database is locked by another program. Waiting; what you see may be old."
            return
        if now - self._since >= 1.0 or self._task is None:
            self._since = now
            self._task = asyncio.create_task(self._desk.parts.worker.sweep())
            self._task.add_done_callback(self._finish)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _finish(self, task: asyncio.Task[int]) -> None:
        error = None if task.cancelled() else task.exception()
        self.trouble = error.message if isinstance(error, Error) else ""
        self._done()
