"""`approvals watch` on a terminal: a live list with decisions; elsewhere a stream of events."""

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


async def watch(context: CommandContext, user: str, *, mine: bool) -> None:
    if context.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        await stream(context)
    else:
        await Watcher(context, user, await context.resolve_reviewer(user) if mine else None).run()


class Watcher:
    """The event loop of the live view; decisions run as background tasks, so that the view does not freeze."""

    def __init__(self, context: CommandContext, user: str, reviewer: Reviewer | None = None) -> None:
        self._context = context
        self._state = WatchState(context, reviewer)
        self._wake_event = asyncio.Event()
        self._keys = Keyboard(self._wake_event.set)
        self._decision_task: asyncio.Task[None] | None = None
        self._quit = False
        console = Console(highlight=False, markup=False, emoji=False)
        self._live = Live(console=console, screen=True, auto_refresh=False)
        self._actions = DecisionActions(self._state, user, console, self._ask, self._suspend_screen)

    async def run(self) -> None:
        sweeper = BackgroundSweeper(self._context, self._wake_event.set)
        async with self._context.services.store.watch(self._context.workspace) as changes:
            ticking = asyncio.create_task(self._tick(changes.wait))
            try:
                with self._keys.listening(), self._live:
                    while not self._quit:
                        await self._step(sweeper)
            finally:
                ticking.cancel()
                sweeper.stop()

    async def _tick(self, changed: Callable[[float], Awaitable[None]]) -> None:
        while True:
            await changed(1.0)
            self._wake_event.set()

    async def _step(self, sweeper: BackgroundSweeper) -> None:
        state = self._state
        if self._decision_task is not None and self._decision_task.done():
            self._decision_task.result()  # an unexpected error ends the view instead of being ignored
        sweeper.step()
        await state.refresh()
        state.error = state.error or sweeper.error
        self._live.update(render_screen(state, self._live.console), refresh=True)
        await self._wake_event.wait()
        self._wake_event.clear()
        while not self._quit and (key := self._keys.next_key()):
            await self._press(key)

    # Keys

    async def _press(self, key: str) -> None:
        if self._state.prompt is not None:
            self._answer(self._state.prompt, key)
            return
        self._state.note, self._state.shows_help = "", False
        act = self._key_actions().get(key.lower())
        try:
            if act is not None:
                await act()
        except Error as error:
            self._state.note = error.message

    def _key_actions(self) -> Mapping[str, KeyAction]:
        page, choices = max(1, self._live.console.height - 6), self._actions
        moves: dict[str, KeyAction] = {"page up": lambda: self._move(-page)}
        moves |= dict.fromkeys((" ", "page down"), lambda: self._move(page))
        moves |= dict.fromkeys(("j", "down"), lambda: self._move(1))
        moves |= dict.fromkeys(("k", "up"), lambda: self._move(-1))
        moves |= dict.fromkeys(("o", "enter"), self._open)
        moves |= dict.fromkeys(("escape", "backspace"), self._back)
        moves |= {"f": self._toggle_full, "?": self._help, "q": self._request_quit}
        moves |= {"a": choices.approve, "r": choices.reject, "c": choices.respond, "e": choices.edit, "z": choices.undo}
        return moves

    async def _move(self, steps: int) -> None:
        if self._state.view is None:
            self._state.move(steps)
        else:
            self._state.offset += steps

    async def _open(self) -> None:
        chosen = self._state.selected_row()
        if chosen is not None and self._state.view is None:
            await self._state.open(chosen.approval.id)

    async def _back(self) -> None:
        self._state.close()

    async def _toggle_full(self) -> None:
        self._state.shows_full_values = not self._state.shows_full_values
        self._state.show_page(None)

    async def _help(self) -> None:
        self._state.shows_help = True

    async def _request_quit(self) -> None:
        self._quit = True

    # Prompts

    def _ask(self, prompt: BoardPrompt) -> None:
        self._state.prompt = prompt
        self._keys.clear()

    def _answer(self, prompt: BoardPrompt, key: str) -> None:
        match key:
            case "escape":
                self._end("Nothing was decided.")
            case "enter":
                self._submit(prompt)
            case "backspace":
                prompt.typed = prompt.typed[:-1]
            case _ if key in SCROLLS:
                self._state.offset += SCROLLS[key]
            case _:
                prompt.typed += key
                if prompt.is_single_key:
                    self._submit(prompt)

    def _submit(self, prompt: BoardPrompt) -> None:
        if prompt.expected and prompt.typed.strip().lower() != prompt.expected.lower():
            self._end("Nothing was decided.")
        elif self._decision_task is not None and not self._decision_task.done():
            self._end("One moment: the last decision is still on its way. Nothing else was decided.")
        else:
            self._end("On its way …")
            self._decision_task = asyncio.create_task(self._run_prompt(prompt, self._state.open_id()))

    def _end(self, note: str) -> None:
        self._state.prompt, self._state.page, self._state.note = None, None, note

    async def _run_prompt(self, prompt: BoardPrompt, approval_id: str) -> None:
        try:
            self._state.note = await prompt.on_answer(prompt.typed)
            if self._state.open_id() == approval_id:  # the person may have opened another card already
                self._state.close()
        except Error as error:
            self._state.note = error.message
        self._wake_event.set()

    @asynccontextmanager
    async def _suspend_screen(self) -> AsyncIterator[None]:
        """Leave screen and keyboard to another program."""
        self._live.stop()
        try:
            with self._keys.lent():
                yield
        finally:
            self._live.start()


async def stream(context: CommandContext) -> None:
    """Print pending approvals, then events until interrupted."""
    store, sweeper, said = context.services.store, BackgroundSweeper(context, lambda: None), ""
    async with store.watch(context.workspace) as watch:
        last = (await store.head(context.workspace)).seq
        await _print_all_waiting(context)
        while True:
            trouble = sweeper.error
            try:
                last = await _print_new_events(context, last)
                sweeper.step()
            except Error as error:
                trouble = error.message
            if trouble != said:
                _print_trouble(trouble)
                said = trouble
            await watch.wait(1.0)
            await asyncio.sleep(0)


async def _print_all_waiting(context: CommandContext) -> None:
    page = await context.services.inbox.list(context.workspace, ApprovalQuery(("pending",), limit=500))
    for stored in page.items:
        _print_waiting(context, stored)


async def _print_new_events(context: CommandContext, after: int) -> int:
    async for entries in context.services.store.entries(context.workspace, after):
        for entry in entries:
            await _print_event(context, entry)
            after = entry.seq
    return after


def _print_waiting(context: CommandContext, stored: Stored) -> None:
    approval, now = stored.approval, context.now()
    if context.json:
        head = {"seq": None, "at": rfc3339(now), "kind": "waiting", "approval_id": approval.id}
        print_json_line({**head, "approval": approval_item_json(stored, now)})
    else:
        _line(f"{rfc3339(now)}  {visible(short_id(approval.id)):8}  waiting{_about(stored)}")


async def _print_event(context: CommandContext, entry: Entry) -> None:
    stored = await _stored(context, entry.approval_id)
    if context.json:
        print_json_line(
            {**entry_json(entry), "approval": approval_item_json(stored, context.now()) if stored else None}
        )
    else:
        _line(event_line(entry) + (_about(stored) if stored else ""))


async def _stored(context: CommandContext, approval_id: str) -> Stored | None:
    try:
        return await context.services.store.get(context.workspace, approval_id) if approval_id else None
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


EDITOR_COMMAND = 'exec ${VISUAL:-${EDITOR:-vi}} "$0"'  # resolved by the shell, so that the environment is not read here


class DecisionActions:
    def __init__(
        self,
        state: WatchState,
        user: str,
        console: Console,
        ask: Callable[[BoardPrompt], None],
        suspend_screen: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        self._state = state
        self._context = state.context
        self._user = user
        self._console = console
        self._ask = ask
        self._suspend_screen = suspend_screen
        self._last_rejected_id = ""  # for undo

    async def approve(self) -> None:
        view = await self._open_selected()
        render_screen(self._state, self._console)  # updates the height of the card and how much of it was seen
        if self._state.lines_seen < self._state.height:
            self._state.note = "Read the card to its end first (Space), then press A."
            return
        alarms = _alarms(view.card.findings)
        body = {"kind": "approve", "acknowledged": [alarm.id for alarm in alarms]}
        self._confirm(view, f"Approve {visible(_tool(view))}?", body, alarms)

    async def reject(self) -> None:
        view = await self._open_selected()
        label = f"Reject {visible(_tool(view))}. Reason (Enter for none, Esc to go back):"
        self._ask(
            BoardPrompt(
                label=label,
                on_answer=lambda reason: self._decide(view, {"kind": "reject", "reason": reason}),
                expected="",
                args_sha256=_sha(view),
            )
        )

    async def respond(self) -> None:
        view = await self._open_selected()
        label = f"Answer instead of running {visible(_tool(view))} (Esc to go back):"
        self._ask(
            BoardPrompt(
                label=label, on_answer=lambda text: self._respond(view, text), expected="", args_sha256=_sha(view)
            )
        )

    async def edit(self) -> None:
        """Edit the arguments in an editor; the changes are shown before confirmation."""
        view = await self._open_selected()
        new_args = parse_json(await self._edit_in_editor(view))
        if not isinstance(new_args, Mapping):
            raise InvalidRequest("The arguments are an object. Nothing was decided.")
        changes = prompts.changes_between(shown_args(view.stored.payload), new_args)
        alarms = _alarms(prompts.findings_in(view, new_args))
        self._state.show_page(Group(changes, render_findings(alarms)))
        body = {"kind": "edit", "args": new_args, "acknowledged": [alarm.id for alarm in alarms]}
        self._confirm(view, f"Let {visible(_tool(view))} run with these changes?", body, alarms)

    async def undo(self) -> None:
        chosen = self._state.selected_row()
        selected = chosen.approval.id if chosen is not None and chosen.approval.status == "rejected" else ""
        target = selected or self._last_rejected_id
        if not target:
            raise Conflict("There is no rejection to undo.")
        workspace, inbox = self._context.workspace, self._context.services.inbox
        before = await self._context.services.store.get(workspace, target)
        after = await inbox.undo(workspace, target, await self._context.resolve_reviewer(self._user))
        self._state.note, self._last_rejected_id = decision_text(before.approval, after, self._context.now()), ""

    async def _open_selected(self) -> ApprovalDetails:
        """The open card; opens the selected one if none is open."""
        chosen = self._state.selected_row()
        if self._state.view is None and chosen is not None:
            await self._state.open(chosen.approval.id)
        view = self._state.view
        if view is None:
            raise Conflict("Nothing waits for a decision.")
        if view.status != "pending":
            raise Conflict(f"This is {view.status}: there is nothing left to decide.")
        return view

    def _confirm(self, view: ApprovalDetails, question: str, body: Mapping[str, object], alarms: list[Finding]) -> None:
        """Ask for confirmation: one key for a normal call; the tool's name for high risk or alarms."""

        async def act(_: str) -> str:
            return await self._decide(view, body)

        if view.card.risk != "high" and not alarms:
            self._ask(
                BoardPrompt(
                    label=f"{question} y/N", on_answer=act, expected="y", args_sha256=_sha(view), is_single_key=True
                )
            )
            return
        despite = f" Despite {pluralize(len(alarms), 'finding', 'findings')}:" if alarms else ""
        name = visible(_tool(view))  # in the form that is shown, so that it can be typed
        self._ask(
            BoardPrompt(label=f"{question}{despite} type {name}:", on_answer=act, expected=name, args_sha256=_sha(view))
        )

    async def _respond(self, view: ApprovalDetails, text: str) -> str:
        if not text.strip():
            return "Nothing was decided: there was no answer."
        data = prompts.parse_answer(view, text)
        said: dict[str, object] = {"message": text} if data is None else {"answer": data}
        return await self._decide(view, {"kind": "respond", **said})

    async def _decide(self, view: ApprovalDetails, body: Mapping[str, object]) -> str:
        before, context = view.stored.approval, self._context
        if body["kind"] == "edit":
            await load_current(context)  # an edit is evaluated under the current policy
        decision = read_decision({**body, "args_sha256": before.args_sha256})
        after = await context.services.inbox.decide(
            context.workspace, before.id, decision, await context.resolve_reviewer(self._user)
        )
        if after.status != "rejected":
            return decision_text(before, after, context.now())
        self._last_rejected_id = after.id
        left = duration_text((after.deadlines.release_at or context.now()) - context.now())
        return f"Rejected: {visible(_tool(view))} will not run. Z takes it back for {left}."

    async def _edit_in_editor(self, view: ApprovalDetails) -> bytes:
        """Edit as JSON in an editor; with alarms as ASCII, so that deceptive characters show as code points."""
        text = json.dumps(shown_args(view.stored.payload), indent=2, ensure_ascii=bool(_alarms(view.card.findings)))
        with tempfile.TemporaryDirectory(prefix="interlock-") as folder:
            file = Path(folder) / "args.json"
            file.write_text(text + "\n", encoding="utf-8")
            async with self._suspend_screen():
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
