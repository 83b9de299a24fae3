"""Helpers for the approval card on its page."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.browser.site import READY, Site, Visit

MAIL = {"to": "ann@example.com", "subject": "Hello"}


def open_card(visit: Visit, session: Any, approval_id: str, **more: Any) -> Locator:
    """The card on its own page, with nothing that would be ignored because it appeared just now."""
    page: Page = visit(session, f"/a/{approval_id}", **more)
    expect(page.locator(READY)).to_be_visible()
    return card_on(page)


def card_on(page: Page) -> Locator:
    card = page.locator("article[data-approval]")
    expect(card).to_have_attribute("data-settled", "true")
    return card


def expect_status(card: Locator, status: str) -> None:
    expect(card).to_have_attribute("data-status", status)


def decide(site: Site, session: Any, approval_id: str, kind: str, **more: Any) -> Any:
    """By somebody at another place."""
    digest = site.approval(approval_id)["args_sha256"]
    body = {"kind": kind, "args_sha256": digest, **more}
    answer = session.post(f"/api/approvals/{approval_id}/decision", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()
