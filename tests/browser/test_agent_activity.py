"""What agents do, on their page: last seen, calls and outcomes, new tools; and the freeze that stops one."""

from __future__ import annotations

import re

import httpx2
from playwright.sync_api import Page, expect

from tests.browser.site import Site, Visit

POLICY = {
    "version": 1,
    "rules": [
        {"name": "free", "tools": ["list_*"], "then": "allow"},
        {"name": "never", "tools": ["drop_*"], "then": "deny", "reason": "Never that."},
    ],
}


def decide(site: Site, approval_id: str, kind: str) -> None:
    digest = site.approval(approval_id)["args_sha256"]
    answer = site.admin.post(f"/api/approvals/{approval_id}/decision", json={"kind": kind, "args_sha256": digest})
    assert answer.status_code == 200, answer.text


def make_calls(site: Site) -> httpx2.Client:
    """Of the agent treasury: one is approved, one rejected, one pending, one allowed, one refused by the policy."""
    site.put_policy(POLICY)
    bot = site.agent("treasury")
    decide(site, site.propose(bot, "pay", {"to": "ann"}), "approve")
    decide(site, site.propose(bot, "pay", {"to": "eve"}), "reject")
    site.propose(bot, "refund", {"to": "bob"})
    call = {"args": {}, "run_id": "run", "effect": "write"}
    assert bot.post("/api/calls", json={**call, "tool": "list_all", "call_id": "a"}).json()["outcome"] == "proceed"
    assert bot.post("/api/calls", json={**call, "tool": "drop_all", "call_id": "b"}).json()["status"] == "denied"
    return bot


def figures(page: Page) -> list[list[str]]:
    texts = page.locator("[data-figures] > div")
    expect(texts.first).to_be_visible()
    return [each.splitlines() for each in texts.all_inner_texts()]


# R10
def test_an_agents_calls_and_outcomes_are_shown(site: Site, visit: Visit) -> None:
    make_calls(site)
    page = visit(site.admin, "/agents")
    row = page.locator("[data-agent=treasury]")
    expect(row).to_contain_text(re.compile("1 pending · last seen .* · 4 calls in 30 days · 1 refused by the policy"))
    row.get_by_role("link", name="treasury").click()
    assert [(label, value, about) for label, value, about in figures(page)] == [
        ("Pending", "1", "now"),
        ("Calls, 30 days", "4", "without reads"),
        ("Asked a person", "75 %", "3 calls"),
        ("Refused", "2", "1 by people, 1 by the policy"),
    ]
    used = page.get_by_role("list", name="Tools it has used").get_by_role("listitem")
    expect(used).to_have_count(3)
    expect(used.last).to_contain_text("pay")
    expect(used.last).to_contain_text("2 calls: 1 approved, 1 rejected")
    expect(used.last).to_contain_text("first used")
    page.get_by_text("Show as table").click()
    expect(page.get_by_role("table").get_by_role("row")).to_have_count(2)
    expect(page.get_by_role("link", name="Calls", exact=True)).to_have_attribute("href", "/history?agent=treasury")


# R10
def test_a_new_call_changes_the_figures_and_a_new_tool_comes_first(site: Site, visit: Visit) -> None:
    bot = make_calls(site)
    page = visit(site.admin, "/agents/treasury")
    used = page.get_by_role("list", name="Tools it has used").get_by_role("listitem")
    expect(used).to_have_count(3)
    site.propose(bot, "close_account", {"of": "ann"})
    expect(used).to_have_count(4)
    expect(used.first).to_contain_text("close_account")
    pending = page.locator("[data-figures] > div").filter(has_text="Pending")
    expect(pending.locator("dd").first).to_have_text("2")


# R59
def test_a_freeze_says_its_effect_before_and_stops_the_agent(site: Site, visit: Visit) -> None:
    bot = make_calls(site)
    page = visit(site.admin, "/agents/treasury")
    page.get_by_role("button", name="Freeze agent").click()
    dialog = page.get_by_role("dialog", name="Freeze treasury?")
    expect(dialog).to_contain_text("every new call of treasury is refused, reads included")
    expect(dialog).to_contain_text("Its pending request stays open: people can still decide")
    expect(dialog).to_contain_text("every key that has used its name")
    expect(dialog.get_by_role("button", name="Freeze")).to_be_disabled()
    page.keyboard.press("Escape")
    assert site.admin.get("/api/freeze").json()["items"] == []
    page.get_by_role("button", name="Freeze agent").click()
    dialog.get_by_label("Reason").fill("Wrong transfers.")
    dialog.get_by_role("button", name="Freeze").click()
    expect(page.get_by_text("Wrong transfers.")).to_be_visible()
    expect(page.get_by_role("button", name="Freeze agent")).to_have_count(0)
    call = {"tool": "pay", "args": {}, "run_id": "run", "call_id": "late", "effect": "write"}
    assert bot.post("/api/calls", json=call).json()["outcome"] == "refused"
    page.get_by_role("link", name="All agents").click()
    expect(page.locator("[data-agent=treasury]")).to_contain_text("Frozen", ignore_case=True)
    page.get_by_role("button", name="Unfreeze").click()
    page.get_by_role("group", name="Unfreeze").get_by_role("button", name="Unfreeze").click()
    expect(page.locator("[data-agent=treasury]")).not_to_contain_text("Frozen", ignore_case=True)


# R59
def test_only_admins_are_offered_a_freeze_and_a_connection(site: Site, visit: Visit) -> None:
    make_calls(site)
    page = visit(site.person("bob"), "/agents/treasury")
    assert figures(page)[0][:2] == ["Pending", "1"]
    expect(page.get_by_role("button", name="Freeze agent")).to_have_count(0)
    page.get_by_role("link", name="All agents").click()
    expect(page.get_by_role("link", name="treasury")).to_be_visible()
    expect(page.get_by_role("link", name="Connect an agent")).to_have_count(0)


# R9
def test_without_a_model_the_page_says_the_line_that_sets_it(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/agents")
    expect(page.get_by_role("note", name="No model is set")).to_contain_text("export OPENAI_API_KEY=your-key")
