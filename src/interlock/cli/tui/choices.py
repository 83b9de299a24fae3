"""What a person can decide in the live view. Each decision is about the card that was on the screen."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from rich.console import Console, Group

from interlock.app.inbox import ApprovalDetails
from interlock.cli import prompts
from interlock.cli.cards import render_findings
from interlock.cli.commands.decide import decision_text
from interlock.cli.output import duration_text
from interlock.cli.policy_in_force import load_current
from interlock.cli.tui.board import BoardPrompt, WatchState
from interlock.cli.tui.screen import render_screen
from interlock.core.canonical import parse_json
from interlock.core.card import Finding, visible
from interlock.core.decision import read_decision
from interlock.core.errors import Conflict, InvalidRequest
from interlock.presenters.approval import shown_args
from interlock.presenters.text import pluralize

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
            BoardPrompt(label, lambda reason: self._decide(view, {"kind": "reject", "reason": reason}), "", _sha(view))
        )

    async def respond(self) -> None:
        view = await self._before_them()
        label = f"Answer instead of running {visible(_tool(view))} (Esc to go back):"
        self._ask(BoardPrompt(label, lambda text: self._said(view, text), "", _sha(view)))

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
            self._ask(BoardPrompt(f"{question} y/N", act, "y", _sha(view), key=True))
            return
        despite = f" Despite {pluralize(len(alarms), 'finding', 'findings')}:" if alarms else ""
        name = visible(_tool(view))  # as it is shown is how it can be typed
        self._ask(BoardPrompt(f"{question}{despite} type {name}:", act, name, _sha(view)))

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
