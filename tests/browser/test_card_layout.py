"""How a card is laid out: what is always in sight, and how each kind of argument can be read."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.card_page import MAIL, expect_status, open_card
from tests.browser.pinned_tool import object_schema, propose_pinned
from tests.browser.site import Site, Visit

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SIZES: dict[str, dict[str, Any]] = {
    "wide": {"viewport": {"width": 1280, "height": 820}},
    "low": {"viewport": {"width": 1024, "height": 500}},
    "phone": PHONE,
}
LINE = object_schema({"item": {"type": "string", "title": "Item"}, "price": {"type": "number", "title": "Unit price"}})
INVOICE = object_schema(
    {
        "customer": {"type": "string", "title": "Customer"},
        "due_date": {"type": "string", "format": "date", "title": "Paid until"},
        "lines": {"type": "array", "items": LINE, "title": "Lines"},
        "attachments": {"type": "array", "items": {"type": "string"}},
    },
    "customer",
    "lines",
)
BILL = {
    "attachments": ["a.pdf", "b.pdf"],
    "customer": "Grünwald & Söhne",
    "due_date": "2026-12-01",
    "lines": [{"item": "Plan", "price": 245.5}, {"item": "Hour"}],
}
SAME = [f" line {number}" for number in range(20)]
PATCH = "\n".join(["--- a/x", "+++ b/x", "@@ -1,21 +1,21 @@", *SAME, "-limit: 10", "+limit: 500"])


@pytest.mark.parametrize("size", SIZES)
def test_answers_risk_and_tool_are_in_sight_wherever_one_scrolls(site: Site, visit: Visit, size: str) -> None:  # R11
    args = {f"line_{n}": f"Some words, number {n}" for n in range(60)}
    card = open_card(visit, site.admin, site.propose(site.agent(), "send_mail", args), **SIZES[size])
    for share in (0, 0.5, 1):
        card.page.evaluate("(share) => scrollTo(0, share * document.documentElement.scrollHeight)", share)
        for name in ("Approve", "Edit", "Respond", "Reject"):
            expect(card.get_by_role("button", name=name)).to_be_in_viewport(ratio=1)
        expect(card.locator("[data-tool]").filter(visible=True).last).to_be_in_viewport(ratio=1)
        expect(card.locator("[data-risk]").filter(visible=True).last).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("size", ["wide", "phone"])
def test_arguments_have_titles_order_and_tables(site: Site, visit: Visit, size: str) -> None:  # R53
    card = open_card(visit, site.admin, propose_pinned(site, "create_invoice", BILL, INVOICE), **SIZES[size])
    names = card.get_by_label("Arguments").locator("> ul > li > div:first-child > div:first-child")
    expect(names).to_have_text(
        [
            re.compile("^Customer$"),
            re.compile("Lines.*list, 2 items"),
            re.compile("attachments"),
            re.compile("Paid until.*due_date"),
        ]
    )
    table = card.get_by_role("table")
    expect(table.locator("th")).to_have_text(["Item", "Unit priceprice"])
    expect(table.locator("[data-item='/lines/0'] [data-value]")).to_have_text(['"Plan"', "245.5"])
    expect(table.locator("[data-item='/lines/1']")).to_contain_text("not set")
    expect(card.locator("[data-pointer^='/attachments/']")).to_have_text(['"a.pdf"', '"b.pdf"'])
    assert card.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_titles_that_only_an_agent_declares_are_not_shown(site: Site, visit: Visit) -> None:  # R53
    card = open_card(visit, site.admin, site.propose(site.agent(), "create_invoice", BILL, schema=INVOICE))
    expect(card).not_to_contain_text("Paid until")
    expect(card.get_by_label("Arguments")).to_contain_text("due_date")


def test_a_diff_has_colors_and_signs_and_hides_no_line(site: Site, visit: Visit) -> None:  # R53
    args = {"patch": PATCH, "fake": PATCH + "\nrm -rf /", "to": f"supp\u043ert\n{PATCH}"}
    card = open_card(visit, site.admin, site.propose(site.agent(), "apply_patch", args))
    diff = card.locator("[data-pointer='/patch']")
    expect(diff.locator("[data-kind=removed]")).to_have_text("-limit: 10")
    expect(diff.locator("[data-kind=added]")).to_have_text("+limit: 500")
    assert color(diff.locator("[data-kind=removed]")) != color(diff.locator("[data-kind=added]"))
    expect(diff.locator("[data-kind=same]")).to_have_count(20)
    expect(card.locator("[data-pointer='/fake'] [data-value]")).to_contain_text(
        "rm -rf /"
    )  # it is none, so it is whole
    expect(card.locator("[data-pointer='/to'] [data-code]")).to_have_count(1)


def test_a_long_diff_folds_what_it_marks_as_unchanged_and_says_so(site: Site, visit: Visit) -> None:  # R53
    patch = PATCH.replace("limit: 500", "limit: 500 # " + "x" * 1_900)
    card = open_card(visit, site.admin, site.propose(site.agent(), "apply_patch", {"patch": patch}))
    diff = card.locator("[data-pointer='/patch']")
    expect(diff.locator("[data-kind=same]")).to_have_count(3)
    diff.get_by_role("button", name="Show 17 lines that the diff marks as unchanged").click()
    expect(diff.locator("[data-kind=same]")).to_have_count(20)


def test_a_diff_with_an_endless_line_is_shortened_like_any_text(site: Site, visit: Visit) -> None:  # R53
    patch = PATCH.replace("limit: 500", "limit: " + '"' * 20_000)
    card = open_card(visit, site.admin, site.propose(site.agent(), "apply_patch", {"patch": patch}))
    expect(card.locator("[data-pointer='/patch'] [data-diff]")).to_have_count(0)
    expect(card.get_by_role("button", name="hidden characters")).to_be_visible()


def color(line: Locator) -> str:
    return str(line.evaluate("(line) => getComputedStyle(line).backgroundColor"))


def test_lines_break_where_they_are_and_counts_are_those_of_characters(site: Site, visit: Visit) -> None:  # R53
    args = {"body": "one\ntwo", "long": "ab\n" * 35_000}
    card = open_card(visit, site.admin, site.propose(site.agent(), "post_note", args, preview="one\ntwo"))
    card.get_by_text("Agent's preview").click()
    for place in (card.locator("[data-pointer='/body'] [data-value]"), card.locator("blockquote")):
        expect(place).to_have_text(re.compile(r"one\\ntwo"))
        height = place.evaluate("(each) => each.getBoundingClientRect().height")
        assert height >= 40
        sign = place.locator("span").filter(has_text="\\n").last
        assert sign.evaluate("(each) => getComputedStyle(each).fontSize") == "0px"
        assert "\u21b5" in sign.evaluate("(each) => getComputedStyle(each, '::after').content")
    more = card.get_by_role("button", name="hidden characters")
    found = re.search(r"of ([\d,]+) hidden", more.inner_text())
    assert found
    assert int(found[1].replace(",", "")) < 105_000
    expect(card.locator("[data-pointer='/long']")).to_contain_text("105,000 characters")


def test_a_hold_is_drawn_from_the_left_and_counted_where_nothing_may_move(site: Site, visit: Visit) -> None:  # R14
    bot = site.agent()
    drawn, counted, by_letter = (
        site.propose(bot, "drop_page", {"page": number}, effect="destructive") for number in range(3)
    )
    card = open_card(visit, site.admin, drawn)
    hold = card.get_by_role("button", name="Hold to approve")
    hold.evaluate(
        """(button) => {
          window.drawn = [];
          button.addEventListener("transitionrun", (event) => window.drawn.push(event.pseudoElement));
        }"""
    )
    for part in ("::before", "::after"):
        look = hold.evaluate(
            "(each, part) => { const s = getComputedStyle(each, part); return [s.opacity, s.filter, s.display]; }", part
        )
        assert look == ["1", "none", "block"]
    hold.hover()
    card.page.mouse.down()
    expect_status(card, "approved")
    card.page.mouse.up()
    assert set(card.page.evaluate("window.drawn")) >= {"::before", "::after"}

    still = open_card(visit, site.admin, counted, reduced_motion="reduce")
    still.page.evaluate(
        """() => {
          window.counted = [];
          new MutationObserver(() => {
            const count = document.querySelector("[data-count]");
            if (count) window.counted.push(count.textContent);
          }).observe(document, { subtree: true, childList: true, characterData: true });
        }"""
    )
    still.get_by_role("button", name="Hold to approve").hover()
    still.page.mouse.down()
    expect_status(still, "approved")
    still.page.mouse.up()
    assert still.page.evaluate("[...new Set(window.counted)].slice(0, 1)") == ["3"]

    held = open_card(visit, site.admin, by_letter)
    held.focus()
    held.page.keyboard.press("a")
    expect_status(held, "pending")
    held.focus()
    held.page.keyboard.down("a")
    expect_status(held, "approved")
    held.page.keyboard.up("a")


def test_a_question_has_no_risk_and_words_of_the_agent_are_folded_below(site: Site, visit: Visit) -> None:  # R37 R53
    bot = site.agent()
    body = {"question": "Which colour?", "choices": ["red", "blue"], "run_id": "run", "call_id": "question"}
    asked = str(bot.post("/api/questions", json=body).json()["approval_id"])
    card = open_card(visit, site.admin, asked)
    expect(card.locator("header")).to_contain_text("Question")
    expect(card).not_to_contain_text("risk")
    other = open_card(visit, site.admin, site.propose(bot, "send_mail", MAIL, agent_says="Please."))
    statement = other.locator("details").filter(has_text="Agent's explanation")
    expect(statement).not_to_have_attribute("open", "")
    expect(statement).to_contain_text("not verified · 7 characters")
    assert statement.evaluate("(each) => getComputedStyle(each).borderTopStyle") == "dashed"


def test_a_tool_without_a_sentence_has_its_arguments_on_one_line(site: Site, visit: Visit) -> None:  # R53
    args = {"body": "first\nsecond " * 20, "to": "ann@example.com"}
    card = open_card(visit, site.admin, site.propose(site.agent(), "send_mail", args))
    expect(card.get_by_role("heading", level=2)).to_have_text("Run send_mail")
    line = card.locator("header p")
    expect(line).to_contain_text('body = "first second')
    assert line.evaluate("(each) => each.getBoundingClientRect().height") < 30
