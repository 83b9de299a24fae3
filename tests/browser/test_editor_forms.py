"""Forms of all kinds of fields, judged by the arguments that the agent gets in the end."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.pinned_tool import object_schema, propose_pinned
from tests.browser.site import Site, Visit
from tests.browser.test_editor import approve, field, open_editor, started_args

ADDRESS = object_schema({"type": {"const": "A"}, "address": {"type": "string", "title": "Address"}}, "type", "address")
ALIAS = object_schema({"type": {"const": "CNAME"}, "target": {"type": "string", "title": "Target"}}, "type", "target")
LINE = object_schema(
    {"item": {"type": "string", "title": "Item"}, "quantity": {"type": "integer", "title": "Quantity", "minimum": 1}},
    "item",
    "quantity",
)
SCHEMA = object_schema(
    {
        "customer": {"type": "string", "title": "Customer"},
        "email": {"type": "string", "format": "email", "title": "E-mail"},
        "site": {"type": "string", "format": "uri", "title": "Web site"},
        "due_date": {"type": "string", "format": "date", "title": "Due date"},
        "send_at": {"type": "string", "format": "date-time", "title": "Sent at"},
        "level": {"title": "Level", "oneOf": [{"const": 1, "title": "Low"}, {"const": 2, "title": "High"}]},
        "lines": {"type": "array", "title": "Lines", "items": LINE},
        "record": {"title": "Record", "oneOf": [{**ADDRESS, "title": "Address"}, {**ALIAS, "title": "Alias"}]},
    },
    "customer",
)
ARGS: dict[str, Any] = {
    "customer": "Grünwald & Söhne",
    "email": "ann@example.com",
    "site": "https://example.com/",
    "due_date": "2026-12-01",
    "send_at": "2026-11-20T09:30:00+01:00",
    "level": 1,
    "lines": [{"item": "Plan", "quantity": 1}, {"item": "Hour", "quantity": 3}],
    "record": {"type": "CNAME", "target": "shops.example"},
}


def propose(site: Site, **more: Any) -> str:
    return propose_pinned(site, "create_invoice", ARGS, SCHEMA, **more)


# R12
def test_titles_native_fields_tables_and_forms_of_a_value(site: Site, visit: Visit) -> None:
    approval_id = propose(site)
    editor = open_editor(visit(site.admin, f"/a/{approval_id}"))
    expect(field(editor, "Due date")).to_have_attribute("type", "date")
    field(editor, "Due date").fill("2026-12-15")
    expect(field(editor, "Sent at")).to_have_attribute("type", "datetime-local")
    field(editor, "Sent at").fill("2026-11-21T10:15")
    field(editor, "Level").select_option("2")
    expect(editor.get_by_role("button", name="Move Lines 1 up")).to_be_disabled()
    editor.get_by_role("button", name="Move Lines 1 down").click()
    expect(field(editor, "Item, row 2")).to_have_value("Plan")
    field(editor, "Quantity, row 2").fill("2")
    field(editor, "Kind of Record").select_option(label="Address")
    field(editor, "Address").fill("192.0.2.1")
    field(editor, "Kind of Record").select_option(label="Alias")
    expect(field(editor, "Target")).to_have_value("shops.example")  # its value from before
    field(editor, "Kind of Record").select_option(label="Address")
    field(editor, "Address").fill("192.0.2.2")
    editor.get_by_role("button", name="Approve with").click()
    expect(editor).to_be_hidden()
    wanted = {"due_date": "2026-12-15", "send_at": "2026-11-21T10:15:00+01:00", "level": 2}
    wanted |= {"lines": [{"item": "Hour", "quantity": 3}, {"item": "Plan", "quantity": 2}]}
    assert started_args(site, approval_id) == ARGS | wanted | {"record": {"type": "A", "address": "192.0.2.2"}}


# R12
def test_a_change_says_what_was_there_and_mistakes_are_found_in_the_form(site: Site, visit: Visit) -> None:
    approval_id = propose(site, preview="Total: 352.80 EUR")
    page = visit(site.admin, f"/a/{approval_id}")
    expect(page.get_by_text("Agent's preview")).to_be_visible()
    editor = open_editor(page)
    expect(editor).to_contain_text("No changes yet.")
    field(editor, "Customer").fill("Somebody")
    expect(editor.get_by_text('Was "Grünwald & Söhne"')).to_be_visible()
    expect(editor).to_contain_text("Draft saved in this tab.")
    field(editor, "E-mail").fill("ann")
    field(editor, "Web site").fill("example.com")
    expect(editor.get_by_text("E-mail must be an e-mail address.")).to_have_count(1)
    expect(editor.get_by_text("Web site must be a complete web address, like https://example.com.")).to_have_count(1)
    editor.get_by_role("button", name="Fix the marked fields first.").click()
    expect(field(editor, "E-mail")).to_be_focused()
    editor.get_by_role("button", name="Reset E-mail").click()
    editor.get_by_role("button", name="Reset Web site").click()
    expect(field(editor, "E-mail")).to_have_value("ann@example.com")
    field(editor, "Customer").press("ControlOrMeta+Enter")
    expect(editor).to_be_hidden()
    assert started_args(site, approval_id) == ARGS | {"customer": "Somebody"}


# R12 R14
def test_high_risk_is_not_sent_by_a_key(site: Site, visit: Visit) -> None:
    approval_id = propose(site, effect="destructive")
    editor = open_editor(visit(site.admin, f"/a/{approval_id}"))
    field(editor, "Customer").fill("Somebody")
    expect(editor.get_by_role("button", name="Hold to approve with 1 change")).to_be_enabled()
    field(editor, "Customer").press("ControlOrMeta+Enter")
    expect(editor).to_be_visible()
    assert site.approval(approval_id)["status"] == "pending"


# R11 R12
def test_the_editor_opens_at_its_top_and_its_button_can_be_read_on_a_phone(site: Site, visit: Visit) -> None:
    approval_id = propose(site)
    page: Page = visit(
        site.admin, f"/a/{approval_id}", viewport={"width": 390, "height": 700}, has_touch=True, is_mobile=True
    )
    expect(page.locator("article[data-settled]")).to_be_visible()
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    editor = open_editor(page)
    expect(editor.get_by_role("tab", name="Form")).to_be_in_viewport(ratio=1)
    expect(page.locator("article header [data-tool]")).to_be_in_viewport()
    field(editor, "Customer").fill("Somebody")
    button = editor.get_by_role("button", name="Approve with 1 change")
    expect(button).to_be_in_viewport(ratio=1)
    box = button.bounding_box()
    assert box is not None
    assert (box["height"] >= 48, box["width"] >= 300) == (True, True)
    for control in editor.locator("input:visible, select:visible, button:visible").all():
        size = control.bounding_box()
        assert size is not None
        assert size["height"] >= 44, control.inner_text()
    approve(editor, "1 change")
