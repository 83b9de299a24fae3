"""Every page as people see it, in light, in dark and on a phone.

INTERLOCK_PICTURES=docs/images/pages keeps the pictures, which docs/pages.md shows.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.seeded_site import SeededSite, seed_site
from tests.browser.site import READY, Visitors

FOLDER = os.environ.get("INTERLOCK_PICTURES", "")
DOCS = Path(__file__).resolve().parents[2] / "docs"
DESK = {"viewport": {"width": 1440, "height": 900}}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {**DESK, "color_scheme": "light"},
    "dark": {**DESK, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "color_scheme": "light"},
}
SETTLED = "() => document.getAnimations().every((each) => each.playState !== 'running')"
# What is cut off at the right edge, or would have to be scrolled to from side to side.
TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Picture(NamedTuple):
    path: str  # with ids of approvals by name, in braces
    is_signed_in: bool = True
    prepare: Callable[[Page], object] = lambda page: None


def open_editor(page: Page) -> None:
    page.locator("article").get_by_role("button", name="Edit").click()
    expect(page.locator("[data-editor] input").first).to_be_visible()


def await_card(page: Page) -> None:
    expect(page.locator("article[data-status=pending]")).to_be_visible()


PICTURES = {
    "sign-in": Picture("/signin", is_signed_in=False),
    "inbox": Picture("/inbox"),
    "inbox-card": Picture("/inbox?id={transfer}"),
    "approval": Picture("/a/{transfer}"),
    "deceptive": Picture("/a/{odd}"),
    "high-risk": Picture("/a/{high}"),
    "question": Picture("/a/{question}"),
    "decided": Picture("/a/{succeeded}"),
    "editor": Picture("/a/{transfer}", prepare=open_editor),
    "chat": Picture("/chat/{thread}", prepare=await_card),
    "new-chat": Picture("/chat"),
    "history": Picture("/history?id={edited}"),
    "ledger": Picture("/history?tab=ledger"),
    "statistics": Picture("/statistics"),
    "agents": Picture("/agents"),
    "agent": Picture("/agents/assistant"),
    "connect": Picture("/connect"),
    "content": Picture("/content"),
    "okrs": Picture("/okrs"),
    "policy": Picture("/policy"),
    "people": Picture("/settings/people"),
    "keys": Picture("/settings/keys"),
    "not-found": Picture("/nothing/here"),
}
TRANSFER = {
    "amount": 25000,
    "currency": "EUR",
    "recipient": {"name": "Grünwald & Söhne GmbH", "iban": "DE02 1203 0000 0000 2020 51", "is_new_payee": True},
    "pays_invoices": [
        {"number": "R-2026-1041", "due": "2026-11-12", "amount": 8200},
        {"number": "R-2026-1047", "due": "2026-11-15", "amount": 12400},
        {"number": "R-2026-1052", "due": "2026-11-20", "amount": 4400},
    ],
    "memo": "Q4 prepayment, as agreed with Dana",
}
TRANSFER_SCHEMA = {
    "type": "object",
    "properties": {
        "amount": {"type": "number", "title": "Amount"},
        "currency": {"type": "string", "title": "Currency", "enum": ["EUR", "USD", "GBP"]},
        "recipient": {
            "type": "object",
            "title": "Recipient",
            "properties": {
                "name": {"type": "string", "title": "Name"},
                "iban": {"type": "string", "title": "IBAN"},
                "is_new_payee": {"type": "boolean", "title": "New payee?"},
            },
        },
        "pays_invoices": {
            "type": "array",
            "title": "Pays invoices",
            "items": {
                "type": "object",
                "properties": {
                    "number": {"type": "string", "title": "Number"},
                    "due": {"type": "string", "format": "date", "title": "Due"},
                    "amount": {"type": "number", "title": "Amount"},
                },
            },
        },
        "memo": {"type": "string", "title": "Memo"},
    },
    "required": ["amount", "currency", "recipient"],
}


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeededSite]:
    with seed_site(tmp_path_factory.mktemp("pictures")) as made:
        more = {"schema": TRANSFER_SCHEMA, "agent_says": "Dana asked for it in the meeting.", "priority": "high"}
        made.ids["transfer"] = made.site.propose(made.agent, "pay_invoices", TRANSFER, **more)
        yield made


@pytest.fixture
def visitors(browser: Browser, seeded: SeededSite) -> Iterator[Visitors]:
    made = Visitors(browser, seeded.site)
    yield made
    made.close()
    made.problems.check()


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", PICTURES)
def test_a_page_has_a_title_a_heading_and_nothing_cut_off(
    seeded: SeededSite, visitors: Visitors, name: str, look: str
) -> None:
    picture = PICTURES[name]
    page = visitors.context(seeded.site.admin if picture.is_signed_in else None, **LOOKS[look]).new_page()
    page.goto(picture.path.format(**seeded.ids, thread=seeded.thread))
    if picture.is_signed_in:
        expect(page.locator(READY)).to_be_attached()
    expect(page.get_by_role("heading").first).to_be_visible()
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    picture.prepare(page)
    page.wait_for_function(SETTLED)
    assert page.title().endswith("Interlock"), page.title()
    assert page.evaluate(TOO_WIDE) <= 0
    if FOLDER:
        page.evaluate("() => document.fonts.ready")
        keep_picture(page, Path(FOLDER) / f"{name}-{look}.webp")


def keep_picture(page: Page, path: Path) -> None:
    """As WebP, a fifth of a PNG; Playwright itself writes no WebP."""
    session = page.context.new_cdp_session(page)
    taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": 85})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(base64.b64decode(taken["data"]))


def test_the_docs_show_every_page_in_every_look() -> None:
    shown = re.findall(r"images/pages/([\w-]+)\.webp", (DOCS / "pages.md").read_text())
    assert sorted(shown) == sorted(f"{name}-{look}" for name in PICTURES for look in LOOKS)
    assert sorted(path.stem for path in (DOCS / "images/pages").glob("*.webp")) == sorted(shown)
