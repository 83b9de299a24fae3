"""Channels on the page: how each stands, a test, what was given up, and who one is elsewhere."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from interlock.app.bootstrap import wall_clock
from interlock.core.identity import IDENTITY_LINK_TTL, IdentityLink, sign_identity_link
from tests.browser.site import READY, Site, Visit
from tests.browser.test_axe import barriers
from tests.fakes.http_receiver import Receiver, Response, run_receiver

SECRET = "whsec_aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMg=="
CONFIG = """
channels:
  hook: {{kind: webhook, url: "{url}", secret: {secret}, allow_private: true}}
  pager: {{kind: pagerduty, routing_key: "{key}", url: "http://127.66.66.66/", allow_private: true}}
routing: {{default_channel: hook, priority_map: {{high: [hook, pager]}}}}
"""


@contextmanager
def run_receiver_in_thread() -> Iterator[Receiver]:
    """A receiver on a loop of its own: what drives the browser holds the one of the tests."""
    ready: Future[Receiver] = Future()
    over = threading.Event()

    async def run() -> None:
        async with run_receiver() as receiver:
            ready.set_result(receiver)
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    try:
        yield ready.result(timeout=30)
    finally:
        over.set()
        thread.join()


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with run_receiver_in_thread() as receiver:
        yield receiver


@pytest.fixture
def config(hook: Receiver) -> str:
    return CONFIG.format(url=hook.url, secret=SECRET, key="0" * 32)


def open_channels(page: Page) -> Page:
    page.goto("/settings/channels")
    expect(page.locator("[data-channel=hook]")).to_be_visible()
    return page


# R25
def test_an_admin_sends_a_test_and_reads_what_went_wrong(site: Site, visit: Visit, hook: Receiver) -> None:
    page = open_channels(visit(site.admin, "/settings/channels"))
    row = page.locator("[data-channel=hook]")
    expect(row).to_contain_text("No notification sent yet.")
    row.get_by_role("button", name="Send a test to hook").click()
    expect(row.get_by_role("status")).to_have_text("A test was sent.")
    assert len(hook.accepted) == 1
    pager = page.locator("[data-channel=pager]")
    expect(pager).to_contain_text("pagerduty, for high priority.")
    pager.get_by_role("button", name="Send a test to pager").click()
    expect(pager.get_by_role("alert")).to_contain_text("PagerDuty cannot be reached.")
    assert SECRET[6:] not in page.content()
    viewer = open_channels(visit(site.person("vic", role="viewer"), "/settings/channels"))
    expect(viewer.get_by_role("button", name="Send a test to hook")).to_have_count(0)


# R25
def test_dead_delivery_is_shown_retried_and_in_the_history(site: Site, visit: Visit, hook: Receiver) -> None:
    hook.override = Response(400)
    approval_id = site.propose(site.agent("office"), "pay", {"to": "bob", "amount": 5})
    page = open_channels(visit(site.admin, "/settings/channels"))
    parked = page.get_by_role("list", name="Dead letters").get_by_role("listitem")
    expect(parked).to_have_count(1, timeout=30_000)
    expect(parked).to_contain_text("Via hook: request for a decision")
    expect(parked).to_contain_text("The webhook rejected the request (400).")
    expect(parked.get_by_role("link", name="this approval")).to_have_attribute("href", f"/a/{approval_id}")
    assert barriers(page) == []
    hook.override = None
    parked.get_by_role("button", name="Retry").click()
    expect(page.get_by_text("No dead letters.")).to_be_visible()
    expect(page.locator("[data-channel=hook]")).to_contain_text("Last notification", timeout=30_000)
    page.goto(f"/a/{approval_id}")
    page.get_by_text("Notifications", exact=True).click()
    expect(page.get_by_role("list", name="Notifications")).to_contain_text("hook: sent")
    expect(page.get_by_role("list", name="Notifications")).to_contain_text("up to date")
    assert barriers(page) == []
    page.goto(f"/history?id={approval_id}")
    story = page.get_by_role("list", name="Timeline")
    expect(story).to_contain_text("Interlock notified people via hook; one message failed")
    story.get_by_text("Interlock notified people via hook; one").click()
    expect(story).to_contain_text("Interlock could not notify people via hook: The webhook rejected the request (400).")
    expect(story).to_contain_text("ann retried the message to people via hook")
    assert barriers(page) == []


# R25
def test_a_channel_that_is_off_is_switched_on_again(site: Site, visit: Visit, hook: Receiver) -> None:
    hook.override = Response(410)
    site.propose(site.agent("office"), "pay", {"to": "bob", "amount": 5})
    page = open_channels(visit(site.admin, "/settings/channels"))
    row = page.locator("[data-channel=hook]")
    expect(row).to_contain_text("The webhook reports that this address is gone (410).", timeout=30_000)
    assert barriers(page) == []
    row.get_by_role("button", name="Enable hook").click()
    expect(row.get_by_role("button", name="Enable hook")).to_have_count(0)
    assert site.admin.get("/api/channels").json()["items"][1]["off"] is None


# R25, R48
def test_somebody_says_who_they_are_elsewhere_and_takes_it_back(site: Site, visit: Visit, tmp_path: Path) -> None:
    bob = site.person("bob")
    page = visit(bob, f"/settings/me?link={link(tmp_path, 'T0TEAM/U0BOB')}")
    expect(page.locator(READY)).to_be_visible()
    dialog = page.get_by_role("dialog", name="Is this you in hook?")
    expect(dialog).to_contain_text("The owner of T0TEAM/U0BOB in hook will decide as bob.")
    expect(dialog).to_contain_text("If anybody sent it to you, say no")
    assert barriers(page) == []
    dialog.get_by_role("button", name="No", exact=True).click()
    expect(dialog).to_have_count(0)
    assert bob.get("/api/me/identities").json()["items"] == []
    page.goto(f"/settings/me?link={link(tmp_path, 'T0TEAM/U0BOB')}")
    dialog.get_by_role("button", name="Yes, this is me").click()
    mine = page.get_by_role("region", name="Linked accounts")
    expect(mine).to_contain_text("T0TEAM/U0BOB in hook")
    other = visit(site.admin, f"/settings/me?link={link(tmp_path, 'T0TEAM/U0BOB')}")
    expect(other.get_by_role("dialog")).to_contain_text("It belongs to bob.")
    expect(other.get_by_role("button", name="Yes, this is me")).to_be_disabled()
    other.goto("/settings/me?link=forged")
    expect(other.get_by_role("dialog")).to_contain_text("This link is invalid or expired.")
    open_channels(other)
    expect(other.get_by_role("region", name="Linked accounts")).to_contain_text("T0TEAM/U0BOB in hook is bob")
    mine.get_by_role("button", name="Remove").click()
    mine.get_by_role("group").get_by_role("button", name="Remove").click()
    expect(mine).to_contain_text("No linked accounts.")


def link(folder: Path, outside: str) -> str:
    """As the channel would make it."""
    with closing(sqlite3.connect(folder / "interlock.db")) as database:
        [(key,)] = database.execute("select key from workspaces where name = 'default'").fetchall()
    return sign_identity_link(bytes(key), "default", IdentityLink("hook", outside, wall_clock() + IDENTITY_LINK_TTL))
