"""Differences of stored items: readable, and cheap whatever the texts are."""

from __future__ import annotations

import pytest

from interlock.chat.item_tools import MAX_COMPARED_LINES, MAX_COMPARED_NAMES, item_diff, missing_item


def test_parts_of_an_item_are_shown_line_by_line() -> None:  # R45
    old = {"title": "About", "sections": [{"id": "team", "heading": "Team", "body": "We are\nnine."}]}
    new = {"title": "About", "sections": [{"id": "team", "heading": "Us", "body": "We are\nten."}]}
    assert item_diff(old, new).splitlines()[3:] == [
        " title: About",
        " sections:",
        "   - id: team",
        "-    heading: Team",
        "+    heading: Us",
        "     body: We are",
        "-        nine.",
        "+        ten.",
    ]


def test_a_change_in_a_long_text_shows_only_the_change() -> None:  # R45
    lines = [f"line {number}" for number in range(50_000)]
    changed = [*lines[:30_000], "other", *lines[30_001:]]
    diff = item_diff({"body": "\n".join(lines)}, {"body": "\n".join(changed)})
    assert diff.splitlines()[2:] == ["@@ -1 +1 @@", "-    line 30000", "+    other"]


def test_two_long_texts_are_not_compared_line_by_line() -> None:  # R45
    """Comparing takes up to the third power of the number of lines: this would take minutes."""
    size = 20_000
    old, new = ("\n".join(text[number % 7] for number in range(size)) for text in ("abcdefg", "bgfedca"))
    diff = item_diff({"body": old}, {"body": new}).splitlines()
    assert len(diff) > size > MAX_COMPARED_LINES
    assert {line[0] for line in diff[2:]} == {"-", "+"}
    assert item_diff({"body": old}, {"body": old}) == "Nothing would change."


@pytest.mark.parametrize("text", ["a\u2028b", "a\x1cb", "a\x0bb", "a\r\nb", "a\nb\n"])
def test_another_line_break_is_a_change(text: str) -> None:  # R45
    assert item_diff({"body": "a\nb"}, {"body": text}) != "Nothing would change."


def test_a_missing_name_is_compared_with_the_beginnings_of_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model can name things that are not there as often as it likes."""
    compared: list[tuple[str, list[str]]] = []

    def compare(sought: str, names: dict[str, str], *_: object) -> list[str]:
        compared.append((sought, list(names)))
        return []

    monkeypatch.setattr("interlock.chat.item_tools.get_close_matches", compare)
    known = [f"{number:03}" + "x" * 195 for number in range(MAX_COMPARED_NAMES + 50)]
    assert "There is no post" in missing_item("post", "y" * 198, known, "cms_list_posts").message
    [(sought, names)] = compared
    assert (len(sought), len(names), {len(name) for name in names}) == (40, MAX_COMPARED_NAMES, {40})
