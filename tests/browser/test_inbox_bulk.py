"""Several requests decided together: what differs is seen, each is answered by itself, and a no can be taken back."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.site import Site, Visit
from tests.browser.test_inbox import decide, open_inbox, row


# R42
def test_many_are_approved_together_and_those_that_fail_stay(site: Site, visit: Visit) -> None:
    bot, bob = site.agent(), site.person("bob")
    mails = [site.propose(bot, "send_mail", {"to": f"user{n}", "subject": "Hello"}) for n in range(7)]
    risky = site.propose(bot, "send_mail", {"to": "all"}, effect="destructive")
    other = site.propose(bot, "make_page", {"title": "Imprint"})
    page = open_inbox(visit, site.admin)
    row(page, mails[0]).get_by_role("checkbox").click()
    for refused, why in ((risky, "High-risk approvals are decided one by one."), (other, "One tool at a time")):
        row(page, refused).get_by_role("checkbox").click()
        expect(page.get_by_text(why)).to_be_visible()
        expect(row(page, refused).get_by_role("checkbox")).not_to_be_checked()
    row(page, mails[6]).get_by_role("checkbox").click(modifiers=["Shift"])
    expect(page.get_by_text("7 selected", exact=True)).to_be_visible()
    page.keyboard.press("a")
    panel = page.get_by_role("region", name="Bulk decision")
    expect(panel.get_by_role("columnheader")).to_have_text(["Approval", "to"])
    expect(panel.get_by_text('"Hello"')).to_have_count(1)
    expect(panel.locator(f'[data-call="{mails[3]}"]')).to_contain_text('"user3"')
    approve = panel.get_by_role("button", name="Approve 7")
    expect(approve).to_be_disabled()
    panel.get_by_label("Type 7").fill("6")
    expect(approve).to_be_disabled()
    panel.get_by_label("Type 7").fill("7")
    expect(approve).to_be_enabled()
    page.route("**/api/events*", lambda route: route.abort())  # nobody tells this page
    page.route("**/api/approvals/bulk", lambda route: (decide(bob, site, mails[2], "reject"), route.continue_())[1])
    approve.click()
    expect(panel.get_by_text("6 approved. 1 failed and is unchanged.")).to_be_visible()
    expect(panel.locator("[data-result=failed]")).to_contain_text("Already decided: bob (reject)")
    expect(panel.locator("[data-result=done]")).to_have_count(6)
    assert [site.approval(each)["status"] for each in mails].count("approved") == 6
    assert [site.approval(each)["status"] for each in (mails[2], risky, other)] == ["rejected", "pending", "pending"]


# R42
def test_what_failed_can_be_looked_at_and_tried_again(site: Site, visit: Visit) -> None:
    bot, bob = site.agent(), site.person("bob")
    mails = [site.propose(bot, "send_mail", {"to": f"user{n}"}) for n in range(2)]
    site.put_policy({"version": 1, "rules": [{"name": "two", "tools": ["send_mail"], "then": "ask", "quorum": 2}]})
    third = site.propose(bot, "send_mail", {"to": "user2"})
    page = open_inbox(visit, site.admin)
    for approval_id in (*mails, third):
        row(page, approval_id).get_by_role("checkbox").click()
    page.get_by_role("button", name="Bulk decision…").click()
    panel = page.get_by_role("region", name="Bulk decision")
    approve = panel.get_by_role("button", name="Approve 3")
    expect(approve).to_be_enabled()

    def edited_meanwhile() -> None:
        decide(bob, site, third, "edit", args={"to": "somebody else"})

    page.route("**/api/approvals/bulk", lambda route: (edited_meanwhile(), route.continue_())[1], times=1)
    approve.click()
    expect(panel.locator("[data-result=failed]")).to_contain_text("The arguments changed since you saw them")
    panel.get_by_role("button", name="Review the failed approval").click()
    expect(panel.get_by_text('"somebody else"')).to_be_visible()
    panel.get_by_role("button", name="Approve 1").click()
    expect(panel.get_by_text("1 approved.")).to_be_visible()
    assert {site.approval(each)["status"] for each in (*mails, third)} == {"approved"}


# R42, R12
def test_many_are_rejected_with_a_reason_and_taken_back(site: Site, visit: Visit) -> None:
    bot = site.agent()
    mails = [site.propose(bot, "send_mail", {"to": f"user{n}"}) for n in range(3)]
    page = open_inbox(visit, site.admin)
    for _ in mails:
        page.keyboard.press("j")
        page.keyboard.press("x")
    expect(page.get_by_text("3 selected", exact=True)).to_be_visible()
    page.keyboard.press("r")
    panel = page.get_by_role("region", name="Bulk decision")
    panel.get_by_label("Reason").fill("Too many mails")
    panel.get_by_role("button", name="Reject 3").click()
    expect(panel.get_by_text("3 rejected.")).to_be_visible()
    expect(page.locator("[data-row]")).to_have_count(0)
    assert site.approval(mails[1])["decision"]["reason"] == "Too many mails"
    panel.get_by_role("button", name="Undo all 3 rejections").click()
    expect(page.get_by_text("3 undone. The requests are open again.")).to_be_visible()
    expect(page.locator("[data-row]")).to_have_count(3)
    page.keyboard.press("Escape")
    expect(page.locator("article")).to_be_visible()
    assert {site.approval(each)["status"] for each in mails} == {"pending"}
