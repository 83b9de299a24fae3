"""What an edit changes, as the command line shows it before a person agrees."""

import pytest
from rich.console import Console

from interlock.cli.prompts import changes_between
from interlock.core.errors import InvalidRequest


def shown(before: dict[str, object], after: dict[str, object]) -> list[str]:
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(changes_between(before, after))
    return captured.get().splitlines()


def test_texts_are_escaped_once_as_on_the_card() -> None:  # R53
    changed = shown({"body": 'say "hi"\n\tC:\\x'}, {"body": "in\u202evoice"})
    assert changed == [r'- /body: "say \"hi\"\n\tC:\\x"', r'+ /body: "in\u{202e}voice"']


def test_a_member_that_comes_or_goes_is_shown_whole() -> None:
    changed = shown({"to": ["a\nb", {"n": 1.5}]}, {"to": ["a\nb", {"n": 1.5}], "cc": {"x": [None, True, 'q"']}})
    assert changed == [r'+ /cc: {"x": [null, true, "q\""]}']


def test_texts_that_differ_never_look_the_same() -> None:
    spelled = {shown({}, {"a": text})[0] for text in ("\n", "\\n", '"', '\\"', "\u202e", "\\u{202e}", "1")}
    assert len(spelled | set(shown({}, {"a": 1}))) == 8


def test_an_edit_without_a_change_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="unchanged"):
        shown({"a": 1}, {"a": 1})
