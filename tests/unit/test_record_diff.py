"""Differences of stored items: readable, and cheap whatever the texts are."""

from __future__ import annotations

from interlock.chat.record_tools import MAX_COMPARED_LINES, record_diff


def test_parts_of_an_item_are_shown_line_by_line() -> None:  # R45
    old = {"title": "About", "sections": [{"id": "team", "heading": "Team", "body": "We are\nnine."}]}
    new = {"title": "About", "sections": [{"id": "team", "heading": "Us", "body": "We are\nten."}]}
    assert record_diff(old, new).splitlines()[3:] == [
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
    diff = record_diff({"body": "\n".join(lines)}, {"body": "\n".join(changed)})
    assert diff.splitlines()[2:] == ["@@ -1 +1 @@", "-    line 30000", "+    other"]


def test_two_long_texts_are_not_compared_line_by_line() -> None:  # R45
    """Comparing takes up to the third power of the number of lines: this would take minutes."""
    size = 20_000
    old, new = ("\n".join(text[number % 7] for number in range(size)) for text in ("abcdefg", "bgfedca"))
    diff = record_diff({"body": old}, {"body": new}).splitlines()
    assert len(diff) > size > MAX_COMPARED_LINES
    assert {line[0] for line in diff[2:]} == {"-", "+"}
    assert record_diff({"body": old}, {"body": old}) == "Nothing would change."
