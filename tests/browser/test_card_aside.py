"""What stands beside the card: the agent to ask, what happened, other people; and that no typed word is lost."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.card_page import MAIL, card_on, expect_status, open_card
from tests.browser.site import Site, Visit
from tests.browser.test_editor import field, open_editor
from tests.browser.test_inbox import expect_open, open_inbox, press_next

SIZES: dict[str, dict[str, Any]] = {
    "narrow": {"viewport": {"width": 1200, "height": 800}},
    "wide": {"viewport": {"width": 1440, "height": 900}},
}
ACTIONS = ("Claim", "Create a grant", "Open in the history", "Copy link")


def beside(card: Locator) -> Locator:
    return card.get_by_role("group", name="Activity and other actions")


# R40 R55
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("place", ["inbox", "page"])
def test_what_else_one_may_do_is_beside_the_card(site: Site, visit: Visit, place: str, size: str) -> None:
    site.person("bob")
    approval_id = site.propose(site.agent(), "send_mail", MAIL)
    path = f"/inbox?id={approval_id}" if place == "inbox" else f"/a/{approval_id}"
    card = card_on(visit(site.admin, path, **SIZES[size]))
    aside = beside(card)
    for label in ("Ask the agent", "Note for other people", "Delegate to"):
        expect(aside.get_by_label(label)).to_be_in_viewport(ratio=1)
    for name in ACTIONS:
        expect(aside.get_by_text(name, exact=True)).to_be_in_viewport(ratio=1)
    expect(aside.get_by_role("list", name="Activity")).to_contain_text("Waiting for a decision")
    expect(aside.get_by_role("list", name="Activity")).to_contain_text("bot asked to run it")
    approve, claim = card.get_by_role("button", name="Approve"), aside.get_by_text("Claim", exact=True)
    left, right = approve.bounding_box(), claim.bounding_box()
    assert left
    assert right
    assert left["x"] + left["width"] <= right["x"]
    expect(card.get_by_text("More", exact=True)).to_have_count(0)
    assert card.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# R40 R55
def test_where_there_is_no_room_it_is_folded_below_the_arguments(site: Site, visit: Visit) -> None:
    approval_id = site.propose(site.agent(), "send_mail", MAIL)
    card = open_card(visit, site.admin, approval_id, viewport={"width": 1024, "height": 700})
    expect(beside(card)).to_have_count(0)
    card.get_by_text("More", exact=True).click()
    card.get_by_label("Note for other people").fill("I know her.")
    card.get_by_label("Note for other people").press("Enter")
    expect(card.locator("[data-remark]")).to_have_count(1)
    expect(card.locator("[data-remark]")).to_contain_text("I know her.")
    for name in ACTIONS:
        expect(card.get_by_text(name, exact=True)).to_be_visible()


# R12
def test_changes_are_shown_beside_the_form_while_they_are_made(site: Site, visit: Visit) -> None:
    approval_id = site.propose(site.agent(), "send_mail", MAIL)
    page = visit(site.admin, f"/inbox?id={approval_id}", viewport={"width": 1440, "height": 900})
    card = card_on(page)
    editor = open_editor(page)
    expect(beside(card)).to_contain_text("No changes.")
    field(editor, "subject").fill("Bye")
    expect(beside(card)).to_contain_text("1 change")
    expect(beside(card).locator("del")).to_have_text('"Hello"')
    expect(beside(card).locator("ins")).to_have_text('"Bye"')
    beside(card).get_by_role("button", name="Reset all").click()
    expect(field(editor, "subject")).to_have_value("Hello")
    field(editor, "subject").press("Escape")
    expect(beside(card).get_by_label("Ask the agent")).to_be_visible()


# R14 R36
def test_no_typed_word_is_lost_on_the_way_through_the_inbox(site: Site, visit: Visit) -> None:
    bot = site.agent()
    ids = [site.propose(bot, "send_mail", {"to": f"user{n}"}, expires_in=f"{600 + 60 * n}s") for n in range(2)]
    page = open_inbox(visit, site.admin)
    press_next(page, ids[0])
    card = page.locator("article")
    card.get_by_text("Add a comment").click()
    card.get_by_label("Comment", exact=True).fill("As agreed")
    card.get_by_label("Note for other people").fill("I know them")
    card.focus()
    page.keyboard.press("c")
    card.get_by_label("Message to the agent").fill("Ask Zoe\nfirst")
    page.keyboard.press("Escape")
    press_next(page, ids[1])
    page.keyboard.press("c")
    expect(card.get_by_label("Message to the agent")).to_have_value("")
    page.keyboard.press("Escape")
    page.reload()
    page.goto(f"/inbox?id={ids[0]}")
    card = card_on(page)
    expect(card.get_by_label("Comment", exact=True)).to_have_value("As agreed")  # open, since it would be sent
    expect(card.get_by_label("Comment", exact=True)).to_be_visible()
    expect(card.get_by_label("Note for other people")).to_have_value("I know them")
    card.focus()
    page.keyboard.press("c")
    expect(card.get_by_label("Message to the agent")).to_have_value("Ask Zoe\nfirst")
    page.keyboard.press("ControlOrMeta+Enter")
    expect_open(page, ids[1])
    assert site.approval(ids[0])["status"] == "responded"
    assert bot.get(f"/api/calls/{ids[0]}").json()["message"] == "Ask Zoe\nfirst"


# R14 R37
def test_a_question_is_answered_by_keys_alone(site: Site, visit: Visit) -> None:
    bot = site.agent()
    body = {"question": "Which colour?", "choices": ["red", "blue"], "run_id": "run", "call_id": "question"}
    asked = str(bot.post("/api/questions", json=body).json()["approval_id"])
    page = open_inbox(visit, site.admin, f"/inbox?id={asked}")
    card = card_on(page)
    page.keyboard.press("c")
    expect(card.get_by_label("red")).to_be_focused()
    page.keyboard.press("ControlOrMeta+Enter")  # nothing is chosen yet
    page.keyboard.press("ArrowDown")
    expect(card.get_by_label("blue")).to_be_checked()
    page.keyboard.press("ControlOrMeta+Enter")
    expect(page.locator("[data-all-done]")).to_be_focused()
    assert site.approval(asked)["status"] == "responded"


# R14
def test_what_has_the_focus_is_never_behind_the_answers(site: Site, visit: Visit) -> None:
    args = {f"line_{n}": f"Some words, number {n}\u200b" for n in range(12)}
    card = open_card(visit, site.admin, site.propose(site.agent(), "post_note", args))
    bar = card.locator("[data-sticky]")
    for box in card.get_by_label("Checked").all():
        box.focus()
        box.press("Space")
        seen, covered = box.bounding_box(), bar.bounding_box()
        assert seen
        assert covered
        assert seen["y"] + seen["height"] <= covered["y"]
    expect(card.get_by_role("button", name="Approve", exact=True)).to_be_enabled()
    card.focus()
    card.page.keyboard.press("Enter")
    expect_status(card, "approved")


# R14 R36 R40
@pytest.mark.parametrize("width", [1024, 1440])
def test_keys_lead_to_the_question_and_to_new_requests(site: Site, visit: Visit, width: int) -> None:
    bot = site.agent()
    first = site.propose(bot, "send_mail", {"to": "first"}, expires_in="600s")
    page = open_inbox(visit, site.admin, viewport={"width": width, "height": 800})
    page.keyboard.press("n")
    expect(page.get_by_text("No new requests.")).to_be_visible()
    press_next(page, first)
    page.keyboard.press("q")
    question = page.get_by_label("Ask the agent")
    expect(question).to_be_focused()
    page.keyboard.type("Which one?")
    page.keyboard.press("Enter")
    expect(page.locator("[data-question]")).to_contain_text("Which one?")
    expect(question).to_have_value("")
    site.propose(bot, "send_mail", {"to": "second"}, expires_in="700s")
    expect(page.get_by_role("button", name="Show 1 new request")).to_be_visible()
    card_on(page).focus()
    page.keyboard.press("n")
    expect(page.locator("[data-row]")).to_have_count(2)
    expect(page.get_by_role("button", name="Show 1 new request")).to_have_count(0)
