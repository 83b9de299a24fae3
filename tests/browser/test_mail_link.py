"""From the link in a mail to the decision, on a phone; and what the link does for everybody else: nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.sync_api import expect

from tests.browser.card_page import MAIL, card_on, expect_status
from tests.browser.site import Site, Visit, Visitors, wait_until
from tests.browser.test_axe import AXE, RUN, SCHEMES, SETTLED
from tests.fakes.mail_server import Mail, MailServer, mail_server

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
CARD = "article[data-approval]"
BY_LINK = "[data-by-link]"  # what is decided on this page is decided through the mail
CONFIG = """
channels:
  mail: {{kind: email, host: 127.0.0.1, port: {port}, tls: none, from: interlock@example.com}}
routing: {{default_channel: mail}}
"""


@pytest.fixture
def mails(tmp_path: Path) -> Iterator[MailServer]:
    with mail_server(tmp_path, tls="none") as made:
        yield made


@pytest.fixture
def config(mails: MailServer) -> str:
    return CONFIG.format(port=mails.port)


@pytest.fixture
def eve(site: Site) -> httpx2.Client:
    person = site.person("eve")
    site.admin.put("/api/users/eve", json={"role": "reviewer", "email": "eve@example.com"}).raise_for_status()
    return person


def test_from_the_mail_to_the_decision_on_a_phone(
    site: Site, eve: httpx2.Client, mails: MailServer, visit: Visit
) -> None:  # R25
    approval_id = site.propose(site.agent(), "send_mail", MAIL)
    page = visit(None, link_path(wait_for_mail(mails, 1)), **PHONE)
    card = page.locator(CARD)
    expect(card).to_contain_text(MAIL["to"])
    expect(page.get_by_text("This link is for eve.")).to_be_visible()
    expect(card.get_by_role("button", name="Approve")).to_have_count(0)
    assert urlsplit(page.url).query == ""
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_role("button", name="E-mail me a code").tap()
    field = page.get_by_label("Code")
    field.fill("12345")
    page.get_by_role("button", name="Sign in").tap()
    expect(page.get_by_text("The code is wrong")).to_be_visible()
    field.fill(find_code(wait_for_mail(mails, 2)))
    page.get_by_role("button", name="Sign in").tap()
    expect(page.locator(BY_LINK)).to_be_visible()
    card_on(page).get_by_role("button", name="Approve").tap()
    expect_status(card, "approved")
    decision = site.approval(approval_id)["decision"]
    assert (decision["by"], decision["via"]) == ("eve", "mail")


def test_signed_in_person_decides_directly_from_the_mail_link(
    site: Site, eve: httpx2.Client, mails: MailServer, visit: Visit
) -> None:  # R25
    approval_id = site.propose(site.agent(), "send_mail", MAIL)
    page = visit(eve, link_path(wait_for_mail(mails, 1)))
    expect(page.locator(BY_LINK)).to_be_visible()
    card_on(page).get_by_role("button", name="Approve").click()
    expect_status(card_on(page), "approved")
    assert site.approval(approval_id)["decision"]["via"] == "mail"


def test_a_forwarded_link_says_for_whom_it_is_and_a_decision_is_ones_own(
    site: Site, eve: httpx2.Client, mails: MailServer, visit: Visit
) -> None:  # R25 R48
    approval_id = site.propose(site.agent(), "send_mail", MAIL)
    page = visit(site.admin, link_path(wait_for_mail(mails, 1)))
    expect(page.get_by_text("This link is for eve")).to_be_visible()
    expect(page.get_by_text("You are signed in as ann")).to_be_visible()
    card_on(page).get_by_role("button", name="Approve").click()
    expect_status(card_on(page), "approved")
    decision = site.approval(approval_id)["decision"]
    assert (decision["by"], decision["via"]) == ("ann", "web")


def test_a_scanner_that_runs_the_page_decides_nothing(
    site: Site, eve: httpx2.Client, mails: MailServer, visitors: Visitors
) -> None:  # R25 R47
    approval_id = site.propose(site.agent(), "send_mail", MAIL)
    link = link_path(wait_for_mail(mails, 1))
    for _ in range(3):
        page = visitors.visit(None, link)
        expect(page.locator(CARD)).to_be_visible()
        for button in page.get_by_role("button").all():
            button.click()
        page.context.close()
    assert site.approval(approval_id)["status"] == "pending"
    expect(visitors.visit(eve, link).locator(BY_LINK)).to_be_visible()  # unspent


def test_a_link_that_does_not_hold_leads_to_the_sign_in(site: Site, visit: Visit) -> None:  # R25
    page = visit(None, "/a/01a1e154-1336-7cab-9db1-e7cefc446694?t=default.nothing.1.2")
    expect(page.get_by_text("This link is invalid or expired.")).to_be_visible()
    page.get_by_role("link", name="Sign in").click()
    expect(page.get_by_role("textbox", name="Password")).to_be_visible()
    assert urlsplit(page.url).query == "next=%2Fa%2F01a1e154-1336-7cab-9db1-e7cefc446694"


def test_after_the_end_the_link_shows_how_it_ended(
    site: Site, eve: httpx2.Client, mails: MailServer, visit: Visit
) -> None:  # R25
    approval_id = site.propose(site.agent(), "send_mail", MAIL)
    link = link_path(wait_for_mail(mails, 1))
    body = {"kind": "approve", "args_sha256": site.approval(approval_id)["args_sha256"]}
    site.admin.post(f"/api/approvals/{approval_id}/decision", json=body).raise_for_status()
    page = visit(None, link)
    expect(page.get_by_text("There is nothing left to decide.")).to_be_visible()
    expect_status(page.locator(CARD), "approved")
    expect(page.get_by_role("button", name="E-mail me a code")).to_have_count(0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_behind_the_link_has_no_barrier(
    site: Site, eve: httpx2.Client, mails: MailServer, visit: Visit, scheme: str
) -> None:  # R25
    site.propose(site.agent(), "send_mail", MAIL)
    page = visit(None, link_path(wait_for_mail(mails, 1)), **PHONE, color_scheme=scheme)
    expect(page.locator(CARD)).to_be_visible()
    page.get_by_role("button", name="E-mail me a code").tap()
    expect(page.get_by_label("Code")).to_be_visible()
    page.evaluate(AXE.read_text())
    page.wait_for_function(SETTLED)
    found = page.evaluate(RUN)
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []


def wait_for_mail(mails: MailServer, count: int) -> Mail:
    """The last of so many mails to eve."""
    wait_until(lambda: len(mails.mails_to("eve@example.com")) >= count)
    return mails.mails_to("eve@example.com")[count - 1]


def link_path(mail: Mail) -> str:
    """Without the host: the server of a test does not know at which port people find it."""
    found = re.search(r"^http\S+$", mail.text, re.M)
    assert found
    parts = urlsplit(found[0])
    return f"{parts.path}?{parts.query}"


def find_code(mail: Mail) -> str:
    found = re.search(r"^    (\d{8})$", mail.text, re.M)
    assert found
    return found[1]
