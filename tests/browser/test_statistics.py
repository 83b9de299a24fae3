"""Plots, and the same numbers as tables."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.site import Site, Visit


# R18
def test_plots_have_the_right_numbers_and_a_table_each(site: Site, visit: Visit) -> None:
    agent = site.agent("office")
    ids = [site.propose(agent, "send_mail", {"to": f"{n}@example.com"}) for n in range(4)]
    for approval_id, kind in zip(ids, ("approve", "approve", "reject"), strict=False):
        seen = site.approval(approval_id)["args_sha256"]
        answer = site.admin.post(
            f"/api/approvals/{approval_id}/decision", json={"kind": kind, "args_sha256": seen, "reason": "so"}
        )
        assert answer.status_code == 200
    page = visit(site.person("vic", "viewer"), "/statistics")
    figures = page.locator("dl")
    expect(figures).to_contain_text("Pending now1")
    expect(figures).to_contain_text("Requested4")
    expect(figures).to_contain_text("Decided by people3")
    over_time = page.get_by_role("region", name="Pending over time")
    expect(over_time).to_contain_text("1 now")
    expect(page.get_by_role("region", name="Time to decide")).to_contain_text("Half are decided within")
    by_tool = page.get_by_role("region", name="Outcomes by tool")
    expect(by_tool).to_contain_text("By tool: people approved 2 of the 3 calls that ended.")
    expect(by_tool.get_by_role("img")).to_be_visible()
    by_tool.get_by_text("Show as table").click()
    expect(by_tool.get_by_role("row").nth(1)).to_have_text(re.compile("send_mail.*2.*1.*3"))
    waiting = page.get_by_role("region", name="Pending by approver")
    waiting.get_by_text("Show as table").click()
    expect(waiting.get_by_role("row").nth(1)).to_have_text(re.compile("Any reviewer.*1.*office 1"))
    page.get_by_text("30 d").click()
    expect(page).to_have_url(re.compile(r"\?days=30$"))
    expect(figures).to_contain_text("Requested4")


def test_without_anything_to_plot_it_says_so_and_fits_a_phone(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/statistics?days=1", viewport={"width": 390, "height": 844})
    expect(page.get_by_text("No data in this period")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Show 90 days").click()
    expect(page).to_have_url(re.compile(r"[?]days=90$"))
    expect(page.get_by_role("link", name="Connect an agent")).to_be_visible()
