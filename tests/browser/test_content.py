"""Content and OKRs in the page: created, edited and deleted by people, with a history that names agents' approvals."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import READY, Site, Visit, reload_anyway

POST = "/api/content/posts/spring-news"


@pytest.fixture
def options() -> tuple[str, ...]:
    """With the demo's content, and its agent."""
    return ("--demo",)


def create_post(page: Page, title: str) -> None:
    page.get_by_role("button", name="New post").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Title").fill(title)
    dialog.get_by_role("button", name="Create post").click()


@pytest.mark.smoke
def test_a_post_is_created_edited_and_deleted_in_the_page(site: Site, visit: Visit) -> None:  # R65
    page = visit(site.admin, "/content")
    expect(page.get_by_role("row", name=re.compile("Hello, world"))).to_contain_text("draft")
    create_post(page, "Spring news")
    expect(page).to_have_url(re.compile("/content/posts/spring-news$"))
    form = page.get_by_role("form", name="Edit post")
    form.get_by_label("Text").fill("It is **warm**.")
    form.get_by_label("Status").select_option("published")
    expect(form).to_contain_text("Saving publishes it: everybody can read it at once.")
    reload_anyway(page)
    expect(form.get_by_label("Text")).to_have_value("It is **warm**.")
    form.get_by_role("button", name="Save changes").click()
    history = page.get_by_role("list", name="History")
    expect(history.get_by_role("listitem")).to_have_count(2)
    newest = history.get_by_role("listitem").first
    expect(newest).to_contain_text("ann updated it")
    newest.get_by_text("What changed").click()
    expect(newest).to_contain_text("+status: published")
    assert site.admin.get(POST).json()["status"] == "published"
    page.get_by_role("button", name="Delete post").click()
    page.get_by_role("group", name="Delete post").get_by_role("button", name="Delete post").click()
    expect(page).to_have_url(re.compile("/content/posts$"))
    expect(page.get_by_role("link", name="Hello, world")).to_be_visible()
    expect(page.get_by_role("link", name="Spring news")).to_have_count(0)
    assert site.admin.get(POST).status_code == 404
    page.goto("/history?tab=ledger&kind=content_changed")
    expect(page.get_by_text("ann deleted the post spring-news")).to_be_visible()


def test_a_page_is_built_from_sections(site: Site, visit: Visit) -> None:  # R65
    page = visit(site.admin, "/content/pages/about")
    form = page.get_by_role("form", name="Edit page")
    expect(form.get_by_role("group")).to_have_count(4)
    form.get_by_role("button", name="Move up section 2").click()
    form.get_by_role("button", name="Remove section 4").click()
    form.get_by_role("button", name="Add section").click()
    new = form.get_by_role("group", name="Section 4")
    new.get_by_label("Heading").fill("Jobs")
    new.get_by_label("Id").fill("jobs")
    new.get_by_label("Text").fill("We are looking for somebody.")
    form.get_by_role("button", name="Save changes").click()
    expect(page.get_by_role("list", name="History")).to_contain_text("ann updated it")
    sections = site.admin.get("/api/content/pages/about").json()["sections"]
    assert [section["id"] for section in sections] == ["team", "story", "values", "jobs"]


def test_unused_content_is_found(site: Site, visit: Visit) -> None:  # R65
    page = visit(site.admin, "/content/pages")
    expect(page.get_by_role("row")).to_have_count(6)
    page.get_by_label("Views").select_option("not for 90 days")
    expect(page.get_by_role("status").filter(has_text="1 page.")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("Imprint"))).to_contain_text("214 d ago")
    page.reload()
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_label("Views").select_option("viewed or not")
    page.get_by_label("Search pages").fill("bicycle")
    expect(page.get_by_role("status").filter(has_text="1 page.")).to_be_visible()


def test_an_objective_with_a_key_result_is_created_edited_and_deleted(site: Site, visit: Visit) -> None:  # R65
    page = visit(site.admin, "/okrs")
    page.get_by_role("button", name="New objective").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Title").fill("Answer faster")
    dialog.get_by_role("button", name="Create objective").click()
    expect(page).to_have_url(re.compile("/okrs/O-5$"))
    page.get_by_role("button", name="New key result").click()
    form = page.get_by_role("form", name="New key result")
    form.get_by_label("Title").fill("Answered within a day")
    form.get_by_label("Target").fill("90")
    form.get_by_label("Unit").fill("%")
    reload_anyway(page)
    form.get_by_role("button", name="Add key result").click()
    results = page.get_by_role("list", name="Key results")
    expect(results).to_contain_text("Answered within a day: 0 of 90 %")
    page.get_by_role("button", name="Edit KR-7").click()
    form = page.get_by_role("form", name="Edit KR-7")
    form.get_by_label("Current").fill("45")
    reload_anyway(page)
    form.get_by_role("button", name="Save changes").click()
    expect(results).to_contain_text("45 of 90 %")
    expect(results).to_contain_text("50 %")
    page.get_by_label("Status").select_option("at risk")
    page.get_by_role("form", name="Edit objective").get_by_role("button", name="Save changes").click()
    history = page.get_by_role("list", name="History").get_by_role("listitem")
    expect(history).to_have_count(4)
    expect(history.nth(0)).to_contain_text("ann updated O-5")
    expect(history.nth(1)).to_contain_text("ann updated KR-7")
    page.get_by_role("button", name="Delete objective").click()
    expect(page.get_by_text("The objective, its key result and its history are deleted for ever.")).to_be_visible()
    page.get_by_role("group", name="Delete objective").get_by_role("button", name="Delete objective").click()
    expect(page).to_have_url(re.compile("/okrs$"))
    expect(page.get_by_role("link", name="Workshops can rely on us")).to_be_visible()
    expect(page.get_by_role("link", name="Answer faster")).to_have_count(0)


def test_two_editors_do_not_overwrite_each_other(site: Site, visit: Visit) -> None:  # R65
    page = visit(site.admin, "/content/posts/hello-world")
    expect(page.locator(READY)).to_be_visible()
    form = page.get_by_role("form", name="Edit post")
    form.get_by_label("Title").fill("My title")
    bob = site.person("bob")
    theirs = {"title": "Their title", "status": "draft", "body": "Theirs."}
    assert bob.put("/api/content/posts/hello-world", json=theirs).status_code == 200
    expect(form.get_by_role("alert")).to_contain_text("Somebody else changed this")
    expect(form.get_by_label("Title")).to_have_value("My title")
    expect(form.get_by_role("button", name="Save changes")).to_be_disabled()
    form.get_by_role("button", name="Load the current version").click()
    expect(form.get_by_label("Title")).to_have_value("Their title")
    expect(page.get_by_role("list", name="History")).to_contain_text("bob updated it")


def test_a_change_by_an_agent_shows_at_once_with_its_approval(site: Site, visit: Visit) -> None:  # R65, R7
    page = visit(site.admin, "/content/posts/hello-world")
    expect(page.locator(READY)).to_be_visible()
    expect(page.get_by_text("No changes recorded.")).to_be_visible()
    with site.admin.stream("POST", "/api/chat", json={"message": "publish the post hello-world"}) as stream:
        assert any("approval_request" in line for line in stream.iter_lines()), "the agent asks; then nobody listens"
    [pending] = site.admin.get("/api/approvals/pending", params={"tool": "cms_publish_post"}).json()["items"]
    assert pending["risk"] == "high"
    decision = {"kind": "approve", "args_sha256": pending["args_sha256"]}
    assert site.admin.post(f"/api/approvals/{pending['id']}/decision", json=decision).status_code == 200
    link = page.get_by_role("list", name="History").get_by_role("link", name="by an approved call")
    link.click()
    expect(page).to_have_url(re.compile(f"/a/{pending['id']}$"))
    expect(page.locator("article")).to_contain_text("Publish post 'hello-world': everybody can read it at once")


def test_a_viewer_reads_and_has_nothing_to_press(site: Site, visit: Visit) -> None:  # R65
    page = visit(site.person("vic", "viewer"), "/content/posts/hello-world")
    expect(page.get_by_text("We have rebuilt our site")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("button")).to_have_count(0)
    page.goto("/okrs/O-1")
    expect(page.get_by_text("Availability: 99.7 of 99.95 %")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("button")).to_have_count(0)
