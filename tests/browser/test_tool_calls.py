"""Calls of thirty kinds of tools, each as a card and as a form: complete, readable, and within its screen.

With INTERLOCK_PICTURES the pictures are kept, to be looked at.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.card_page import card_on
from tests.browser.site import READY, Site, Visitors, run_site

CALLS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "tool_calls.json").read_text())
FOLDER = os.environ.get("INTERLOCK_PICTURES", "")
LOOKS: dict[str, dict[str, Any]] = {
    "wide": {"viewport": {"width": 1280, "height": 820}, "color_scheme": "light"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "has_touch": True, "is_mobile": True},
}
SHOWN = "all => all.map(each => [each.dataset.pointer, each.querySelector('[data-value]')?.textContent ?? null])"
TOO_WIDE = "(each) => each.scrollWidth - each.clientWidth"
PAGE_TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("calls")
    with run_site(f"sqlite:///{folder / 'interlock.db'}", folder) as made:
        rule = {"name": "Changes need a person", "tools": ["*"], "then": "ask", "expires_in": "1d"}
        made.put_policy({"version": 1, "rules": [rule]})
        yield made


@pytest.fixture(scope="module")
def proposed(site: Site) -> dict[str, str]:
    """Approval ids by tool. An admin has pinned all of them, so that their titles can be trusted."""
    agent = site.agent("assistant")
    for call in CALLS:
        site.propose(agent, **declared(call))
    for call in CALLS:
        answer = site.admin.post("/api/pins", json={"tool": call["tool"], "effect": call["effect"]})
        assert answer.status_code == 201, answer.text
    words = {"agent_says": "I was asked for this in the meeting."}
    return {call["tool"]: site.propose(agent, **declared(call), **words) for call in CALLS}


def declared(call: dict[str, Any]) -> dict[str, Any]:
    return dict(call)


@pytest.fixture
def visitors(browser: Any, site: Site) -> Iterator[Visitors]:
    made = Visitors(browser, site)
    yield made
    made.close()
    made.problems.check()


# R12 R53
@pytest.mark.parametrize("look", LOOKS)
def test_thirty_kinds_of_calls_are_shown_whole_and_edited_in_a_form(
    site: Site, proposed: dict[str, str], visitors: Visitors, look: str
) -> None:
    assert len(proposed) == len(CALLS) >= 30
    page = visitors.context(site.admin, **LOOKS[look]).new_page()
    for call in CALLS:
        check_card(site, page, call, proposed[call["tool"]], look)
        check_form(page, call, look)


def check_card(site: Site, page: Page, call: dict[str, Any], approval_id: str, look: str) -> None:
    page.goto(f"/a/{approval_id}")
    expect(page.locator(READY)).to_be_attached()
    card = card_on(page)
    assert page.evaluate(PAGE_TOO_WIDE) <= 0, call["tool"]
    assert card.evaluate(TOO_WIDE) <= 0, call["tool"]
    for name in ("approve", "reject"):
        expect(card.locator(f"[data-answer={name}]")).to_be_in_viewport(ratio=1)
    take_picture(page, f"card-{look}-{call['tool']}")
    shown = dict(card.locator("[data-pointer^='/']").evaluate_all(SHOWN))
    fields = site.approval(approval_id)["card"]["fields"]
    assert {pointer for pointer, text in shown.items() if text is None} <= diffs(card), call["tool"]
    for field in fields:
        if field["text"] and shown[field["pointer"]] is not None and not field["sha256"]:
            assert shown[field["pointer"]] == field["text"]


def check_form(page: Page, call: dict[str, Any], look: str) -> None:
    page.locator("[data-answer=edit]").click()
    editor = page.locator("[data-editor]")
    expect(editor.get_by_role("tab", name="Form")).to_be_in_viewport()
    expect(editor.get_by_role("status", name="Loading")).to_have_count(0)
    expect(editor.get_by_role("button", name="Approve with changes")).to_be_visible()
    expect(editor.locator("input, textarea, select").first).to_be_visible()
    take_picture(page, f"form-{look}-{call['tool']}")
    assert page.evaluate(PAGE_TOO_WIDE) <= 0, call["tool"]
    assert editor.evaluate(TOO_WIDE) <= 0, call["tool"]


def diffs(card: Locator) -> set[str]:
    found: list[str] = card.locator("[data-diff]").evaluate_all(
        "all => all.map(each => each.closest('[data-pointer]')?.dataset.pointer ?? '')"
    )
    return set(found)


def take_picture(page: Page, name: str) -> None:
    if FOLDER:
        page.evaluate("() => document.fonts.ready")
        page.screenshot(path=Path(FOLDER) / f"{name}.png", animations="disabled", caret="hide", full_page=True)
