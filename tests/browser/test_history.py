"""The story of a call, the ledger that proves it, and taking it along."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.browser.bulk_requests import create_requests
from tests.browser.site import READY, Site, Visit

POLICY = """
policy:
  version: 1
  rules:
    - name: two of finance
      tools: [send_mail]
      then: ask
      approvers: {teams: [finance]}
      quorum: 2
"""
IS_SCROLLED_TO = """rows => rows.some(row => {
  const box = row.getBoundingClientRect(), scroller = row.closest("ol").parentElement.getBoundingClientRect();
  return box.top < scroller.bottom && box.bottom > scroller.top;
})"""


@pytest.fixture
def config() -> str:
    return POLICY


def decide(site: Site, person: httpx2.Client, approval_id: str, kind: str, **more: object) -> httpx2.Response:
    seen = {"args_sha256": site.approval(approval_id)["args_sha256"]}
    return person.post(f"/api/approvals/{approval_id}/decision", json={"kind": kind, **seen, **more})


def make_decided_call(site: Site) -> str:
    """Refused to one, edited and approved by another, approved by a third, run, and remarked upon."""
    agent = site.agent("office")
    bob, cara, dan = (
        site.person("bob", teams=("finance",)),
        site.person("cara", teams=("finance",)),
        site.person("dan"),
    )
    args = {"to": "ann@example.com", "subject": "Refund for Carol"}
    approval_id = site.propose(agent, "send_mail", args)
    assert decide(site, dan, approval_id, "approve").status_code == 403
    edited = {**args, "subject": "Your refund"}
    assert decide(site, bob, approval_id, "edit", args=edited, comment="More polite.").status_code == 200
    assert decide(site, cara, approval_id, "approve").status_code == 200
    fence = agent.post(f"/api/calls/{approval_id}/start", json={"lease_seconds": 60}).json()["fence"]
    done = {"fence": fence, "ok": True, "result": {"sent": True}}
    assert agent.post(f"/api/calls/{approval_id}/finish", json=done).status_code == 200
    return approval_id


def erase(folder: Path, approval_id: str) -> None:
    """By an admin at the command line, while the server runs."""
    command = [sys.executable, "-m", "interlock", "erase", "--approval", approval_id, "--yes"]
    database = f"sqlite:///{folder / 'interlock.db'}"
    done = subprocess.run([*command, "--database", database], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# R8, R41
def test_call_is_found_and_shows_its_history(site: Site, visit: Visit, tmp_path: Path) -> None:
    approval_id = make_decided_call(site)
    for number in range(3):
        site.propose(site.agent(f"other{number}"), "delete_file", {"path": f"/tmp/{number}"})
    page = visit(site.admin, "/history")
    expect(page.locator(READY)).to_be_visible()
    expect(page.locator("[data-row]")).to_have_count(4)
    page.get_by_label("Keywords").fill("refund")
    page.get_by_label("Keywords").press("Enter")
    expect(page).to_have_url(re.compile(r"[?&]q=refund"))
    expect(page.locator("[data-row]")).to_have_count(1)
    page.locator(f"[data-row='{approval_id}']").click()
    expect(page).to_have_url(re.compile(f"id={approval_id}"))
    steps = page.get_by_role("list", name="Timeline").locator("> li")
    told = ["proposed", "decision_refused", "edited", "voted", "approved", "started", "succeeded"]
    expect(steps).to_have_count(len(told))
    assert [step.get_attribute("data-kind") for step in steps.all()] == told
    expect(steps.nth(1)).to_contain_text("dan tried to approve it and was refused: not allowed to decide it")
    expect(steps.nth(2).locator("del")).to_contain_text("Refund for Carol")
    expect(steps.nth(2).locator("ins")).to_contain_text("Your refund")
    expect(steps.nth(3)).to_contain_text("More polite.")
    expect(steps.nth(4)).to_contain_text("cara approved it")
    expect(steps.nth(4)).to_contain_text(site.approval(approval_id)["args_sha256"][:12])
    erase(tmp_path, approval_id)
    page.reload()
    expect(page.get_by_text("The content was erased")).to_be_visible()
    expect(steps.nth(2)).to_contain_text("Its content was erased")
    expect(steps.nth(2).locator("del")).to_have_count(0)
    page.get_by_role("link", name="Open the card").click()
    expect(page).to_have_url(re.compile(f"/a/{approval_id}$"))


# R8
def test_a_long_list_is_read_on_to_its_end(site: Site, visit: Visit, tmp_path: Path) -> None:
    ids = create_requests(f"sqlite:///{tmp_path / 'interlock.db'}", 130)
    page = visit(site.admin, "/history")
    first = page.locator("[data-row]").first
    expect(first).to_be_visible()
    assert page.locator("[data-row]").count() < 50, "only as many as one sees"
    oldest = page.locator(f"[data-row='{min(ids)}']")
    while not oldest.evaluate_all(IS_SCROLLED_TO):  # rows beyond the edge are rendered too
        page.get_by_role("list", name="Calls").hover()
        page.mouse.wheel(0, 3_000)
    expect(oldest).to_be_in_viewport()


def test_filters_live_in_the_address_and_what_happens_comes_in(site: Site, visit: Visit) -> None:
    agent = site.agent()
    first = site.propose(agent, "delete_file", {"path": "/tmp/1"})
    page = visit(site.admin, "/history?status=rejected")
    expect(page.get_by_text("No calls found")).to_be_visible()
    decide(site, site.admin, first, "reject", reason="No.")
    expect(page.locator(f"[data-row='{first}']")).to_be_visible()
    page.get_by_label("Status").select_option("")
    page.get_by_text("More filters").click()
    page.get_by_label("Tool").fill("nothing")
    page.get_by_role("button", name="Search").click()
    expect(page).to_have_url(re.compile(r"\?tool=nothing$"))
    expect(page.get_by_text("No calls found")).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("[data-row]")).to_have_count(1)


# R8
def test_on_a_phone_the_list_and_the_story_come_one_after_the_other(site: Site, visit: Visit) -> None:
    approval_id = site.propose(site.agent(), "delete_file", {"path": "/tmp/1"})
    page = visit(site.person("vic", "viewer"), "/history", viewport={"width": 390, "height": 844})
    page.locator(f"[data-row='{approval_id}']").click()
    expect(page.get_by_role("list", name="Timeline")).to_be_visible()
    expect(page.locator("[data-row]")).not_to_be_visible()
    page.get_by_role("button", name="Back to the list").click()
    expect(page.locator("[data-row]")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def verify(page: Page) -> None:
    page.get_by_role("button", name="Verify now").click()


# R8
def test_a_line_of_the_ledger_says_what_was_approved(site: Site, visit: Visit) -> None:
    approval_id = site.propose(site.agent(), "delete_file", {"path": "/tmp/1"})
    decide(site, site.admin, approval_id, "approve")
    page = visit(site.admin, "/history?tab=ledger&kind=approved")
    line = page.get_by_role("list", name="Entries").locator("> li")
    expect(line).to_contain_text("ann approved it")
    about = line.get_by_role("link", name=site.approval(approval_id)["sentence"])
    expect(about).to_be_visible()
    expect(line).to_contain_text("delete_file")
    about.click()
    expect(page).to_have_url(re.compile(f"/history[?]id={approval_id}$"))


# R49
def test_the_ledger_is_verified_and_what_was_altered_is_told(site: Site, visit: Visit, tmp_path: Path) -> None:
    approval_id = make_decided_call(site)
    page = visit(site.admin, "/history?tab=ledger")
    expect(page.get_by_text("Not verified since the server was started.")).to_be_visible()
    verify(page)
    expect(page.locator("[data-verified=valid]")).to_contain_text("The ledger is intact")
    page.get_by_label("Event").select_option("approved")
    expect(page).to_have_url(re.compile("kind=approved"))
    entries = page.get_by_role("list", name="Entries").locator("> li")
    expect(entries).to_have_count(1)
    expect(entries).to_contain_text("cara approved it")
    with closing(sqlite3.connect(tmp_path / "interlock.db", isolation_level=None)) as outsider:
        outsider.execute("update events set actor = 'mallory' where kind = 'voted'")
    verify(page)
    expect(page.locator("[data-verified=invalid]")).to_contain_text("The ledger is not intact")
    expect(page.get_by_role("list", name="Violations")).to_contain_text("The entry, or one before it, was altered")
    entries.get_by_role("link").click()
    expect(page.locator(f"[data-story='{approval_id}']")).to_be_visible()


# R49
def test_the_ledger_is_taken_along_and_verified_elsewhere(site: Site, visit: Visit, tmp_path: Path) -> None:
    make_decided_call(site)
    page = visit(site.admin, "/history?tab=ledger")
    for name, file in (("Export ledger", "out.ledger"), ("Download head", "head.json")):
        with page.expect_download() as downloading:
            page.get_by_role("link", name=name).click()
        downloading.value.save_as(tmp_path / file)
    command = [sys.executable, "-m", "interlock", "audit", "verify", "--export", "out.ledger", "--head", "head.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout[:6]) == (0, "valid:"), done.stdout + done.stderr
    viewer = visit(site.person("vic", "viewer"), "/history?tab=ledger")
    expect(viewer.get_by_text("Admins can export the whole ledger.")).to_be_visible()
    expect(viewer.get_by_role("link", name="Export ledger")).to_have_count(0)
    verify(viewer)
    expect(viewer.locator("[data-verified=valid]")).to_be_visible()
