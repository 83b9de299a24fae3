"""`approvals watch` at a terminal: a live list from which a person can decide."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live

from interlock.app.inbox import ApprovalDetails
from interlock.cli import prompts
from interlock.cli.cards import event_line, render_findings
from interlock.cli.commands.approvals import decision_text
from interlock.cli.context import CommandContext
from interlock.cli.output import duration_text, print_json_line, printable, short_id, shorten
from interlock.cli.policy_in_force import load_current
from interlock.cli.tui.screen import BackgroundSweeper, BoardPrompt, Keyboard, WatchState, render_screen
from interlock.core.canonical import parse_json
from interlock.core.card import Finding, visible
from interlock.core.decision import Reviewer, read_decision
from interlock.core.errors import Conflict, Error, InvalidRequest, NotFound
from interlock.core.ledger.chain import Entry
from interlock.core.ledger.event import Stored
from interlock.core.ports import ApprovalQuery
from interlock.presenters.approval import approval_item_json, approval_sentence, entry_json, shown_args
from interlock.presenters.text import pluralize
from interlock.runtime.durations import rfc3339

KeyAction = Callable[[], Awaitable[None]]
SCROLLS = {"up": -1, "down": 1, "page up": -10, "page down": 10}


async def watch(desk: CommandContext, user: str, *, mine: bool) -> None:
    if desk.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        await stream(desk)
    else:
        await Watcher(desk, user, await desk.person(user) if mine else None).run()


class Watcher:
    """Keys come in, the board changes, the picture follows; decisions run beside, so that nothing freezes."""

    def __init__(self, desk: CommandContext, user: str, whose: Reviewer | None = None) -> None:
        self._desk = desk
        self._board = WatchState(desk, whose)
        self._stir = asyncio.Event()
        self._keys = Keyboard(self._stir.set)
        self._doing: asyncio.Task[None] | None = None
        self._quit = False
        console = Console(highlight=False, markup=False, emoji=False)
        self._live = Live(console=console, screen=True, auto_refresh=False)
        self._choices = DecisionActions(self._board, user, console, self._ask, self._away)

    async def run(self) -> None:
        sweeping = BackgroundSweeper(self._desk, self._stir.set)
        async with self._desk.parts.store.watch(self._desk.workspace) as changes:
            ticking = asyncio.create_task(self._tick(changes.changed))
            try:
                with self._keys.listening(), self._live:
                    while not self._quit:
                        await self._step(sweeping)
            finally:
                ticking.cancel()
                sweeping.stop()

    async def _tick(self, changed: Callable[[float], Awaitable[None]]) -> None:
        while True:
            await changed(1.0)
            self._stir.set()

    async def _step(self, sweeping: BackgroundSweeper) -> None:
        board = self._board
        if self._doing is not None and self._doing.done():
            self._doing.result()  # what nobody foresaw ends the view, instead of passing in silence
        sweeping.step()
        await board.refresh()
        board.trouble = board.trouble or sweeping.trouble
        self._live.update(render_screen(board, self._live.console), refresh=True)
        await self._stir.wait()
        self._stir.clear()
        while not self._quit and (key := self._keys.take()):
            await self._press(key)

    # Keys

    async def _press(self, key: str) -> None:
        if self._board.question is not None:
            self._answer(self._board.question, key)
            return
        self._board.note, self._board.helping = "", False
        act = self._acts().get(key.lower())
        try:
            if act is not None:
                await act()
        except Error as error:
            self._board.note = error.message

    def _acts(self) -> Mapping[str, KeyAction]:
        page, choices = max(1, self._live.console.height - 6), self._choices
        moves: dict[str, KeyAction] = {"page up": lambda: self._move(-page)}
        moves |= dict.fromkeys((" ", "page down"), lambda: self._move(page))
        moves |= dict.fromkeys(("j", "down"), lambda: self._move(1))
        moves |= dict.fromkeys(("k", "up"), lambda: self._move(-1))
        moves |= dict.fromkeys(("o", "enter"), self._open)
        moves |= dict.fromkeys(("escape", "backspace"), self._back)
        moves |= {"f": self._whole, "?": self._help, "q": self._leave}
        moves |= {"a": choices.approve, "r": choices.reject, "c": choices.respond, "e": choices.edit, "z": choices.undo}
        return moves

    async def _move(self, steps: int) -> None:
        if self._board.view is None:
            self._board.move(steps)
        else:
            self._board.offset += steps

    async def _open(self) -> None:
        chosen = self._board.chosen()
        if chosen is not None and self._board.view is None:
            await self._board.open(chosen.approval.id)

    async def _back(self) -> None:
        self._board.close()

    async def _whole(self) -> None:
        self._board.full = not self._board.full
        self._board.turn_to(None)

    async def _help(self) -> None:
        self._board.helping = True

    async def _leave(self) -> None:
        self._quit = True

    # Questions

    def _ask(self, question: BoardPrompt) -> None:
        self._board.question = question
        self._keys.forget()

    def _answer(self, question: BoardPrompt, key: str) -> None:
        match key:
            case "escape":
                self._end("Nothing was decided.")
            case "enter":
                self._settle(question)
            case "backspace":
                question.typed = question.typed[:-1]
            case _ if key in SCROLLS:
                self._board.offset += SCROLLS[key]
            case _:
                question.typed += key
                if question.key:
                    self._settle(question)

    def _settle(self, question: BoardPrompt) -> None:
        if question.expected and question.typed.strip().lower() != question.expected.lower():
            self._end("Nothing was decided.")
        elif self._doing is not None and not self._doing.done():
            self._end("One moment: the last decision is still on its way. Nothing else was decided.")
        else:
            self._end("On its way …")
            self._doing = asyncio.create_task(self._do(question, self._board.open_id()))

    def _end(self, note: str) -> None:
        self._board.question, self._board.page, self._board.note = None, None, note

    async def _do(self, question: BoardPrompt, approval_id: str) -> None:
        try:
            self._board.note = await question.act(question.typed)
            if self._board.open_id() == approval_id:  # they may be at the next one already
                self._board.close()
        except Error as error:
            self._board.note = error.message
        self._stir.set()

    @asynccontextmanager
    async def _away(self) -> AsyncIterator[None]:
        """Leaves screen and keyboard to another program."""
        self._live.stop()
        try:
            with self._keys.lent():
                yield
        finally:
            self._live.start()


async def stream(desk: CommandContext) -> None:
    """Begins with what waits already; ends when it is interrupted."""
    store, sweeping, said = desk.parts.store, BackgroundSweeper(desk, lambda: None), ""
    async with store.watch(desk.workspace) as watch:
        last = (await store.head(desk.workspace)).seq
        await _print_all_waiting(desk)
        while True:
            trouble = sweeping.trouble
            try:
                last = await _print_new_events(desk, last)
                sweeping.step()
            except Error as error:
                trouble = error.message
            if trouble != said:
                _print_trouble(trouble)
                said = trouble
            await watch.changed(1.0)
            await asyncio.sleep(0)


async def _print_all_waiting(desk: CommandContext) -> None:
    page = await desk.parts.inbox.list(desk.workspace, ApprovalQuery(("pending",), limit=500))
    for stored in page.items:
        _print_waiting(desk, stored)


async def _print_new_events(desk: CommandContext, after: int) -> int:
    async for entries in desk.parts.store.entries(desk.workspace, after):
        for entry in entries:
            await _print_event(desk, entry)
            after = entry.seq
    return after


def _print_waiting(desk: CommandContext, stored: Stored) -> None:
    approval, now = stored.approval, desk.now()
    if desk.json:
        head = {"seq": None, "at": rfc3339(now), "kind": "waiting", "approval_id": approval.id}
        print_json_line({**head, "approval": approval_item_json(stored, now)})
    else:
        _line(f"{rfc3339(now)}  {visible(short_id(approval.id)):8}  waiting{_about(stored)}")


async def _print_event(desk: CommandContext, entry: Entry) -> None:
    stored = await _stored(desk, entry.approval_id)
    if desk.json:
        print_json_line({**entry_json(entry), "approval": approval_item_json(stored, desk.now()) if stored else None})
    else:
        _line(event_line(entry) + (_about(stored) if stored else ""))


async def _stored(desk: CommandContext, approval_id: str) -> Stored | None:
    try:
        return await desk.parts.store.get(desk.workspace, approval_id) if approval_id else None
    except NotFound:
        return None


def _about(stored: Stored) -> str:
    return f"  {visible(stored.approval.subject.tool)}: {shorten(approval_sentence(stored))}"


def _line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _print_trouble(trouble: str) -> None:
    sys.stderr.write(f"{printable(trouble) or 'The database answers again.'}\n")
    sys.stderr.flush()


EDITOR_COMMAND = 'exec ${VISUAL:-${EDITOR:-vi}} "$0"'  # the shell looks it up, so that we need not read the environment


class DecisionActions:
    def __init__(
        self,
        board: WatchState,
        user: str,
        console: Console,
        ask: Callable[[BoardPrompt], None],
        away: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        self._board = board
        self._desk = board.desk
        self._user = user
        self._console = console
        self._ask = ask
        self._away = away
        self._rejected = ""  # what undo takes back

    async def approve(self) -> None:
        view = await self._before_them()
        render_screen(self._board, self._console)  # says how much of the card there is, and how much they have seen
        if self._board.seen_to < self._board.height:
            self._board.note = "Read the card to its end first (Space), then press A."
            return
        alarms = _alarms(view.card.findings)
        body = {"kind": "approve", "acknowledged": [alarm.id for alarm in alarms]}
        self._confirm(view, f"Approve {visible(_tool(view))}?", body, alarms)

    async def reject(self) -> None:
        view = await self._before_them()
        label = f"Reject {visible(_tool(view))}. Reason (Enter for none, Esc to go back):"
        self._ask(
            BoardPrompt(
                label=label,
                act=lambda reason: self._decide(view, {"kind": "reject", "reason": reason}),
                expected="",
                about=_sha(view),
            )
        )

    async def respond(self) -> None:
        view = await self._before_them()
        label = f"Answer instead of running {visible(_tool(view))} (Esc to go back):"
        self._ask(BoardPrompt(label=label, act=lambda text: self._said(view, text), expected="", about=_sha(view)))

    async def edit(self) -> None:
        """The changes are shown before they are asked about."""
        view = await self._before_them()
        wanted = parse_json(await self._edited(view))
        if not isinstance(wanted, Mapping):
            raise InvalidRequest("The arguments are an object. Nothing was decided.")
        changes = prompts.changes_between(shown_args(view.stored.payload), wanted)
        alarms = _alarms(prompts.findings_in(view, wanted))
        self._board.turn_to(Group(changes, render_findings(alarms)))
        body = {"kind": "edit", "args": wanted, "acknowledged": [alarm.id for alarm in alarms]}
        self._confirm(view, f"Let {visible(_tool(view))} run with these changes?", body, alarms)

    async def undo(self) -> None:
        chosen = self._board.chosen()
        selected = chosen.approval.id if chosen is not None and chosen.approval.status == "rejected" else ""
        target = selected or self._rejected
        if not target:
            raise Conflict("There is no rejection to undo.")
        workspace, inbox = self._desk.workspace, self._desk.parts.inbox
        before = await self._desk.parts.store.get(workspace, target)
        after = await inbox.undo(workspace, target, await self._desk.person(self._user))
        self._board.note, self._rejected = decision_text(before.approval, after, self._desk.now()), ""

    async def _before_them(self) -> ApprovalDetails:
        """The open card, or the selected one, opened."""
        chosen = self._board.chosen()
        if self._board.view is None and chosen is not None:
            await self._board.open(chosen.approval.id)
        view = self._board.view
        if view is None:
            raise Conflict("Nothing waits for a decision.")
        if view.status != "pending":
            raise Conflict(f"This is {view.status}: there is nothing left to decide.")
        return view

    def _confirm(self, view: ApprovalDetails, question: str, body: Mapping[str, object], alarms: list[Finding]) -> None:
        """One key for a plain call; the tool's name where a slip would be dear."""

        async def act(_: str) -> str:
            return await self._decide(view, body)

        if view.card.risk != "high" and not alarms:
            self._ask(BoardPrompt(label=f"{question} y/N", act=act, expected="y", about=_sha(view), key=True))
            return
        despite = f" Despite {pluralize(len(alarms), 'finding', 'findings')}:" if alarms else ""
        name = visible(_tool(view))  # as it is shown is how it can be typed
        self._ask(BoardPrompt(label=f"{question}{despite} type {name}:", act=act, expected=name, about=_sha(view)))

    async def _said(self, view: ApprovalDetails, text: str) -> str:
        if not text.strip():
            return "Nothing was decided: there was no answer."
        data = prompts.parse_answer(view, text)
        said: dict[str, object] = {"message": text} if data is None else {"answer": data}
        return await self._decide(view, {"kind": "respond", **said})

    async def _decide(self, view: ApprovalDetails, body: Mapping[str, object]) -> str:
        before, desk = view.stored.approval, self._desk
        if body["kind"] == "edit":
            await load_current(desk)  # an edit is judged by the policy of now
        decision = read_decision({**body, "args_sha256": before.args_sha256})
        after = await desk.parts.inbox.decide(desk.workspace, before.id, decision, await desk.person(self._user))
        if after.status != "rejected":
            return decision_text(before, after, desk.now())
        self._rejected = after.id
        left = duration_text((after.release_at or desk.now()) - desk.now())
        return f"Rejected: {visible(_tool(view))} will not run. Z takes it back for {left}."

    async def _edited(self, view: ApprovalDetails) -> bytes:
        """What may deceive is spelled out in code points; so is everything else then."""
        text = json.dumps(shown_args(view.stored.payload), indent=2, ensure_ascii=bool(_alarms(view.card.findings)))
        with tempfile.TemporaryDirectory(prefix="interlock-") as folder:
            file = Path(folder) / "args.json"
            file.write_text(text + "\n", encoding="utf-8")
            async with self._away():
                editor = await asyncio.create_subprocess_exec("/bin/sh", "-c", EDITOR_COMMAND, str(file))
                status = await editor.wait()
            if status:
                raise Conflict(f"The editor ended with status {status}. Nothing was decided.")
            return file.read_bytes()


def _alarms(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level == "alarm"]


def _tool(view: ApprovalDetails) -> str:
    return view.stored.approval.subject.tool


def _sha(view: ApprovalDetails) -> str:
    return view.stored.approval.args_sha256
