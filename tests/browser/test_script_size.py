"""How much script a page costs the first time that it is opened, and that all of it is ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.seeded_site import SeededSite, seed_site
from tests.browser.site import READY, Site, Visitors

MAX_BYTES = 150_000  # bytes of script, compressed as they are sent
SCRIPTS = 'const scripts = performance.getEntriesByType("resource").filter((each) => each.name.endsWith(".js"));'
QUIET = f"() => {{ {SCRIPTS} return performance.now() - Math.max(...scripts.map((each) => each.responseEnd)) > 700; }}"
SUM = f"() => {{ {SCRIPTS} return scripts.reduce((sum, each) => sum + each.encodedBodySize, 0); }}"


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeededSite]:
    with seed_site(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.fixture(scope="module")
def site(seeded: SeededSite) -> Site:
    return seeded.site


def test_no_page_needs_more_than_150_kb_of_script(seeded: SeededSite, visitors: Visitors) -> None:
    sizes = {name: load(visitors, seeded, path) for name, path in pages(seeded).items()}
    print("\n".join(f"{name:<18}{size:>9,} bytes" for name, size in sizes.items()))
    assert min(sizes.values()) > 50_000, "the scripts were not seen"
    assert {name: size for name, size in sizes.items() if size > MAX_BYTES} == {}


def pages(seeded: SeededSite) -> dict[str, str]:
    plain = [
        "/chat",
        "/inbox",
        "/history",
        "/statistics",
        "/agents",
        "/agents/bot",
        "/connect",
        "/content",
        "/okrs",
        "/policy",
        "/settings",
        "/signin",
    ]
    ids = {f"/a/{{{name}}}": f"/a/{seeded.ids[name]}" for name in ("pending", "odd")}
    return {**{path: path for path in plain}, "/chat/{thread}": f"/chat/{seeded.thread}", **ids}


def load(visitors: Visitors, seeded: SeededSite, path: str) -> int:
    """By an empty browser, until the page is there and has asked for nothing more for a while."""
    context = visitors.context(None if path == "/signin" else seeded.site.admin)
    page = context.new_page()
    page.goto(path)
    if path != "/signin":
        expect(page.locator(READY)).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.wait_for_function(QUIET)
    size = int(page.evaluate(SUM))
    context.close()
    return size
