"""The screen of the live view: a list or a card, a status line, and a prompt; also keyboard input and view state."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import sys
import termios
import tty
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field

from rich.console import Console, RenderableType
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from interlock.app.inbox import ApprovalDetails
from interlock.cli.cards import render_card, styled_risk, styled_status, votes_text
from interlock.cli.context import CommandContext
from interlock.cli.output import duration_text, printable, short_id, shorten
from interlock.core.approval.approval import Approval, needs_reviewer
from interlock.core.card import risk_level, visible
from interlock.core.decision import Reviewer
from interlock.core.errors import Error, NotFound
from interlock.core.ledger.event import Stored
from interlock.core.outcome import status_at
from interlock.core.ports import ApprovalQuery
from interlock.presenters.approval import approval_sentence
from interlock.presenters.text import pluralize

HELP = """
  J K, arrows   move; in a card, scroll        O, Enter   open the card
  Space         scroll a page                  F          show long values whole
  A             approve: opens the card, asks  R          reject, with a reason if you like
  C             answer instead                 E          edit the arguments in your editor
  Z             undo a rejection               Esc        back
  ?             this help                      Q          quit

  A call of high risk, or one with findings, is approved by typing the tool's name.
  A card has to be seen to its end before it can be approved.
"""
LIST_KEYS = "A approve  R reject  C answer  E edit  O open  Z undo  ? help  Q quit"
CARD_KEYS = "A approve  R reject  C answer  E edit  F full  Esc back  ? help  Q quit"

Lines = list[list[Segment]]


def render_screen(state: WatchState, console: Console) -> Segments:
    """Render exactly as many lines as the terminal has; messages and the prompt take at most three each."""
    said = [Text(f"!! {printable(state.error)}", style="bold red")] if state.error else []
    said += [Text(printable(state.note))] if state.note else []
    below = [line for text in said for line in _rendered(text, console)[:3]] + _rendered(_bottom(state), console)[-3:]
    room = max(1, console.height - 1 - len(below))
    lines = [*_rendered(_title(state), console)[:1], *_body(state, console, room), *below]
    return Segments([segment for line in lines for segment in (*line, Segment.line())][:-1])


def _title(state: WatchState) -> Text:
    waiting = pluralize(len(state.pending), "call waits", "calls wait")
    return Text(f"Interlock  {visible(state.context.workspace)}  {waiting} for a decision", style="bold reverse")


def _bottom(state: WatchState) -> Text:
    if state.prompt is None:
        return Text(CARD_KEYS if state.view else LIST_KEYS, style="dim")
    return Text.assemble((state.prompt.label, "bold"), " ", visible(state.prompt.typed), ("_", "blink"))


def _body(state: WatchState, console: Console, room: int) -> Lines:
    if state.shows_help:
        lines = _rendered(Text(HELP), console)
    elif state.view is not None:
        lines = _card(state, console, room)
    else:
        lines = _rendered(_list(state, room), console)
    return [*lines, *([] for _ in range(room))][:room]


def _card(state: WatchState, console: Console, room: int) -> Lines:
    """The visible part of the card; records how far the person can have read."""
    if state.view is None:
        return []
    lines = _rendered(state.page or render_card(state.view, state.context.now(), full=state.shows_full_values), console)
    state.height = len(lines)
    state.offset = min(max(state.offset, 0), max(0, len(lines) - room))
    state.lines_seen = max(state.lines_seen, state.offset + room)
    below = len(lines) - state.offset - room
    if below <= 0:
        return lines[state.offset :]
    more = Text(f"   {pluralize(below + 1, 'more line', 'more lines')} below: Space", style="bold yellow")
    state.lines_seen = min(state.lines_seen, state.height - 1)
    return [*lines[state.offset : state.offset + room - 1], *_rendered(more, console)]


def _list(state: WatchState, room: int) -> RenderableType:
    rows = state.rows()
    if not rows:
        return Text("\n  Nothing waits for a decision.", style="dim")
    at = next((n for n, stored in enumerate(rows) if stored.approval.id == state.selected), 0)
    first = max(0, min(at - room // 2, len(rows) - room))
    grid = Table.grid(padding=(0, 2), expand=True)
    for ratio in (None, None, None, None, None, 1, None, None):
        grid.add_column(no_wrap=True, overflow="ellipsis", ratio=ratio)
    for stored in rows[first : first + room]:
        grid.add_row(*_row(state, stored), style=_style(state, stored))
    return grid


def _row(state: WatchState, stored: Stored) -> Sequence[Text | str]:
    approval, subject = stored.approval, stored.approval.subject
    waits = approval.id in state.pending
    mark = ">" if approval.id == state.selected else " "
    left = duration_text(approval.deadlines.expires_at - state.context.now()) if waits else ""
    return (
        f"{mark} {visible(short_id(approval.id))}",
        left,
        styled_risk(risk_level(subject.effect, subject.priority)) if waits else "",
        Text(visible(subject.tool)),
        Text(visible(subject.agent)),
        Text(shorten(approval_sentence(stored))),
        votes_text(approval) if waits else "",
        styled_status("pending") if waits else Text(_result_text(state, stored)),
    )


def _result_text(state: WatchState, stored: Stored) -> str:
    decision_record = stored.approval.decision
    by = f" by {visible(decision_record.by)}" if decision_record else ""
    return f"{status_at(stored.approval, state.context.now())}{by}"


def _style(state: WatchState, stored: Stored) -> str:
    if stored.approval.id not in state.pending:
        return "dim strike"
    return "reverse" if stored.approval.id == state.selected else ""


def _rendered(content: RenderableType, console: Console) -> Lines:
    return console.render_lines(content, console.options.update(width=console.width, height=None), pad=False)


KEY_NAMES = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x1b": "escape",
}
_KEYS = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])|.", re.DOTALL)


class Keyboard:
    """Raw keyboard input; `pressed` is called when keys are available."""

    def __init__(self, pressed: Callable[[], None]) -> None:
        self._fd = sys.stdin.fileno()
        self._pressed = pressed
        self._before = termios.tcgetattr(self._fd)
        self._keys: deque[str] = deque()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def next_key(self) -> str | None:
        return self._keys.popleft() if self._keys else None

    def clear(self) -> None:
        """Drop keys typed ahead: they cannot be an answer to a question that was not shown yet."""
        self._keys.clear()
        termios.tcflush(self._fd, termios.TCIFLUSH)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Read keys at once, without echo; Ctrl-C still interrupts, Ctrl-Z does nothing."""
        self._start()
        try:
            yield
        finally:
            self._stop()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Leave the keyboard to another program meanwhile."""
        self._stop()
        try:
            yield
        finally:
            self._start()

    def _start(self) -> None:
        tty.setcbreak(self._fd)
        settings = termios.tcgetattr(self._fd)
        settings[6][termios.VSUSP] = b"\0"
        termios.tcsetattr(self._fd, termios.TCSANOW, settings)
        asyncio.get_running_loop().add_reader(self._fd, self._read)

    def _stop(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def _read(self) -> None:
        text = self._decoder.decode(os.read(self._fd, 1024))
        self._keys.extend(key for found in _KEYS.findall(text) if (key := _key_name(found)))
        self._pressed()


def _key_name(found: str) -> str:
    """The name of a special key, the character of others, empty for unknown ones."""
    return KEY_NAMES.get(found) or (found if found.isprintable() else "")


DECIDED_SHOWN_FOR = 6_000  # milliseconds that a decided call stays in the list, greyed out
MAX_ROWS = 200
SLOW_DATABASE_SECONDS = 2.0  # seconds of waiting for the database before a message is shown


@dataclass(slots=True, kw_only=True)
class BoardPrompt:
    """A prompt. With `expected`, only that text confirms; `args_sha256` is the digest of the arguments on screen.

    With `is_single_key` one key is the answer; otherwise Enter ends the line.
    """

    label: str
    on_answer: Callable[[str], Awaitable[str]]
    expected: str = ""
    args_sha256: str = ""
    is_single_key: bool = False
    typed: str = ""


@dataclass(slots=True)
class WatchState:
    context: CommandContext
    reviewer: Reviewer | None = None  # only calls that need this reviewer
    _: KW_ONLY
    pending: dict[str, Stored] = field(default_factory=dict)
    recently_decided: dict[str, tuple[Stored, int]] = field(
        default_factory=dict
    )  # with the time at which they leave the list
    selected: str = ""
    view: ApprovalDetails | None = None
    page: RenderableType | None = None  # shown instead of the open card
    offset: int = 0
    lines_seen: int = 0  # lines of the open card that were on screen
    height: int = 0  # lines of the open card
    shows_full_values: bool = False
    shows_help: bool = False
    prompt: BoardPrompt | None = None
    note: str = ""
    error: str = ""

    def rows(self) -> list[Stored]:
        """Pending and recently decided approvals, in a stable order."""
        both = [*self.pending.values(), *(stored for stored, _ in self.recently_decided.values())]
        return sorted(both, key=lambda stored: (stored.approval.deadlines.expires_at, stored.approval.id))

    def selected_row(self) -> Stored | None:
        return next((stored for stored in self.rows() if stored.approval.id == self.selected), None)

    def open_id(self) -> str:
        return self.view.stored.approval.id if self.view else ""

    def move(self, steps: int) -> None:
        ids = [stored.approval.id for stored in self.rows()]
        if ids:
            at = ids.index(self.selected) if self.selected in ids else 0
            self.selected = ids[min(max(at + steps, 0), len(ids) - 1)]

    def close(self) -> None:
        self.view, self.page, self.prompt, self.offset, self.lines_seen = None, None, None, 0, 0

    def show_page(self, page: RenderableType | None) -> None:
        self.page, self.offset, self.lines_seen = page, 0, 0

    async def open(self, approval_id: str) -> None:
        self.close()
        self.view = await self.context.services.inbox.show(self.context.workspace, approval_id)

    async def refresh(self) -> None:
        """Reload. If the database is locked or gone, the last view stays, with an error message."""
        try:
            self.context.services.store.check_same_database()
            await self._load_pending()
            await self._reopen()
            self.error = ""
        except Error as error:
            self.error = error.message

    async def _load_pending(self) -> None:
        now, workspace = self.context.now(), self.context.workspace
        page = await self.context.services.inbox.list(workspace, ApprovalQuery(("pending",), limit=MAX_ROWS))
        found = {s.approval.id: s for s in page.items if self._is_listed(s.approval, now)}
        for approval_id in self.pending.keys() - found.keys():
            await self._mark_decided(approval_id, now)
        self.pending = found
        self.recently_decided = {
            name: (s, until) for name, (s, until) in self.recently_decided.items() if now < until and name not in found
        }
        if self.selected_row() is None:
            self.selected = ""
            self.move(0)

    def _is_listed(self, approval: Approval, now: int) -> bool:
        return status_at(approval, now) == "pending" and (
            self.reviewer is None or needs_reviewer(approval, self.reviewer, now)
        )

    async def _mark_decided(self, approval_id: str, now: int) -> None:
        try:
            stored = await self.context.services.store.get(self.context.workspace, approval_id)
        except NotFound:
            return
        self.recently_decided[approval_id] = (
            stored,
            max(now + DECIDED_SHOWN_FOR, stored.approval.deadlines.release_at or 0),
        )

    async def _reopen(self) -> None:
        """Reload the open card; a prompt about arguments that changed meanwhile is closed."""
        if self.view is None:
            return
        before = self.view.stored.approval
        self.view = await self.context.services.inbox.show(self.context.workspace, before.id)
        after = self.view.stored.approval
        if after.args_sha256 != before.args_sha256:
            self.lines_seen = self.offset = 0
        stale = after.args_sha256 != before.args_sha256 or self.view.status != "pending"
        if stale and self.prompt is not None and self.prompt.args_sha256:
            self.prompt = self.page = None
            self.note = "Nothing was decided: the call changed while you were asked. Read it again."


class BackgroundSweeper:
    """Runs the timers in the background, as there may be no server: a locked database must not freeze the view."""

    def __init__(self, context: CommandContext, done: Callable[[], None]) -> None:
        self._context = context
        self._done = done
        self._task: asyncio.Task[int] | None = None
        self._since = 0.0
        self.error = ""

    def step(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._task is not None and not self._task.done():
            if now - self._since > SLOW_DATABASE_SECONDS:
                self.error = "The database is locked by another program. Waiting; what you see may be old."
            return
        if now - self._since >= 1.0 or self._task is None:
            self._since = now
            self._task = asyncio.create_task(self._context.services.worker.sweep())
            self._task.add_done_callback(self._finish)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _finish(self, task: asyncio.Task[int]) -> None:
        error = None if task.cancelled() else task.exception()
        self.error = error.message if isinstance(error, Error) else ""
        self._done()
