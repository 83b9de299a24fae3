"""A new server leads its admin to the first call of an agent: a key, a text to copy, and the card."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.site import PASSWORD, READY, Site, Visit

TABS = ("Python", "LangGraph", "OpenAI Agents", "MCP", "Claude Code", "curl")
KEY = re.compile(r"ilk_[a-z0-9]+_[\w-]{20,}")
REFUSING = {"version": 1, "rules": [{"name": "never", "tools": ["create_*"], "then": "deny", "reason": "Never that."}]}


@contextmanager
def run_program(text: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """What was copied, as a program."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", text], cwd=folder, stdout=pipe, stderr=pipe, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def create_key(page: Page, name: str) -> str:
    page.get_by_label("Name of the agent").fill(name)
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_text(f"This key is new and belongs to {name}.")).to_be_visible()
    [key] = set(KEY.findall(snippet(page).inner_text()))
    return str(key)


def snippet(page: Page) -> Locator:
    return page.locator("[data-snippet] pre code")


def first_call(page: Page) -> Locator:
    return page.get_by_role("region", name="First call")


# R58
def test_a_new_server_leads_from_a_key_to_the_first_approved_call(site: Site, visit: Visit, tmp_path: Path) -> None:
    page = visit(site.admin, "/")
    expect(page).to_have_url(re.compile("/connect$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Connect your first agent")
    expect(page.locator("[aria-current=step]")).to_have_text("2Connect an agent")
    expect(page.get_by_role("tab")).to_have_text(TABS)
    expect(snippet(page)).to_contain_text('key="ilk_your_key"')
    create_key(page, "clerk")
    [made] = [key for key in site.admin.get("/api/keys").json()["items"] if key["name"] == "clerk"]
    assert (made["role"], made["agents"]) == ("agent", ["clerk"])
    expect(first_call(page)).to_contain_text("Waiting for the first call…")
    with run_program(snippet(page).inner_text(), tmp_path) as program:
        expect(first_call(page)).to_contain_text("The first call needs your approval", timeout=60_000)
        expect(first_call(page)).to_contain_text("Fix the login page")
        expect(page.locator("[aria-current=step]")).to_have_text("3Approve the first call")
        first_call(page).get_by_role("link", name="Open the request").click()
        expect(page).to_have_url(re.compile("/a/[0-9a-f-]+$"))
        page.get_by_role("button", name="Approve").click()
        out, err = program.communicate(timeout=60)
    assert "'title': 'Fix the login page'" in out, err
    page.goto("/")
    expect(page).to_have_url(re.compile("/(chat|inbox)$"))


def test_every_text_holds_the_key_and_fits_a_phone(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/connect", viewport={"width": 390, "height": 844})
    key = create_key(page, "clerk")
    for tab in TABS:
        page.get_by_role("tab", name=tab).click()
        expect(snippet(page)).to_contain_text(key)
        expect(snippet(page)).to_contain_text("clerk")
        expect(snippet(page)).to_contain_text(site.url)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
    expect(page).to_have_url(re.compile("with=curl"))
    page.reload()
    expect(page.get_by_role("tab", name="curl")).to_have_attribute("aria-selected", "true")
    expect(snippet(page)).to_contain_text("ilk_your_key")  # it is shown once


def test_a_text_is_copied_with_its_key(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/connect?with=curl")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    key = create_key(page, "clerk")
    page.get_by_role("button", name="Copy with key").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert f"Bearer {key}" in page.evaluate("navigator.clipboard.readText()")
    page.get_by_role("button", name="Copy key").click()
    expect(page.get_by_role("button", name="Copied")).to_have_count(1)
    assert page.evaluate("navigator.clipboard.readText()") == key


def test_a_name_in_the_address_does_not_get_into_the_texts(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/connect?agent=%22%3B%20rm%20-rf%20~%20%23&with=curl")
    expect(snippet(page)).to_contain_text("my-agent")
    expect(snippet(page)).not_to_contain_text("rm -rf")


def test_a_key_needs_a_recent_sign_in(site: Site, visit: Visit, tmp_path: Path) -> None:
    page = visit(site.person("eve", "admin"), "/connect")
    expect(page.get_by_role("button", name="Create key")).to_be_visible()
    with closing(sqlite3.connect(tmp_path / "interlock.db", timeout=30)) as database, database:
        database.execute("update sessions set created_at = created_at - 600000 where person = 'eve'")
    site.person("bob")  # whatever changes people has the server look at sessions again
    page.get_by_role("button", name="Create key").click()
    again = page.get_by_role("dialog", name="Sign in again")
    again.get_by_role("textbox", name="Password for eve").fill(PASSWORD)
    again.get_by_role("button", name="Continue", exact=True).click()
    expect(page.get_by_text("This key is new and belongs to my-agent.")).to_be_visible()


def test_a_name_that_does_not_fit_into_a_program_is_refused_before_there_is_a_key(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/connect")
    page.get_by_label("Name of the agent").fill('bot", key="x')
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_label("Name of the agent")).to_have_attribute("aria-invalid", "true")
    assert site.admin.get("/api/keys").json()["items"] == []


def test_a_call_that_is_refused_or_only_reads_says_that_the_key_works(site: Site, visit: Visit) -> None:
    site.put_policy(REFUSING)
    page = visit(site.admin, "/connect")
    bot = site.server.client(create_key(page, "clerk"))
    call = {"tool": "look", "args": {}, "run_id": "run", "call_id": "one"}
    assert bot.post("/api/calls", json={**call, "effect": "read"}).json()["outcome"] == "proceed"
    expect(first_call(page)).to_contain_text("clerk has connected", timeout=60_000)
    assert bot.post("/api/calls", json={**call, "tool": "create_issue", "call_id": "two"}).json()["status"] == "denied"
    expect(first_call(page)).to_contain_text("The policy refused the first call", timeout=60_000)
    bot.close()


def test_a_test_request_shows_the_way_without_a_program(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/connect")
    create_key(page, "clerk")
    expect(page).to_have_url(re.compile("agent=clerk"))
    page.reload()
    expect(first_call(page)).to_contain_text("Waiting for the first call…")
    expect(page.get_by_role("button", name="Send a test request")).to_have_count(0)  # the key is shown once
    create_key(page, "clerk")
    page.get_by_role("button", name="Send a test request").click()
    expect(first_call(page)).to_contain_text("The first call needs your approval", timeout=60_000)
    expect(first_call(page)).to_contain_text("Hello from clerk")
    first_call(page).get_by_role("link", name="Open the request").click()
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("article[data-status=approved]")).to_be_visible()


def test_a_program_that_only_claims_the_agents_name_is_not_its_first_call(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/connect")
    bot, other = site.server.client(create_key(page, "clerk")), site.agent("other")

    def claim(number: str) -> None:
        call = {"tool": "send_mail", "args": {}, "run_id": "claims", "call_id": number, "agent": "clerk"}
        claimed = other.post("/api/calls", json=call).json()["approval_id"]
        with page.expect_response(lambda answer: answer.url.endswith("/api/activity") and claimed in answer.text()):
            pass

    claim("one")
    expect(first_call(page)).to_contain_text("Waiting for the first call…")
    made = site.propose(bot, "send_mail", {"to": "ann"})
    expect(first_call(page)).to_contain_text("The first call needs your approval")
    claim("two")
    expect(first_call(page).get_by_role("link", name="Open the request")).to_have_attribute("href", f"/a/{made}")
    bot.close()


def test_an_admin_skips_it_and_others_are_not_led_there(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/")
    page.get_by_role("button", name="Skip for now").click()
    expect(page).to_have_url(re.compile("/inbox$"))
    page.goto("/")
    expect(page).to_have_url(re.compile("/(chat|inbox)$"))
    page = visit(site.person("vic", "viewer"), "/")
    expect(page).to_have_url(re.compile("/inbox$"))
    page.goto("/connect")
    expect(page.get_by_role("note")).to_contain_text("Ask an admin")
    expect(page.get_by_role("button", name="Create key")).to_have_count(0)


# R10
def test_the_agents_page_leads_to_it_and_shows_who_has_not_called_yet(site: Site, visit: Visit) -> None:
    site.propose(site.agent("older"), "send_mail", {"to": "ann"})
    page = visit(site.admin, "/agents")
    page.get_by_role("link", name="Connect an agent").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Connect an agent")
    expect(page.get_by_role("navigation", name="Pages").locator("[aria-current=page]")).to_have_text("Agents")
    create_key(page, "clerk")
    page.get_by_role("link", name="Agents").click()
    row = page.locator("[data-agent=clerk]")
    expect(row).to_contain_text("Waiting for its first call")
    row.get_by_role("link", name="clerk").click()
    expect(page.get_by_label("Name of the agent")).to_have_value("clerk")


class TestDemo:
    @pytest.fixture
    def options(self) -> tuple[str, ...]:
        return ("--demo",)

    def test_a_server_with_calls_opens_as_usual(self, site: Site, visit: Visit) -> None:
        site.propose(site.agent(), "send_mail", {"to": "ann"})
        page = visit(site.admin, "/")
        expect(page.locator(READY)).to_be_visible()
        expect(page).to_have_url(re.compile("/(chat|inbox)$"))
