"""Versions of previews: a change is about exactly the items that people saw, or it is refused."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from interlock.core.canonical import canonical, digest
from interlock.core.errors import CallWouldFail, ToolFailed
from interlock.core.ports import ToolItem
from interlock.core.preview import MAX_VERSION, FindDigest, Preview, ShownItems, items_version, to_preview

ABOUT = ToolItem("about", {"title": "About", "status": "draft"}, 1)
TEAM = ToolItem("team", {"title": "The team", "status": "draft"}, 1)


def found_in(**kinds: list[ToolItem]) -> FindDigest:
    known = {(kind, item.id): digest(canonical(item.body)) for kind, items in kinds.items() for item in items}
    return lambda kind, item_id: known.get((kind, item_id))


def test_a_preview_reads_as_its_text() -> None:  # R45
    assert str(Preview("3 rows")) == "3 rows"
    assert Preview("3 rows").version == ""
    assert Preview("3 rows", "x" * MAX_VERSION).version == "x" * MAX_VERSION


TOO_LONG = (
    "The preview version of this call has 32,769 characters or more; at most 32,768 are stored. Propose the change for "
    "fewer items at a time."
)
UNFIT = "The version that the preview of this tool gives cannot be stored."
NO_TEXT = "The preview of this tool is wrong: its text and its version have to be texts."


@pytest.mark.parametrize(
    ("version", "said"),
    [("x" * (MAX_VERSION + 1), TOO_LONG), ("a\0b", UNFIT), ("\ud800", UNFIT), (7, NO_TEXT), (None, NO_TEXT)],
)
def test_a_call_whose_version_cannot_be_stored_is_refused(version: object, said: str) -> None:  # R45
    with pytest.raises(CallWouldFail) as refused:
        Preview("3 rows", version)  # type: ignore[arg-type]  # a pack from outside
    assert refused.value.message == said


def test_what_a_tool_s_preview_returns_is_a_text_or_a_preview() -> None:  # R45, R64
    assert [to_preview(made) for made in ("3 rows", Preview("3 rows", "7"), 3)] == [
        Preview("3 rows"),
        Preview("3 rows", "7"),
        Preview("3"),
    ]
    with pytest.raises(CallWouldFail) as refused:
        to_preview(("3 rows", "version 7"))  # a forgotten Preview: the version would not be compared
    assert refused.value.message == (
        "The preview of this tool returned a tuple. It has to return a text, or Preview(text, version)."
    )


def test_a_call_whose_preview_is_no_text_is_refused() -> None:  # R45
    with pytest.raises(CallWouldFail) as refused:
        Preview(3, "version 1")  # type: ignore[arg-type]  # a pack from outside
    assert refused.value.message == NO_TEXT


@pytest.mark.parametrize("count", [1_000, 12_000])  # the second would be larger than any JSON that is accepted
def test_a_call_about_too_many_items_for_a_version_is_refused(count: int) -> None:  # R45
    with pytest.raises(CallWouldFail, match="fewer items at a time"):
        items_version({"page": [ToolItem(f"page-{number}", {}, 1) for number in range(count)]})


def test_a_version_depends_on_the_body_and_the_id_and_not_on_the_time_of_the_change() -> None:  # R45
    version = items_version({"page": [ABOUT]})
    assert items_version({"page": [ABOUT._replace(at=99)]}) == version
    assert items_version({"page": [ToolItem("about", {"status": "draft", "title": "About"}, 1)]}) == version
    others: list[Mapping[str, list[ToolItem]]] = [
        {"page": [ABOUT._replace(body={**ABOUT.body, "status": "published"})]},
        {"page": [ABOUT._replace(id="about-us")]},
        {"post": [ABOUT]},
        {"page": [ABOUT, TEAM]},
        {"page": [ABOUT], "post": []},
        {},
    ]
    assert len({version, *map(items_version, others)}) == len(others) + 1


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (
            [ABOUT._replace(body={"title": "We"}), TEAM],
            "Page 'about' was changed after this call was shown to people. Nothing was done. Read it again and propose "
            "the change again.",
        ),
        (
            [ABOUT],
            "Page 'team' was deleted after this call was shown to people. Nothing was done: there is nothing left to "
            "change.",
        ),
    ],
)
def test_unchanged_items_pass_and_one_that_is_different_by_now_is_named(now: list[ToolItem], words: str) -> None:  # R45
    shown = ShownItems(items_version({"page": [ABOUT, TEAM], "post": []}))
    shown.check_unchanged(found_in(page=[TEAM._replace(at=5), ABOUT], post=[ABOUT]))
    with pytest.raises(ToolFailed) as raised:
        shown.check_unchanged(found_in(page=now))
    assert raised.value.message == words


def test_only_items_that_were_shown_are_changed_of_the_kinds_that_were() -> None:  # R45
    there = found_in(page=[ABOUT, TEAM], key_result=[ABOUT], page_views=[TEAM])
    shown = ShownItems(items_version({"page": [ABOUT], "key_result": []}))
    shown.check_shown("page", "about", there)
    shown.check_shown("page", "new", there)  # one that is created
    shown.check_shown("page_views", "team", there)  # of a kind that the preview says nothing about
    for kind, item_id, label in (("page", "team", "Page 'team'"), ("key_result", "about", "Key result 'about'")):
        with pytest.raises(ToolFailed, match=f"{label} was not shown to people with this call"):
            shown.check_shown(kind, item_id, there)


@pytest.mark.parametrize("version", ["an etag", "7", "[]", '{"page":"about"}', "{", "[" * 30_000])
def test_a_version_that_cannot_be_read_fails_closed(version: str) -> None:  # R45
    with pytest.raises(ToolFailed, match="cannot be read"):
        ShownItems(version)
