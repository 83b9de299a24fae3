"""The command as a process of its own: for every group of commands the same as when a test calls it."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest
import typer

from interlock.cli import app
from tests.journeys.cli_in_process import ENDLESS_COMMANDS
from tests.journeys.seeds import NO_UNDO, propose_mail
from tests.journeys.shell import Shell

pytestmark = pytest.mark.smoke

SAID = {
    "approvals": ("list", "--status", "all", "--json"),
    "audit": ("verify", "--json"),
    "backup": ("copy.db",),
    "channels": ("list",),
    "deliveries": ("list", "--json"),
    "doctor": ("--config", "nowhere.yaml"),
    "erase": ("--thread", "t", "--dry-run"),
    "freeze": ("--tool", "send_mail"),
    "grants": ("add", "send_mail", "--for", "2y", "--reason", "x"),
    "keys": ("revoke", "ilk_nothing0"),
    "login": ("http://interlock.example",),
    "logout": (),
    "migrate": (),
    "policy": ("show", "--json"),
    "runs": ("list",),
    "tools": ("list",),
    "unfreeze": ("--tool", "send_mail", "--reason", "x"),
    "users": ("list",),
    "workspaces": ("add", "Acme"),
}


@pytest.fixture
async def office(shell: Shell) -> Shell:
    """With people, a policy, and a mail about which nothing changes any more."""
    approval_id = await propose_mail(shell, policy=NO_UNDO)
    shell("approvals", "reject", approval_id, "--reason", "no")
    shell("users", "add", "Çelik")
    (shell.folder / "copy.db").touch()
    return shell


def test_every_command_has_a_process_here_or_runs_until_it_is_told_to_stop() -> None:
    commands = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    elsewhere = {*ENDLESS_COMMANDS, "hook"}
    assert commands == {*SAID, *elsewhere}


@pytest.mark.parametrize("words", [(name, *rest) for name, rest in SAID.items()], ids=" ".join)
async def test_a_process_says_what_a_call_in_this_process_says(office: Shell, words: tuple[str, ...]) -> None:
    told = office.process(*words)
    assert told == office(*words)
    assert told.out + told.err


async def test_a_process_reads_what_comes_through_a_pipe(office: Shell) -> None:
    first, second = [await propose_mail(office, number) for number in (7, 8)]
    words, text = ("--args", "-"), '{"to": "Ömer"}'
    done = [
        office.process("approvals", "edit", first, *words, stdin=text),
        office("approvals", "edit", second, *words, stdin=text),
    ]
    assert [each.code for each in done] == [0, 0], done
    assert done[0].err == done[1].err == '- /to: "bob"\n+ /to: "Ömer"\n'


# What a call in this process leaves behind


async def test_a_call_leaves_nothing_changed_behind(office: Shell) -> None:
    def now() -> tuple[object, ...]:
        return dict(os.environ), Path.cwd(), sys.argv, sys.stdin, sys.stdout, sys.stderr, threading.active_count()

    before = now()
    assert office("audit", "verify").code == 0
    assert office("approvals", "frob").code == 2
    assert now() == before


def test_a_command_that_does_not_end_is_not_called_here(shell: Shell) -> None:
    for words in (("serve",), ("approvals", "watch"), ("runs", "resume", "flow:resume", "--agent", "mailer")):
        with pytest.raises(ValueError, match="until it is told to stop"):
            shell(*words)
