"""`interlock approvals watch`: at a real pseudo-terminal with keys, and as a stream of lines."""

from __future__ import annotations

import asyncio
import html
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input

from interlock.app.bootstrap import wall_clock
from interlock.cli.context import CommandOptions, open_database
from interlock.cli.review import DatabaseReview
from interlock.cli.watch import LiveView
from interlock.core.decision import Acknowledgement, Reject, Reviewer
from tests.journeys.seeds import DECEIT, NO_MAIL_TO_EVE, propose_mail, propose_payment
from tests.journeys.shell import SOURCES, TIMEOUT, Shell, Terminal, wait_until
from tests.support import Clock, approve, open_services, propose_pending

KEYS = "A approve"


@contextmanager
def start_watch(shell: Shell, *words: str) -> Iterator[Terminal]:
    with shell.terminal("approvals", "watch", *words) as terminal:
        terminal.assert_shows("for a decision", KEYS)
        yield terminal


def show_approval(shell: Shell, approval_id: str) -> Any:
    return shell("approvals", "show", approval_id, "--json").json


# Keys


@pytest.mark.smoke
async def test_a_call_is_approved_with_keys_and_leaves_the_list(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    with start_watch(shell, "--user", "ada") as terminal:
        terminal.assert_shows("1 call waits", "Mail bob")
        terminal.press("a")
        terminal.assert_shows("Approve send_mail? y/N", '"bob"')
        terminal.press("y")
        terminal.assert_shows("0 calls wait", "approved by ada")
        terminal.assert_becomes(lambda screen: "Mail bob" not in screen, "the row to leave")
        terminal.press("q")
        assert terminal.exit_code() == 0
    body = show_approval(shell, approval_id)
    assert (body["status"], body["decision"]["by"], body["decision"]["via"]) == ("approved", "ada", "cli")


async def test_a_call_that_the_policy_denies_by_now_is_not_approved_with_keys(shell: Shell) -> None:
    approval_id = await propose_mail(shell, args={"to": "eve"})
    async with open_services(shell.path, Clock(wall_clock()), NO_MAIL_TO_EVE):
        pass
    with start_watch(shell) as terminal:
        terminal.press("a")
        terminal.assert_shows("Approve send_mail? y/N")
        terminal.press("y")
        terminal.assert_shows("denies this call")
    assert show_approval(shell, approval_id)["status"] == "pending"


async def test_any_other_key_than_y_approves_nothing(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    with start_watch(shell) as terminal:
        terminal.press("a")
        terminal.assert_shows("y/N")
        terminal.press("a")
        terminal.assert_shows("Nothing was decided.")
    assert show_approval(shell, approval_id)["status"] == "pending"


async def test_keys_typed_ahead_of_the_question_approve_nothing(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    with start_watch(shell) as terminal:
        terminal.press("ayayay")
        terminal.assert_shows("y/N")
        terminal.press("\x1b")
        terminal.assert_shows("Nothing was decided.")
    assert show_approval(shell, approval_id)["status"] == "pending"


async def test_a_key_that_arrives_late_answers_no_later_question(shell: Shell) -> None:
    await propose_mail(shell)
    async with open_database(CommandOptions(database=shell.url)) as context:
        view = LiveView(DatabaseReview(context), "ada")
        async with view.run_test(size=(120, 30)) as pilot:
            answer, early = view.query_one(Input), Key("y", "y")
            await becomes(pilot, lambda: "Mail bob" in exported(view))
            await pilot.press("a")
            await becomes(pilot, lambda: view.focused is answer)
            view.post_message(early)
            await pilot.press("left")  # handled after it
            assert view.focused is answer
            await pilot.press("y")
            await becomes(pilot, lambda: "Approved: send_mail" in exported(view))


async def becomes(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not holds():
            await pilot.pause(0.01)


def exported(view: LiveView) -> str:
    return html.unescape(view.export_screenshot()).replace("\xa0", " ")


async def test_a_call_of_high_risk_is_approved_by_the_name_of_its_tool(shell: Shell) -> None:
    approval_id = await propose_payment(shell, {"amount": 5})
    with start_watch(shell) as terminal:
        terminal.press("a")
        terminal.assert_shows("type pay:")
        terminal.press("y\r")
        terminal.assert_shows("Nothing was decided.")
        terminal.press("a")
        terminal.assert_shows("type pay:")
        terminal.press("pay\r")
        terminal.assert_shows("Approved: pay")
    assert show_approval(shell, approval_id)["status"] == "approved"


async def test_deceit_is_on_the_card_and_approved_only_by_name(shell: Shell) -> None:
    approval_id = await propose_mail(shell, args=DECEIT)
    with start_watch(shell) as terminal:
        terminal.press("a")
        screen = terminal.assert_shows("Despite 2 findings: type send_mail:", "U+202E")
        assert "\u202e" not in screen
        terminal.press("send_mail\r")
        terminal.assert_shows("Approved: send_mail")
    assert show_approval(shell, approval_id)["timeline"][-1]["content"]["acknowledged"] == ["bidi:/to", "lookalike:/to"]


async def test_a_card_that_is_longer_than_the_screen_is_read_to_its_end_first(shell: Shell) -> None:
    approval_id = await propose_mail(shell, args={f"line{number:02}": number for number in range(60)} | {"to": "bob"})
    with start_watch(shell) as terminal:
        terminal.press("a")
        terminal.assert_shows("Read the card to its end first", "more lines below")
        terminal.press("y")
        terminal.press("   ")
        terminal.assert_becomes(lambda screen: "more line" not in screen, "the end of the card")
        terminal.press("a")
        terminal.assert_shows("y/N")
        terminal.press("y")
        terminal.assert_shows("Approved")
    assert show_approval(shell, approval_id)["status"] == "approved"


@pytest.mark.smoke
async def test_a_call_is_rejected_with_a_reason_and_taken_back(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    with start_watch(shell) as terminal:
        terminal.press("r")
        terminal.assert_shows("Reason")
        terminal.press("not noww\x7f\r")
        terminal.assert_shows("Press Z within", "rejected by")
        terminal.press("z")
        terminal.assert_shows("Undone", "1 call waits")
        terminal.press("r")
        terminal.assert_shows("Reason")
        terminal.press("\r")
        terminal.assert_shows("Press Z within")
    body = show_approval(shell, approval_id)
    assert [entry["kind"] for entry in body["timeline"]] == ["proposed", "rejected", "undone", "rejected"]
    assert body["timeline"][1]["content"]["reason"] == "not now"


async def test_a_call_is_answered(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    with start_watch(shell) as terminal:
        terminal.press("c")
        terminal.assert_shows("Answer instead of running send_mail")
        terminal.press("ask Çelik\r")
        terminal.assert_shows("Answered")
    assert show_approval(shell, approval_id)["result"] == "ask Çelik"


async def test_a_call_is_edited_in_the_editor(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    editor = shell.folder / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/bob/carol/ "$1"\n')
    editor.chmod(0o755)
    shell.extra = {"EDITOR": str(editor)}
    with start_watch(shell) as terminal:
        terminal.press("e")
        terminal.assert_shows('- /to: "bob"', '+ /to: "carol"', "with these changes? y/N")
        terminal.press("y")
        terminal.assert_shows("Approved with your changes")
    assert show_approval(shell, approval_id)["args"] == {"to": "carol"}


async def start_long_edit(shell: Shell) -> str:
    """A call with a card of more than a screen, and an editor that changes each of its numbers."""
    editor = shell.folder / "editor"
    editor.write_text("""#!/bin/sh\nsed -i 's/: \\([0-9]\\)/: 1\\1/' "$1"\n""")
    editor.chmod(0o755)
    shell.extra = {"EDITOR": str(editor)}
    return await propose_mail(shell, args={f"line{number:02}": number for number in range(60)} | {"to": "bob"})


async def test_changes_that_are_longer_than_the_screen_are_read_to_their_end_first(shell: Shell) -> None:
    approval_id = await start_long_edit(shell)
    with start_watch(shell) as terminal:
        terminal.press("e")
        screen = terminal.assert_shows("- /line00: 0", "+ /line00: 10", "more lines below")
        assert "with these changes?" not in screen
        terminal.press("y")
        terminal.press("e")
        terminal.assert_shows("Read the changes to their end first")
        terminal.press(" " * 12)  # more than it takes
        terminal.assert_shows("+ /line59: 159", "with these changes? y/N")
        terminal.press(" y")
        terminal.assert_shows("Approved with your changes")
    assert show_approval(shell, approval_id)["args"]["line59"] == 159


async def test_who_read_the_changes_of_an_abandoned_edit_has_not_read_the_card(shell: Shell) -> None:
    approval_id = await start_long_edit(shell)
    with start_watch(shell) as terminal:
        terminal.press("e")
        terminal.assert_shows("more lines below")
        terminal.press(" " * 12)
        terminal.assert_shows("with these changes? y/N")
        terminal.press("\x1b")
        terminal.assert_shows("Nothing was decided.", "line00  number", "more lines below")
        terminal.press("a")
        terminal.assert_shows("Read the card to its end first")
    assert show_approval(shell, approval_id)["status"] == "pending"


async def test_changes_that_nobody_read_to_their_end_are_left_with_esc(shell: Shell) -> None:
    approval_id = await start_long_edit(shell)
    with start_watch(shell) as terminal:
        terminal.press("e")
        terminal.assert_shows("+ /line00: 10", "more lines below")
        terminal.press("\x1b")
        terminal.assert_shows("Nothing was decided.", "line00  number")
    assert show_approval(shell, approval_id)["status"] == "pending"


async def test_the_selection_moves_and_cards_open_and_close(shell: Shell) -> None:
    first = await propose_mail(shell, 1, ago=1_000)
    second = await propose_mail(shell, 2, args={"to": "carol"})
    with start_watch(shell) as terminal:
        terminal.assert_shows(f"> {first[-8:]}")
        terminal.press("j")
        terminal.assert_shows(f"> {second[-8:]}")
        terminal.press("\r")
        terminal.assert_shows('"carol"', "Timeline")
        terminal.press("\x1b")
        terminal.assert_shows(f"> {second[-8:]}")
        terminal.press("\x1b[A")
        terminal.assert_shows(f"> {first[-8:]}")
        terminal.press("?")
        terminal.assert_shows("this help")


async def test_z_and_a_with_nothing_there_say_so(shell: Shell) -> None:
    shell("migrate")
    with start_watch(shell) as terminal:
        terminal.assert_shows("No approvals are pending.")
        terminal.press("z")
        terminal.assert_shows("There is no rejection to undo.")
        terminal.press("a")
        terminal.assert_becomes(lambda screen: screen.count("No approvals are pending.") == 2, "a line about it")


# What others do


async def test_new_calls_appear_and_the_decisions_of_others_show_who_decided(shell: Shell) -> None:
    shell("migrate")
    with start_watch(shell) as terminal:
        async with open_services(shell.path, Clock(wall_clock())) as services:
            approval_id = await propose_pending(services)
            terminal.assert_shows("1 call waits", approval_id[-8:])
            await approve(services, approval_id)
            terminal.assert_shows("0 calls wait", "approved by bob")


async def test_a_question_is_withdrawn_when_somebody_else_decides(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    with start_watch(shell) as terminal:
        terminal.press("a")
        terminal.assert_shows("y/N")
        async with open_services(shell.path, Clock(wall_clock())) as services:
            seen = Acknowledgement((await services.store.get("default", approval_id)).approval.args_sha256)
            await services.inbox.decide(
                "default", approval_id, Reject("", seen), Reviewer("eve", "reviewer", via="test")
            )
        terminal.assert_shows("Nothing was decided: the call changed")
        terminal.press("y")
    assert show_approval(shell, approval_id)["decision"]["by"] == "eve"


async def test_a_call_that_expires_leaves_the_list(shell: Shell) -> None:
    shell("migrate")
    with start_watch(shell) as terminal:
        await propose_mail(shell, expires_in=1_000)
        terminal.assert_shows("0 calls wait", "expired")


# Trouble


async def test_a_locked_database_gives_a_line_and_the_view_goes_on(shell: Shell) -> None:
    await propose_mail(shell, 1)
    with closing(sqlite3.connect(shell.path, isolation_level=None)) as other, start_watch(shell) as terminal:
        await propose_mail(shell, 2, expires_in=3_000)
        other.execute("begin immediate")
        terminal.assert_shows("locked by another program", "1 call waits")
        terminal.press("?")
        terminal.assert_shows("this help")
        other.execute("rollback")
        terminal.assert_becomes(lambda screen: "locked" not in screen, "the line to go")


async def test_a_database_that_is_gone_for_a_moment_gives_a_line(shell: Shell) -> None:
    await propose_mail(shell)
    with start_watch(shell) as terminal:
        terminal.assert_shows("1 call waits")
        os.rename(shell.path, shell.folder / "elsewhere.db")
        terminal.assert_shows("is gone or was replaced", "Mail bob")
        os.rename(shell.folder / "elsewhere.db", shell.path)
        terminal.assert_becomes(lambda screen: "is gone" not in screen, "the line to go")


class SlowDatabase:
    """Holds a method of a service back until it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, service: object, name: str) -> None:
        self._method, self._released = getattr(service, name), asyncio.Event()
        self.asked = 0
        monkeypatch.setattr(service, name, self._wait)

    async def _wait(self, *args: Any) -> Any:
        self.asked += 1
        await asyncio.wait_for(self._released.wait(), TIMEOUT)
        return await self._method(*args)

    def release(self) -> None:
        self._released.set()


async def test_ctrl_c_ends_it_while_a_decision_waits_for_the_database(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    await propose_mail(shell)
    async with open_database(CommandOptions(database=shell.url)) as context:
        view = LiveView(DatabaseReview(context), "ada")
        async with view.run_test(size=(120, 30)) as pilot:
            await becomes(pilot, lambda: "Mail bob" in exported(view))
            database = SlowDatabase(monkeypatch, context.services.inbox, "show")
            await pilot.press("a")
            await becomes(pilot, lambda: database.asked == 1)
            await pilot.press("q")  # typed ahead
            assert view.signal == 0
            await pilot.press("ctrl+c")
        assert view.signal == signal.SIGINT
        assert view.failure is None


async def test_keys_work_while_an_undo_waits_for_the_database(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    approval_id = await propose_mail(shell)
    async with open_database(CommandOptions(database=shell.url)) as context:
        view = LiveView(DatabaseReview(context), "ada")
        async with view.run_test(size=(120, 30)) as pilot:
            await becomes(pilot, lambda: "Mail bob" in exported(view))
            await pilot.press("r")
            await becomes(pilot, lambda: view.focused is view.query_one(Input))
            await pilot.press("enter")
            await becomes(pilot, lambda: "Press Z within" in exported(view))
            database = SlowDatabase(monkeypatch, context.services.inbox, "undo")
            await pilot.press("z")
            await becomes(pilot, lambda: "Sending" in exported(view) and database.asked == 1)
            await pilot.press("z")
            await becomes(pilot, lambda: "still being sent" in exported(view))
            await pilot.press("question_mark")
            await becomes(pilot, lambda: "this help" in exported(view))
            database.release()
            await becomes(pilot, lambda: "Undone" in exported(view))
            assert database.asked == 1
    assert show_approval(shell, approval_id)["status"] == "pending"


async def test_keys_work_while_a_card_waits_for_the_database(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await propose_mail(shell, 1, ago=1_000)
    second = await propose_mail(shell, 2, args={"to": "carol"})
    async with open_database(CommandOptions(database=shell.url)) as context:
        view = LiveView(DatabaseReview(context), "ada")
        async with view.run_test(size=(120, 30)) as pilot:
            await becomes(pilot, lambda: f"> {first[-8:]}" in exported(view))
            database = SlowDatabase(monkeypatch, context.services.inbox, "show")
            await pilot.press("enter")
            await becomes(pilot, lambda: database.asked == 1)
            await pilot.press("j")
            await becomes(pilot, lambda: f"> {second[-8:]}" in exported(view))
            await pilot.press("enter")
            await becomes(pilot, lambda: database.asked == 2)
            database.release()
            await becomes(pilot, lambda: "Timeline" in exported(view))
            assert '"carol"' in exported(view)


@pytest.mark.smoke
async def test_ctrl_c_ends_quietly_and_gives_the_terminal_back(shell: Shell) -> None:
    await propose_mail(shell)
    with start_watch(shell) as terminal:
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.exit_code() == 130
        assert "Traceback" not in terminal.screen()
        assert terminal.is_restored()


@pytest.mark.parametrize(
    ("end", "code"), [(lambda t: t.press("\x03"), 130), (lambda t: t.process.send_signal(signal.SIGTERM), 143)]
)
async def test_a_question_that_is_open_keeps_nobody_from_ending_it(
    shell: Shell, end: Callable[[Terminal], None], code: int
) -> None:
    approval_id = await propose_mail(shell)
    with start_watch(shell) as terminal:
        assert not terminal.is_restored()
        terminal.press("r")
        terminal.assert_shows("Reason")
        end(terminal)
        assert terminal.exit_code() == code
        assert terminal.is_restored()
    assert show_approval(shell, approval_id)["status"] == "pending"


@pytest.mark.parametrize(
    ("module", "text"),
    [("__init__", "raise ModuleNotFoundError('', name='textual')\n"), ("app", "class App: ...\n")],
    ids=["missing", "too old"],
)
async def test_without_its_package_the_live_list_names_the_extra(shell: Shell, module: str, text: str) -> None:
    shell("migrate")
    (shell.folder / "textual").mkdir()
    (shell.folder / "textual" / "__init__.py").touch()
    (shell.folder / "textual" / f"{module}.py").write_text(text)
    shell.extra = {"PYTHONPATH": os.pathsep.join([str(shell.folder), str(SOURCES)])}
    with shell.terminal("approvals", "watch") as terminal:
        assert terminal.exit_code() == 2
        wanted = "textual is not installed, or its version is not supported: pip install 'interlock-gate[terminal]'"
        assert wanted in terminal.screen()


BROKEN = """
from interlock.__main__ import main
from interlock.cli import watch

async def load(self):
    password = "a secret " + "value"
    raise RuntimeError("unexpected")

watch.PendingList.load = load
main()
"""


async def test_an_unexpected_error_ends_it_without_the_values_of_variables(shell: Shell) -> None:
    shell("migrate")
    command = [sys.executable, "-c", BROKEN, "approvals", "watch"]
    terminal = Terminal(command, {**shell.env(), "TERM": "xterm-256color"}, shell.folder)
    try:
        assert terminal.exit_code() == 1
        assert terminal.is_restored()
        assert "RuntimeError: unexpected" in terminal.screen()
        assert b"a secret value" not in terminal.written
    finally:
        terminal.close()


# Asking at the terminal


@pytest.mark.parametrize(("key", "code", "status"), [("y\r", 0, "approved"), ("n\r", 1, "pending")])
async def test_approve_shows_the_card_and_asks(shell: Shell, key: str, code: int, status: str) -> None:
    approval_id = await propose_mail(shell)
    with shell.terminal("approvals", "approve", approval_id) as terminal:
        terminal.assert_shows("Mail bob", "Arguments", "Approve this call? [y/N]")
        terminal.press(key)
        assert terminal.exit_code() == code
    assert show_approval(shell, approval_id)["status"] == status


async def test_approve_asks_about_each_alarm(shell: Shell) -> None:
    approval_id = await propose_mail(shell, args=DECEIT)
    with shell.terminal("approvals", "approve", approval_id) as terminal:
        for times in (1, 2):
            terminal.assert_becomes(lambda screen, n=times: screen.count("Have you reviewed this") == n, "the question")
            terminal.press("y\r")
        terminal.assert_shows("Approve this call?")
        terminal.press("y\r")
        assert terminal.exit_code() == 0
    assert show_approval(shell, approval_id)["status"] == "approved"


# Lines


@pytest.mark.smoke
async def test_once_prints_what_waits_and_ends(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    assert approval_id[-8:] in shell("approvals", "watch", "--once").out
    assert shell("approvals", "watch", "--once", "--json").json["items"][0]["id"] == approval_id


@pytest.mark.smoke
@pytest.mark.parametrize("words", [(), ("--json",)])
async def test_off_a_terminal_every_event_is_a_line(shell: Shell, words: tuple[str, ...]) -> None:
    before = await propose_mail(shell, 1, args=DECEIT)
    log, errors = shell.folder / "log", shell.folder / "errors"
    with log.open("wb") as out, errors.open("wb") as err:
        process = shell.start("approvals", "watch", *words, out=out, err=err)
    wait_until(lambda: "waiting" in log.read_text(), "what waits already was told")
    after = await propose_mail(shell, 2)
    shell("approvals", "reject", after, "--reason", "no")
    wait_until(lambda: "rejected" in log.read_text(), "the rejection was told")
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT) == 130
    assert errors.read_text() == ""
    told = log.read_text()
    assert "\u202e" not in told
    kinds = [_kind(line) for line in told.splitlines()]
    assert kinds == [("waiting", before[-8:]), ("proposed", after[-8:]), ("rejected", after[-8:])]


def _kind(line: str) -> tuple[str, str]:
    if line.startswith("{"):
        body = json.loads(line)
        return body["kind"], body["approval_id"][-8:]
    _, short, kind = line.split("  ")[:3]
    return kind, short
