"""Every answer that a person can give on the card, and what takes it back."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.card_page import MAIL, card_on, decide, expect_status, open_card
from tests.browser.site import Site, Visit


def test_a_call_is_approved_with_a_comment(site: Site, visit: Visit) -> None:  # R11
    approval_id = site.propose(site.agent(), "send_mail", MAIL)
    card = open_card(visit, site.admin, approval_id)
    card.get_by_text("Add a comment").click()
    card.get_by_label("Comment").fill("As agreed.")
    card.get_by_role("button", name="Approve").click()
    expect_status(card, "approved")
    expect(card.locator("[data-outcome]")).to_contain_text("As agreed.")
    decision = site.approval(approval_id)["decision"]
    assert (decision["kind"], decision["comment"], decision["via"]) == ("approve", "As agreed.", "web")


@pytest.mark.smoke
def test_a_rejection_has_a_reason_and_can_be_undone_for_a_moment(site: Site, visit: Visit) -> None:  # R11 R14
    site.put_policy({"version": 1, "defaults": {"undo_window": "60s"}})  # also where the machine is slow
    approval_id = site.propose(site.agent(), "send_mail", MAIL)
    card = open_card(visit, site.admin, approval_id)
    card.get_by_role("button", name="Reject").click()
    card.get_by_label("Reason (optional)").fill("Not Ann.")
    card.page.keyboard.press("Escape")  # closes, and rejects nothing
    expect(card.get_by_role("button", name="Approve")).to_be_visible()
    card.get_by_role("button", name="Reject").click()
    expect(card.get_by_label("Reason (optional)")).to_have_value("Not Ann.")
    card.page.keyboard.press("Enter")
    expect_status(card, "rejected")
    expect(card.locator("[data-outcome]")).to_contain_text("Not Ann.")
    card.get_by_role("button", name="Undo").click()
    expect_status(card, "pending")
    expect(card).to_contain_text("You undid the rejection.")
    assert site.approval(approval_id)["decision"] is None


def test_a_rejection_that_the_agent_heard_of_stays(site: Site, visit: Visit) -> None:  # R14
    site.put_policy({"version": 1, "defaults": {"undo_window": "1s"}})
    approval_id = site.propose(site.agent(), "send_mail", MAIL)
    card = open_card(visit, site.admin, approval_id)
    decide(site, site.admin, approval_id, "reject")
    expect_status(card, "rejected")
    expect(card.get_by_role("button", name="Undo")).to_have_count(0)


def test_words_go_to_the_agent_instead_of_running_the_call(site: Site, visit: Visit) -> None:  # R11
    bot = site.agent()
    approval_id = site.propose(bot, "send_mail", MAIL)
    card = open_card(visit, site.admin, approval_id)
    card.get_by_role("button", name="Respond").click()
    expect(card.get_by_role("button", name="Send")).to_be_disabled()
    card.get_by_label("Message to the agent").fill("Ask her first.\nThen come back.")
    card.get_by_role("button", name="Send").click()
    expect_status(card, "responded")
    expect(card.locator("[data-outcome]")).to_contain_text("Then come back.")
    assert bot.get(f"/api/calls/{approval_id}").json()["message"] == "Ask her first.\nThen come back."


def test_only_what_the_rule_allows_is_offered_and_the_rest_says_why(site: Site, visit: Visit) -> None:  # R11
    rule = {"name": "few", "tools": ["send_mail"], "then": "ask", "decisions": ["approve", "reject"]}
    theirs = {"name": "others", "tools": ["pay"], "then": "ask", "approvers": {"users": ["bob"]}}
    site.person("bob")
    site.put_policy({"version": 1, "rules": [rule, theirs]})
    bot = site.agent()
    card = open_card(visit, site.admin, site.propose(bot, "send_mail", MAIL))
    expect(card.locator("[data-answer]")).to_have_text(["Approve", "Reject"])
    card.page.goto(f"/a/{site.propose(bot, 'pay', {'amount': 5})}")
    card = card_on(card.page)
    expect(card.locator("[data-why-not]")).to_have_text("You may not decide this approval. It needs bob.")
    expect(card.locator("[data-answer]")).to_have_count(0)


def test_people_ask_the_agent_remark_claim_and_delegate(site: Site, visit: Visit) -> None:  # R40 R55
    site.person("bob", teams=("finance",))
    bot = site.agent()
    approval_id = site.propose(bot, "send_mail", MAIL)
    card = open_card(visit, site.admin, approval_id)
    card.get_by_label("Ask the agent").fill("Which Ann?")
    card.get_by_role("button", name="Ask", exact=True).click()
    expect(card.locator("[data-question]")).to_contain_text("The agent has not answered yet.")
    bot.post(f"/api/calls/{approval_id}/answer", json={"number": 1, "text": "The **boss**.\u202e"})
    expect(card.locator("[data-question]")).to_contain_text("Agent says (unverified): The **boss**.\\u{202e}")
    card.get_by_label("Note for other people").fill("I know her.")
    card.get_by_role("button", name="Add", exact=True).click()
    expect(card.locator("[data-remark]")).to_contain_text("I know her.")
    card.get_by_role("button", name="Claim").click()
    expect(card.locator("[data-claimed]")).to_have_text("Claimed by you")
    card.get_by_label("Delegate to").select_option("team finance")
    card.get_by_role("button", name="Delegate").click()
    expect(card.get_by_label("Who decides")).to_contain_text("You delegated to team finance")
    assert site.approval(approval_id)["status"] == "pending"
