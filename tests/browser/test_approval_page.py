"""The page that links from Slack, mail and pagers lead to: on a phone, and where live events do not come through."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.card_page import MAIL, card_on, decide, expect_status, open_card
from tests.browser.site import Site, Visit, Visitors

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def test_the_page_works_where_live_events_are_blocked(site: Site, visitors: Visitors) -> None:  # R11
    bot, eve = site.agent(), site.person("eve")
    mine, hers = site.propose(bot, "send_mail", MAIL), site.propose(bot, "send_mail", {"to": "eve"})
    context = visitors.context(site.admin)
    context.route("**/api/events*", lambda route: route.abort())
    page = context.new_page()
    page.goto(f"/a/{mine}")
    card = card_on(page)
    expect(card).to_contain_text("This card may be outdated.")
    card.get_by_role("button", name="Approve").click()
    expect_status(card, "approved")
    page.goto(f"/a/{hers}")
    expect_status(card_on(page), "pending")
    decide(site, eve, hers, "approve")
    expect_status(card_on(page), "approved")  # it looks again by itself


def test_on_a_phone_the_answers_stay_under_the_thumb(site: Site, visit: Visit) -> None:  # R11
    args = {f"line_{n}": f"Some words, number {n}" for n in range(40)}
    card = open_card(visit, site.admin, site.propose(site.agent(), "send_mail", args), **PHONE)
    for name in ("Approve", "Edit", "Respond", "Reject"):
        button = card.get_by_role("button", name=name)
        expect(button).to_be_in_viewport(ratio=1)
        box = button.bounding_box()
        assert box is not None
        assert box["height"] >= 48
    assert card.page.evaluate("document.documentElement.scrollWidth") == 390
    card.get_by_role("button", name="Approve").tap()
    expect_status(card, "approved")


def test_a_link_to_nothing_says_so(site: Site, visit: Visit) -> None:  # R11
    page = visit(site.admin, "/a/01a1e154-1336-7cab-9db1-e7cefc446694")
    expect(page.get_by_text("Approval not found")).to_be_visible()
    expect(page.get_by_text("not in your workspace")).to_be_visible()


def test_the_focus_stays_on_the_card_when_what_had_it_is_gone(site: Site, visit: Visit) -> None:  # R11 R14
    card = open_card(visit, site.admin, site.propose(site.agent(), "send_mail", MAIL))
    card.get_by_role("button", name="Respond").press("Enter")
    expect(card.get_by_label("Message to the agent")).to_be_focused()
    card.page.keyboard.press("Escape")
    expect(card).to_be_focused()
    card.get_by_role("button", name="Approve").press("Enter")
    expect_status(card, "approved")
    expect(card).to_be_focused()
