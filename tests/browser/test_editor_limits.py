"""The editor where it is hard: a mebibyte of arguments, a phone, an agent's questions."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import CDPSession, Locator, Page, expect

from tests.browser.site import READY, Site, Visit
from tests.browser.test_axe import assert_no_barrier
from tests.browser.test_editor import ARGS, approve, field, open_editor, propose, started_args

MEBIBYTE = 1024 * 1024 - 2_000  # with what is around it in a request
KEYS = 30


def milliseconds_per_key(page: Page) -> float:
    """Milliseconds of work of the page for one key, from 30 of them; what else runs on the machine does not count."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    began = task_seconds(session)
    for _ in range(KEYS):
        page.keyboard.press("x")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    return (task_seconds(session) - began) / KEYS * 1000


def task_seconds(session: CDPSession) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))


# R12 R14
@pytest.mark.parametrize("shape", ["one text", "many values"])
def test_a_mebibyte_of_arguments_is_edited_as_json(site: Site, visit: Visit, shape: str) -> None:
    many = {f"field_{number:04}": f"{number} {'x' * 80}" for number in range(9_990)}
    args: dict[str, Any] = (
        {"text": "long " * (MEBIBYTE // 5), "to": "ann"} if shape == "one text" else many | {"to": "ann"}
    )
    approval_id = site.propose(site.agent(), "store", args)
    page = visit(site.admin, f"/a/{approval_id}")
    editor = open_editor(page)
    expect(editor.locator(".cm-content")).to_be_visible()
    editor.get_by_role("tab", name="Form").click()
    expect(editor.get_by_text("There are too many values for a form")).to_be_visible()
    editor.get_by_role("button", name="Edit as JSON").click()
    page.locator(".cm-content").click()
    page.keyboard.press("ControlOrMeta+End")
    for key in ("ArrowUp", "End", "ArrowLeft"):
        page.keyboard.press(key)
    taken = milliseconds_per_key(page)
    print(f"{shape}: a key takes {taken:.0f} ms")
    approve(editor, "1 change")
    assert started_args(site, approval_id) == args | {"to": f"ann{'x' * KEYS}"}


def test_the_largest_form_is_filled_in(site: Site, visit: Visit) -> None:
    approval_id = site.propose(site.agent(), "store", {f"field_{number}": "text" for number in range(149)})
    page = visit(site.admin, f"/a/{approval_id}")
    editor = open_editor(page)
    field(editor, "field_75").click()
    taken = milliseconds_per_key(page)
    print(f"149 fields: a key takes {taken:.0f} ms")
    approve(editor, "1 change")
    assert started_args(site, approval_id)["field_75"] == f"text{'x' * KEYS}"


# R12
def test_the_editor_has_no_barrier_and_works_on_a_phone(site: Site, visit: Visit) -> None:
    approval_id = propose(site)
    page = visit(site.admin, f"/a/{approval_id}", viewport={"width": 390, "height": 844}, has_touch=True)
    editor = open_editor(page)
    field(editor, "count").fill("12x")
    field(editor, "title").fill("Fix the login")
    assert_no_barrier(page)
    editor.get_by_role("tab", name="JSON").click()
    expect(editor.locator(".cm-content")).to_be_visible()
    assert_no_barrier(page)
    editor.get_by_role("tab", name="Changes").click()
    expect(editor.get_by_label("Changes", exact=True)).to_be_visible()
    assert_no_barrier(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    editor.get_by_role("tab", name="Form").tap()
    editor.get_by_role("button", name="Reset count").tap()
    box = editor.get_by_role("button", name="Approve with 1 change").bounding_box()
    assert box is not None
    assert box["height"] >= 44
    approve(editor, "1 change")
    assert started_args(site, approval_id) == ARGS | {"title": "Fix the login"}


def question(site: Site, text: str, **more: Any) -> str:
    body = {"question": text, "run_id": "run", "call_id": text, **more}
    answer = site.agent(text).post("/api/questions", json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["approval_id"])


def answer_for_model(site: Site, approval_id: str) -> Any:
    answer = site.clients[-1].get(f"/api/calls/{approval_id}").json()
    assert answer["outcome"] == "answered", answer
    return answer["message"]


def card(page: Page) -> Locator:
    expect(page.locator(READY)).to_be_visible()
    return page.locator("article[data-status=pending]")


# R37
def test_an_agents_questions_are_answered_by_words_choice_or_form(site: Site, visit: Visit) -> None:
    words = question(site, "Which-team")
    page = visit(site.admin, f"/a/{words}")
    card(page).get_by_label("Your answer").fill("The web team.\nAsk Ann.")
    page.reload()
    expect(card(page).get_by_label("Your answer")).to_have_value("The web team.\nAsk Ann.")
    card(page).get_by_role("button", name="Send answer").click()
    expect(page.locator("article[data-status=responded]")).to_be_visible()
    assert answer_for_model(site, words) == "The web team.\nAsk Ann."

    choice = question(site, "Which-day", choices=["Monday", "Friday"])
    page.goto(f"/a/{choice}")
    expect(card(page).get_by_role("button", name="Send answer")).to_be_disabled()
    card(page).get_by_label("Friday").check()
    card(page).get_by_role("button", name="Send answer").click()
    expect(page.locator("article[data-status=responded]")).to_be_visible()
    assert answer_for_model(site, choice) == "Friday"

    schema = {
        "type": "object",
        "properties": {"mail": {"type": "string", "format": "email"}, "size": {"type": "integer"}},
        "required": ["mail"],
        "additionalProperties": False,
    }
    form = question(site, "Which-address", schema=schema)
    page.goto(f"/a/{form}")
    card(page).get_by_role("button", name="Send answer").click()
    expect(card(page).get_by_text("mail is required.")).to_have_count(1)
    field(card(page), "mail").fill("ann")
    field(card(page), "size").fill("12345678901234567890")
    expect(card(page).get_by_text("mail must be an e-mail address.")).to_have_count(1)  # before it is sent
    expect(card(page).get_by_role("button", name="Send answer")).to_be_disabled()
    field(card(page), "mail").fill("ann@example.com")
    card(page).get_by_role("button", name="Send answer").click()
    expect(page.locator("article[data-status=responded]")).to_be_visible()
    assert answer_for_model(site, form) == {"mail": "ann@example.com", "size": 12345678901234567890}
