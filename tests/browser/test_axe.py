"""No barrier that axe knows of, on any page and in its main states, light and dark, at a desk and on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from playwright.sync_api import Page, expect

from tests.browser.seeded_site import SeededSite, seed_site
from tests.browser.site import READY, Site, Visit

AXE = Path(__file__).resolve().parents[2] / "ui" / "node_modules" / "axe-core" / "axe.min.js"
SIZES = {"desk": (1280, 800), "phone": (390, 844)}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
RUN = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
SETTLED = "() => document.getAnimations().every((each) => each.playState !== 'running')"


class PageState(NamedTuple):
    """A page, and what is done there before it is looked at."""

    path: str  # with ids of approvals by name, in braces
    prepare: Callable[[Page, SeededSite], object] = lambda page, seeded: None


def click_all(*names: str) -> Callable[[Page, SeededSite], object]:
    """Buttons, tabs and what unfolds, one after the other."""

    def prepare(page: Page, seeded: SeededSite) -> None:
        for name in names:
            wanted = page.get_by_role("button", name=name, exact=True).or_(page.get_by_role("tab", name=name))
            wanted.or_(page.locator("summary", has_text=name)).first.click()

    return prepare


def keys(page: Page, seeded: SeededSite) -> None:
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()


def together(page: Page, seeded: SeededSite) -> None:
    for number in (1, 2):
        page.get_by_label("Select: Run send_mail").nth(number).check()
    page.get_by_role("button", name="Bulk decision…").click()
    expect(page.get_by_role("region", name="Bulk decision")).to_be_visible()


def edited(page: Page, seeded: SeededSite) -> None:
    page.get_by_role("button", name="Edit").click()
    editor = page.locator("[data-editor]")
    editor.get_by_label("subject", exact=False).first.fill("Other numbers")
    editor.get_by_role("tab", name="Changes").click()
    expect(editor.get_by_role("button", name="Approve with 1 change")).to_be_enabled()


def urgent(page: Page, seeded: SeededSite) -> None:
    seeded.site.propose(seeded.agent, "send_mail", {"to": "ann"}, priority="high")
    expect(page.get_by_role("dialog").locator("article")).to_be_visible()


SETTINGS = ("me", "people", "teams", "keys", "grants", "channels", "about")
POLICY = ("rules", "text", "explain", "rehearse", "shadow", "versions")
STATES = ("approved", "edited", "rejected", "responded", "running", "succeeded", "failed")
PAGE_STATES = {
    "chat": PageState("/chat"),
    "conversation": PageState("/chat/{thread}"),
    "inbox": PageState("/inbox"),
    "inbox, nothing found": PageState("/inbox?q=nothing-like-this"),
    "inbox, keys": PageState("/inbox", keys),
    "inbox, several": PageState("/inbox?tool=send_mail", together),
    "history": PageState("/history"),
    "history, a story": PageState("/history?id={edited}"),
    "history, nothing found": PageState("/history?q=nothing-like-this"),
    "ledger": PageState("/history?tab=ledger"),
    "statistics": PageState("/statistics"),
    "agents": PageState("/agents"),
    "agent": PageState("/agents/assistant"),
    "agent of a program": PageState("/agents/bot", click_all("Show as table")),
    "agent, freezing": PageState("/agents/bot", click_all("Freeze agent")),
    "connect": PageState("/connect"),
    "connect, key": PageState("/connect?agent=new-agent&with=claude-code", click_all("Create key")),
    "connect, curl": PageState("/connect?with=curl"),
    "content": PageState("/content"),
    "pages of the site": PageState("/content/pages"),
    "images": PageState("/content/images"),
    "new post": PageState("/content", click_all("New post")),
    "post": PageState("/content/posts/spring-release"),
    "page of the site": PageState("/content/pages/about", click_all("Delete page")),
    "image": PageState("/content/images/img-5"),
    "objectives": PageState("/okrs"),
    "objective": PageState("/okrs/O-1", click_all("Edit KR-1", "New key result")),
    **{f"policy, {tab}": PageState(f"/policy?tab={tab}") for tab in POLICY},
    **{f"settings, {tab}": PageState(f"/settings/{tab}") for tab in SETTINGS},
    "person": PageState("/settings/about", click_all("ann")),
    "urgent": PageState("/settings/about", urgent),
    "nothing there": PageState("/a/nothing"),
    **{
        f"card, {name}": PageState(f"/a/{{{name}}}") for name in ("pending", "odd", "nested", "high", "quorum", *STATES)
    },
    "question": PageState("/a/{question}"),
    "card, more": PageState("/a/{odd}", click_all("Agent's explanation", "Add a comment")),
    "card, rejecting": PageState("/a/{pending}", click_all("Reject")),
    "card, responding": PageState("/a/{pending}", click_all("Respond")),
    "editor": PageState("/a/{pending}", click_all("Edit")),
    "editor, JSON": PageState("/a/{pending}", click_all("Edit", "JSON")),
    "editor, changes": PageState("/a/{pending}", edited),
}


MAIN_PAGES = {
    "chat",
    "conversation",
    "inbox",
    "history",
    "statistics",
    "agents",
    "policy, rules",
    "settings, people",
    "card, pending",
    "editor",
}


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeededSite]:
    with seed_site(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.fixture(scope="module")
def site(seeded: SeededSite) -> Site:
    return seeded.site


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.smoke if name in MAIN_PAGES else ()) for name in PAGE_STATES]
)
def test_a_page_has_no_barrier(seeded: SeededSite, visit: Visit, name: str) -> None:
    stop = PAGE_STATES[name]
    page = visit(seeded.site.admin, stop.path.format(thread=seeded.thread, **seeded.ids))
    expect(page.locator(READY)).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_role("main").get_by_role("status", name="Loading")).to_have_count(0)
    stop.prepare(page, seeded)
    assert_no_barrier(page)


@pytest.mark.smoke
@pytest.mark.parametrize("path", ["/signin", "/welcome#not-a-link"])
def test_the_way_in_has_no_barrier(visit: Visit, path: str) -> None:
    page = visit(None, path)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert_no_barrier(page)


def assert_no_barrier(page: Page) -> None:
    found = barriers(page)
    assert not found, "\n" + "\n".join(found)


def barriers(page: Page) -> list[str]:
    """Each as: where it was seen, the rule, what is wrong, the element."""
    page.evaluate(AXE.read_text())
    found: dict[str, list[str]] = {}
    for size, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            expect(page.locator(f"html[data-mantine-color-scheme={scheme}]")).to_be_attached()
            page.wait_for_function(SETTLED)
            for barrier in page.evaluate(RUN):
                found.setdefault(describe_barrier(barrier), []).append(f"{size} {scheme}")
    return [f"{', '.join(seen)}: {what}" for what, seen in found.items()]


def describe_barrier(barrier: dict[str, Any]) -> str:
    nodes = "\n".join(
        f"    {node['target']} {node['html'][:200]} {node['failureSummary']}" for node in barrier["nodes"]
    )
    return f"{barrier['id']}: {barrier['help']}\n{nodes}"
