"""One decision leads to the next: what is open, where the focus is, and what the page says about it."""

from __future__ import annotations

import re

import httpx2
from playwright.sync_api import Page, expect

from tests.browser.site import Site, Visit
from tests.browser.test_axe import assert_no_barrier
from tests.browser.test_inbox import decide, expect_open, open_inbox, press_next, row, show

ODD = "ann\u202e@example.com"
# Presses this key at the very moment at which the card of another request appears
HASTE = """
(key) => {
  const before = document.querySelector("article[data-approval]")?.dataset.approval;
  new MutationObserver((_, observer) => {
    const card = document.querySelector("article[data-approval]:not([data-settled])");
    if (!card || card.dataset.approval === before) return;
    observer.disconnect();
    card.focus();
    card.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  }).observe(document, { subtree: true, childList: true, attributes: true });
}
"""


def propose_mails(site: Site, agent: httpx2.Client, count: int) -> list[str]:
    """In the order of the list."""
    return [site.propose(agent, "send_mail", {"to": f"user{n}"}, expires_in=f"{600 + 60 * n}s") for n in range(count)]


def expect_counts(page: Page, count: int) -> None:
    """Head, navigation, tab title and list agree."""
    if count:
        expect(page.locator("[data-total=everyone]")).to_have_text(str(count))
        expect(page.get_by_role("navigation", name="Pages").locator("a[href='/inbox'] span").first).to_contain_text(
            str(count)
        )
    else:
        expect(page.get_by_role("navigation", name="Pages").locator("a[href='/inbox'] span")).to_have_count(0)
    expect(page).to_have_title(re.compile(rf"^\({count}\) " if count else r"^[^(]"))
    expect(page.locator("[data-row][data-status=pending]")).to_have_count(count)


def expect_focus_kept(page: Page) -> None:
    assert page.evaluate("document.activeElement !== document.body")


# R14, R36
def test_one_key_decides_and_opens_the_next_card(site: Site, visit: Visit) -> None:
    ids = propose_mails(site, site.agent(), 4)
    page = open_inbox(visit, site.admin)
    expect_counts(page, 4)
    press_next(page, ids[0])
    page.keyboard.press("a")
    expect_open(page, ids[1])
    expect_counts(page, 3)
    toast = page.locator("[data-toast=approved]")
    expect(toast).to_contain_text("Approved Run send_mail: to = user0")
    expect(toast.get_by_role("button")).to_have_count(0)  # a call that may have run cannot be taken back
    page.keyboard.press("r")
    expect_open(page, ids[2])
    expect_counts(page, 2)
    rejected = page.locator("[data-toast=rejected]")
    expect(rejected).to_contain_text("Rejected Run send_mail: to = user1")
    rejected.get_by_role("button", name="Undo").click()
    expect_open(page, ids[1])
    expect_counts(page, 3)
    assert [each.get_attribute("data-row") for each in page.locator("[data-row]").all()] == ids[1:]
    for left in (2, 1, 0):
        page.keyboard.press("a")
        expect_counts(page, left)
        if left:
            expect_open(page, ids[4 - left])
    done = page.locator("[data-all-done]")
    expect(done).to_contain_text("All done")
    expect(done).to_be_focused()
    assert {site.approval(each)["status"] for each in ids} == {"approved"}


# R14
def test_an_undo_is_offered_as_long_as_the_server_holds_the_rejection(site: Site, visit: Visit) -> None:
    ids = propose_mails(site, site.agent(), 2)
    page = open_inbox(visit, site.admin)
    page.keyboard.press("z")
    expect(page.get_by_text("Nothing to undo.")).to_be_visible()
    press_next(page, ids[0])
    page.keyboard.press("r")
    expect_open(page, ids[1])
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_visible()
    expect(undo).to_have_count(0)
    page.keyboard.press("z")
    expect(page.get_by_text("Too late to undo. The agent already knows.")).to_be_visible()
    assert site.approval(ids[0])["status"] == "rejected"


# R14
def test_a_key_that_comes_too_early_says_so_and_does_nothing(site: Site, visit: Visit) -> None:
    ids = propose_mails(site, site.agent(), 4)
    page = open_inbox(visit, site.admin)
    press_next(page, ids[0])
    for position, key in enumerate(("a", "r", "Enter")):
        page.evaluate(HASTE, key)
        page.keyboard.press("a")
        expect(page.get_by_text("One moment", exact=True)).to_be_visible()
        expect_open(page, ids[position + 1])
        assert site.approval(ids[position + 1])["status"] == "pending"
    statuses = [site.approval(each)["status"] for each in ids]
    assert statuses == ["approved", "approved", "approved", "pending"]


# R53
def test_a_key_that_comes_too_early_says_so_on_the_page_of_a_link(site: Site, visit: Visit) -> None:
    approval_id = site.propose(site.agent(), "send_mail", {"to": "ann"})
    page = visit(site.admin, "/a/none")
    expect(page.get_by_text("Approval not found")).to_be_visible()
    page.evaluate(HASTE, "Enter")
    page.evaluate("id => { history.pushState(null, '', `/a/${id}`); }", approval_id)
    expect(page.get_by_text("One moment", exact=True)).to_be_visible()
    assert site.approval(approval_id)["status"] == "pending"


# R14, R36
def test_the_search_leads_back_to_the_list(site: Site, visit: Visit) -> None:
    ids = propose_mails(site, site.agent(), 3)
    page = open_inbox(visit, site.admin)
    press_next(page, ids[0])
    search = page.get_by_label("Search", exact=True)
    page.keyboard.press("/")
    page.keyboard.type("user2")
    page.keyboard.press("Enter")
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(row(page, ids[2]).get_by_role("link")).to_be_focused()
    expect(row(page, ids[2])).to_have_attribute("data-current", "true")
    page.keyboard.press("/")
    expect(search).to_be_focused()
    page.keyboard.press("Escape")
    expect(search).to_have_value("")
    expect(search).to_be_focused()
    expect(page.locator("[data-row]")).to_have_count(3)
    page.keyboard.press("Escape")
    expect(row(page, ids[2]).get_by_role("link")).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.press("ArrowDown")
    expect(row(page, ids[0]).get_by_role("link")).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.type("nobody")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No results.")).to_be_visible()
    expect(search).to_be_focused()


# R14, R36
def test_the_focus_is_never_lost(site: Site, visit: Visit) -> None:
    ids = propose_mails(site, site.agent(), 3)
    page = open_inbox(visit, site.admin, "/inbox?q=user")
    press_next(page, ids[0])
    page.get_by_role("button", name="Remove the filter search: user").click()
    expect(page.locator(f'article[data-approval="{ids[0]}"]')).to_be_focused()
    page.get_by_role("article").get_by_role("button", name="Approve").click()
    expect_open(page, ids[1])
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect_focus_kept(page)
    page.keyboard.press("x")
    expect(page.get_by_text("1 selected", exact=True)).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("article")).to_be_focused()
    page.keyboard.press("x")
    page.keyboard.press("a")
    page.get_by_role("button", name="Approve 1").click()
    expect(page.get_by_text("1 approved.", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect_open(page, ids[2])
    new = site.propose(site.agent(), "send_mail", {"to": "new"}, expires_in="60s")
    page.get_by_role("button", name="Show 1 new request").click()
    expect(row(page, new).get_by_role("link")).to_be_focused()


# R36
def test_what_others_decide_stays_with_their_name_and_is_skipped(site: Site, visit: Visit) -> None:
    bob = site.person("bob")
    ids = propose_mails(site, site.agent(), 4)
    page = open_inbox(visit, site.admin)
    press_next(page, ids[0])
    decide(bob, site, ids[1], "approve")
    decide(bob, site, ids[2], "reject")
    expect(row(page, ids[1])).to_contain_text("approved by bob")
    expect(row(page, ids[1]).locator("[data-end=approved] svg")).to_be_visible()
    expect(row(page, ids[2])).to_contain_text("rejected by bob")
    expect(row(page, ids[2]).locator("[data-end=rejected] svg")).to_be_visible()
    expect(row(page, ids[2]).locator("time").last).to_have_text(re.compile(r"\d\d:\d\d"))
    expect_counts(page, 2)
    page.keyboard.press("j")
    expect(row(page, ids[3])).to_have_attribute("data-current", "true")
    page.keyboard.press("k")
    expect(row(page, ids[0])).to_have_attribute("data-current", "true")
    expect(page.locator(f'article[data-approval="{ids[0]}"][data-settled]')).to_be_visible()
    page.keyboard.press("a")
    expect_open(page, ids[3])


# R36
def test_what_one_decided_is_found_again(site: Site, visit: Visit) -> None:
    bob = site.person("bob")
    ids = propose_mails(site, site.agent(), 3)
    page = open_inbox(visit, site.admin)
    press_next(page, ids[0])
    page.keyboard.press("a")
    expect_open(page, ids[1])
    page.keyboard.press("r")
    expect_open(page, ids[2])
    decide(bob, site, ids[2], "approve")
    show(page, "Decided by you")
    expect(page.locator("[data-row]")).to_have_count(2)
    expect(row(page, ids[0])).to_contain_text("approved by you")
    expect(row(page, ids[1])).to_contain_text("rejected by you")
    expect(page).to_have_url(re.compile(r"status=decided"))
    page.reload()
    expect(page.locator("[data-row]")).to_have_count(2)


# R14, R36
def test_a_vote_leads_on_and_says_how_many_people_are_needed(site: Site, visit: Visit) -> None:
    site.put_policy({"version": 1, "rules": [{"name": "two", "tools": ["pay"], "then": "ask", "quorum": 2}]})
    bot = site.agent()
    paid = site.propose(bot, "pay", {"amount": 5}, expires_in="600s")
    mail = site.propose(bot, "send_mail", {"to": "ann"}, expires_in="900s")
    page = open_inbox(visit, site.admin)
    show(page, "For me")
    expect(page.locator("[data-total=mine]")).to_have_text("2")
    press_next(page, paid)
    page.keyboard.press("a")
    expect_open(page, mail)
    expect(page.get_by_text("Approved. One more person needed.")).to_be_visible()
    expect(page.locator("[data-row]")).to_have_count(1)
    show(page, "Everyone")
    expect(row(page, paid)).to_contain_text("1 of 2")
    expect_counts(page, 2)


# R14, R53
def test_high_risk_is_held_and_findings_are_checked_by_keys(site: Site, visit: Visit) -> None:
    bot = site.agent()
    risky = site.propose(bot, "drop_table", {"name": "users"}, effect="destructive", expires_in="600s")
    odd = site.propose(bot, "send_mail", {"to": ODD}, expires_in="700s")
    last = site.propose(bot, "send_mail", {"to": "ann"}, expires_in="800s")
    page = open_inbox(visit, site.admin)
    press_next(page, risky)
    page.keyboard.press("a")  # too short
    expect(page.get_by_text("High risk: hold A for 1 second.")).to_be_visible()
    expect(page.locator("[data-holding]")).to_have_count(0)
    assert site.approval(risky)["status"] == "pending"
    page.keyboard.down("a")
    expect(page.locator("[data-holding]")).to_be_visible()
    expect_open(page, odd)  # the key is still held, and does nothing there
    page.keyboard.down("a")
    page.keyboard.up("a")
    assert [site.approval(each)["status"] for each in (risky, odd)] == ["approved", "pending"]
    expect(row(page, odd)).to_contain_text("1 to check")
    page.keyboard.press("a")
    expect(page.get_by_text("Check the marked place first.").first).to_be_visible()
    page.keyboard.press("Space")
    page.keyboard.press("a")
    expect_open(page, last)
    assert site.approval(odd)["status"] == "approved"


# R36
def test_a_row_says_in_little_room_what_is_asked_by_whom_for_whom_and_until_when(site: Site, visit: Visit) -> None:
    site.person("dana")
    keys = {name: site.key(name, **more) for name, more in (("bot", {}), ("treasury", {"requester": "dana"}))}
    bot, treasury = (site.server.client(key) for key in keys.values())
    site.clients += [bot, treasury]
    risky = site.propose(treasury, "drop_table", {"name": "users"}, effect="destructive", expires_in="7200s")
    mail = site.propose(bot, "send_mail", {"to": "ann", "body": "long " * 100}, thread_id="thread-1", expires_in="90s")
    question = bot.post("/api/questions", json={"question": "Which colour?", "run_id": "r", "call_id": "q"}).json()
    page = open_inbox(visit, site.admin)
    for each in page.locator("[data-row]").all():
        box = each.bounding_box()
        assert box is not None
        assert box["height"] <= 64
    for approval_id, shape in ((risky, "Destructive"), (mail, "Medium risk"), (question["approval_id"], "Question")):
        expect(row(page, approval_id).get_by_role("img", name=shape)).to_be_visible()
    expect(row(page, risky).locator("[data-requester]")).to_have_text("for dana")
    expect(row(page, risky)).to_contain_text("treasury")
    expect(row(page, risky).get_by_role("img", name="1 hour left")).to_be_visible()
    expect(row(page, mail).get_by_role("img", name=re.compile(r"left$"))).to_be_visible()
    expect(row(page, mail)).not_to_contain_text("thread-1")
    expect(row(page, mail)).to_contain_text("Run send_mail: body =")
    expect(row(page, mail).get_by_text("send_mail")).to_have_count(1)


# R36
def test_tab_titles_say_what_is_open_and_a_mistyped_address_says_so(site: Site, visit: Visit) -> None:
    ids = propose_mails(site, site.agent(), 2)
    page = open_inbox(visit, site.admin)
    expect(page).to_have_title("(2) Inbox · Interlock")
    press_next(page, ids[0])
    expect(page).to_have_title("(2) Run send_mail: to = user0 · Inbox · Interlock")
    page.keyboard.press("a")
    expect(page).to_have_title("(1) Run send_mail: to = user1 · Inbox · Interlock")
    page.goto(f"/a/{ids[1]}")
    expect(page).to_have_title("(1) Run send_mail: to = user1 · Interlock")
    page.goto("/inbx")
    expect(page.get_by_role("heading", level=1)).to_have_text("Page not found")
    expect(page).to_have_title("(1) Page not found · Interlock")
    page.locator("main").get_by_role("link", name="inbox").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Inbox")


# R42
def test_a_phone_goes_on_to_the_next_card_and_back_to_the_list(site: Site, visit: Visit) -> None:
    ids = propose_mails(site, site.agent(), 3)
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = open_inbox(visit, site.admin, **phone)
    row(page, ids[0]).get_by_role("link").click()
    for now, then in ((ids[0], ids[1]), (ids[1], ids[2])):
        card = page.locator(f'article[data-approval="{now}"][data-settled]')
        card.get_by_role("button", name="Approve").click()
        expect(page.locator(f'article[data-approval="{then}"]')).to_be_visible()
    page.go_back()
    expect(page.locator("article")).to_have_count(0)
    expect(page.locator("[data-row]")).to_have_count(1)
    row(page, ids[2]).get_by_role("link").click()
    page.locator("article[data-settled]").get_by_role("button", name="Approve").click()
    expect(page.get_by_text("No open requests")).to_be_visible()
    expect(page.locator("article")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


# R36
def test_the_inbox_has_no_barrier_while_one_works_in_it(site: Site, visit: Visit) -> None:
    bot, bob = site.agent(), site.person("bob")
    risky = site.propose(bot, "drop_table", {"name": "users"}, effect="destructive", expires_in="300s")
    odd = site.propose(bot, "send_mail", {"to": ODD}, expires_in="400s")
    ids = propose_mails(site, bot, 4)
    page = open_inbox(visit, site.admin)
    decide(bob, site, ids[2], "approve")
    decide(bob, site, ids[3], "reject")
    bob.post(f"/api/approvals/{ids[1]}/claim", json={})
    expect(row(page, ids[1])).to_contain_text("Claimed by bob")
    page.get_by_role("button", name="Filter", exact=True).click()
    row(page, ids[0]).get_by_role("link").click()
    expect(page.locator("article[data-settled]")).to_be_visible()
    page.keyboard.press("x")
    expect(page.get_by_text("1 selected", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    expect_open(page, ids[1])
    assert_no_barrier(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    for approval_id in (risky, odd, ids[1]):
        decide(bob, site, approval_id, "reject")
        expect(row(page, approval_id)).to_contain_text("rejected by bob")
    last = site.propose(bot, "send_mail", {"to": "last"})
    page.get_by_role("button", name="Show 1 new request").click()
    expect(page.locator(f'article[data-approval="{last}"][data-settled]')).to_be_visible()
    page.keyboard.press("a")
    expect(page.locator("[data-all-done]")).to_be_focused()
    assert_no_barrier(page)


def test_the_end_of_a_filtered_list_says_that_others_wait(site: Site, visit: Visit) -> None:
    agent = site.agent()
    [mail] = propose_mails(site, agent, 1)
    site.propose(agent, "refund", {"to": "ann"})
    page = visit(site.admin, "/inbox?tool=send_mail")
    expect(row(page, mail)).to_be_visible()
    press_next(page, mail)
    page.keyboard.press("a")
    done = page.locator("[data-all-done]")
    expect(done).to_contain_text("No more requests match")
    expect(done).to_contain_text("1 other waits.")
    done.get_by_role("button", name="Clear all filters").click()
    expect(page.locator("[data-row][data-status=pending]")).to_have_count(1)
