"""Forty mixed requests are decided by the keyboard alone: one key each, and how long the next card takes to be there.

The times are printed for whoever works on them; only keys are counted against a limit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import quantiles

import httpx2
from playwright.sync_api import Page, expect

from tests.browser.site import Site, Visit
from tests.browser.test_inbox import expect_open, open_inbox, press_next

REQUESTS = 40
HOLD = 1_000  # milliseconds
ODD = "supp\u043ert@example.com"  # with a letter of another alphabet
# Notes how long after a key the card of another request is painted and has the focus
WATCH = """
() => {
  let pressed = 0;
  let shown = document.activeElement?.dataset?.approval;
  window.waits = [];
  addEventListener("keydown", (event) => { if (!event.repeat) pressed = performance.now(); }, true);
  const look = () => {
    const id = document.activeElement?.dataset?.approval;
    if (id && id !== shown) {
      shown = id;
      requestAnimationFrame(() => window.waits.push(performance.now() - pressed));
    }
    requestAnimationFrame(look);
  };
  look();
}
"""


@dataclass
class Keyboard:
    """Counts what is pressed."""

    page: Page
    keys: list[str] = field(default_factory=list)

    def press(self, key: str) -> None:
        self.keys.append(key)
        self.page.keyboard.press(key)

    def hold(self, key: str) -> None:
        self.keys.append(key)
        self.page.keyboard.down(key)

    def release(self, key: str) -> None:
        self.page.keyboard.up(key)


# R14
def test_forty_mixed_requests_take_one_key_each(site: Site, visit: Visit) -> None:
    bot = site.agent()
    kinds = [("mail", "mail", "reject", "risky", "mail", "odd", "mail", "reject")[n % 8] for n in range(REQUESTS)]
    ids = [propose(site, bot, kind, number) for number, kind in enumerate(kinds)]
    page = open_inbox(visit, site.admin)
    press_next(page, ids[0])
    page.keyboard.press("o")
    expect_open(page, ids[0])
    page.evaluate(WATCH)
    keyboard = Keyboard(page)
    for position, kind in enumerate(kinds):
        decide(keyboard, kind)
        if position + 1 < REQUESTS:
            expect_open(page, ids[position + 1])
        if kind == "risky":
            keyboard.release("a")
    expect(page.locator("[data-all-done]")).to_be_focused()
    counts = Counter(kinds)
    assert len(keyboard.keys) == REQUESTS + 2 * counts["odd"]  # a finding is also gone to, and checked
    statuses = Counter(site.approval(each)["status"] for each in ids)
    assert statuses == {"approved": REQUESTS - counts["reject"], "rejected": counts["reject"]}
    print(report(keyboard, kinds, page.evaluate("window.waits")))


def propose(site: Site, agent: httpx2.Client, kind: str, number: int) -> str:
    args = {"to": ODD if kind == "odd" else f"user{number}@example.com", "subject": f"Invoice {number}"}
    more = {"expires_in": f"{900 + 60 * number}s"}
    if kind == "risky":
        return site.propose(agent, "delete_rows", {"table": f"customers_{number}"}, effect="destructive", **more)
    return site.propose(agent, "send_mail", args, **more)


def decide(keyboard: Keyboard, kind: str) -> None:
    match kind:
        case "reject":
            keyboard.press("r")
        case "risky":
            keyboard.hold("a")
        case "odd":
            keyboard.press("a")
            expect(keyboard.page.locator("[data-finding] input:focus")).to_be_visible()
            keyboard.press("Space")
            keyboard.press("a")
        case _:
            keyboard.press("a")


def report(keyboard: Keyboard, kinds: list[str], waits: list[float]) -> str:
    """Without the second for which a key is held."""
    net = sorted(wait - HOLD if kind == "risky" else wait for kind, wait in zip(kinds, waits, strict=False))
    cuts = quantiles(net, n=20)
    return (
        f"{len(kinds)} requests, {len(keyboard.keys)} keys; key to next card, painted and focused: "
        f"median {cuts[9]:.0f} ms, p95 {cuts[18]:.0f} ms, longest {net[-1]:.0f} ms"
    )
