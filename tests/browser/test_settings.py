"""Settings: oneself, people, teams and keys; what one may not do is not offered."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.site import PASSWORD, READY, Site, Visit

NEW_PASSWORD = "another horse, another battery"


# R40
def test_absence_with_a_delegate_is_set_and_ended(site: Site, visit: Visit) -> None:
    site.person("bob", teams=("finance",))
    site.person("vic", role="viewer")
    page = visit(site.admin, "/settings/me")
    away = page.get_by_role("region", name="Out of office")
    away.get_by_label("Away until").fill("2099-01-31T18:00")
    expect(away.get_by_text("No delegates")).to_be_visible()
    expect(away.get_by_label("vic")).to_have_count(0)  # a viewer decides nothing
    away.get_by_label("bob").check()
    away.get_by_label("finance").check()
    away.get_by_role("button", name="Set away").click()
    expect(away.get_by_role("status")).to_contain_text("Delegates: bob and the team finance.")
    told = person(site, "ann")["away"]
    assert (told["users"], told["teams"]) == (["bob"], ["finance"])
    away.get_by_role("button", name="I am back").click()
    expect(away.get_by_role("status")).to_have_count(0)
    assert person(site, "ann")["away"] is None


# R40
def test_an_admin_sets_somebody_away_and_everybody_sees_it(site: Site, visit: Visit) -> None:
    bob = site.person("bob")
    page = visit(site.admin, "/settings/people?change=bob")
    dialog = page.get_by_role("dialog", name="Change bob")
    dialog.get_by_label("Away until").fill("2099-01-31T18:00")
    dialog.get_by_label("ann").check()
    dialog.get_by_role("button", name="Set away").click()
    expect(dialog.get_by_role("button", name="bob is back")).to_be_visible()
    seen = visit(bob, "/settings/people")
    expect(seen.locator("[data-person=bob]")).to_contain_text("Delegate: ann.")


def test_somebody_is_added_gets_a_link_is_changed_and_removed(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/settings/people")
    page.get_by_role("button", name="Add person").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("eve")
    dialog.get_by_label("Teams").fill("finance, leads")
    dialog.get_by_label("E-mail address").fill("eve@example.com")
    dialog.get_by_role("button", name="Add", exact=True).click()
    dialog.get_by_role("button", name="Create sign-in link").click()
    link = dialog.locator("[data-secret]").inner_text()
    assert link.startswith("http")
    dialog.get_by_role("button", name="Done").click()
    expect(page.locator("[data-secret]")).to_have_count(0)

    expect(page.locator("[data-person=eve]")).to_contain_text("in finance, leads, eve@example.com")
    page.get_by_role("button", name="Change eve").click()
    dialog.get_by_label("Role").select_option("viewer")
    dialog.get_by_label("Teams").fill("leads")
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator("[data-person=eve]")).to_contain_text("in leads, eve@example.com")
    assert person(site, "eve")["teams"] == ["leads"]

    page.get_by_role("link", name="Teams").click()
    page.locator("[data-team=leads]").get_by_role("link", name="eve").click()
    dialog.get_by_role("button", name="Remove eve").click()
    expect(dialog.get_by_text("All rights of eve end at once.")).to_be_visible()
    expect(dialog.get_by_role("group", name="What ends")).to_contain_text("Sign-in links: 1")
    dialog.get_by_role("button", name="Cancel").click()
    assert person(site, "eve")["role"] == "viewer"  # nothing happened yet
    dialog.get_by_role("button", name="Remove eve").click()
    dialog.get_by_role("group").get_by_role("button", name="Remove eve").click()
    expect(page.locator("[data-person=eve]")).to_have_count(0)
    assert site.admin.get("/api/users/eve").status_code == 404


def test_a_link_from_the_page_signs_in_once(site: Site, visit: Visit) -> None:
    site.person("bob")
    page = visit(site.admin, "/settings/people?link=bob")
    page.get_by_role("button", name="Create sign-in link").click()
    link = page.locator("[data-secret]").inner_text()
    path = link.removeprefix(site.url)
    there = visit(None, path)
    expect(there.get_by_text("as bob in the workspace default")).to_be_visible()
    there.get_by_role("button", name="Sign in").click()
    expect(there.get_by_role("button", name="bob")).to_be_visible()
    again = visit(None, path)
    expect(again.get_by_role("alert")).to_be_visible()


def test_two_admins_who_change_somebody_at_once_lose_nothing(site: Site, visit: Visit) -> None:
    site.person("bob", teams=("finance",))
    page = visit(site.admin, "/settings/people?change=bob")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Teams").fill("leads")
    meanwhile = site.admin.put("/api/users/bob", json={"role": "admin", "teams": ["finance"], "email": ""})
    assert meanwhile.status_code == 200
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    expect(dialog.get_by_label("Teams")).to_have_value("leads")
    assert person(site, "bob")["teams"] == ["finance"]
    dialog.get_by_role("button", name="Load the current version").click()
    expect(dialog.get_by_label("Role")).to_have_value("admin")
    dialog.get_by_label("Teams").fill("leads")
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator("[data-person=bob]")).to_contain_text("in leads")


def test_a_key_is_shown_once_works_and_is_revoked(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/settings/keys")
    page.get_by_role("button", name="New key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("billing")
    dialog.get_by_role("textbox", name="Agent").fill("billing")
    assert dialog.get_by_label("Acts for").locator("option").evaluate_all("all => all.map((one) => one.value)") == [
        "",
        "none",
        "any",
        "ann",
    ]
    dialog.get_by_label("Acts for").select_option("ann")
    dialog.get_by_role("button", name="Create key").click()
    key = dialog.locator("[data-secret]").inner_text()
    dialog.get_by_role("button", name="Copy").click()
    expect(dialog.get_by_role("button", name="Copied")).to_be_visible()
    agent = site.server.client(key)
    site.clients.append(agent)
    assert agent.get("/api/me").json()["role"] == "agent"
    assert [made["requester"] for made in site.admin.get("/api/keys").json()["items"] if made["name"] == "billing"] == [
        "ann"
    ]
    dialog.get_by_role("button", name="Done").click()
    expect(page.get_by_text(key)).to_have_count(0)
    page.get_by_role("button", name="Revoke billing").click()
    page.get_by_role("group", name="Revoke billing").get_by_role("button", name="Revoke billing").click()
    expect(page.get_by_text("billing")).to_have_count(0)
    assert agent.get("/api/me").status_code == 401
    page.get_by_label("Show revoked and expired keys").check()
    expect(page).to_have_url(re.compile(r"/settings/keys\?state=all$"))
    expect(page.get_by_text("revoked", exact=True)).to_be_visible()


def test_a_key_of_an_old_session_needs_the_password_again(site: Site, visit: Visit, tmp_path: Path) -> None:
    site.person("bob")
    page = visit(None, "/signin")
    sign_in(page, "bob", PASSWORD)
    page.goto("/settings/me")
    page.get_by_role("button", name="New key").click()
    page.get_by_role("dialog").get_by_label("Name").fill("my script")
    with closing(sqlite3.connect(tmp_path / "interlock.db", timeout=30)) as database, database:
        database.execute("update sessions set created_at = created_at - 600000 where person = 'bob'")
    site.person("eve")  # whatever changes people has the server look at sessions again
    page.get_by_role("button", name="Create key").click()
    again = page.get_by_role("dialog", name="Sign in again")
    again.get_by_role("textbox", name="Password for bob").fill("not this one")
    again.get_by_role("button", name="Continue", exact=True).click()
    expect(again.get_by_role("alert")).to_be_visible()
    again.get_by_role("textbox", name="Password for bob").fill(PASSWORD)
    again.get_by_role("button", name="Continue", exact=True).click()
    expect(page.get_by_role("dialog", name="New key").locator("[data-secret]")).to_be_visible()
    expect(again).to_have_count(0)
    expect(page.locator(READY)).to_be_visible()


def test_a_password_is_changed_by_the_old_one_and_other_sessions_end(site: Site, visit: Visit) -> None:
    site.person("bob")
    here, there = visit(None, "/signin"), visit(None, "/signin")
    for page in (here, there):
        sign_in(page, "bob", PASSWORD)
    here.goto("/settings/me")
    part = here.get_by_role("region", name="Password")
    part.get_by_role("textbox", name="Current password").fill("not this one")
    part.get_by_role("textbox", name="New password").fill(NEW_PASSWORD)
    part.get_by_role("button", name="Change password").click()
    expect(part.get_by_role("alert")).to_be_visible()
    expect(part.get_by_role("textbox", name="New password")).to_have_value(NEW_PASSWORD)
    part.get_by_role("textbox", name="Current password").fill(PASSWORD)
    part.get_by_role("button", name="Change password").click()
    expect(part.get_by_role("status")).to_contain_text("was changed")
    expect(here.locator(READY)).to_be_visible()
    expect(there.get_by_role("alert")).to_contain_text("You are signed out.")


def test_a_short_password_is_refused_while_it_is_typed(site: Site, visit: Visit) -> None:
    page = visit(site.person("bob"), "/settings/me")
    new = page.get_by_role("textbox", name="New password")
    new.press_sequentially("correct")
    expect(page.get_by_text("Too short: 5 more characters.")).to_be_visible()
    expect(new).to_have_attribute("aria-invalid", "true")
    new.press_sequentially(" horse")
    expect(page.get_by_text("Too short")).to_have_count(0)
    token = site.admin.post("/api/users/bob/link", json={}).json()["url"].rpartition("#")[2]
    welcome = visit(None, f"/welcome#{token}")
    welcome.get_by_role("textbox", name="Password").press_sequentially("eleven char")
    expect(welcome.get_by_text("Too short: 1 more character.")).to_be_visible()


def test_a_key_is_frozen_by_its_name(site: Site, visit: Visit) -> None:
    site.key("office")
    page = visit(site.admin, "/settings/freeze")
    page.get_by_role("combobox", name="Scope").click()
    page.get_by_role("option", name="One key").click()
    page.get_by_role("combobox", name="Key").click()
    page.get_by_role("option", name="office").click()
    page.get_by_label("Reason").fill("It leaked.")
    page.get_by_role("button", name="Freeze").click()
    page.get_by_role("group", name="Freeze").get_by_role("button", name="Freeze").click()
    expect(page.locator("[data-freeze]")).to_contain_text("The key office, by ann")


def test_everybody_makes_keys_of_their_own_with_at_most_their_role(site: Site, visit: Visit) -> None:
    page = visit(site.person("bob"), "/settings/me")
    page.get_by_role("button", name="New key").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Role").locator("option")).to_have_count(2)
    dialog.get_by_label("Name").fill("my script")
    dialog.get_by_role("button", name="Create key").click()
    expect(dialog.locator("[data-secret]")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("region", name="My keys")).to_contain_text("my script")


def test_what_one_may_not_do_is_not_offered_or_says_why(site: Site, visit: Visit) -> None:
    viewer = visit(site.person("vic", role="viewer"), "/")
    expect(viewer).to_have_url(re.compile("/inbox"))
    pages = viewer.get_by_role("navigation", name="Pages")
    expect(pages.get_by_role("link", name="Chat")).to_have_count(0)
    expect(pages.get_by_role("link", name="Policy")).to_have_count(0)
    viewer.goto("/policy")
    expect(viewer.get_by_role("heading", level=1)).to_have_text("You do not have access to this page")
    viewer.goto("/settings/people")
    expect(viewer.locator("[data-person=ann]")).to_be_visible()
    expect(viewer.get_by_role("button", name=re.compile("Change|Add|Sign-in"))).to_have_count(0)
    expect(viewer.get_by_role("navigation", name="Settings").get_by_role("link", name="Keys")).to_have_count(0)
    viewer.goto("/settings/people?change=ann")
    expect(viewer.locator("[data-person=ann]")).to_be_visible()
    expect(viewer.get_by_role("dialog")).to_have_count(0)
    viewer.goto("/settings/grants")
    expect(viewer.get_by_text("Reviewers and admins can create grants.")).to_be_visible()
    expect(viewer.get_by_role("button", name="New grant")).to_have_count(0)


def test_channels_and_what_runs_here_are_said(site: Site, visit: Visit) -> None:
    page = visit(site.admin, "/settings/channels")
    expect(page.get_by_role("listitem")).to_contain_text("dashboard")
    page.get_by_role("link", name="About").click()
    about = page.get_by_role("region", name="About")
    expect(about).to_contain_text("SQLite")
    expect(about).to_contain_text(site.admin.get("/api/audit/head").json()["link"])


def sign_in(page: Page, name: str, password: str) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_role("textbox", name="Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(READY)).to_be_visible()


def person(site: Site, name: str) -> dict[str, Any]:
    answer = site.admin.get(f"/api/users/{name}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())
