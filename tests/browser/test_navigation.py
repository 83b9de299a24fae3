"""Signing in, finding one's way, and what is around every page."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.site import PASSWORD, READY, Site, Visit

PAGES = ["/chat", "/inbox", "/history", "/statistics", "/agents", "/content", "/okrs", "/policy", "/settings"]


@pytest.mark.smoke
def test_every_page_is_there_and_up_to_date(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/")
    for path in PAGES:
        page.goto(path)
        expect(page.locator(READY)).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("navigation", name="Pages").locator("[aria-current=page]")).to_be_visible()


@pytest.mark.smoke
def test_sign_in_returns_to_the_requested_page(site: Site, visit: Visit) -> None:
    page = visit(None, "/settings/me?x=1")
    expect(page).to_have_url(re.compile(r"/signin\?next="))
    page.get_by_label("Name").fill("ann")
    page.get_by_role("textbox", name="Password").fill("not this one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("password")
    page.get_by_role("textbox", name="Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(re.compile(r"/settings/me\?x=1$"))
    expect(page.get_by_role("button", name="ann")).to_be_visible()


@pytest.mark.smoke
def test_sign_out_ends_the_session_in_every_tab(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/inbox")
    other = page.context.new_page()
    other.goto("/settings/me")
    expect(other.locator(READY)).to_be_visible()
    page.get_by_role("button", name="ann").click()
    page.get_by_role("menuitem", name="Sign out").click()
    for tab in (page, other):
        expect(tab).to_have_url(re.compile("/signin"))
    assert page.request.get("/api/me").status == 401


def test_sign_out_everywhere_ends_sessions_on_every_device(site: Site, visit: Visit) -> None:
    here, there = visit(site.admin, "/settings/me"), visit(site.admin, "/inbox")
    expect(there.locator(READY)).to_be_visible()
    here.get_by_role("button", name="Sign out everywhere").click()
    here.get_by_role("group").get_by_role("button", name="Sign out everywhere").click()
    expect(here).to_have_url(re.compile("/signin"))
    expect(there.get_by_role("alert").filter(has_text="You are signed out.")).to_be_visible()


def test_a_session_that_ends_takes_nothing_away_and_heals_when_one_signs_in_again(site: Site, visit: Visit) -> None:
    page = visit(site.person("bob"), "/settings/me")
    expect(page.locator(READY)).to_be_visible()
    new = page.get_by_role("textbox", name="New password")
    new.fill("typed before")
    assert site.admin.delete("/api/users/bob/sessions").json() == {"sessions": 1, "keys": 0}
    out = page.get_by_role("alert").filter(has_text="You are signed out.")
    expect(out).to_be_visible()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Sign in again").click()
    other = opened.value
    other.get_by_label("Name").fill("bob")
    other.get_by_role("textbox", name="Password").fill(PASSWORD)
    other.get_by_role("button", name="Sign in").click()
    expect(other).to_have_url(re.compile("/settings/me$"))
    expect(out).to_have_count(0)
    expect(page.locator(READY)).to_be_visible()
    expect(new).to_have_value("typed before")
    other.close()
    site.propose(site.agent(), "send_mail", {"to": "ann@example.com"})
    expect(page).to_have_title("(1) Settings · Interlock")


def test_a_tab_of_somebody_else_starts_anew(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/settings/me")
    expect(page.get_by_text("You are ann, admin")).to_be_visible()
    site.person("bob")
    other = page.context.new_page()
    other.goto("/signin")
    other.get_by_label("Name").fill("bob")
    other.get_by_role("textbox", name="Password").fill(PASSWORD)
    other.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("You are bob, reviewer")).to_be_visible()


def test_a_page_that_was_updated_on_the_server_offers_to_reload(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/inbox")
    expect(page.locator(READY)).to_be_visible()
    page.route(re.compile("/assets/History-.*[.]js"), lambda route: route.fulfill(status=404))
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="History").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("This page could not be loaded")
    page.get_by_role("link", name="Statistics").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Statistics")
    page.get_by_role("link", name="History").click()
    page.unroute_all()
    page.get_by_role("button", name="Reload").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("History")


def test_the_keyboard_and_a_phone_find_their_way(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/inbox")
    expect(page.locator(READY)).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.get_by_role("link", name="Settings").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Settings")).to_be_focused()

    phone = visit(site.admin, "/inbox", viewport={"width": 390, "height": 844}, has_touch=True)
    pages = phone.get_by_role("navigation", name="Pages")
    expect(pages).to_be_hidden()
    burger = phone.get_by_role("button", name="Pages")
    burger.tap()
    expect(burger).to_have_attribute("aria-expanded", "true")
    covered = pages.bounding_box()
    assert covered is not None
    assert (covered["width"], covered["y"] + covered["height"]) == (390, 844)
    pages.get_by_role("link", name="Settings").tap()
    expect(phone.get_by_role("heading", level=1)).to_have_text("Settings")
    expect(pages).to_be_hidden()
    assert phone.evaluate("document.documentElement.scrollWidth") == 390


def test_the_title_counts_what_waits(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/inbox")
    expect(page.locator(READY)).to_be_visible()
    site.propose(site.agent(), "send_mail", {"to": "ann@example.com"})
    expect(page).to_have_title("(1) Inbox · Interlock")


def test_the_tab_says_what_is_open(site: Site, visit: Visit) -> None:
    approval_id = site.propose(site.agent(), "send_mail", {"to": "ann@example.com"})
    sentence = site.approval(approval_id)["sentence"]
    page = visit(site.admin, "/settings/people")
    titles = {
        "/settings/people": "People · Settings",
        "/policy?tab=text": "Text · Policy",
        "/history?tab=ledger": "Ledger · History",
        f"/history?id={approval_id}": f"{sentence} · History",
        "/agents/bot": "bot · Agents",
        "/connect": "Connect an agent · Agents",
        "/statistics": "Statistics",
    }
    for path, title in titles.items():
        page.goto(path)
        expect(page).to_have_title(f"(1) {title} · Interlock")


def test_a_call_is_approved_on_the_page_that_its_link_leads_to(site: Site, visit: Visit) -> None:
    approval_id = site.propose(site.agent(), "send_mail", {"to": "ann@example.com"})
    page = visit(site.admin, f"/a/{approval_id}")
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("article[data-status=approved]")).to_be_visible()
    assert site.approval(approval_id)["status"] == "approved"
