"""Several people, time and the agent at one card: everybody sees what stands, and nothing is decided twice."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.card_page import MAIL, decide, expect_status, open_card
from tests.browser.site import Site, Visit


def test_of_two_people_at_one_card_one_decides_and_both_see_it(site: Site, visit: Visit) -> None:  # R3 R11
    eve = site.person("eve")
    approval_id = site.propose(site.agent(), "send_mail", MAIL)
    hers, mine = open_card(visit, eve, approval_id), open_card(visit, site.admin, approval_id)
    mine.page.route("**/decision", lambda route: (decide(site, eve, approval_id, "reject"), route.continue_()))
    mine.get_by_role("button", name="Approve").click()
    expect_status(mine, "rejected")
    expect(mine).to_contain_text("Somebody else decided first.")
    expect(mine.locator("[data-decided-by=eve]")).to_be_visible()
    expect(mine.get_by_text("Request failed")).to_have_count(0)
    expect_status(hers, "rejected")
    expect(hers.get_by_role("button", name="Undo")).to_be_visible()


def test_a_card_that_is_decided_elsewhere_says_by_whom(site: Site, visit: Visit) -> None:  # R3
    bot, eve = site.agent(), site.person("eve")
    approval_id = site.propose(bot, "send_mail", MAIL)
    card = open_card(visit, site.admin, approval_id)
    decide(site, eve, approval_id, "edit", args={**MAIL, "subject": "Hi"})
    expect_status(card, "approved")
    expect(card.locator("[data-outcome]")).to_contain_text("Approved with 1 change, not started yet")
    expect(card.locator("[data-change='/subject']")).to_have_text('subject "Hello" → "Hi"')
    fence = bot.post(f"/api/calls/{approval_id}/start", json={}).json()["fence"]
    expect_status(card, "running")
    bot.post(f"/api/calls/{approval_id}/finish", json={"fence": fence, "ok": True, "result": {"id": 2**60}})
    expect_status(card, "succeeded")
    expect(card.locator("[data-outcome]")).to_contain_text(f'"id": {2**60}')


@pytest.mark.smoke
def test_two_people_are_needed_and_the_card_says_who_was_there(site: Site, visit: Visit) -> None:  # R11
    eve = site.person("eve", teams=("finance",))
    first = {"approvers": {"users": ["ann"]}}
    rule = {"name": "pay", "tools": ["pay"], "then": "ask", "stages": [first, {"approvers": {"teams": ["finance"]}}]}
    site.put_policy({"version": 1, "rules": [rule]})
    approval_id = site.propose(site.agent(), "pay", {"amount": 5})
    hers, mine = open_card(visit, eve, approval_id), open_card(visit, site.admin, approval_id)
    expect(hers).to_contain_text("Another stage has to approve first: ann.")
    mine.get_by_role("button", name="Approve").click()
    expect(mine.get_by_label("Who decides")).to_contain_text("1 of 2 approvals")
    expect(hers.locator("[data-needed]")).to_have_text("Still needed: team finance")
    expect(hers.get_by_label("Who decides")).to_contain_text("ann")
    hers.get_by_role("button", name="Approve").click()
    expect_status(hers, "approved")
    expect_status(mine, "approved")


def test_a_card_that_expires_while_it_is_open_says_so(site: Site, visit: Visit) -> None:  # R3
    approval_id = site.propose(site.agent(), "send_mail", MAIL, expires_in="3s")
    card = open_card(visit, site.admin, approval_id)
    expect_status(card, "expired")
    expect(card.locator("[data-outcome]")).to_contain_text("nobody decided in time")
    expect(card.locator("[data-answer]")).to_have_count(0)


def test_who_looks_how_a_lost_call_ended_says_so(site: Site, visit: Visit) -> None:  # R11
    bot = site.agent()
    approval_id = site.propose(bot, "send_mail", MAIL)
    decide(site, site.admin, approval_id, "approve")
    bot.post(f"/api/calls/{approval_id}/start", json={"lease_seconds": 1})
    card = open_card(visit, site.admin, approval_id)
    expect_status(card, "unknown")
    card.get_by_label("What did you find?").fill("It is in the outbox.")
    card.get_by_role("button", name="Mark as succeeded").click()
    expect_status(card, "succeeded")
    expect(card.locator("[data-ended-by=ann]")).to_be_visible()
    expect(card.locator("[data-outcome]")).to_contain_text("It is in the outbox.")


def test_a_call_that_is_withdrawn_or_fails_says_so(site: Site, visit: Visit) -> None:  # R3
    bot = site.agent()
    withdrawn, failing = site.propose(bot, "send_mail", MAIL), site.propose(bot, "send_mail", {"to": "nobody"})
    card = open_card(visit, site.admin, withdrawn)
    bot.post(f"/api/calls/{withdrawn}/cancel", json={})
    expect_status(card, "cancelled")
    expect(card.locator("[data-outcome]")).to_contain_text("Cancelled")
    decide(site, site.admin, failing, "approve")
    fence = bot.post(f"/api/calls/{failing}/start", json={}).json()["fence"]
    bot.post(f"/api/calls/{failing}/finish", json={"fence": fence, "ok": False, "error": "No such <b>mailbox</b>."})
    card.page.goto(f"/a/{failing}")
    expect(card.locator("[data-outcome=failed]")).to_contain_text("No such <b>mailbox</b>.")
