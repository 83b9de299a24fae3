"""Page object of the chat."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page, Request, expect

from tests.browser.site import READY, Site, Visit

POLICY = """\
policy:
  version: 1
  defaults: {undo_window: 0s, expires_in: 10m}
  rules:
    - {name: reads are free, effect: read, then: allow}
    - {name: those are quick, tools: [okr_create_objective], then: ask, expires_in: 1s}
    - {name: those can be undone, tools: [cms_delete_post], then: ask, undo_window: 10m}
"""


class ChatPage:
    """One page of the chat, as a person uses it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.field = page.get_by_role("textbox", name="Message")
        self.log = page.get_by_role("log")
        self.replies = page.locator("[data-reply=whole]")
        self.said = page.locator("[data-said]")
        self.requests = page.locator("[data-card] > [data-status]")  # a card while it is open, then a line
        self.cards = page.locator("article[data-status]")
        self.confirmation = page.locator("[data-confirmation=open]")

    def say(self, text: str) -> None:
        self.field.fill(text)
        self.field.press("Enter")
        expect(self.said.last).to_contain_text(text)
        expect(self.field).to_have_value("")

    def confirm(self) -> None:
        """Say yes to a confirmation of high risk, which takes a hold of one second."""
        self.confirmation.get_by_role("button", name="Hold to approve").hover()
        self.page.mouse.down()
        expect(self.confirmation).to_have_count(0)
        self.page.mouse.up()

    def calls(self, tool: str) -> Locator:
        return self.page.locator(f"[data-call={tool}]")

    def card(self, word: str) -> Locator:
        return self.cards.filter(has_text=word)

    def request(self, word: str) -> Locator:
        return self.requests.filter(has_text=word)

    @property
    def thread(self) -> str:
        return self.page.url.rpartition("/")[2]

    def wait_idle(self, times: int = 1) -> None:
        """The turn is over, and this many replies are there."""
        expect(self.replies).to_have_count(times)
        expect(self.page.get_by_role("button", name="Send")).to_be_visible()


def open_chat_page(site: Site, visit: Visit, path: str = "/chat", **more: Any) -> ChatPage:
    chat = ChatPage(visit(site.admin, path, **more))
    expect(chat.page.locator(READY)).to_be_visible()
    expect(chat.field).to_be_visible()
    return chat


class OpenStreams:
    """Which streams of threads a page holds open now."""

    def __init__(self, page: Page) -> None:
        self.open: set[Request] = set()
        self.started = 0
        page.on("request", self._begin)
        page.on("requestfinished", self._end)
        page.on("requestfailed", self._end)

    def _begin(self, request: Request) -> None:
        if "/api/threads/" in request.url and request.url.endswith("/events"):
            self.open.add(request)
            self.started += 1

    def _end(self, request: Request) -> None:
        self.open.discard(request)
