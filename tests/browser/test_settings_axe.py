"""No barrier that axe knows of in any tab and dialog of the settings, nor beside a session that ended."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.site import READY, Site, Visit
from tests.browser.test_axe import barriers

TABS = ("me", "people", "teams", "keys", "grants", "channels", "about")
DIALOGS = ("people?add=1", "people?link=bob", "people?change=bob", "grants?new=1")


def test_the_settings_have_no_barrier(site: Site, visit: Visit) -> None:
    bob = site.person("bob", teams=("finance",))
    site.propose(site.agent("office"), "pay", {"to": "bob", "amount": 5})
    made = site.admin.post("/api/grants", json={"tool": "pay", "expires_in": "1h", "reason": "rent week"}).json()
    site.admin.put("/api/me/away", json={"until": "2099-01-31T18:00:00Z", "users": ["bob"], "teams": []})
    page, found = visit(site.admin, "/settings"), []
    for path in (*TABS, *DIALOGS, f"grants?grant={made['id']}"):
        page.goto(f"/settings/{path}")
        expect(page.locator(READY)).to_be_visible()
        expect(page.locator("dialog" if "?" in path else "main section").last).to_be_visible()
        expect(page.get_by_role("status", name="Loading")).to_have_count(0)
        found += [f"{path}: {barrier}" for barrier in barriers(page)]
    out = visit(bob, "/settings/teams")
    expect(out.locator(READY)).to_be_visible()
    site.admin.delete("/api/users/bob/sessions")
    expect(out.get_by_role("alert").filter(has_text="You are signed out.")).to_be_visible()
    found += [f"signed out: {barrier}" for barrier in barriers(out)]
    assert not found, "\n" + "\n".join(found)
