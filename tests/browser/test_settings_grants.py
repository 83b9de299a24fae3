"""Grants: made, limited, looked at and revoked by people, on one page."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.site import READY, Site, Visit


# R51
def test_a_grant_is_made_used_looked_at_and_revoked(site: Site, visit: Visit) -> None:
    agent = site.agent("office")
    site.propose(agent, "pay", {"to": "bob", "amount": 5})
    page = visit(site.admin, "/settings/grants?new=1&tool=pay&agent=office")
    dialog = page.get_by_role("dialog", name="New grant")
    expect(dialog.get_by_label("Tool")).to_have_value("pay")
    dialog.get_by_label("Condition").fill("args.to ==")
    dialog.get_by_label("Maximum number of calls").fill("10")
    dialog.get_by_label("Total budget").fill("500")
    dialog.get_by_label("Argument to sum").fill("amount")
    dialog.get_by_label("Reason").fill("rent week")
    dialog.get_by_role("button", name="Create grant").click()
    expect(dialog.get_by_role("alert")).to_be_visible()  # the condition is none; nothing that was typed is lost
    expect(dialog.get_by_label("Total budget")).to_have_value("500")
    dialog.get_by_label("Condition").fill('args.to == "bob"')
    dialog.get_by_role("button", name="Create grant").click()
    expect(dialog.get_by_role("status")).to_contain_text('office may call it if args.to == "bob"')
    dialog.get_by_role("button", name="Done").click()

    row = page.locator("[data-grant]")
    expect(row).to_contain_text("0 of 10 uses · 0 of 500 of amount")
    expect(page.locator(READY)).to_be_visible()
    used = agent.post("/api/calls", json=call("c1", amount=20.5)).json()
    assert used["status"] == "approved"
    expect(row).to_contain_text("1 of 10 uses · 20.5 of 500 of amount")

    page.get_by_role("button", name="Details of the grant for pay").click()
    expect(page).to_have_url(re.compile("grant="))
    details = page.get_by_role("dialog", name="Grant")
    expect(details.locator(f"a[href='/a/{used['approval_id']}']")).to_be_visible()
    details.get_by_role("button", name="Revoke the grant").click()
    details.get_by_label("Reason").fill("The week is over.")
    details.get_by_role("group").get_by_role("button", name="Revoke the grant").click()
    expect(details).to_contain_text("The week is over.")
    assert agent.post("/api/calls", json=call("c2")).json()["status"] == "pending"
    details.get_by_role("button", name="Close").click()
    expect(page.get_by_text("No grants")).to_be_visible()
    page.get_by_label("Show ended grants").check()
    expect(row).to_contain_text("revoked")


# R51
def test_a_grant_is_revoked_by_its_maker_or_an_admin_and_by_nobody_else(site: Site, visit: Visit) -> None:
    site.propose(site.agent("office"), "pay", {"to": "bob", "amount": 5})
    bob, eve = site.person("bob"), site.person("eve")
    made = bob.post("/api/grants", json={"tool": "pay", "expires_in": "1h", "reason": "rent week"})
    assert made.status_code == 201, made.text
    path = f"/settings/grants?grant={made.json()['id']}"
    hers, his = visit(eve, path), visit(bob, path)
    expect(hers.get_by_text("Only its creator and admins can revoke a grant.")).to_be_visible()
    expect(hers.get_by_role("button", name="Revoke the grant")).to_have_count(0)
    expect(his.get_by_role("button", name="Revoke the grant")).to_be_visible()


def call(call_id: str, amount: float = 5) -> dict[str, object]:
    args = {"to": "bob", "amount": amount}
    return {"tool": "pay", "args": args, "run_id": "run-2", "call_id": call_id, "effect": "write"}
