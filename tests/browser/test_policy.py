"""The policy page: rules in words, the text with its mistakes, what a draft would do, and who changed what."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import Site, Visit

POLICY = """\
# Who may do what
version: 1
rules:
  # mail leaves the house
  - name: mail is looked at
    tools: [send_mail]
    when: args.to.endsWith("@example.com")
    then: ask
    expires_in: 30m
  # nothing is deleted
  - name: nothing is deleted
    tools: [delete_*]
    then: deny
    reason: Files stay.
  - name: would stop payments
    tools: [pay]
    then: deny
    mode: shadow
"""
YAML = {"content-type": "application/yaml"}


def put(site: Site, text: str = POLICY, reason: str = "we begin") -> None:
    answer = site.admin.put("/api/policy", content=text, headers=YAML, params={"reason": reason})
    assert answer.status_code == 200, answer.text


class Editor:
    """The text, typed as people do."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.place = page.get_by_role("textbox", name="Policy as YAML")

    def fill(self, text: str) -> None:
        self.place.click()
        self._page.keyboard.press("ControlOrMeta+a")
        self._page.keyboard.insert_text(text)


# R34
@pytest.mark.smoke
def test_a_mistake_is_marked_on_its_line_and_what_is_right_is_put_in_force(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/policy?tab=text")
    text = Editor(page)
    text.fill(POLICY.replace("expires_in: 30m", "expires_in: 30"))
    expect(page.get_by_role("alert")).to_contain_text("expires_in is 30 without a unit")
    expect(page.locator(".cm-wrong")).to_have_text("    expires_in: 30")
    expect(page.get_by_role("region", name="Your draft")).to_contain_text("It has an error. Line 9: expires_in")
    expect(page.get_by_role("button", name="Review and put in force")).to_be_disabled()
    page.get_by_role("button", name="Line 9").click()
    expect(text.place).to_be_focused()
    text.fill(POLICY)
    expect(page.locator(".cm-wrong")).to_have_count(0)
    page.get_by_role("button", name="Review and put in force").click()
    expect(page.get_by_text("mail is looked at at position 1")).to_be_visible()
    page.get_by_label("Reason").fill("We begin.")
    page.get_by_role("button", name="Put in force").click()
    expect(page.get_by_text("Version 1 is in force.")).to_be_visible()
    expect(page.locator("[data-rule]")).to_have_count(3)
    assert site.admin.get("/api/policy").text == POLICY
    [version] = site.admin.get("/api/policy/versions").json()["items"]
    assert (version["author"], version["reason"]) == ("ann", "We begin.")


# R34, R52
def test_rules_are_shown_in_words_and_moved_with_their_comments(site: Site, visit: Visit) -> None:
    put(site)
    bot = site.agent()
    for to in ("ann@example.com", "bob@example.com"):
        site.propose(bot, "send_mail", {"to": to})
    site.propose(bot, "pay", {"amount": 5})
    page = visit(site.admin, "/policy")
    rules = page.locator("[data-rule]")
    first = rules.first
    expect(first).to_contain_text("Calls of send_mail wait for one person")
    expect(first).to_contain_text('args.to.endsWith("@example.com")')
    expect(first).to_contain_text("Expires after: 30m")
    expect(first).to_contain_text("It decided 2 calls: 2 asked.")
    page.get_by_role("button", name="Move “nothing is deleted” up").click()
    expect(rules.first).to_contain_text("nothing is deleted")
    expect(page.get_by_text("1 rule moved.")).to_be_visible()
    page.get_by_role("button", name="Remove “mail is looked at”").click()
    expect(rules).to_have_count(2)
    page.get_by_role("button", name="Add rule").click()
    expect(page.get_by_role("textbox", name="Policy as YAML")).to_be_focused()
    expect(page.get_by_text("Rule added. Name its tools, and choose what happens.")).to_be_visible()
    page.get_by_role("tab", name="Rules", exact=True).click()
    expect(rules.last).to_contain_text("Calls of tool_name wait for one person")
    page.get_by_role("button", name="Remove “new rule”").click()
    expect(rules).to_have_count(2)
    page.get_by_role("button", name="Review and put in force").click()
    page.get_by_label("Reason").fill("Mail is free.")
    page.get_by_role("button", name="Put in force").click()
    expect(page.get_by_text("Version 2 is in force.")).to_be_visible()
    text = site.admin.get("/api/policy").text
    assert "# nothing is deleted\n  - name: nothing is deleted" in text
    assert "mail" not in text
    page.get_by_role("tab", name="Shadow rules").click()
    expect(page.locator("[data-shadow]")).to_contain_text("1 asked that would have been denied")
    page.get_by_role("tab", name="Versions").click()
    page.locator("[data-version='1'] summary").click()
    page.get_by_role("button", name="Restore this version").click()
    expect(page.get_by_role("region", name="Line-by-line diff")).to_contain_text("mail is looked at")
    page.get_by_label("Reason").fill("It was needed.")
    page.get_by_role("button", name="Put in force").click()
    expect(page.get_by_text("Version 3 is in force.")).to_be_visible()
    assert site.admin.get("/api/policy").text == POLICY


# R34
def test_what_somebody_else_put_in_force_meanwhile_is_shown_and_nothing_is_lost(site: Site, visit: Visit) -> None:
    put(site)
    page = visit(site.admin, "/policy?tab=text")
    Editor(page).fill(POLICY.replace("30m", "45m"))
    page.get_by_role("button", name="Review and put in force").click()
    page.get_by_label("Reason").fill("More time.")
    page.route("**/api/policy", lambda route: route.abort() if route.request.method == "GET" else route.continue_())
    put(site, POLICY.replace("Files stay.", "Files are kept."), "better words")
    with page.expect_response(lambda answer: answer.status == 409):
        page.get_by_role("button", name="Put in force").click()
    page.unroute("**/api/policy")
    expect(page.get_by_role("alert")).to_contain_text("Version 2 is now in force, by ann: “better words”")
    expect(page.get_by_role("region", name="Changes made in the meantime")).to_contain_text("Files are kept.")
    page.get_by_role("button", name="Compare my draft with version 2").click()
    expect(page.get_by_role("region", name="Line-by-line diff")).to_contain_text("45m")
    expect(page.get_by_label("Reason")).to_have_value("More time.")
    page.get_by_role("button", name="Put in force").click()
    expect(page.get_by_text("Version 3 is in force.")).to_be_visible()
    assert "45m" in site.admin.get("/api/policy").text


def test_a_draft_and_its_reason_survive_a_reload_and_a_closed_tab(site: Site, visit: Visit) -> None:
    put(site)
    page = visit(site.admin, "/policy?tab=text")
    Editor(page).fill(POLICY.replace("30m", "45m"))
    page.get_by_role("button", name="Review and put in force").click()
    page.get_by_label("Reason").fill("More time.")
    page.reload()
    expect(page.get_by_label("Reason")).to_have_value("More time.")
    page.close()
    page = page.context.new_page()
    page.goto("/policy")
    expect(page.get_by_role("region", name="Your draft")).to_contain_text("1 rule changed.")
    page.get_by_role("tab", name="Text").click()
    expect(Editor(page).place).to_contain_text("45m")
    page.get_by_role("button", name="Discard").click()
    page.get_by_role("button", name="Confirm discard").click()
    page.reload()
    expect(Editor(page).place).to_contain_text("30m")
    expect(page.get_by_role("region", name="Your draft")).to_have_count(0)


# R38, R39, R52
def test_a_template_is_explained_and_rehearsed_before_it_counts(site: Site, visit: Visit) -> None:
    bot = site.agent("bookkeeper")
    asked = site.propose(bot, "send_mail", {"to": "ann@example.com"})
    page = visit(site.admin, "/policy?tab=text", viewport={"width": 390, "height": 844})
    page.get_by_text("Start from a template").click()
    page.get_by_role("button", name="Use the template read-only").click()
    expect(page.get_by_text("Valid, with")).to_be_visible()
    page.get_by_role("tab", name="Explain").click()
    page.get_by_label("Tool").fill("send_mail")
    expect(page.get_by_label("Effect")).to_have_value("write")
    page.get_by_label("Arguments").fill("[1]")
    expect(page.get_by_text("Arguments must be an object")).to_be_visible()
    page.get_by_label("Arguments").fill('{"to": "x", "n": 9007199254740993}')
    page.get_by_role("button", name="Explain").click()
    verdict = page.get_by_role("status", name="Verdict")
    expect(verdict.locator("[data-then=deny]")).to_be_visible()
    expect(verdict).to_contain_text("decides")
    expect(verdict).to_contain_text("Judged as a call with an agent key that is bound to no agent")
    page.get_by_label("Caller").select_option("embedded")
    page.get_by_role("button", name="Explain").click()
    expect(verdict).to_contain_text("Judged as a call of a program that opens the database itself")
    page.get_by_label("Caller").select_option("key")
    page.get_by_label("Policy", exact=True).select_option("now")
    page.get_by_role("button", name="Explain").click()
    expect(verdict.locator("[data-then=ask]")).to_be_visible()
    page.get_by_role("tab", name="Rehearse").click()
    page.get_by_role("button", name="Rehearse", exact=True).click()
    expect(page.get_by_role("heading", name="Of 1 call, 1 would get a different verdict")).to_be_visible()
    row = page.locator("tr[data-kind=deny] td")
    expect(row.nth(0)).to_have_text("0")
    expect(row.nth(1)).to_have_text("1")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("list", name="Calls that would change").get_by_role("link").click()
    expect(page).to_have_url(re.compile(asked))
    page.go_back()
    expect(page.get_by_text("Your draft is not in force.")).to_be_visible()
    page.get_by_role("button", name="Discard").click()
    page.get_by_role("button", name="Confirm discard").click()
    expect(page.get_by_text("Your draft is not in force.")).to_have_count(0)
    assert site.admin.get("/api/policy").headers["etag"] == '"0"'


def test_the_policy_is_for_admins_and_others_are_told_so(site: Site, visit: Visit) -> None:
    page = visit(site.person("rita"), "/policy")
    expect(page.get_by_text("The policy is available to admins")).to_be_visible()
    assert page.get_by_role("tab").count() == 0
