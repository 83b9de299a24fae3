"""Keys on the card: what Enter may do, and what it never does."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.card_page import MAIL, card_on, expect_status, open_card
from tests.browser.site import Site, Visit

# Presses Enter at the very moment at which the card appears or changes
HASTE = """
() => {
  window.pressed = 0;
  new MutationObserver(() => {
    const card = document.querySelector("article[data-approval]:not([data-settled])");
    if (!card || card === document.body) return;
    card.focus();
    card.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    window.pressed += 1;
  }).observe(document, { subtree: true, childList: true, attributes: true });
}
"""


@pytest.mark.smoke
def test_enter_approves_a_card_that_has_the_focus_and_nothing_else_does(site: Site, visit: Visit) -> None:  # R14
    approval_id = site.propose(site.agent(), "send_mail", MAIL)
    card = open_card(visit, site.admin, approval_id)
    expect(card).not_to_be_focused()  # it never takes the focus
    card.page.keyboard.press("Enter")
    card.focus()
    for odd in ({"repeat": True}, {"isComposing": True}, {"keyCode": 229}, {"shiftKey": True}, {"ctrlKey": True}):
        _stroke(card, odd)
    card.get_by_text("Add a comment").click()
    card.get_by_label("Comment").press("Enter")
    card.get_by_role("button", name="Reject").click()
    card.focus()  # with something open Enter could be meant for that
    card.page.keyboard.press("Enter")
    card.get_by_label("Reason (optional)").press("Escape")
    card.focus()
    card.page.keyboard.press("ControlOrMeta+e")
    expect(card.get_by_label("Edit arguments")).to_be_visible()
    card.focus()
    card.page.keyboard.press("Enter")
    card.get_by_role("button", name="Close").press("Escape")
    expect(card.get_by_role("button", name="Approve", exact=True)).to_be_enabled()
    assert site.approval(approval_id)["status"] == "pending"
    card.focus()
    card.page.keyboard.press("Enter")
    expect_status(card, "approved")


def test_enter_is_too_early_when_the_card_appears_or_changes(site: Site, visit: Visit) -> None:  # R14 R53
    bot = site.agent()
    page = visit(site.admin, "/a/none")
    expect(page.get_by_text("Approval not found")).to_be_visible()
    approval_id = site.propose(bot, "send_mail", MAIL)
    page.evaluate(HASTE)
    page.evaluate("id => { history.pushState(null, '', `/a/${id}`); }", approval_id)
    card = card_on(page)
    site.person("eve").post(f"/api/approvals/{approval_id}/claim", json={})
    expect(card.locator("[data-claimed]")).to_be_visible()
    card_on(page)
    assert page.evaluate("window.pressed") >= 2
    assert site.approval(approval_id)["status"] == "pending"


def test_high_risk_is_held_for_a_second_or_its_name_is_typed(site: Site, visit: Visit) -> None:  # R14
    bot = site.agent()
    by_pointer, by_key, by_name = (site.propose(bot, "drop_page", {"page": n}, effect="destructive") for n in range(3))
    card = open_card(visit, site.admin, by_pointer)
    card.focus()
    card.page.keyboard.press("Enter")
    hold = card.get_by_role("button", name="Hold to approve")
    hold.click()  # too short: it says how it works
    expect(card.get_by_label("Type drop_page to approve")).to_be_visible()
    assert site.approval(by_pointer)["status"] == "pending"
    hold.hover()
    card.page.mouse.down()
    expect_status(card, "approved")
    card.page.mouse.up()

    card.page.goto(f"/a/{by_key}")
    card = card_on(card.page)
    card.get_by_role("button", name="Hold to approve").focus()
    card.page.keyboard.down("Enter")
    expect(card.locator("[data-holding]")).to_be_visible()
    card.page.keyboard.up("Enter")
    expect(card.locator("[data-holding]")).to_have_count(0)
    expect_status(card, "pending")
    card.page.keyboard.down("Enter")
    expect_status(card, "approved")
    card.page.keyboard.up("Enter")

    card.page.goto(f"/a/{by_name}")
    card = card_on(card.page)
    card.get_by_role("button", name="Hold to approve").click()
    typed = card.get_by_label("Type drop_page to approve")
    typed.fill("drop_pag")
    typed.press("Enter")
    expect_status(card, "pending")
    typed.fill("drop_page")
    typed.press("Enter")
    expect_status(card, "approved")


def _stroke(card: Locator, more: dict[str, Any]) -> None:
    card.evaluate(
        "(card, more) => card.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, ...more}))", more
    )
