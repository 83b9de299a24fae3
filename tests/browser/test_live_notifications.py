"""Notifications of the browser: only when permitted, only what waits for oneself, and nothing that is on the screen."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.site import READY, Site, Visitors

# What a page tells the browser to show is noted; the browser under test has no place to show it.
RECORD = """
window.told = [];
window.Notification = class {
  static permission = "default";
  static async requestPermission() { window.asked = true; return (this.permission = "granted"); }
  constructor(title, options) { window.told.push({ title, ...options }); window.last = this; }
  close() {}
};
"""
ALLOWED = (
    f"{RECORD} Notification.permission = 'granted'; if (location.host) localStorage['interlock-notifications'] = 'on';"
)
# As a list does that is open: what is new has a row before long.
SHOWS = """
() => {
  window.list = new BroadcastChannel("interlock-live default/bob");
  window.list.onmessage = ({ data }) => {
    if (data.step?.sent?.event !== "proposed") return;
    const row = document.createElement("div");
    row.dataset.row = JSON.parse(data.step.sent.data).approval_id;
    document.body.append(row);
  };
}
"""
HIDE_DETAILS = {"to": "ann@example.com", "body": "the secret of the house"}


# R44
def test_pending_approval_notifies_once_in_one_tab_and_opens_by_a_click(site: Site, visitors: Visitors) -> None:
    context = visitors.context(site.person("bob"))
    context.grant_permissions(["notifications"])
    context.add_init_script(RECORD)
    first, second = context.new_page(), context.new_page()
    for tab in (first, second):
        tab.goto("/settings/me")
        expect(tab.locator(READY)).to_be_visible()
    assert first.evaluate("window.asked") is None  # nobody is asked before they click
    first.get_by_role("button", name="Turn on notifications").click()
    expect(first.get_by_text("On in this browser")).to_be_visible()
    second.evaluate("Notification.permission = 'granted'")

    approval_id = site.propose(site.agent(), "send_mail", HIDE_DETAILS)
    leader = wait_for_notification(first, second)
    shown = notifications(first) + notifications(second)
    assert [each["tag"] for each in shown] == [approval_id]
    assert shown[0]["body"] == "send_mail", "nothing of the arguments, and so not the sentence that is made from them"
    with context.expect_page() as opened:
        leader.evaluate("window.last.onclick()")
    expect(opened.value.locator("article[data-status=pending]")).to_be_visible()
    assert opened.value.url.endswith(f"/a/{approval_id}")


# R44
def test_no_notification_for_visible_approvals_or_those_of_others(site: Site, visitors: Visitors) -> None:
    rule = {"name": "finance decides", "tools": "pay", "then": "ask", "approvers": {"teams": ["finance"]}}
    site.put_policy({"version": 1, "rules": [rule]})
    context = visitors.context(site.person("bob"))
    context.add_init_script(ALLOWED)
    leader, other = context.new_page(), context.new_page()
    for tab in (leader, other):
        tab.goto("/settings/me")
        expect(tab.locator(READY)).to_be_visible()
    agent = site.agent()
    site.propose(agent, "pay", {"amount": 5})
    mine = site.propose(agent, "send_mail", HIDE_DETAILS)
    assert wait_for_notification(leader) is leader
    assert [each["tag"] for each in notifications(leader)] == [mine]

    other.evaluate(SHOWS)
    seen = site.propose(agent, "send_mail", {**HIDE_DETAILS, "to": "eve@example.com"})
    expect(other.locator(f"[data-row='{seen}']")).to_have_count(1)
    other.evaluate("window.list.close()")
    unseen = site.propose(agent, "send_mail", {**HIDE_DETAILS, "to": "bob@example.com"})
    wait_for_notification(leader, number=2)
    assert [each["tag"] for each in notifications(leader)] == [mine, unseen]


def wait_for_notification(*tabs: Page, number: int = 1) -> Page:
    """The tab that told of so many."""
    for _ in range(150):
        for tab in tabs:
            if len(notifications(tab)) >= number:
                return tab
        tabs[0].wait_for_timeout(100)
    raise AssertionError("Nothing was told.")


def notifications(page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate("window.told")
    return found
