"""The picture of the live view: a list or a card, a line about what happened, and a line to type in."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import sys
import termios
import tty
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from interlock.cli.cards import render_card, styled_risk, styled_status, votes_text
from interlock.cli.output import duration_text, printable, short_id, shorten
from interlock.cli.tui.board import WatchState
from interlock.core.card import risk_level, visible
from interlock.core.ledger.event import Stored
from interlock.core.outcome import status_at
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


def render_screen(board: WatchState, console: Console) -> Segments:
    """Exactly as many lines as the terminal has; what is said and typed may take three each."""
    said = [Text(f"!! {printable(board.trouble)}", style="bold red")] if board.trouble else []
    said += [Text(printable(board.note))] if board.note else []
    below = [line for text in said for line in _rendered(text, console)[:3]] + _rendered(_bottom(board), console)[-3:]
    room = max(1, console.height - 1 - len(below))
    lines = [*_rendered(_title(board), console)[:1], *_body(board, console, room), *below]
    return Segments([segment for line in lines for segment in (*line, Segment.line())][:-1])


def _title(board: WatchState) -> Text:
    waiting = pluralize(len(board.pending), "call waits", "calls wait")
    return Text(f"Interlock  {visible(board.desk.workspace)}  {waiting} for a decision", style="bold reverse")


def _bottom(board: WatchState) -> Text:
    if board.question is None:
        return Text(CARD_KEYS if board.view else LIST_KEYS, style="dim")
    return Text.assemble((board.question.label, "bold"), " ", visible(board.question.typed), ("_", "blink"))


def _body(board: WatchState, console: Console, room: int) -> Lines:
    if board.helping:
        lines = _rendered(Text(HELP), console)
    elif board.view is not None:
        lines = _card(board, console, room)
    else:
        lines = _rendered(_list(board, room), console)
    return [*lines, *([] for _ in range(room))][:room]


def _card(board: WatchState, console: Console, room: int) -> Lines:
    """Notes how far the person can have read."""
    if board.view is None:
        return []
    lines = _rendered(board.page or render_card(board.view, board.desk.now(), full=board.full), console)
    board.height = len(lines)
    board.offset = min(max(board.offset, 0), max(0, len(lines) - room))
    board.seen_to = max(board.seen_to, board.offset + room)
    below = len(lines) - board.offset - room
    if below <= 0:
        return lines[board.offset :]
    more = Text(f"   {pluralize(below + 1, 'more line', 'more lines')} below: Space", style="bold yellow")
    board.seen_to = min(board.seen_to, board.height - 1)
    return [*lines[board.offset : board.offset + room - 1], *_rendered(more, console)]


def _list(board: WatchState, room: int) -> RenderableType:
    rows = board.rows()
    if not rows:
        return Text("\n  Nothing waits for a decision.", style="dim")
    at = next((n for n, stored in enumerate(rows) if stored.approval.id == board.selected), 0)
    first = max(0, min(at - room // 2, len(rows) - room))
    grid = Table.grid(padding=(0, 2), expand=True)
    for ratio in (None, None, None, None, None, 1, None, None):
        grid.add_column(no_wrap=True, overflow="ellipsis", ratio=ratio)
    for stored in rows[first : first + room]:
        grid.add_row(*_row(board, stored), style=_style(board, stored))
    return grid


def _row(board: WatchState, stored: Stored) -> Sequence[Text | str]:
    approval, subject = stored.approval, stored.approval.subject
    waits = approval.id in board.pending
    mark = ">" if approval.id == board.selected else " "
    left = duration_text(approval.expires_at - board.desk.now()) if waits else ""
    return (
        f"{mark} {visible(short_id(approval.id))}",
        left,
        styled_risk(risk_level(subject.effect, subject.priority)) if waits else "",
        Text(visible(subject.tool)),
        Text(visible(subject.agent)),
        Text(shorten(approval_sentence(stored))),
        votes_text(approval) if waits else "",
        styled_status("pending") if waits else Text(_result_text(board, stored)),
    )


def _result_text(board: WatchState, stored: Stored) -> str:
    decided = stored.approval.decision
    by = f" by {visible(decided.by)}" if decided else ""
    return f"{status_at(stored.approval, board.desk.now())}{by}"


def _style(board: WatchState, stored: Stored) -> str:
    if stored.approval.id not in board.pending:
        return "dim strike"
    return "reverse" if stored.approval.id == board.selected else ""


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
    """`pressed` is called when there is something to take."""

    def __init__(self, pressed: Callable[[], None]) -> None:
        self._fd = sys.stdin.fileno()
        self._pressed = pressed
        self._before = termios.tcgetattr(self._fd)
        self._keys: deque[str] = deque()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self) -> str | None:
        return self._keys.popleft() if self._keys else None

    def forget(self) -> None:
        """Drops what was typed ahead: it was no answer to a question that nobody had read yet."""
        self._keys.clear()
        termios.tcflush(self._fd, termios.TCIFLUSH)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Each key comes at once and is not echoed; Ctrl-C still interrupts, Ctrl-Z does nothing."""
        self._start()
        try:
            yield
        finally:
            self._stop()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Another program has the keyboard meanwhile."""
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
    """Names for special keys, the character for others, nothing for what we do not know."""
    return KEY_NAMES.get(found) or (found if found.isprintable() else "")
