"""What is urgent and waits for somebody comes to them, on whatever page they are; closing it decides nothing."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.site import READY, Site, Visit, Visitors


def test_what_is_urgent_comes_up_on_any_page_and_closing_it_decides_nothing(site: Site, visit: Visit) -> None:  # R17
    bot = site.agent()
    page = _ready(visit(site.admin, "/statistics"))
    site.propose(bot, "send_mail", {"to": "somebody"})  # not urgent
    first = site.propose(bot, "send_mail", {"to": "bob"}, priority="high")
    dialog = page.get_by_role("dialog", name="Waiting for you")
    expect(dialog.locator(f"article[data-approval='{first}']")).to_be_visible()
    expect(dialog.get_by_role("heading", name="Waiting for you")).to_be_focused()
    page.keyboard.press("Enter")  # meant for the page
    second = site.propose(bot, "send_mail", {"to": "eve"}, priority="high")
    expect(dialog.get_by_role("heading", name="Waiting for you, 1 of 2")).to_be_visible()
    dialog.get_by_role("button", name="Next").click()
    dialog.get_by_role("button", name="Reject").click()
    dialog.get_by_label("Reason (optional)").fill("Not Eve.")
    dialog.get_by_role("button", name="Reject").click()
    expect(dialog.locator("article[data-status=rejected]")).to_contain_text("Not Eve.")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert (site.approval(first)["status"], site.approval(second)["status"]) == ("pending", "rejected")


def test_it_comes_once_and_only_to_those_who_may_decide(site: Site, visitors: Visitors) -> None:  # R17
    rule = {"name": "finance", "tools": ["fund_transfer"], "then": "ask", "approvers": {"teams": ["finance"]}}
    eve, bob = site.person("eve", teams=("finance",)), site.person("bob")
    site.put_policy({"version": 1, "rules": [{**rule, "priority": "high"}]})
    other, page = _ready(visitors.visit(bob, "/statistics")), _ready(visitors.visit(eve, "/statistics"))
    approval_id = site.propose(site.agent(), "fund_transfer", {"amount": 5})
    dialog = page.get_by_role("dialog", name="Waiting for you")
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    site.admin.post(f"/api/approvals/{approval_id}/comment", json={"text": "Please look."})
    expect(other.get_by_role("navigation").get_by_text("1 pending")).to_be_attached()
    expect(other.get_by_role("dialog")).to_have_count(0)
    page.reload()
    _ready(page)
    expect(page.get_by_role("dialog")).to_have_count(0)


def _ready(page: Page) -> Page:
    expect(page.locator(READY)).to_be_visible()
    return page
