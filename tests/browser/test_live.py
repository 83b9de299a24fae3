"""One live connection for a browser, however many tabs it has; whatever happens to it, nothing is missed."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.site import READY, Site, Visitors, run_site, wait_until
from tests.interlock_server import run_server

WITHOUT_LOCKS = "delete Navigator.prototype.locks;"  # as where the page came by plain HTTP from another machine
WAITING = "nav[aria-label=Pages] a[href='/inbox'] span"


def test_eight_tabs_share_one_stream_and_the_eighth_still_decides(site: Site, visitors: Visitors) -> None:
    tabs = open_tabs(visitors.context(site.admin), 7)
    approval_id = site.propose(site.agent(), "send_mail", {"to": "ann@example.com"})
    tabs.append(tabs[0].context.new_page())
    tabs[7].goto(f"/a/{approval_id}")
    for tab in tabs:
        expect(tab.locator(READY)).to_be_visible()
        expect(tab.locator(WAITING).first).to_contain_text("1")
    one_stream_is_left(site)
    tabs[7].get_by_role("button", name="Approve").first.click()
    expect(tabs[7].locator("article[data-status=approved]")).to_be_visible()
    for tab in tabs:
        expect(tab.locator(WAITING)).to_have_count(0)
    one_stream_is_left(site)


@pytest.mark.parametrize("before", ["", WITHOUT_LOCKS], ids=["locks", "no locks"])
def test_when_the_leading_tab_closes_another_goes_on_and_misses_nothing(
    site: Site, visitors: Visitors, before: str
) -> None:
    context = visitors.context(site.admin)
    context.add_init_script(before)
    followed = stream_owners(context)
    tabs = open_tabs(context, 3)
    agent = site.agent()
    for gone in range(2):
        one_stream_is_left(site)
        leader = followed[-1]
        tabs.remove(leader)
        leader.close()
        site.propose(agent, "send_mail", {"to": "ann@example.com"})
        for tab in tabs:
            expect(tab.locator(WAITING).first).to_contain_text(str(gone + 1))
            expect(tab.locator(READY)).to_be_visible()
    one_stream_is_left(site)
    if not before:  # with locks each of the tabs had its turn, and none of them twice; a note lets two try at once
        assert len(followed) == 3


def test_a_frozen_leader_hands_over_and_catches_up_when_it_wakes(site: Site, visitors: Visitors) -> None:
    context = visitors.context(site.admin)
    followed = stream_owners(context)
    first, second = open_tabs(context, 2)
    leader, other = (first, second) if followed[-1] is first else (second, first)
    leader.evaluate("document.dispatchEvent(new Event('freeze'))")
    site.propose(site.agent(), "send_mail", {"to": "ann@example.com"})
    expect(other.locator(WAITING).first).to_contain_text("1")
    assert followed[-1] is other
    leader.evaluate("document.dispatchEvent(new Event('resume'))")
    expect(leader.locator(WAITING).first).to_contain_text("1")
    one_stream_is_left(site)


def test_a_server_without_signs_of_life_is_asked_again_from_the_same_place(site: Site, visitors: Visitors) -> None:
    """The browser's clock goes on without waiting: signs of life come every 15 seconds, and 40 are too many."""
    context = visitors.context(site.admin)
    context.clock.install()
    tab = open_tabs(context, 1)[0]
    with tab.expect_request("**/api/events") as again:
        context.clock.fast_forward(46_000)
    assert int(again.value.headers["last-event-id"]) > 0
    expect(tab.locator(READY)).to_be_visible()
    one_stream_is_left(site)


def test_a_leader_that_says_nothing_any_more_is_replaced(site: Site, visitors: Visitors) -> None:
    context = visitors.context(site.admin)
    context.clock.install()
    followed = stream_owners(context)
    first, second = open_tabs(context, 2)
    silent, other = (first, second) if followed[-1] is first else (second, first)
    silent.evaluate("BroadcastChannel.prototype.postMessage = () => undefined")
    context.clock.fast_forward(66_000)
    site.propose(site.agent(), "send_mail", {"to": "ann@example.com"})
    context.clock.fast_forward(2_000)
    expect(other.locator(WAITING).first).to_contain_text("1")
    assert followed[-1] is other
    one_stream_is_left(site)


def test_a_server_that_was_killed_and_comes_back_is_found_again_and_nothing_is_missed(
    tmp_path: Path, browser: Browser
) -> None:
    database = f"sqlite:///{tmp_path / 'interlock.db'}"
    with run_site(database, tmp_path) as site:
        visitors, agent = Visitors(browser, site), site.agent()
        tab = open_tabs(visitors.context(site.admin), 1)[0]
        site.server.kill()
        expect(tab.locator("[data-live=offline]")).to_be_visible()
        with run_server(database, tmp_path, port=urlsplit(site.url).port or 0):
            site.propose(agent, "send_mail", {"to": "ann@example.com"})
            expect(tab.locator(READY)).to_be_visible()
            expect(tab.locator(WAITING).first).to_contain_text("1")
            visitors.close()
        visitors.problems.check()


def test_no_connection_is_said_and_heals(site: Site, visitors: Visitors) -> None:
    tab = open_tabs(visitors.context(site.admin), 1)[0]
    tab.context.set_offline(True)
    expect(tab.locator("[data-live=offline]")).to_have_text("Offline")
    site.propose(site.agent(), "send_mail", {"to": "ann@example.com"})
    tab.context.set_offline(False)
    expect(tab.locator(READY)).to_be_visible()
    expect(tab.locator(WAITING).first).to_contain_text("1")


def open_tabs(context: BrowserContext, number: int) -> list[Page]:
    """That many tabs of one browser, all up to date."""
    tabs = [context.new_page() for _ in range(number)]
    for tab in tabs:
        tab.goto("/inbox")
        expect(tab.locator(READY)).to_be_visible()
    return tabs


def stream_owners(context: BrowserContext) -> list[Page]:
    """The tabs that asked for the stream, in order."""
    asked: list[Page] = []
    context.on("request", lambda request: request.url.endswith("/api/events") and asked.append(request.frame.page))
    return asked


def one_stream_is_left(site: Site) -> None:
    """A tab that closes or hands over says nothing to the server, which notices on its own."""
    wait_until(lambda: open_streams(site) == 1)


def open_streams(site: Site) -> int:
    found = re.search(r"^interlock_open_streams (\d+)", site.admin.get("/metrics").text, re.MULTILINE)
    assert found
    return int(found[1])
