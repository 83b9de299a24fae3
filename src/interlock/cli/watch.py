"""The live view of `approvals watch`: a list of pending approvals from which a person decides, built on Textual.

It is long because the list, the card, and the keys and questions that decide share one screen and its state.
"""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, ClassVar

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Event, Key, Paste, Resize
from textual.widgets import Footer, Input, Static
from textual.worker import Worker, WorkerFailed

from interlock.cli import prompts
from interlock.cli.approval_records import ApprovalRow, ShownApproval
from interlock.cli.cards import decision_text, render_card, render_findings, styled_risk, styled_status
from interlock.cli.output import printable, short_id, shorten
from interlock.cli.review import Review
from interlock.core.card import Finding, escape_invisible
from interlock.core.errors import Conflict, Error, NotFound
from interlock.core.ports import ApprovalQuery
from interlock.presenters.text import pluralize
from interlock.runtime.durations import duration_text

Body = Mapping[str, object]  # of a decision, as in the HTTP API
HELP = """
  J K, arrows   move; in a card, scroll        O, Enter   open the card
  Space         scroll a page                  F          show long values in full
  A             approve: opens the card, asks  R          reject, with a reason if you like
  C             answer instead                 E          edit the arguments in your editor
  Z             undo a rejection               Esc        back
  ?             this help                      Q          quit

  A call of high risk, or one with findings, is approved by typing the tool's name.
  A card has to be seen to its end before it can be approved, and so do your changes.
"""
DECIDED_SHOWN_FOR = 6_000  # milliseconds that a decided call stays in the list, greyed out
MAX_ROWS = 200
MAX_DECIDED = 20  # decided calls that are read again at once: the others of a bulk decision just leave the list
RELOAD_INTERVAL = 1.0  # seconds at least between two reloads, however many events there are
PAGE_OVERLAP = 2  # lines of the last page that stay on screen, so that none is skipped


async def run_live_view(review: Review, user: str, *, mine: bool) -> None:
    """Show the view until the person quits or a signal comes; the terminal is restored in every case."""
    view = LiveView(review, user, mine=mine)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, view.action_end_by_signal, number)
    await view.run_async(mouse=False)
    if view.failure is not None:
        raise view.failure
    if view.signal:
        raise typer.Exit(128 + view.signal)


@dataclass(slots=True)
class PendingList:
    """Pending approvals and those decided a moment ago; one of them is selected."""

    review: Review
    mine: str | None  # only calls that need this user's decision
    pending: dict[str, ApprovalRow] = field(default_factory=dict)
    decided: dict[str, tuple[ApprovalRow, int]] = field(
        default_factory=dict
    )  # with the time at which they leave the list
    selected: str = ""

    def rows(self) -> list[ApprovalRow]:
        """In the order of the inbox, which is stable."""
        both = [*self.pending.values(), *(row for row, _ in self.decided.values())]
        return sorted(both, key=lambda row: (*row.urgency, row.expires_at, row.id))

    def position(self) -> int:
        return next((n for n, row in enumerate(self.rows()) if row.id == self.selected), 0)

    def selected_row(self) -> ApprovalRow | None:
        return next((row for row in self.rows() if row.id == self.selected), None)

    def move(self, steps: int) -> None:
        rows = self.rows()
        if rows:
            self.selected = rows[min(max(self.position() + steps, 0), len(rows) - 1)].id

    async def load(self) -> None:
        page = await self.review.list(ApprovalQuery(("pending",), limit=MAX_ROWS), mine=self.mine)
        found, now = {row.id: row for row in page.items if row.status == "pending"}, self.review.now()
        for approval_id in sorted(self.pending.keys() - found.keys())[-MAX_DECIDED:]:
            await self._mark_decided(approval_id, now)
        self.pending = found
        self.decided = {name: kept for name, kept in self.decided.items() if now < kept[1] and name not in found}
        if self.selected_row() is None:
            self.selected = ""
            self.move(0)

    async def _mark_decided(self, approval_id: str, now: int) -> None:
        try:
            row = (await self.review.show(approval_id)).row
        except NotFound:
            return
        self.decided[approval_id] = (row, max(now + DECIDED_SHOWN_FOR, row.release_at or 0))

    def render(self) -> RenderableType:
        """One line for each approval."""
        rows = self.rows()
        if not rows:
            return Text("\n  No approvals are pending.", style="dim")
        grid = Table.grid(padding=(0, 2), expand=True)
        for ratio in (None, None, None, None, None, 1, None, None):
            grid.add_column(no_wrap=True, overflow="ellipsis", ratio=ratio)
        for row in rows:
            style = "reverse" if row.id == self.selected else ""
            grid.add_row(*self._cells(row), style=style if row.id in self.pending else "dim strike")
        return grid

    def _cells(self, row: ApprovalRow) -> Sequence[Text | str]:
        waits = row.id in self.pending
        by = f" by {escape_invisible(row.decided_by)}" if row.decided_by else ""
        return (
            f"{'>' if row.id == self.selected else ' '} {escape_invisible(short_id(row.id))}",
            duration_text(row.expires_at - self.review.now()) if waits else "",
            styled_risk(row.risk) if waits else "",
            Text(escape_invisible(row.tool)),
            Text(escape_invisible(row.agent)),
            Text(shorten(row.sentence)),
            row.votes_text if waits else "",
            styled_status("pending") if waits else Text(f"{row.status}{by}"),
        )


class LiveView(App[None]):
    """The screen and its keys. All that waits for the database runs in the background: the view never freezes."""

    CSS = """
    #title { text-style: bold reverse; }
    VerticalScroll { height: 1fr; scrollbar-size: 0 0; }
    #more { height: 1; text-style: bold; color: ansi_yellow; }
    #error { max-height: 3; text-style: bold; color: ansi_red; }
    #note { max-height: 3; }
    #label { text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a,A", "decide('approve')", "approve", key_display="A"),
        Binding("r,R", "decide('reject')", "reject", key_display="R"),
        Binding("c,C", "decide('respond')", "answer", key_display="C"),
        Binding("e,E", "decide('edit')", "edit", key_display="E"),
        Binding("o,O,enter", "open", "open", key_display="O"),
        Binding("escape,backspace", "leave", "back", key_display="Esc"),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q,Q", "quit", "quit", key_display="Q"),
        Binding("f,F", "toggle_full", "full", key_display="F"),
        Binding("z,Z", "undo", "undo", key_display="Z"),
        Binding("down,j,J", "move(1)", show=False),
        Binding("up,k,K", "move(-1)", show=False),
        Binding("space,pagedown", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("ctrl+c", f"end_by_signal({int(signal.SIGINT)})", show=False, priority=True),
    ]
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None

    def __init__(self, review: Review, user: str, *, mine: bool = False) -> None:
        super().__init__(ansi_color=True)
        self.animation_level = "none"
        self.signal = 0
        self.failure: BaseException | None = None
        self.review = review
        self._user = user
        self._list = PendingList(review, user if mine else None)
        self._view: ShownApproval | None = None  # the open card
        self._changes: RenderableType | None = None  # of an edit, shown instead of the open card
        self._height = self._lines_seen = 0  # of the open card; seen from its first line on
        self._shows_full_values = self._shows_help = False
        self._note = self._error = self._trouble = self._label = ""
        self._answer: asyncio.Future[str] | None = None  # to the open question
        self._is_single_key = False  # the answer is one key, without Enter
        self._keys_from = 0.0  # keys that were pressed earlier are dropped
        self._decision: Worker[None] | None = None  # or undo
        self._last_rejected_id = ""  # for undo

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        with VerticalScroll(can_focus=False):
            yield Static(id="content")
        for name in ("more", "error", "note", "label"):
            yield Static(id=name)
        yield Input(compact=True)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.run_worker(self._follow())

    def action_end_by_signal(self, number: int) -> None:
        self.signal = number
        self.exit()

    def _handle_exception(self, error: Exception) -> None:
        """Textual would print a traceback with local variables, which may hold secrets."""
        self.failure = self.failure or (error.error if isinstance(error, WorkerFailed) else error)
        self._close_messages_no_wait()

    # Data

    async def _follow(self) -> None:
        """Reload after each change; once a second the times are drawn again."""
        async with self.review.watch() as changes:
            has_changed, reloaded = True, 0.0
            while True:
                self._trouble = changes.trouble
                if has_changed:
                    await self._reload()
                self._draw()
                reloaded = monotonic() if has_changed else reloaded
                has_changed = await changes.wait(1.0) or bool(self._error)
                if has_changed:
                    await asyncio.sleep(max(0.0, reloaded + RELOAD_INTERVAL - monotonic()))

    async def _reload(self) -> None:
        """If the database is locked or gone, the last view stays, with an error message."""
        try:
            await self._list.load()
            await self._reload_card()
            self._error = ""
        except Error as error:
            self._error = error.message

    async def _reload_card(self) -> None:
        """A question about arguments that changed meanwhile is withdrawn."""
        shown = self._view
        if shown is None:
            return
        view = await self.review.show(shown.row.id)
        if self._view is not shown:  # the person closed it meanwhile
            return
        self._view = view
        changed = view.row.args_sha256 != shown.row.args_sha256
        if changed:
            self._scroll_home()
        if changed or view.row.status != "pending":
            self._withdraw("Nothing was decided: the call changed while you were asked. Read it again.")

    # Screen

    def _draw(self) -> None:
        """Show the state. Texts are given as `Text`, never as a string, in which Textual would look for markup."""
        if not self.is_running:  # it ends: the screen may be gone
            return
        waiting = pluralize(len(self._list.pending), "call waits", "calls wait")
        error = self._error or self._trouble
        self._show("title", f"Interlock  {escape_invisible(self.review.place)}  {waiting} for a decision")
        self._show("error", f"!! {printable(error)}" if error else "")
        self._show("note", printable(self._note))
        self._show("label", self._label)
        self.query_one(Input).display = bool(self._label)
        self.query_one(Footer).display = not self._label
        self.set_focus(self.query_one(Input) if self._label else None)
        self.query_one("#content", Static).update(self._content())
        if self._view is None:
            body = self.query_one(VerticalScroll)
            body.scroll_to(y=max(0, self._list.position() - body.size.height // 2), animate=False)
        self.call_after_refresh(self._track_reading)

    def _show(self, name: str, text: str) -> None:
        widget = self.query_one(f"#{name}", Static)
        widget.update(Text(text))
        widget.display = bool(text)

    def _content(self) -> RenderableType:
        if self._shows_help:
            return Text(HELP)
        if self._view is None:
            return self._list.render()
        return self._changes or render_card(self._view, self.review.now(), full=self._shows_full_values)

    def _track_reading(self) -> None:
        """Note how far the card was on screen without a gap, and how much of it is left."""
        body, below = self.query_one(VerticalScroll), 0
        if self._view is not None and not self._shows_help:
            options = self.console.options.update(width=self.size.width, height=None)
            self._height = len(self.console.render_lines(self._content(), options))
            top, bottom = body.scroll_offset.y, body.scroll_offset.y + body.size.height
            self._lines_seen = max(self._lines_seen, bottom) if top <= self._lines_seen else self._lines_seen
            below = self._height - bottom
            if self._changes is not None and not self._label and self._lines_seen >= self._height:
                self._give_answer("")
        more = f"   {pluralize(below, 'more line', 'more lines')} below: Space" if below > 0 else ""
        self.query_one("#more", Static).update(Text(more))

    def on_resize(self, _: Resize) -> None:
        self._lines_seen = 0  # lines wrap differently now
        self._draw()

    # Keys

    async def on_event(self, event: Event) -> None:
        """Drop keys typed ahead, except Ctrl-C: they cannot be an answer to a question that was not shown yet."""
        is_early = isinstance(event, Key | Paste) and event.time < self._keys_from
        if not is_early or (isinstance(event, Key) and event.key == "ctrl+c"):
            await super().on_event(event)

    async def run_action(self, *args: Any, **kwargs: Any) -> bool:
        """Run the action of a key; what it refuses becomes a message."""
        self._note, self._shows_help = "", False
        try:
            return await super().run_action(*args, **kwargs)
        except Error as error:
            self._note = error.message
            return True
        finally:
            self._draw()

    def action_move(self, steps: int) -> None:
        if self._view is None:
            self._list.move(steps)
        else:
            self.query_one(VerticalScroll).scroll_relative(y=steps, animate=False, immediate=True)
            self._track_reading()

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self.query_one(VerticalScroll).size.height - PAGE_OVERLAP))

    def action_open(self) -> None:
        if self._view is None:
            self.run_worker(self._note_refusal(self._open_card()))

    def action_leave(self) -> None:
        if not self._withdraw("Nothing was decided."):
            self._view = None

    def action_toggle_full(self) -> None:
        self._shows_full_values = not self._shows_full_values
        self._scroll_home()

    def action_help(self) -> None:
        self._shows_help = True

    def _scroll_home(self) -> None:
        self._lines_seen = 0
        self.query_one(VerticalScroll).scroll_home(animate=False, immediate=True)

    # Decisions

    def action_decide(self, kind: str) -> None:
        self._check_free()
        self._keys_from = math.inf
        self._decision = self.run_worker(self._ask_and_decide(kind))

    async def _ask_and_decide(self, kind: str) -> None:
        """Raises nothing: a question that the person, or a change of the call, ends becomes a message."""
        asks = {
            "approve": self._ask_to_approve,
            "edit": self._ask_to_edit,
            "reject": self._ask_to_reject,
            "respond": self._ask_to_respond,
        }
        try:
            view = await self._open_selected()
            body = await asks[kind](view)
            self._show_changes(None)
            self._note = "Sending …"
            self._draw()
            self._note = await self._decide(view, body)
            if self._view and self._view.row.id == view.row.id:
                self._view = None  # unless the person opened another card already
        except Error as error:
            self._note = error.message
        self._show_changes(None)
        self._keys_from = 0.0
        self._draw()

    def _check_free(self) -> None:
        if self._answer is not None:  # letters are typed into an answer, except while changes are read
            raise Conflict("Read the changes to their end first (Space), or press Esc.")
        if self._decision is not None and not self._decision.is_finished:
            raise Conflict("One moment: the last decision is still being sent. Nothing else was decided.")

    async def _note_refusal(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Error as error:
            self._note = error.message
        self._draw()

    def _show_changes(self, changes: RenderableType | None) -> None:
        """Show the changes of an edit, or the card again; who read one has not read the other."""
        if changes is not self._changes:
            self._changes = changes
            self._scroll_home()

    async def _ask_to_approve(self, view: ShownApproval) -> Body:
        self._draw()
        await self.screen.wait_for_refresh()
        self._track_reading()
        if self._lines_seen < self._height:
            raise Conflict("Read the card to its end first (Space), then press A.")
        alarms = prompts.alarms_among(view.card.findings)
        await self._confirm(view, f"Approve {_tool(view)}?", alarms)
        return {"kind": "approve", "acknowledged": [alarm.id for alarm in alarms]}

    async def _ask_to_edit(self, view: ShownApproval) -> Body:
        """Edit the arguments in an editor; the changes have to be read to their end before they can be confirmed."""
        with self.batch_update():  # nothing is drawn over the editor
            new_args = await prompts.edit_in_editor(view, self.suspend())
        changes = prompts.changes_between(view.args, new_args)
        alarms = prompts.alarms_among(prompts.findings_in(view, new_args))
        self._show_changes(Group(changes, render_findings(alarms)))
        await self._ask("")  # reading to the end is the answer
        await self._confirm(view, f"Approve {_tool(view)} with these changes?", alarms)
        return {"kind": "edit", "args": new_args, "acknowledged": [alarm.id for alarm in alarms]}

    async def _ask_to_reject(self, view: ShownApproval) -> Body:
        label = f"Reject {_tool(view)}. Reason (Enter for none, Esc to go back):"
        return {"kind": "reject", "reason": await self._ask(label)}

    async def _ask_to_respond(self, view: ShownApproval) -> Body:
        text = await self._ask(f"Answer instead of running {_tool(view)} (Esc to go back):")
        if not text.strip():
            raise Conflict("Nothing was decided: there was no answer.")
        data = prompts.parse_answer(view, text)
        return {"kind": "respond", **({"message": text} if data is None else {"answer": data})}

    async def _confirm(self, view: ShownApproval, question: str, alarms: Sequence[Finding]) -> None:
        """One key for a normal call; the tool's name for high risk or alarms."""
        expected, label = "y", f"{question} y/N"
        if view.card.risk == "high" or alarms:
            despite = f" Despite {pluralize(len(alarms), 'finding', 'findings')}:" if alarms else ""
            expected = _tool(view)  # in the form that is shown, so that it can be typed
            label = f"{question}{despite} type {expected}:"
        self._is_single_key = label.endswith("y/N")
        if (await self._ask(label)).strip().lower() != expected.lower():
            raise Conflict("Nothing was decided.")

    async def _ask(self, label: str) -> str:
        """Ask below the card; keys that were pressed before are no answer."""
        self._answer, self._label = asyncio.get_running_loop().create_future(), label
        try:
            self.query_one(Input).clear()
            self._draw()
            self._keys_from = monotonic()
            return await self._answer
        finally:
            self._answer, self._label, self._is_single_key = None, "", False

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.value.strip() and self._is_single_key:  # one Space too many, after reading, is no answer
            self._give_answer(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._give_answer(event.value)

    def _give_answer(self, text: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(text)

    def _withdraw(self, reason: str) -> bool:
        """End the open question without a decision; False if there is none."""
        if self._answer is None or self._answer.done():
            return False
        self._answer.set_exception(Conflict(reason))
        return True

    def action_undo(self) -> None:
        self._check_free()
        chosen = self._list.selected_row()
        selected = chosen.id if chosen is not None and chosen.status == "rejected" else ""
        target = selected or self._last_rejected_id
        if not target:
            raise Conflict("There is no rejection to undo.")
        self._note = "Sending …"
        self._decision = self.run_worker(self._note_refusal(self._undo(target)))

    async def _undo(self, target: str) -> None:
        before = (await self.review.show(target)).row
        after = await self.review.undo(target, self._user)
        self._note, self._last_rejected_id = decision_text(before, after, self.review.now()), ""

    async def _open_card(self) -> None:
        """Open the selected card, unless another was opened or selected meanwhile."""
        chosen = self._list.selected_row()
        if chosen is None:
            return
        view = await self.review.show(chosen.id)
        if self._view is None and self._list.selected == chosen.id:
            self._view = view
            self._scroll_home()

    async def _open_selected(self) -> ShownApproval:
        """The open card; opens the selected one if none is open."""
        if self._view is None:
            await self._open_card()
        if self._view is None:
            raise Conflict("No approvals are pending.")
        if self._view.row.status != "pending":
            raise Conflict(f"This is {self._view.row.status}: there is nothing left to decide.")
        return self._view

    async def _decide(self, view: ShownApproval, body: Body) -> str:
        after, now = await self.review.decide(view, body, self._user), self.review.now()
        if after.status != "rejected":
            return decision_text(view.row, after, now)
        self._last_rejected_id = after.id
        left = duration_text((after.release_at or now) - now)
        return f"Rejected: {_tool(view)} will not run. Press Z within {left} to undo."


def _tool(view: ShownApproval) -> str:
    return escape_invisible(view.row.tool)
