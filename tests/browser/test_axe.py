"""No barrier that axe knows of, on any page and in its main states, light and dark, at a desk and on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from playwright.sync_api import Page, expect

from tests.browser.seeded_site import Furnished, furnished_at
from tests.browser.site import READY, Site, Visit

AXE = Path(__file__).resolve().parents[2] / "ui" / "node_modules" / "axe-core" / "axe.min.js"
SIZES = {"desk": (1280, 800), "phone": (390, 844)}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
RUN = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
SETTLED = "() => document.getAnimations().every((each) => each.playState !== 'running')"


class Stop(NamedTuple):
    """A page, and what is done there before it is looked at."""

    path: str  # with ids of approvals by name, in braces
    prepare: Callable[[Page, Furnished], object] = lambda page, furnished: None


def clicks(*names: str) -> Callable[[Page, Furnished], object]:
    """Buttons, tabs and what unfolds, one after the other."""

    def prepare(page: Page, furnished: Furnished) -> None:
        for name in names:
            wanted = page.get_by_role("button", name=name, exact=True).or_(page.get_by_role("tab", name=name))
            wanted.or_(page.locator("summary", has_text=name)).first.click()

    return prepare


def keys(page: Page, furnished: Furnished) -> None:
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()


def together(page: Page, furnished: Furnished) -> None:
    for number in (1, 2):
        page.get_by_label("Select: Run send_mail").nth(number).check()
    page.get_by_role("button", name="Decide together").click()
    expect(page.get_by_role("region", name="Bulk decision")).to_be_visible()


def edited(page: Page, furnished: Furnished) -> None:
    page.get_by_role("button", name="Edit").click()
    editor = page.locator("[data-editor]")
    editor.get_by_label("subject", exact=False).first.fill("Other numbers")
    editor.get_by_role("tab", name="Changes").click()
    expect(editor.get_by_role("button", name="Approve with 1 change")).to_be_enabled()


def urgent(page: Page, furnished: Furnished) -> None:
    furnished.site.propose(furnished.agent, "send_mail", {"to": "ann"}, priority="high")
    expect(page.get_by_role("dialog").locator("article")).to_be_visible()


SETTINGS = ("me", "people", "teams", "keys", "grants", "channels", "about")
POLICY = ("rules", "text", "explain", "rehearse", "shadow", "versions")
STATES = ("approved", "edited", "rejected", "responded", "running", "succeeded", "failed")
STOPS = {
    "chat": Stop("/chat"),
    "conversation": Stop("/chat/{thread}"),
    "inbox": Stop("/inbox"),
    "inbox, nothing found": Stop("/inbox?q=nothing-like-this"),
    "inbox, keys": Stop("/inbox", keys),
    "inbox, several": Stop("/inbox?tool=send_mail", together),
    "history": Stop("/history"),
    "history, a story": Stop("/history?id={edited}"),
    "history, nothing found": Stop("/history?q=nothing-like-this"),
    "ledger": Stop("/history?tab=ledger"),
    "statistics": Stop("/statistics"),
    "agents": Stop("/agents"),
    "agent": Stop("/agents/assistant"),
    **{f"policy, {tab}": Stop(f"/policy?tab={tab}") for tab in POLICY},
    **{f"settings, {tab}": Stop(f"/settings/{tab}") for tab in SETTINGS},
    "person": Stop("/settings/about", clicks("ann")),
    "urgent": Stop("/settings/about", urgent),
    "nothing there": Stop("/a/nothing"),
    **{f"card, {name}": Stop(f"/a/{{{name}}}") for name in ("pending", "odd", "nested", "high", "quorum", *STATES)},
    "question": Stop("/a/{question}"),
    "card, more": Stop("/a/{odd}", clicks("Agent says", "Add a comment", "More")),
    "card, rejecting": Stop("/a/{pending}", clicks("Reject")),
    "card, responding": Stop("/a/{pending}", clicks("Respond")),
    "editor": Stop("/a/{pending}", clicks("Edit")),
    "editor, JSON": Stop("/a/{pending}", clicks("Edit", "JSON")),
    "editor, changes": Stop("/a/{pending}", edited),
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
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Furnished]:
    with furnished_at(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.fixture(scope="module")
def site(furnished: Furnished) -> Site:
    return furnished.site


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.smoke if name in MAIN_PAGES else ()) for name in STOPS]
)
def test_a_page_has_no_barrier(furnished: Furnished, visit: Visit, name: str) -> None:
    stop = STOPS[name]
    page = visit(furnished.site.admin, stop.path.format(thread=furnished.thread, **furnished.ids))
    expect(page.locator(READY)).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_role("main").get_by_role("status", name="Loading")).to_have_count(0)
    stop.prepare(page, furnished)
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
                found.setdefault(told(barrier), []).append(f"{size} {scheme}")
    return [f"{', '.join(seen)}: {what}" for what, seen in found.items()]


def told(barrier: dict[str, Any]) -> str:
    nodes = "\n".join(
        f"    {node['target']} {node['html'][:200]} {node['failureSummary']}" for node in barrier["nodes"]
    )
    return f"{barrier['id']}: {barrier['help']}\n{nodes}"
