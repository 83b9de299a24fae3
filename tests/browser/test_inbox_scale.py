"""Ten thousand requests wait, and fifty things happen in a second: the list stays smooth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.browser.bulk_requests import assign_at_rate, create_requests
from tests.browser.site import Site, Visit
from tests.browser.test_inbox import open_inbox

MANY = 10_000
SCREENS = 60  # of the first ones; scrolling through all of them takes a minute on a loaded machine
RATE = 50
FRAMES = """async ({ screens, milliseconds }) => {
  const list = document.querySelector("[data-rows]");
  const frames = [];
  let most = 0;
  let last = performance.now();
  const begun = last;
  for (;;) {
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - last);
    last = now;
    most = Math.max(most, document.querySelectorAll("[data-row]").length);
    if (screens) list.scrollTop += list.clientHeight / 2;
    if (screens ? list.scrollTop > screens * list.clientHeight : now - begun > milliseconds) break;
  }
  frames.sort((one, other) => one - other);
  const at = (share) => frames[Math.floor(frames.length * share)];
  return { rows: Number(list.dataset.rows), most, median: at(0.5), p95: at(0.95), longest: frames.at(-1) };
}"""


# R36
def test_ten_thousand_requests_are_scrolled_and_kept_up_to_date(site: Site, visit: Visit, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'interlock.db'}"
    create_requests(database, MANY)
    page = open_inbox(visit, site.admin)
    expect(page.get_by_role("navigation", name="Pages")).to_contain_text("10,000")
    scrolled: dict[str, Any] = page.evaluate(FRAMES, {"screens": SCREENS, "milliseconds": 0})
    assert scrolled["rows"] >= 400, scrolled  # further pages were fetched on the way
    assert scrolled["most"] < 60, scrolled  # and only what is on the screen is there
    page.locator("[data-rows]").evaluate("list => { list.scrollTop = 0 }")
    top = page.locator('[data-row][aria-posinset="1"]')
    expect(top).to_be_visible()
    seen: list[str] = page.locator("[data-row]").evaluate_all("rows => rows.map(row => row.dataset.row)")
    with assign_at_rate(database, seen, RATE) as done:
        expect(top).to_contain_text("Claimed by bob")
        meanwhile: dict[str, Any] = page.evaluate(FRAMES, {"screens": 0, "milliseconds": 2_000})
    assert len(done) > RATE, "so much happened meanwhile"
    print(f"frames in ms: while scrolling {scrolled}, while {RATE} things happen a second {meanwhile}")
    page.get_by_label("Search", exact=True).fill("user9876")
    expect(page.locator("[data-row]")).to_have_count(1)
    page.keyboard.press("Tab")
    page.get_by_role("heading", name="Inbox").click()
    page.keyboard.press("j")
    expect(page.locator("article")).to_contain_text("user9876@example.com")
