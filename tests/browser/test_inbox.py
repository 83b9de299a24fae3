"""The inbox: what waits for people, narrowed, kept up to date without jumping, and decided by keys alone."""

from __future__ import annotations

import re
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.site import READY, Site, Visit, Visitors

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
TWO = {"version": 1, "rules": [{"name": "two", "tools": ["pay"], "then": "ask", "quorum": 2}]}


def open_inbox(visit: Visit, who: httpx2.Client, path: str = "/inbox", **more: Any) -> Page:
    page = visit(who, path, **more)
    expect(page.locator(READY)).to_be_visible()
    expect(page.locator("[aria-busy=false] [data-rows]")).to_be_visible()
    return page


def row(page: Page, approval_id: str) -> Locator:
    return page.locator(f'[data-row="{approval_id}"]')


def decide(who: httpx2.Client, site: Site, approval_id: str, kind: str, **more: Any) -> None:
    body = {"kind": kind, "args_sha256": site.approval(approval_id)["args_sha256"], **more}
    answer = who.post(f"/api/approvals/{approval_id}/decision", json=body)
    assert answer.status_code == 200, answer.text


def show(page: Page, view: str) -> None:
    """One of the tabs above the list."""
    tab = page.get_by_role("group", name="Show").get_by_role("button", name=view)
    tab.click()
    expect(tab).to_have_attribute("aria-pressed", "true")


def expect_open(page: Page, approval_id: str) -> Locator:
    """Its card is there with the focus, and may be answered."""
    expect(row(page, approval_id)).to_have_attribute("data-current", "true")
    card = page.locator(f'article[data-approval="{approval_id}"]')
    expect(card).to_have_attribute("data-settled", "true")
    expect(card).to_be_focused()
    return card


def press_next(page: Page, to: str) -> None:
    """J, until the card may be answered."""
    page.keyboard.press("j")
    expect(row(page, to)).to_have_attribute("data-current", "true")
    expect(page.locator(f'article[data-approval="{to}"][data-settled]')).to_be_visible()


def tab_to(page: Page, wanted: Locator) -> None:
    """As somebody without a mouse gets there."""
    expect(wanted).to_be_visible()
    for _ in range(30):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError("No number of tabs leads there.")


# R36
def test_filters_live_in_the_address(site: Site, visit: Visit) -> None:
    bot, other = site.agent(), site.agent("scribe")
    mail = site.propose(bot, "send_mail", {"to": "ann@example.com"}, thread_id="t1")
    page_made = site.propose(other, "make_page", {"title": "Pricing"}, priority="high")
    site.propose(other, "make_page", {"title": "Imprint"})
    page = open_inbox(visit, site.admin, "/inbox?tool=make_page&q=pricing")
    expect(page.locator("[data-row]")).to_have_count(1)
    page.reload()
    expect(row(page, page_made)).to_be_visible()
    expect(page.get_by_label("Search", exact=True)).to_have_value("pricing")
    page.get_by_role("button", name="Remove the filter search: pricing").click()
    expect(page.locator("[data-row]")).to_have_count(2)
    page.get_by_role("button", name="Filter (1)").click()
    page.get_by_label("Priority", exact=True).select_option("high")
    expect(page.locator("[data-row]")).to_have_count(1)
    page.get_by_label("Tool", exact=True).fill("no_such_tool")
    expect(page.get_by_text("No requests match these filters")).to_be_visible()
    page.get_by_role("button", name="Clear all filters").click()
    expect(page.locator("[data-row]")).to_have_count(3)
    expect(page).to_have_url(re.compile(r"/inbox$"))
    page.get_by_label("Thread", exact=True).fill("t1")
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(row(page, mail)).to_be_visible()


# R8, R36
def test_all_shows_what_was_decided_and_mine_what_waits_for_me(site: Site, visit: Visit) -> None:
    bot, bob = site.agent(), site.person("bob", teams=("finance",))
    site.put_policy(
        {"version": 1, "rules": [{"tools": ["pay"], "name": "p", "then": "ask", "approvers": {"teams": ["finance"]}}]}
    )
    paid, mail = site.propose(bot, "pay", {"amount": 5}), site.propose(bot, "send_mail", {"to": "ann"})
    done = site.propose(bot, "send_mail", {"to": "bob"})
    decide(bob, site, done, "reject", reason="Not him")
    page = open_inbox(visit, site.admin)
    expect(page.locator("[data-row]")).to_have_count(2)
    show(page, "For me")
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(row(page, mail)).to_be_visible()
    show(page, "Everyone")
    expect(page.locator("[data-row]")).to_have_count(2)
    page.get_by_role("button", name="Filter", exact=True).click()
    page.get_by_label("Status").select_option("all")
    expect(row(page, done)).to_contain_text("rejected by bob")
    assert [each.get_attribute("data-row") for each in page.locator("[data-row]").all()] == [done, mail, paid]
    expect(page).to_have_url(re.compile(r"\?status=all$"))


# R14
def test_letters_in_an_open_menu_decide_nothing(site: Site, visit: Visit) -> None:
    waiting = site.propose(site.agent(), "send_mail", {"to": "ann@example.com"})
    page = open_inbox(visit, site.admin)
    press_next(page, waiting)
    page.get_by_role("banner").get_by_role("button", name="ann", exact=True).click()
    expect(page.get_by_role("menu").locator(":focus")).to_be_visible()
    for key in ("a", "Shift+A", "r", "z", "x"):
        page.keyboard.press(key)
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_be_hidden()
    page.keyboard.press("x")
    expect(row(page, waiting).get_by_role("checkbox")).to_be_checked()  # after the keys that came before it
    assert site.approval(waiting)["status"] == "pending"


# R36
@pytest.mark.smoke
def test_rows_come_and_change_without_jumping(site: Site, visit: Visit) -> None:
    bot, bob = site.agent(), site.person("bob")
    site.put_policy(TWO)
    first = site.propose(bot, "send_mail", {"to": "first"}, expires_in="60s")
    second = site.propose(bot, "pay", {"amount": 5})
    page = open_inbox(visit, site.admin)
    before = row(page, first).bounding_box()
    urgent = site.propose(bot, "send_mail", {"to": "urgent"}, expires_in="30s")
    gone = site.propose(bot, "send_mail", {"to": "gone"})
    decide(bob, site, gone, "approve")
    expect(page.get_by_role("button", name="Show 1 new request")).to_be_visible()
    decide(bob, site, first, "reject")
    expect(row(page, first)).to_contain_text("rejected by bob")
    expect(row(page, first)).to_have_attribute("data-over", "true")
    decide(bob, site, second, "approve")
    expect(row(page, second)).to_contain_text("1 of 2")
    bob.post(f"/api/approvals/{second}/claim", json={})
    expect(row(page, second)).to_contain_text("Claimed by bob")
    expect(row(page, urgent)).to_have_count(0)
    assert row(page, first).bounding_box() == before
    page.get_by_role("button", name="Show 1 new request").click()
    expect(row(page, urgent)).to_be_visible()
    assert [each.get_attribute("data-row") for each in page.locator("[data-row]").all()] == [urgent, first, second]
    page.reload()
    expect(page.locator("[data-row]")).to_have_count(2)
    expect(row(page, first)).to_have_count(0)


# R10, R36
@pytest.mark.smoke
def test_five_requests_are_answered_by_keys_alone(site: Site, visit: Visit) -> None:
    bot = site.agent()
    schema = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
    ids = [site.propose(bot, "send_mail", {"to": f"user{number}"}, schema=schema) for number in range(5)]
    page = open_inbox(visit, site.admin)
    press_next(page, ids[0])
    page.keyboard.press("a")
    expect_open(page, ids[1])
    page.keyboard.press("Shift+R")
    page.keyboard.type("a rather bad idea")  # a, r, e and x are keys of the inbox too
    page.keyboard.press("Enter")
    expect_open(page, ids[2])
    page.keyboard.press("z")
    expect(page.get_by_text("Undone. The request is open again.")).to_be_visible()
    expect_open(page, ids[1])
    press_next(page, ids[2])
    page.keyboard.press("c")
    page.keyboard.type("ask Zoe first")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect_open(page, ids[3])
    page.keyboard.press("k")
    expect(row(page, ids[1])).to_have_attribute("data-current", "true")
    press_next(page, ids[3])
    page.keyboard.press("Enter")  # on the row, as O does
    expect_open(page, ids[3])
    page.keyboard.press("Enter")
    expect_open(page, ids[4])
    page.keyboard.press("Control+e")
    expect(page.locator("article").get_by_role("textbox", name="to")).to_be_focused()  # the editor has been loaded
    page.keyboard.press("End")
    page.keyboard.type(", and kai")
    tab_to(page, page.get_by_role("button", name="Approve with 1 change"))
    page.keyboard.press("Enter")
    expect_open(page, ids[1])
    expect(page.locator("[data-row]")).to_have_count(1)
    statuses = [site.approval(each)["status"] for each in ids]
    assert statuses == ["approved", "pending", "responded", "approved", "approved"]
    assert site.approval(ids[4])["args"] == {"to": "user4, and kai"}


# R11, R53
def test_keys_do_no_more_than_the_card_would(site: Site, visit: Visit) -> None:
    bot = site.agent()
    risky = site.propose(bot, "drop_table", {"name": "users"}, effect="destructive", expires_in="60s")
    odd = site.propose(bot, "send_mail", {"to": "ann\u202e@example.com"}, expires_in="90s")
    page = open_inbox(visit, site.admin)
    page.keyboard.press("a")
    expect(page.get_by_text("Open a request first")).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator("article[data-settled]")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_text("High risk: hold A for 1 second.")).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator(f'article[data-approval="{odd}"][data-settled]')).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_text("Check the marked place first.").first).to_be_visible()  # on the card too
    expect(page.locator("article input:focus")).to_be_visible()
    page.keyboard.press("x")
    expect(page.get_by_text("Review it individually")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("axrjk?")
    expect(page.get_by_label("Search", exact=True)).to_have_value("axrjk?")
    page.get_by_label("Search", exact=True).fill("")
    page.get_by_role("heading", name="Inbox").click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert [site.approval(each)["status"] for each in (risky, odd)] == ["pending", "pending"]


# R42
def test_a_phone_shows_one_pane_and_back_leads_to_the_list(site: Site, visit: Visit) -> None:
    bot = site.agent()
    ids = [site.propose(bot, "send_mail", {"to": f"user{number}"}) for number in range(12)]
    page = open_inbox(visit, site.admin, **PHONE)
    expect(page.get_by_role("button", name="All keys")).to_have_count(0)
    row(page, ids[0]).get_by_role("link").click()
    expect(page.locator(f'article[data-approval="{ids[0]}"]')).to_be_visible()
    expect(page).to_have_url(re.compile(f"id={ids[0]}"))
    page.go_back()
    expect(page.locator("article")).to_have_count(0)
    row(page, ids[1]).get_by_role("link").click()
    page.get_by_role("button", name="Back to the list").click()
    expect(page).to_have_url(re.compile(r"/inbox$"))
    for approval_id in ids[:2]:
        row(page, approval_id).get_by_role("checkbox").click()
    page.get_by_role("button", name="Bulk decision…").click()
    page.get_by_role("button", name="Approve 2").click()
    expect(page.get_by_text("2 approved.", exact=True)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.go_back()
    expect(page.locator("[data-row]")).to_have_count(10)
    expect(row(page, ids[0])).to_have_count(0)


# R21
def test_a_viewer_sees_everything_and_decides_nothing(site: Site, visit: Visit) -> None:
    approval_id = site.propose(site.agent(), "send_mail", {"to": "ann"})
    page = open_inbox(visit, site.person("vic", role="viewer"))
    expect(row(page, approval_id)).to_be_visible()
    expect(page.get_by_role("checkbox")).to_have_count(0)
    page.keyboard.press("j")
    expect(page.locator("article")).to_be_visible()
    for key in ("a", "r", "x"):
        page.keyboard.press(key)
        expect(page.get_by_text("Your role can view requests but not decide them.")).to_be_visible()
    expect(page.locator("article").get_by_role("button", name="Approve")).to_have_count(0)
    page.get_by_role("button", name="Filter", exact=True).click()
    page.get_by_label("Status").select_option("all")
    expect(row(page, approval_id)).to_be_visible()
    assert site.approval(approval_id)["status"] == "pending"


def test_an_empty_inbox_says_that_nothing_waits(site: Site, visit: Visit, visitors: Visitors) -> None:
    page = open_inbox(visit, site.admin)
    expect(page.get_by_text("No open requests")).to_be_visible()
    approval_id = site.propose(site.agent(), "send_mail", {"to": "ann"})
    page.get_by_role("button", name="Show 1 new request").click()
    expect(row(page, approval_id)).to_be_visible()
    context = visitors.context(site.admin)
    context.route("**/api/events*", lambda route: route.abort())
    deaf = context.new_page()
    deaf.goto(f"/inbox?id={approval_id}")
    expect(deaf.locator("article")).to_be_visible()
    site.propose(site.agent(), "send_mail", {"to": "bob"})
    expect(deaf.get_by_role("button", name="Show 1 new request")).to_be_visible()
