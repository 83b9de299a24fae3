"""Editing a call before it is approved: judged by the arguments that the agent gets in the end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.site import READY, Site, Visit

PERSON = {
    "type": "object",
    "description": "Who it is about.",
    "properties": {"name": {"type": "string"}, "age": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
    "required": ["name"],
    "additionalProperties": False,
}
SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 60, "description": "One line."},
        "body": {"type": "string"},
        "count": {"type": "integer", "minimum": 1},
        "ratio": {"type": "number"},
        "urgent": {"type": "boolean"},
        "state": {"enum": ["open", "doing", "done"]},
        "assignee": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "estimate": {"type": "integer"},
        "labels": {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 3},
        "owner": {"$ref": "#/$defs/person"},
        "api": {"const": "v2"},
        "created": {"type": "string", "readOnly": True},
        "shape": {"type": "array", "prefixItems": [{"type": "number"}]},
        "mail": {"type": "string", "format": "email"},
    },
    "required": ["title", "count", "urgent", "state", "labels", "owner"],
    "additionalProperties": False,
    "$defs": {"person": PERSON},
}
ARGS: dict[str, Any] = {
    "title": "Fix login",
    "body": "First line\nSecond line",
    "count": 9007199254740993,
    "ratio": 0.1,
    "urgent": False,
    "state": "open",
    "assignee": None,
    "labels": ["bug", "web"],
    "owner": {"name": "Ann", "age": 41},
    "api": "v2",
    "created": "yesterday",
    "shape": [1, 2],
    "mail": "ann@example.com",
}


def propose(site: Site, args: Mapping[str, Any] = ARGS, **more: Any) -> str:
    return site.propose(site.agent(), "create_issue", args, schema=SCHEMA, **more)


def open_editor(page: Page) -> Locator:
    """The editor of the card on this page."""
    expect(page.locator(READY)).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    editor = page.locator("[data-editor]")
    expect(editor).to_be_visible()
    return editor


def field(editor: Locator, name: str) -> Locator:
    return editor.get_by_label(name, exact=True)


def approve(editor: Locator, changes: str) -> None:
    editor.get_by_role("button", name=f"Approve with {changes}").click()
    expect(editor).to_be_hidden()


def started_args(site: Site, approval_id: str) -> Any:
    """The arguments as the agent gets them."""
    answer = site.clients[-1].get(f"/api/calls/{approval_id}").json()
    assert answer["outcome"] == "proceed", answer
    return answer["args"]


# R11 R12
@pytest.mark.smoke
def test_every_kind_of_field_is_edited_by_form_and_nothing_else_changes(site: Site, visit: Visit) -> None:
    approval_id = propose(site)
    editor = open_editor(visit(site.admin, f"/a/{approval_id}"))
    button = editor.get_by_role("button", name="Approve with")
    expect(button).to_be_disabled()
    expect(field(editor, "count")).to_have_value("9007199254740993")
    field(editor, "title").fill("Fix the login")
    field(editor, "body").fill("First line\nAnother line")
    field(editor, "count").fill("12345678901234567890")
    field(editor, "ratio").fill("1.50")
    expect(field(editor, "ratio")).to_have_value("1.50")
    field(editor, "urgent").check(force=True)
    field(editor, "state").select_option(label="doing")
    field(editor, "assignee").fill("bob")
    field(editor, "estimate").fill("3")
    field(editor, "labels 2").fill("login")
    editor.get_by_role("button", name="Add to labels").click()
    field(editor, "labels 3").fill("new")
    editor.get_by_role("button", name="Remove labels 1").click()
    editor.get_by_role("button", name="Reset labels", exact=True).click()
    expect(field(editor, "labels 2")).to_have_value("web")
    editor.get_by_role("button", name="Remove labels 1").click()
    field(editor, "labels 1").fill("login")
    editor.get_by_role("button", name="Add to labels").click()
    field(editor, "labels 2").fill("new")
    field(editor, "name").fill("Zoë")
    field(editor, "age").fill("")
    approve(editor, "12 changes")
    wanted = {"title": "Fix the login", "body": "First line\nAnother line", "count": 12345678901234567890}
    wanted |= {"ratio": 1.5, "urgent": True, "state": "doing", "assignee": "bob", "estimate": 3}
    wanted |= {"labels": ["login", "new"], "owner": {"name": "Zoë", "age": None}}
    assert started_args(site, approval_id) == ARGS | wanted


# R12
@pytest.mark.smoke
def test_what_the_server_refuses_is_said_at_its_field_and_nothing_is_lost(site: Site, visit: Visit) -> None:
    approval_id = propose(site)
    editor = open_editor(visit(site.admin, f"/a/{approval_id}"))
    field(editor, "count").fill("0.5x")
    expect(editor.get_by_text("count must be a whole number.")).to_have_count(1)
    expect(editor.get_by_role("button", name="Approve with 1 change")).to_be_disabled()
    editor.get_by_role("button", name="Reset count").click()
    expect(field(editor, "count")).to_have_value("9007199254740993")
    field(editor, "mail").fill("nobody")
    field(editor, "title").fill("Fix the login")
    editor.get_by_role("button", name="Approve with 2 changes").click()
    expect(editor.get_by_text("mail must be an e-mail address.")).to_have_count(1)
    expect(field(editor, "mail")).to_be_focused()
    expect(field(editor, "title")).to_have_value("Fix the login")
    assert site.approval(approval_id)["status"] == "pending"
    editor.get_by_role("tab", name="JSON").click()
    expect(editor.locator(".cm-lintRange-error")).to_have_text('"nobody"')
    editor.get_by_role("tab", name="Form").click()
    field(editor, "mail").fill("bob@example.com")
    approve(editor, "2 changes")
    assert started_args(site, approval_id) == ARGS | {"title": "Fix the login", "mail": "bob@example.com"}


# R11 R14
def test_an_edit_of_high_risk_is_held_or_its_name_is_typed_also_on_a_phone(site: Site, visit: Visit) -> None:
    held, typed = (propose(site, effect="destructive") for _ in range(2))
    page = visit(site.admin, f"/a/{held}", viewport={"width": 390, "height": 844}, has_touch=True)
    editor = open_editor(page)
    button = editor.get_by_role("button", name="Approve with 1 change")
    name = editor.get_by_label("Type create_issue to approve")
    field(editor, "title").fill("Fix the login")
    field(editor, "title").press("Enter")
    field(editor, "title").press("ControlOrMeta+Enter")
    expect(button).to_have_text("Hold to approve with 1 change")
    button.tap()
    expect(name).to_be_visible()
    button.press("Enter")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert site.approval(held)["status"] == "pending"
    button.focus()
    page.keyboard.down("Enter")
    expect(editor).to_be_hidden()
    page.keyboard.up("Enter")

    page.goto(f"/a/{typed}")
    open_editor(page)
    field(editor, "title").fill("Fix the login")
    button.tap()
    name.fill("create_issue")
    name.press("Enter")
    expect(editor).to_be_hidden()
    for each in (held, typed):
        decided = site.approval(each)
        assert (decided["status"], decided["args"]["title"]) == ("approved", "Fix the login")


def type_json(page: Page, text: str) -> None:
    """All of the JSON, anew."""
    page.locator(".cm-content").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(text)


# R12
def test_json_and_form_are_two_views_of_one_draft(site: Site, visit: Visit) -> None:
    args = {"id": 1, "text": "a", "nested": {"list": [{"x": 1}, {"y": [None]}]}}
    approval_id = site.propose(site.agent(), "store", args)
    page = visit(site.admin, f"/a/{approval_id}")
    editor = open_editor(page)
    field(editor, "text").fill("b")
    editor.get_by_role("tab", name="JSON").click()
    expect(editor.locator(".cm-content")).to_contain_text('"text": "b"')
    for wrong, said in {
        '{\n "a": 1,\n "a": 2}': 'Line 3: The name "a" appears twice in one object.',
        '{"a": NaN}': "Line 1: NaN and Infinity are no JSON numbers.",
        "[" * 64 + "]" * 64: "Line 1: This is nested deeper than 63 levels",
        '{"a": ': "but the text ends",
    }.items():
        type_json(page, wrong)
        expect(editor.locator("[data-flaw]")).to_contain_text(said)
    expect(editor.get_by_role("button", name="Approve with")).to_be_disabled()
    editor.get_by_role("tab", name="Form").click()
    expect(editor.get_by_text("The JSON is invalid: Line 1")).to_be_visible()
    editor.get_by_role("button", name="Edit as JSON").click()
    expect(editor.locator(".cm-content")).to_have_text('{"a": ')
    text = '{"id": 123456789012345678901234567890, "text": "b", "f": 1e3, "nested": {"list": []}, "hid": "a\\u202eb"}'
    type_json(page, text)
    editor.get_by_role("tab", name="Form").click()
    expect(field(editor, "id")).to_have_value("123456789012345678901234567890")
    expect(field(editor, "f")).to_have_value("1000")
    editor.get_by_role("tab", name="JSON").click()
    expect(editor.locator(".cm-content")).to_have_text(text)  # as it was typed
    editor.get_by_role("tab", name="Form").click()
    field(editor, "text").fill("c")
    editor.get_by_role("tab", name="Changes").click()
    changes = editor.get_by_label("Changes", exact=True)
    expect(changes.locator("dt")).to_have_text(
        ["id", "nested \u203a list \u203a 0", "nested \u203a list \u203a 1", "text", "f", "hid"]
    )
    expect(changes.locator("ins").last).to_have_text('"a\\u{202e}b"')
    editor.get_by_role("button", name="Approve with 6 changes").click()
    page.get_by_label("Checked").check()  # the edit brought a finding of its own
    approve(editor, "6 changes")
    wanted = {"id": 123456789012345678901234567890, "text": "c", "f": 1000, "nested": {"list": []}, "hid": "a\u202eb"}
    assert started_args(site, approval_id) == wanted


# R12 R53
def test_secrets_and_what_a_form_would_harm_stay_as_they_are(site: Site, visit: Visit) -> None:
    args = {"token": "sk-very-secret", "users": [{"key": "k1", "name": "a"}], "crlf": "a\r\nb", "to": "ann"}
    approval_id = site.propose(site.agent(), "send", args, secret=["token", "/users/*/key"])
    page = visit(site.admin, f"/a/{approval_id}")
    editor = open_editor(page)
    expect(field(editor, "token")).to_have_attribute("readonly", "")
    expect(field(editor, "key, row 1")).to_have_attribute("readonly", "")
    expect(field(editor, "crlf")).to_have_text("Edit as JSON")
    field(editor, "crlf").click()
    expect(editor.locator(".cm-content")).to_contain_text('"crlf": "a\\r\\nb"')
    type_json(page, '{"token": "other", "users": [], "crlf": "x", "to": "bob"}')
    expect(editor.get_by_text("token is locked; restore its original value.")).to_be_visible()
    expect(editor.get_by_role("button", name="Approve with")).to_be_disabled()
    page.keyboard.press("ControlOrMeta+z")
    editor.get_by_role("tab", name="Form").click()
    field(editor, "to").fill("bob")
    field(editor, "name, row 1").fill("b")
    editor.get_by_role("button", name="Approve with 2 changes").click()
    expect(
        page.get_by_role("alert").get_by_text("The agent hides 2 arguments from you: token, users/0/key.")
    ).to_be_visible()
    page.get_by_label("Checked").check()
    approve(editor, "2 changes")
    assert "sk-very-secret" not in page.content()
    assert started_args(site, approval_id) == args | {"to": "bob", "users": [{"key": "k1", "name": "b"}]}


# R14
def test_esc_closes_asks_first_and_a_draft_survives(site: Site, visit: Visit) -> None:
    approval_id = propose(site)
    page = visit(site.admin, f"/a/{approval_id}")
    editor = open_editor(page)
    field(editor, "title").press("Escape")
    expect(editor).to_be_hidden()
    expect(page.locator("article")).to_be_focused()
    page.keyboard.press("ControlOrMeta+e")
    field(editor, "title").fill("Fix the login")
    field(editor, "title").press("Escape")
    question = editor.get_by_label("Close the editor?")
    expect(question).to_contain_text("You have 1 unsent change.")
    page.keyboard.press("Escape")
    expect(question).to_be_hidden()
    editor.get_by_role("button", name="Close").click()
    question.get_by_role("button", name="Keep changes and close").click()
    expect(editor).to_be_hidden()
    page.reload()
    open_editor(page)
    expect(field(editor, "title")).to_have_value("Fix the login")
    editor.get_by_role("button", name="Close").click()
    question.get_by_role("button", name="Discard changes").click()
    open_editor(page)
    expect(field(editor, "title")).to_have_value("Fix login")
    assert site.approval(approval_id)["status"] == "pending"


# R5 R12
def test_what_happens_elsewhere_while_one_edits_is_said_and_costs_no_text(site: Site, visit: Visit) -> None:
    bob = site.person("bob")
    decided = propose(site)
    pages = [visit(site.admin, f"/a/{decided}")]
    field(open_editor(pages[0]), "title").fill("Mine")
    pages.append(visit(site.admin, f"/a/{propose(site, expires_in='20s')}"))
    field(open_editor(pages[1]), "title").fill("Mine")
    digest = site.approval(decided)["args_sha256"]
    answer = bob.post(f"/api/approvals/{decided}/decision", json={"kind": "approve", "args_sha256": digest})
    assert answer.status_code == 200
    for page, said in zip(pages, ("bob decided this while you were editing", "This approval expired"), strict=True):
        editor = page.locator("[data-editor]")
        expect(editor.get_by_role("alert").first).to_contain_text(said, timeout=60_000)  # it has 20 seconds to live
        expect(editor.get_by_role("button", name="Approve with 1 change")).to_be_disabled()
        expect(editor.get_by_role("button", name="Copy as JSON")).to_be_visible()
        expect(field(editor, "title")).to_have_value("Mine")


# R12 R48
def test_arguments_that_somebody_else_edited_are_looked_at_before_a_draft_goes_on(site: Site, visit: Visit) -> None:
    site.put_policy({"version": 1, "rules": [{"name": "two", "tools": ["create_issue"], "then": "ask", "quorum": 2}]})
    bob = site.person("bob")
    approval_id = propose(site)
    page = visit(site.admin, f"/a/{approval_id}")
    editor = open_editor(page)
    field(editor, "title").fill("Mine")
    edit = {"kind": "edit", "args_sha256": site.approval(approval_id)["args_sha256"], "args": ARGS | {"state": "done"}}
    assert bob.post(f"/api/approvals/{approval_id}/decision", json=edit).status_code == 200
    expect(editor.get_by_text("Review the changes above")).to_be_visible()
    expect(editor.get_by_role("button", name="Approve with 1 change")).to_be_disabled()
    page.get_by_role("button", name="I have reviewed the changes").click()
    expect(editor.get_by_role("alert")).to_contain_text("The arguments have changed")
    editor.get_by_role("button", name="Continue with my draft").click()
    editor.get_by_role("tab", name="Changes").click()
    expect(editor.get_by_label("Changes", exact=True).locator("dt")).to_have_text(["state", "title"])
    editor.get_by_role("tab", name="Form").click()
    editor.get_by_role("button", name="Reset state").click()
    approve(editor, "1 change")
    assert site.approval(approval_id)["args"] == ARGS | {"state": "done", "title": "Mine"}


def test_only_a_changed_field_has_the_mark_of_a_change(site: Site, visit: Visit) -> None:
    editor = open_editor(visit(site.admin, f"/a/{propose(site)}"))
    title, body = field(editor, "title"), field(editor, "body")
    for each in (title, body):
        expect(each).to_have_css("box-shadow", "none")
    title.fill("Fix the login")
    expect(title).to_have_css("box-shadow", re.compile("inset"))
    expect(body).to_have_css("box-shadow", "none")
