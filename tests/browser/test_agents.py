"""The agents and their switches: what turning one off means, who may do it, and that it is on record."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import READY, Site, Visit

POLICY = {
    "version": 1,
    "rules": [
        {"name": "legal looks at objectives", "tools": ["okr_create_objective"], "then": "ask"},
        {
            "name": "long titles",
            "tools": ["okr_update_objective"],
            "when": "size(args.title) > 50",
            "then": "ask",
            "quorum": 2,
        },
    ],
}


@pytest.fixture
def config() -> str:
    return """\
agents:
  clerk:
    instructions: You keep the goals of the office.
    tools: [okr, cms, linaer_issue]
    tool_approvals: {okr_list_objectives: true}
"""


class Row:
    """One tool of an agent, as it stands on the page."""

    def __init__(self, page: Page, tool: str) -> None:
        self.place = page.locator(f"[data-tool={tool}]")
        self.switch = self.place.get_by_role("switch")
        self.verdict = self.place.locator("[data-verdict]")


# R10
def test_switching_a_question_off_says_what_it_means_wants_a_reason_and_is_on_record(site: Site, visit: Visit) -> None:
    bot = site.agent("clerk")
    for _ in range(3):
        site.propose(bot, "cms_delete_post", {"slug": "hello"})
    page = visit(site.admin, "/agents")
    page.get_by_role("link", name="clerk").click()
    expect(page).to_have_url(re.compile("/agents/clerk$"))
    tool = Row(page, "cms_delete_post")
    expect(tool.verdict).to_have_text("needs approval")
    tool.switch.focus()
    page.keyboard.press("Space")
    expect(tool.place).to_contain_text("clerk runs cms_delete_post without approval")
    expect(tool.place).to_contain_text("clerk called it 3 times: 3 are pending")
    expect(tool.switch).to_be_checked()
    off = tool.place.get_by_role("button", name="Turn off approval")
    expect(off).to_be_disabled()
    page.get_by_label("Reason").fill("Posts are kept elsewhere too.")
    off.click()
    expect(tool.switch).not_to_be_checked()
    expect(tool.verdict).to_have_text("runs without approval")
    [entry] = site.admin.get("/api/audit", params={"kind": "agent_changed"}).json()["items"]
    assert entry["content"]["reason"] == "Posts are kept elsewhere too."
    tool.switch.click()
    expect(tool.verdict).to_have_text("needs approval")
    assert site.admin.get("/api/agents/clerk").json()["tool_approvals"] == {
        "okr_list_objectives": True,
        "cms_delete_post": True,
    }


# R9, R10
def test_a_rule_that_still_asks_is_said_and_so_is_what_is_ignored(site: Site, visit: Visit) -> None:
    site.put_policy(POLICY)
    page = visit(site.admin, "/agents/clerk")
    expect(page.get_by_text('there is no tool "linaer_issue" here')).to_be_visible()
    whole = Row(page, "okr_create_objective")
    whole.switch.click()
    expect(whole.place).to_contain_text("Nothing will run without approval")
    expect(whole.place).to_contain_text("A rule still asks: “legal looks at objectives”")
    whole.place.get_by_role("button", name="Keep approval").click()
    part = Row(page, "okr_update_objective")
    expect(part.verdict).to_have_text("needs approval")
    part.place.locator("summary").click()
    expect(part.place).to_contain_text("Needs 2 people: the requester, a reviewer or an admin.")
    part.switch.click()
    expect(part.place).to_contain_text("A rule still asks: “long titles”, depending on the arguments")
    part.place.get_by_label("Reason").fill("Short ones are harmless.")
    part.place.get_by_role("button", name="Turn off approval").click()
    expect(part.verdict).to_have_text("depends on the arguments")


# R10
def test_who_may_not_approve_a_tool_cannot_switch_its_question_off(site: Site, visit: Visit) -> None:
    rita = site.person("rita", teams=("legal",))
    bob, vic = site.person("bob"), site.person("vic", "viewer")
    legal = {"name": "legal", "tools": ["okr_create_objective"], "then": "ask", "approvers": {"teams": ["legal"]}}
    site.put_policy({"version": 1, "rules": [legal]})
    for person, may in ((rita, True), (bob, False)):
        page = visit(person, "/agents/clerk?q=okr_create_objective")
        own = Row(page, "okr_create_objective")
        expect(own.switch).to_be_enabled(enabled=may)
        expect(page.get_by_role("button", name="Edit")).to_have_count(0)
    expect(own.switch).to_have_attribute("title", re.compile("Only admins, and people who may approve"))
    page = visit(vic, "/agents/clerk")
    expect(Row(page, "cms_delete_post").switch).to_be_disabled()
    page = visit(bob, "/agents/clerk")
    other = Row(page, "cms_delete_post")
    other.switch.click()
    other.place.get_by_label("Reason").fill("Tested well.")
    other.place.get_by_role("button", name="Turn off approval").click()
    expect(other.switch).not_to_be_checked()
    assert site.admin.get("/api/agents/clerk").json()["changed_by"] == "bob"


# R10
def test_tools_are_searched_and_come_in_pages_on_a_phone_too(site: Site, visit: Visit) -> None:
    bot = site.agent("many")
    for number in range(120):
        site.propose(bot, f"tool_{number:03}", {"n": number})
    page = visit(site.admin, "/agents/many", viewport={"width": 390, "height": 844})
    expect(page.locator(READY)).to_be_visible()
    rows = page.locator("[data-tool]")
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="Show more tools").click()
    expect(rows).to_have_count(100)
    page.get_by_label("Search tools").fill("tool_11")
    expect(rows).to_have_count(10)
    expect(page).to_have_url(re.compile(r"q=tool_11"))
    page.reload()
    expect(rows).to_have_count(10)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


# R9
def test_an_admin_changes_an_agent_and_somebody_elses_change_is_not_lost(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/agents/clerk")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Turns").fill("many")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("turns")
    page.get_by_label("Turns").fill("12")
    page.get_by_label("Reason").fill("It talks too much.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("turns 12")).to_be_visible()
    told = site.admin.get("/api/agents/clerk").json()
    assert (told["limits"], told["stored"]) == ({"turns": 12}, ["limits"])
    tool = Row(page, "cms_delete_post")
    page.route("**/api/agents**", lambda route: route.abort() if route.request.method == "GET" else route.continue_())
    tool.switch.click()
    page.get_by_label("Reason").fill("Mine.")
    site.admin.put("/api/agents/clerk", json={"limits": {"turns": 9}})
    tool.place.get_by_role("button", name="Turn off approval").click()
    expect(tool.place.get_by_role("alert")).to_contain_text("Somebody else changed this agent in the meantime")
    page.unroute("**/api/agents**")
    expect(page.get_by_label("Reason")).to_have_value("Mine.")
    expect(page.get_by_text("turns 9")).to_be_visible()
    tool.place.get_by_role("button", name="Turn off approval").click()
    expect(tool.switch).not_to_be_checked()
    told = site.admin.get("/api/agents/clerk").json()
    assert (told["limits"], told["tool_approvals"]["cms_delete_post"]) == ({"turns": 9}, False)


# R57
def test_tools_of_an_agent_are_pinned_one_by_one_or_all_at_once(site: Site, visit: Visit) -> None:
    bot = site.agent("mailer")
    for tool, effect in (("file_letter", "write"), ("shred_letter", "write"), ("okr_like", "")):
        site.propose(bot, tool, {"to": "ann"}, effect=effect)
    page = visit(site.admin, "/agents/mailer")
    expect(page.get_by_text("2 tools are trusted on their declaration alone")).to_be_visible()
    page.get_by_label("Effect of shred_letter").select_option("destructive")
    page.get_by_role("button", name="Pin shred_letter").click()
    expect(page.locator("[data-declared=shred_letter]")).to_contain_text("pinned")
    page.get_by_role("button", name="Pin all tools of this agent").click()
    plan = page.get_by_role("region", name="Pin 1 tool as declared?")
    expect(plan).to_contain_text("file_letter: write")
    expect(plan).to_contain_text("okr_like: its effect is not declared")
    plan.get_by_role("button", name="Pin 1 tool").click()
    expect(page.get_by_role("button", name="Unpin file_letter")).to_be_visible()
    expect(page.get_by_text("No tool is trusted on its declaration alone.")).to_be_visible()
