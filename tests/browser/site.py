"""A real server with people at real browsers; silent failures of pages are recorded."""

from __future__ import annotations

import itertools
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from playwright.sync_api import Browser, BrowserContext, Page, Request

from tests.audit_events import PAGE_OPENED
from tests.interlock_server import RunningServer, run_server

READY = "[data-live=live]"  # the page is up to date, and keys that are pressed from now on count
PASSWORD = "correct horse battery staple"
WATCH = """
document.addEventListener("securitypolicyviolation", (event) =>
  window.noteViolation(`${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""
EXPECTED = re.compile(r"Failed to load resource: (the server responded with a status of (4\d\d|502)|net::ERR)")


@dataclass
class Site:
    """A server, its first admin, and the programs and people that a test adds."""

    server: RunningServer
    admin: httpx2.Client
    clients: list[httpx2.Client] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def url(self) -> str:
        return self.server.url

    def key(self, name: str = "bot", role: str = "agent", **more: Any) -> str:
        answer = self.admin.post("/api/keys", json={"name": name, "role": role, **more})
        assert answer.status_code < 300, answer.text
        return str(answer.json()["key"])

    def agent(self, name: str = "bot") -> httpx2.Client:
        """A program with an agent's key."""
        self.clients.append(self.server.client(self.key(name)))
        return self.clients[-1]

    def person(self, name: str, role: str = "reviewer", teams: tuple[str, ...] = ()) -> httpx2.Client:
        """Somebody new, with a session of their own."""
        made = self.admin.post("/api/users", json={"name": name, "role": role, "teams": list(teams)})
        assert made.status_code < 300, made.text
        link = self.admin.post(f"/api/users/{name}/link", json={}).json()["url"]
        return self._enter(link.rpartition("#")[2], "")

    def propose(self, agent: httpx2.Client, tool: str, args: Mapping[str, Any], **more: Any) -> str:
        """The approval's id."""
        number = next(self.numbers)
        body = {"tool": tool, "args": args, "run_id": "run", "call_id": f"call-{number}", **more}
        answer = agent.post("/api/calls", json={"effect": "write", **body})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["approval_id"])

    def approval(self, approval_id: str) -> Any:
        return self.admin.get(f"/api/approvals/{approval_id}").json()

    def put_policy(self, policy: Mapping[str, Any]) -> None:
        answer = self.admin.put("/api/policy", json=policy)
        assert answer.status_code == 200, answer.text

    def _enter(self, token: str, name: str) -> httpx2.Client:
        client = self.server.client()
        client.headers["origin"] = self.url  # as a browser says it
        answer = client.post("/api/session/link", json={"token": token, "name": name, "password": PASSWORD})
        assert answer.status_code == 200, answer.text
        self.clients.append(client)
        return client


@contextmanager
def run_site(database: str, folder: Path, *options: str) -> Iterator[Site]:
    """With `--demo` there is content and an agent that needs no key; `interlock.yaml` in the folder is taken."""
    with run_server(database, folder, *options) as served:
        site = Site(served, served.client())
        site.admin = site._enter(first_admin_token(served), "ann")
        try:
            yield site
        finally:
            for client in site.clients:
                client.close()


def first_admin_token(served: RunningServer) -> str:
    """The token of the link that the server prints for its first admin."""
    assert served.process.stdout is not None
    for line in served.process.stdout:
        if "/welcome#" in line:
            return line.rpartition("#")[2].strip()
    raise AssertionError("The server printed no link.")


@dataclass
class PageProblems:
    """Silent failures: policy violations, script errors, requests to other hosts."""

    violations: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    foreign_requests: list[str] = field(default_factory=list)

    def check(self) -> None:
        assert (self.violations, self.errors, self.foreign_requests) == ([], [], [])


class Visitors:
    """Browsers of people: `visit(session)` gives a page with nothing but that person's cookie."""

    def __init__(self, browser: Browser, site: Site) -> None:
        self._browser, self._site = browser, site
        self.problems = PageProblems()
        self._contexts: list[BrowserContext] = []

    def context(self, session: httpx2.Client | None = None, **more: Any) -> BrowserContext:
        options: dict[str, Any] = {"base_url": self._site.url, "viewport": {"width": 1280, "height": 800}, **more}
        context = self._browser.new_context(**options)
        context.on("page", lambda _: sys.audit(PAGE_OPENED))
        context.set_default_timeout(15_000)
        context.expose_function("noteViolation", self._note_violation)
        context.add_init_script(WATCH)
        context.on("page", self._watch)
        if session is not None:
            cookies = [{"name": c.name, "value": c.value or "", "url": self._site.url} for c in session.cookies.jar]
            context.add_cookies(cookies)  # type: ignore[arg-type]
        self._contexts.append(context)
        return context

    def visit(self, session: httpx2.Client | None, path: str = "/", **more: Any) -> Page:
        page = self.context(session, **more).new_page()
        page.goto(path)
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()

    def _watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.problems.errors.append(str(error)))
        page.on("console", lambda told: told.type == "error" and self._note(told.text))
        page.on("request", self._note_request)

    def _note_violation(self, what: str) -> None:
        self.problems.violations.append(what)

    def _note(self, text: str) -> None:
        if not EXPECTED.match(text):  # a refusal that the page shows in its own words
            self.problems.errors.append(text)

    def _note_request(self, request: Request) -> None:
        if not request.url.startswith((self._site.url, "blob:", "data:")):
            self.problems.foreign_requests.append(request.url)


Visit = Callable[..., Page]


def wait_until(happened: Callable[[], bool], seconds: float = 60) -> None:
    """What a process elsewhere does takes as long as it takes; the bound is for when it never does."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


def reload_anyway(page: Page) -> None:
    """Reload a page that asks before it is left."""
    page.once("dialog", lambda dialog: dialog.accept())
    page.reload()
