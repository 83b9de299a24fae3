"""Options of `interlock hook`: its own fast parser agrees with that of the other commands."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import typer

from interlock.cli import app
from interlock.cli.commands.hook import HookCommandOptions, parse_options


def test_options_are_read() -> None:
    words = ["--reads", "Read,Glob", "--wait=20s", "--pass-reads", "--notes", "notes", "--database", "sqlite:///a.db"]
    want = HookCommandOptions(
        database="sqlite:///a.db", reads="Read,Glob", wait="20s", pass_reads=True, notes=Path("notes")
    )
    assert parse_options(words) == want
    assert parse_options([]) == HookCommandOptions()


@pytest.mark.parametrize(
    "words",
    [["--help"], ["--json"], ["extra"], ["--wait"], ["--wait", "--reads"], ["--pass-reads=yes"], ["--reads", "a\nb"]],
)
def test_what_is_not_plain_is_left_to_the_parser_of_all_commands(words: list[str]) -> None:
    assert parse_options(words) is None


def test_both_know_the_same_options_with_the_same_defaults() -> None:
    command = typer.main.get_group(app).commands["hook"]
    ours = {each.name: each.default for each in dataclasses.fields(HookCommandOptions)}
    theirs = {each.name: each.default for each in command.params if each.name not in ("json", "help")}
    assert theirs == ours


@pytest.mark.parametrize("name", ["hook", "mcp-gate"])
def test_commands_that_read_nothing_from_the_working_folder_do_not_say_that_they_do(name: str) -> None:
    shown = [str(each.show_default) for each in typer.main.get_group(app).commands[name].params]
    assert not [each for each in shown if "sqlite:///interlock.db" in each or "here" in each]
    assert [each for each in shown if "~/.config/interlock/interlock.yaml" in each]
    others = [str(each.show_default) for each in typer.main.get_group(app).commands["serve"].params]
    assert "interlock.yaml in the working folder, if any" in others
