"""Arguments are shown as they are stored, whatever they try to look like; what may deceive is looked at first."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.card_page import decide, expect_status, open_card
from tests.browser.site import Site, Visit

ODD = {
    "url": "https://api.p\u0430rtner.example/pay",
    "note": "42\u202egpj.exe\u202c",
    "escaped": "\\u{202e}",
    "markup": "**yes** <b>ok</b> [x](https://evil.example)\n# Title",
    "deep": {"list": [1, "1", True, None, {"k": []}]},
    "long": "a" * 3_000 + "\u200b" + "b" * 3_000,
    "token": "s3cret",
}


@pytest.mark.smoke
def test_alarms_are_looked_at_one_by_one_before_anybody_can_approve(site: Site, visit: Visit) -> None:  # R53
    approval_id = site.propose(site.agent(), "post_note", {key: ODD[key] for key in ("url", "note")})
    card = open_card(visit, site.admin, approval_id)
    expect(card.locator("[data-findings]")).to_contain_text("2 arguments contain text that may mislead you")
    expect(card.get_by_label("Checked")).to_have_count(2)
    expect(card.locator("[data-findings]").get_by_label("Checked")).to_have_count(2)
    expect(card.locator("[data-findings]").get_by_role("button", name="note", exact=True)).to_be_visible()
    approve = card.get_by_role("button", name="Approve")
    expect(approve).to_be_disabled()
    card.focus()
    card.page.keyboard.press("Enter")
    card.get_by_label("Checked").nth(0).check()
    expect(approve).to_be_disabled()
    card.get_by_label("Checked").nth(1).check()
    with card.page.expect_request("**/decision") as sent:
        approve.click()
    expect_status(card, "approved")
    body = json.loads(sent.value.post_data or "")
    assert sorted(body["acknowledged"]) == ["bidi:/note", "lookalike:/url"]
    assert body["args_sha256"] == site.approval(approval_id)["args_sha256"]


def test_what_was_looked_at_counts_no_more_when_somebody_edits(site: Site, visit: Visit) -> None:  # R53
    eve = site.person("eve")
    rule = {"name": "two", "tools": ["*"], "then": "ask", "quorum": 2}
    site.put_policy({"version": 1, "rules": [rule]})
    approval_id = site.propose(site.agent(), "post_note", {"note": ODD["note"], "amount": 5})
    card = open_card(visit, site.admin, approval_id)
    card.get_by_label("Checked").check()
    expect(card.get_by_role("button", name="Approve")).to_be_enabled()
    edited = {"note": ODD["note"], "amount": 6}
    decide(site, eve, approval_id, "edit", args=edited, acknowledged=["bidi:/note"])
    expect(card.locator("[data-changed]")).to_contain_text("eve made 1 change")
    expect(card.locator("[data-change='/amount']")).to_have_text("amount 5 → 6")
    expect(card.get_by_role("button", name="Approve")).to_be_disabled()
    card.get_by_role("button", name="I have reviewed the changes").click()
    expect(card.get_by_label("Checked")).not_to_be_checked()
    card.get_by_label("Checked").check()
    card.get_by_role("button", name="Approve").click()
    expect_status(card, "approved")
    assert site.approval(approval_id)["args"]["amount"] == 6


def test_an_edit_that_may_deceive_is_looked_at_too_each_time_it_changes(site: Site, visit: Visit) -> None:  # R12 R53
    approval_id = site.propose(site.agent(), "send_mail", {"to": "ann"})
    card = open_card(visit, site.admin, approval_id)
    card.get_by_role("button", name="Edit").click()
    for letter in ("\u202e", "\u202d"):
        card.get_by_role("tab", name="JSON").click()
        card.get_by_role("textbox", name="Arguments as JSON").fill(json.dumps({"to": f"a{letter}n"}))
        card.get_by_role("button", name="Approve with 1 change").click()
        expect(card.get_by_label("Checked")).not_to_be_checked()
        card.get_by_label("Checked").check()
    card.get_by_role("button", name="Approve with 1 change").click()
    expect_status(card, "approved")
    assert site.approval(approval_id)["args"] == {"to": "a\u202dn"}


def test_every_argument_is_its_exact_text_and_nothing_else(site: Site, visit: Visit) -> None:  # R53
    approval_id = site.propose(site.agent(), "post_note", ODD, secret=["/token"])
    card = open_card(visit, site.admin, approval_id)
    card.get_by_role("button", name="Show all 6,001 characters").click()
    shown = card.locator("[data-pointer^='/']").evaluate_all(
        "all => all.map(each => [each.dataset.pointer, each.querySelector('[data-value]').textContent])"
    )
    fields = site.approval(approval_id)["card"]["fields"]
    assert dict(shown) == {field["pointer"]: field["text"] for field in fields if field["text"]}
    expect(card.locator("[data-pointer='/url'] [data-code]")).to_have_attribute("data-code", "U+0430")
    expect(card.locator("[data-pointer='/token']")).to_contain_text("hidden, fingerprint")
    assert card.locator("section a, section b, section img").count() == 0
    assert card.evaluate("card => card.scrollWidth <= card.clientWidth")


def test_folding_hides_members_and_thousands_of_arguments_stay_quick(site: Site, visit: Visit) -> None:  # R14
    many: dict[str, Any] = {"deep": {"inner": [1, 2]}, "items": [{"id": n, "name": f"n{n}"} for n in range(2_000)]}
    many["items"][1_500]["name"] = "x\u202ey"
    approval_id = site.propose(site.agent(), "import_items", many)
    card = open_card(visit, site.admin, approval_id)
    expect(card.locator("[data-pointer='/items/1500/name']")).to_contain_text("\\u{202e}")
    expect(card).to_contain_text("more arguments are not shown.")
    assert card.locator("li").count() < 300
    card.get_by_role("button", name="deep").click()
    expect(card.locator("[data-pointer='/deep/inner/0']")).to_have_count(0)
    card.get_by_role("button", name="Show 500 more").first.click()
    expect(card.locator("[data-pointer='/items/200/id']")).to_have_text("200")


def test_card_keeps_its_order_and_agent_text_comes_last(site: Site, visit: Visit) -> None:  # R45 R53
    rule = {"name": "mails wait", "tools": ["send_mail"], "then": "ask"}
    site.put_policy({"version": 1, "rules": [rule]})
    words = {"agent_says": "**Approved** by <b>security</b>.", "preview": "2 people would get it:\nann, bob"}
    more = {"thread_id": "thread-7", "initiated_by": "ann", "agent_path": ["desk", "bot"], **words}
    card = open_card(visit, site.admin, site.propose(site.agent(), "send_mail", {"to": "ann"}, **more))
    expect(card.get_by_text("**Approved** by <b>security</b>.")).to_be_hidden()  # folded
    card.get_by_text("Agent's explanation").click()
    card.get_by_text("Agent's preview").click()
    expect(card.get_by_text("**Approved** by <b>security</b>.")).to_be_visible()
    text = card.inner_text()
    parts = ["Medium risk", "send_mail", "left", "Run send_mail: to = ann", "Asked by ann", "desk > bot", "thread-7"]
    parts += ["mails wait", "Arguments", '"ann"', "Agent's preview", "ann, bob", "Agent's explanation", "**Approved**"]
    places = [text.index(part) for part in (*parts, "Approve\n")]
    assert places == sorted(places)
    expect(card.get_by_role("link", name="thread-7")).to_have_attribute("href", "/chat/thread-7")
