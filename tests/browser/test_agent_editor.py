"""Agents are made in the page: created, tried, copied and deleted, and nothing that was typed is lost."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.site import READY, Site, Visit, reload_anyway
from tests.browser.test_axe import SCHEMES, assert_no_barrier


@pytest.fixture
def options() -> tuple[str, ...]:
    return ("--demo",)


def name_field(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Name", exact=True)


def choose_tool(page: Page, tool: str) -> Locator:
    """Select a tool in the form; its approval switch."""
    page.get_by_role("checkbox", name=tool, exact=True).check()
    return page.get_by_role("switch", name=f"Require approval for {tool}?")


def create_agent(site: Site, name: str, **settings: object) -> None:
    made = site.admin.put(f"/api/agents/{name}", json=settings, headers={"if-none-match": "*"})
    assert made.status_code == 200, made.text


# R9, R10, R65
def test_an_agent_is_created_tried_copied_and_deleted_in_the_page(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/agents")
    page.get_by_role("link", name="New agent").click()
    name_field(page).fill("night clerk")
    expect(page.get_by_text("Use letters, digits, _ and - only.")).to_be_visible()
    name_field(page).fill("night")
    page.get_by_label("Instructions").fill("You look after the pages at night.")
    page.get_by_label("Search tools").fill("pages")
    gate = choose_tool(page, "cms_list_pages")
    expect(gate).not_to_be_checked()
    gate.click()
    page.get_by_label("Search tools").fill("delete page")
    expect(choose_tool(page, "cms_delete_page")).to_be_checked()
    page.get_by_role("checkbox", name="writer").check()
    page.get_by_label("Turns").fill("12")
    reload_anyway(page)
    expect(page.get_by_label("Instructions")).to_have_value("You look after the pages at night.")
    page.get_by_role("button", name="Create agent").click()
    expect(page).to_have_url(re.compile("/agents/night$"))
    expect(page.get_by_text("This agent was made here")).to_be_visible()
    made = site.admin.get("/api/agents/night").json()
    assert (made["tools"], made["tool_approvals"]) == (["cms_list_pages", "cms_delete_page"], {"cms_list_pages": True})
    assert (made["agents"], made["limits"]) == (["writer"], {"turns": 12})
    try_agent(page)
    copy_agent(site, page)
    delete_agent(site, page)


def try_agent(page: Page) -> None:
    page.get_by_role("button", name="Try it").click()
    box = page.get_by_role("region", name="Try it")
    box.get_by_label("Message").fill("List pages")
    box.get_by_label("Message").press("Enter")
    expect(box.get_by_role("article")).to_contain_text("cms_list_pages")
    expect(page).to_have_url(re.compile("try=thread-"))
    page.reload()
    expect(box.get_by_role("article")).to_contain_text("cms_list_pages")


def copy_agent(site: Site, page: Page) -> None:
    page.get_by_role("link", name="Copy").click()
    expect(name_field(page)).to_have_value("night-copy")
    expect(page.get_by_role("checkbox", name="cms_delete_page", exact=True)).to_be_checked()
    page.get_by_role("button", name="Create agent").click()
    expect(page).to_have_url(re.compile("/agents/night-copy$"))
    original, copy = (site.admin.get(f"/api/agents/{name}").json() for name in ("night", "night-copy"))
    assert [copy[field] for field in copy["stored"]] == [original[field] for field in copy["stored"]]


def delete_agent(site: Site, page: Page) -> None:
    page.goto("/agents/night")
    page.get_by_role("button", name="Delete agent").click()
    dialog = page.get_by_role("dialog", name="Delete night?")
    expect(dialog).to_contain_text("1 conversation stays readable, but cannot continue.")
    expect(dialog).to_contain_text("1 pending approval in its conversations is cancelled and does not run.")
    dialog.get_by_label("Reason").fill("The copy does it.")
    dialog.get_by_role("button", name="Delete agent").click()
    expect(page).to_have_url(re.compile("/agents$"))
    expect(page.get_by_role("link", name="night-copy")).to_be_visible()
    expect(page.get_by_role("link", name="night", exact=True)).to_have_count(0)
    thread = site.admin.get("/api/threads").json()["items"][0]
    page.goto(f"/chat/{thread['id']}")
    expect(page.get_by_text("The agent night does not exist any more. You can read")).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_have_count(0)


# R10
def test_turning_a_gate_off_in_the_form_wants_a_reason(site: Site, visit: Visit) -> None:
    create_agent(site, "night", tools=["cms"])
    page = visit(site.admin, "/agents/night?edit=1")
    page.get_by_label("Search tools").first.fill("delete_post")
    page.get_by_role("form").get_by_role("switch", name="Require approval for cms_delete_post?").click()
    expect(page.get_by_text("Approval will be turned off for 1 tool")).to_be_visible()
    save = page.get_by_role("button", name="Save")
    expect(save).to_be_disabled()
    page.get_by_label("Reason").fill("Posts are kept elsewhere too.")
    save.click()
    expect(page.get_by_role("button", name="Edit")).to_be_visible()
    [*_, entry] = sorted(
        site.admin.get("/api/audit", params={"kind": "agent_changed"}).json()["items"], key=lambda item: item["seq"]
    )
    assert entry["content"]["reason"] == "Posts are kept elsewhere too."
    assert site.admin.get("/api/agents/night").json()["tool_approvals"] == {"cms_delete_post": False}


# R9
def test_a_pack_is_chosen_whole_and_one_tool_is_taken_out_again(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/agents?new=1")
    name_field(page).fill("night")
    okr = page.get_by_role("region", name="Tools of okr")
    okr.get_by_role("checkbox", name="All of okr").check()
    expect(okr).to_contain_text("including tools added later")
    expect(page.get_by_role("list", name="Packs and patterns")).to_contain_text("okr")
    okr.get_by_role("checkbox", name="okr_create_objective", exact=True).uncheck()
    expect(okr.get_by_role("checkbox", name="All of okr")).not_to_be_checked()
    page.get_by_label("Add a pattern").fill("cms_list_*")
    page.get_by_label("Add a pattern").press("Enter")
    expect(page.get_by_role("checkbox", name="cms_list_pages", exact=True)).to_be_checked()
    page.get_by_role("button", name="Create agent").click()
    expect(page).to_have_url(re.compile("/agents/night$"))
    tools = site.admin.get("/api/agents/night").json()["tools"]
    assert ("okr_list_objectives" in tools, "okr_create_objective" in tools) == (True, False)
    assert ("okr" in tools, "cms_list_*" in tools) == (False, True)


# R9
def test_what_was_typed_survives_a_refusal_another_page_and_somebody_elses_change(site: Site, visit: Visit) -> None:
    create_agent(site, "night", tools=["cms"])
    page = visit(site.admin, "/agents/night")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Instructions").fill("Be brief.")
    page.get_by_label("Time").fill("2d")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Time")).to_be_focused()
    expect(page.get_by_text("from 1s to 1d").first).to_be_visible()
    page.get_by_label("Time").fill("")
    page.get_by_role("link", name="All agents").click()
    page.get_by_role("link", name="night", exact=True).click()
    page.get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Instructions")).to_have_value("Be brief.")
    site.admin.put("/api/agents/night", json={"tools": ["okr"]})
    expect(page.get_by_role("alert")).to_contain_text("Somebody else changed this")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    page.get_by_role("button", name="Apply my changes to the current version").click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name="Edit")).to_be_visible()
    told = site.admin.get("/api/agents/night").json()
    assert (told["instructions"], told["tools"]) == ("Be brief.", ["okr"])


# R9
def test_a_name_that_is_taken_is_said_at_its_field(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/agents?new=1")
    name_field(page).fill("assistant")
    page.get_by_role("button", name="Create agent").click()
    expect(name_field(page)).to_be_focused()
    expect(page.get_by_text("An agent with the name assistant exists already").first).to_be_visible()
    name_field(page).fill("Writer")
    page.get_by_role("button", name="Create agent").click()
    expect(page.get_by_text('looks like "writer"').first).to_be_visible()


# R9, R13
def test_an_agent_that_is_not_made_here_or_that_others_call_is_not_deleted(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/agents/writer")
    expect(page.get_by_text("This agent is built in.")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Delete|Restore"))).to_have_count(0)
    create_agent(site, "night")
    create_agent(site, "boss", agents=["night"])
    page = visit(site.admin, "/agents/night")
    page.get_by_role("button", name="Delete agent").click()
    expect(page.get_by_role("dialog")).to_contain_text("boss may call night as a sub-agent.")
    expect(page.get_by_role("dialog").get_by_role("button", name="Delete agent")).to_be_disabled()
    site.admin.put("/api/agents/writer", json={"instructions": "Changed."})
    page = visit(site.admin, "/agents/writer")
    page.get_by_role("button", name="Restore built-in settings").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore built-in settings").click()
    expect(page.get_by_text("This agent is built in.")).to_be_visible()
    assert site.admin.get("/api/agents/writer").json()["source"] == "built-in"


# R10
def test_reviewers_try_agents_and_make_none(site: Site, visit: Visit) -> None:
    page = visit(site.person("bob"), "/agents?new=1")
    expect(page.get_by_role("list", name="Agents").get_by_role("listitem").first).to_be_visible()
    expect(page.get_by_role("link", name="New agent")).to_have_count(0)
    page = visit(site.person("rita"), "/agents/writer?edit=1")
    expect(page.get_by_role("button", name="Try it")).to_be_visible()
    for name in ("Copy", "Edit", "Save", "Delete agent"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    page = visit(site.person("vic", "viewer"), "/agents/writer?try=new")
    expect(page.get_by_role("heading", name="About")).to_be_visible()
    expect(page.get_by_role("region", name="Try it")).to_have_count(0)


OPENED: dict[str, tuple[str, Callable[[Page], object]]] = {
    "new": ("/agents?new=1", lambda page: choose_tool(page, "cms_list_pages")),
    "edit": ("/agents/night?edit=1", lambda page: expect(page.get_by_label("Turns")).to_be_visible()),
    "try": ("/agents/night?try=new", lambda page: expect(page.get_by_label("Message")).to_be_visible()),
    "delete": ("/agents/night", lambda page: page.get_by_role("button", name="Delete agent").click()),
}


def test_making_an_agent_has_no_barriers_and_fits_a_phone(site: Site, visit: Visit) -> None:
    create_agent(site, "night", tools=["cms", "nothing_*"], tool_approvals={"cms_delete_post": False})
    for path, prepare in OPENED.values():
        for scheme in SCHEMES:
            page = visit(site.admin, path, viewport={"width": 390, "height": 844}, color_scheme=scheme)
            expect(page.locator(READY)).to_be_visible()
            prepare(page)
            if path == "/agents/night":
                expect(page.get_by_role("dialog")).to_contain_text("What happens:")
            assert_no_barrier(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            page.context.close()


def test_an_agent_without_a_model_says_what_is_missing(site: Site, visit: Visit) -> None:
    create_agent(site, "night", model="nobody:model")
    page = visit(site.admin, "/agents/night?try=new")
    expect(page.get_by_role("region", name="Try it")).to_contain_text('No provider of models is called "nobody"')
    expect(page.get_by_role("region", name="Try it").get_by_label("Message")).to_have_count(0)
    page.get_by_role("button", name="Edit").click()
    expect(page.get_by_text("This model cannot be used yet")).to_be_visible()
