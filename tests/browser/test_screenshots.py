"""What a newcomer does in the first minute, step by step; with INTERLOCK_SCREENSHOTS=1 the pictures in docs/images."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.site import PASSWORD, READY, Site, Visitors, first_admin_token
from tests.interlock_server import run_server

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
WANTED = bool(os.environ.get("INTERLOCK_SCREENSHOTS"))
LARGEST = 150_000  # bytes of a picture
DESK = {"viewport": {"width": 1200, "height": 820}}
PHONE = {"viewport": {"width": 390, "height": 780}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}
COLOR_SCHEMES: dict[str, dict[str, Any]] = {
    "light": {**DESK, "color_scheme": "light"},
    "dark": {**DESK, "color_scheme": "dark"},
    "phone": {**PHONE, "color_scheme": "light"},
}

Picture = Callable[[Page, str], object]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """As `make run` starts it; nobody has signed in yet."""
    with run_server(f"sqlite:///{tmp_path / 'interlock.db'}", tmp_path, "--demo") as served, served.client() as client:
        yield Site(served, client)


@pytest.fixture
def visitors(browser: Browser, site: Site) -> Iterator[Visitors]:
    made = Visitors(browser, site)
    yield made
    made.close()
    made.problems.check()


@pytest.mark.parametrize("look", COLOR_SCHEMES)
def test_a_newcomer_has_an_issue_made_and_finds_it_again(site: Site, visitors: Visitors, look: str) -> None:
    page = visitors.context(**COLOR_SCHEMES[look]).new_page()
    picture = take_screenshot if WANTED else lambda page, name: None
    page.goto(f"/welcome#{first_admin_token(site.server)}")
    sign_in(page)
    ask(page)
    page.locator("article").evaluate("(card) => card.scrollIntoView({block: 'start'})")
    picture(page, f"card-{look}")
    edit(page)
    page.locator("[data-editor] input:focus").evaluate("(field) => field.scrollIntoView({block: 'center'})")
    picture(page, f"editor-{look}")
    approve(page)
    picture(page, f"chat-{look}")
    story = find_again(page)
    picture(page, f"history-{look}")
    expect(story).to_contain_text("Fix the login page on phones")
    expect(story).to_contain_text("ann")


def sign_in(page: Page) -> None:
    page.get_by_label("Name").fill("ann")
    page.get_by_role("textbox", name="Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(re.compile("/chat"))
    expect(page.locator(READY)).to_be_attached()


def ask(page: Page) -> None:
    page.get_by_role("button", name="Create an issue titled").click()
    expect(page.locator("article[data-status=pending]")).to_be_visible()


def edit(page: Page) -> None:
    page.locator("article").get_by_role("button", name="Edit").click()
    editor = page.locator("[data-editor]")
    editor.get_by_label("Title", exact=False).first.fill("Fix the login page on phones")
    expect(editor.get_by_role("button", name="Approve with 1 change")).to_be_enabled()


def approve(page: Page) -> None:
    page.get_by_role("button", name="Approve with 1 change").click()
    ran = page.locator("[data-call=linear_create_issue][data-state=succeeded]")
    expect(ran).to_be_visible()  # it really ran, at the fake
    expect(page.locator("[data-reply=whole]").last).to_contain_text("DEMO-13, title Fix the login page on phones")


def find_again(page: Page) -> Locator:
    if not page.get_by_role("link", name="History", exact=True).first.is_visible():
        page.get_by_role("button", name="Pages").click()
    page.get_by_role("link", name="History", exact=True).first.click()
    page.get_by_role("list", name="Calls").get_by_role("link").first.click()
    story = page.get_by_role("region", name="Call details")
    story.wait_for()
    return story


def take_screenshot(page: Page, name: str) -> None:
    """Small enough to be looked at over a slow line."""
    IMAGES.mkdir(exist_ok=True)
    made = page.screenshot(path=IMAGES / f"{name}.png", animations="disabled", caret="hide")
    assert len(made) <= LARGEST, f"{name}: {len(made):,} bytes"
