"""The chat from card to card: questions about open requests, lines of decided ones, and where it scrolls."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import POLICY, ChatPage, open_chat_page
from tests.browser.site import Site, Visit, run_site, wait_until

PHONE: dict[str, object] = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
SHORT: dict[str, object] = {"viewport": {"width": 1280, "height": 560}}
TWO = 'create issues "First of two" and "Second of two"'
QUESTION = "Permanently delete page 'pricing'?"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server for all: every test has threads of its own."""
    folder = tmp_path_factory.mktemp("chat")
    (folder / "interlock.yaml").write_text(POLICY)
    with run_site(f"sqlite:///{folder / 'interlock.db'}", folder, "--demo") as made:
        yield made


# R3 R55
def test_what_is_written_beside_an_open_request_is_a_question_about_it(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    expect(chat.page.get_by_role("radiogroup", name="What to send")).to_have_count(0)
    chat.say('create an issue titled "Why"')
    card = chat.card("Why")
    expect(chat.page.get_by_role("radio", name="Ask about this request")).to_be_checked()
    expect(chat.page.get_by_text("The request stays open.")).to_be_visible()
    expect(chat.field).to_have_attribute("placeholder", re.compile("^Ask assistant about linear_create_issue"))
    chat.field.fill("Why is it needed?")
    chat.field.press("Enter")
    expect(chat.field).to_have_value("")
    expect(chat.page.get_by_text("Question sent.")).to_be_visible()
    expect(card).to_contain_text("Why is it needed?")
    expect(card).to_contain_text(re.compile(r"Agent says \(unverified\): .*\w"))
    expect(card).to_have_attribute("data-status", "pending")
    expect(chat.said).to_have_count(1)
    chat.page.get_by_role("button", name="Stop").click()


# R3 R55
def test_one_of_several_requests_is_chosen_and_an_instruction_says_that_it_withdraws_them(
    site: Site, visit: Visit
) -> None:
    chat = open_chat_page(site, visit)
    chat.say(TWO)
    expect(chat.cards).to_have_count(2)
    chat.page.get_by_role("combobox", name="Request").select_option(label="2 of 2: linear_create_issue")
    chat.field.fill("What about this one?")
    chat.page.get_by_role("button", name="Ask", exact=True).click()
    expect(chat.card("Second of two")).to_contain_text("What about this one?")
    expect(chat.card("First of two")).not_to_contain_text("What about this one?")
    chat.page.get_by_text("New instruction").click()
    expect(chat.page.get_by_text("Withdraws 2 open requests.")).to_be_visible()
    expect(chat.field).to_be_focused()
    chat.field.fill("list posts")
    chat.card("First of two").get_by_role("button", name="Approve").click()
    expect(chat.request("First of two")).to_have_attribute("data-status", "succeeded")
    # the choice was for both: it is made anew for the one that is left
    expect(chat.page.get_by_role("radio", name="Ask about this request")).to_be_checked()
    expect(chat.field).to_have_value("list posts")
    chat.page.get_by_text("New instruction").click()
    expect(chat.page.get_by_text("Withdraws 1 open request.")).to_be_visible()
    chat.field.press("Enter")
    expect(chat.request("Second of two")).to_have_attribute("data-status", "cancelled")
    expect(chat.calls("cms_list_posts")).to_have_attribute("data-state", "succeeded")


# R3 R14
def test_a_decided_request_is_a_line_that_unfolds(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say('create an issue titled "Before"')
    chat.card("Before").get_by_role("button", name="Edit").click()
    editor = chat.page.get_by_label("Edit arguments")
    editor.get_by_label("title", exact=True).fill("Behind")
    editor.get_by_role("button", name="Approve with 1 change").click()
    line = chat.requests.locator("summary").first
    for _ in range(2):
        expect(line).to_contain_text("Approved with 1 change")
        expect(line).to_contain_text("linear_create_issue")
        expect(line).to_contain_text(re.compile(r"by you, .*Done"))
        expect(chat.cards).to_have_count(0)
        expect(chat.calls("linear_create_issue")).to_have_count(1)  # the call has no second line
        chat.page.reload()
    line.click()
    expect(chat.cards.get_by_role("group", name="Arguments").get_by_text("Behind")).to_be_visible()
    line.click()
    expect(chat.cards).to_have_count(0)


# R14
def test_the_focus_goes_from_card_to_card_and_what_is_pressed_too_early_does_nothing(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say(TWO)
    first, second = chat.card("First of two"), chat.card("Second of two")
    expect(second).to_have_attribute("data-settled", "true")
    first.focus()
    while chat.request("First of two").get_attribute("data-status") == "pending":
        chat.page.keyboard.press("Enter")  # it counts once the card has had the focus for a moment
    expect(second).to_be_focused()
    expect(chat.page.locator("[data-shifting]")).to_have_count(0)
    expect(second).to_have_attribute("data-status", "pending")
    chat.page.keyboard.press("Enter")
    expect(chat.request("Second of two")).to_have_attribute("data-status", "succeeded")
    expect(chat.field).to_be_focused()


PRESS_WHAT_MOVED = """
() => new Promise((resolve) => {
  const second = document.querySelectorAll("article[data-status=pending]")[1];
  const frame = document.querySelector("[data-scroller]").parentElement;
  new MutationObserver(() => {
    if (frame.dataset.shifting === undefined) return;
    second.querySelector("[data-answer=approve]").click();
    resolve(frame.textContent);
  }).observe(frame, { attributes: true });
  document.querySelector("[data-answer=approve]").click();
})
"""


# R14
def test_a_click_on_a_card_that_has_just_moved_is_held_back(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say(TWO)
    expect(chat.cards).to_have_count(2)
    for card in chat.cards.all():
        expect(card).to_have_attribute("data-settled", "true")
    chat.page.evaluate(PRESS_WHAT_MOVED)
    expect(chat.page.get_by_text("One moment")).to_be_visible()
    expect(chat.page.locator("[data-shifting]")).to_have_count(0)
    expect(chat.card("Second of two")).to_have_attribute("data-status", "pending")
    chat.page.get_by_role("button", name="Stop").click()


# R19
def test_a_confirmation_is_shown_once(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say("delete the pricing page")
    expect(chat.confirmation).to_contain_text("Destructive")
    aside = chat.page.locator("[data-aside]")
    for _ in range(2):
        expect(aside).to_contain_text("not verified")
        expect(chat.log.get_by_text(QUESTION)).to_have_count(1)
        expect(chat.calls("cms_delete_page")).to_have_count(0)
        chat.page.reload()
    aside.locator("summary").click()
    expect(aside).to_contain_text(QUESTION)  # the agent's own words
    chat.confirmation.get_by_role("button", name="No").click()
    closed = chat.page.locator("[data-confirmation=over]")
    expect(closed.locator("summary")).to_contain_text(re.compile(f"You answered no.*{re.escape(QUESTION)}", re.DOTALL))
    expect(closed.get_by_text("3 sections")).to_be_hidden()
    closed.locator("summary").click()
    expect(closed.get_by_text("3 sections")).to_be_visible()


# R3
@pytest.mark.parametrize("size", [PHONE, SHORT], ids=["phone", "desk"])
def test_it_scrolls_to_the_top_of_the_first_open_card_and_not_past_it(
    site: Site, visit: Visit, size: dict[str, object]
) -> None:
    chat = open_chat_page(site, visit, **size)
    for _ in range(2):
        chat.say("list pages")
        expect(chat.page.get_by_role("button", name="Send")).to_be_visible()
    chat.say(TWO)
    expect(chat.cards).to_have_count(2)
    for _ in range(2):
        expect_top_in_view(chat, "First of two")
        chat.page.reload()
    expect_top_in_view(chat, "First of two")
    chat.card("First of two").get_by_role("button", name="Approve").click()
    expect_top_in_view(chat, "Second of two")
    expect(chat.page.locator("[data-shifting]")).to_have_count(0)
    chat.card("Second of two").get_by_role("button", name="Approve").click()
    expect(chat.page.get_by_role("button", name="Send")).to_be_visible()
    expect(chat.replies.last).to_be_in_viewport()


# R3
def test_a_card_that_somebody_reads_stays_where_it_is(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit, **SHORT)
    chat.say(TWO)
    expect_top_in_view(chat, "First of two")
    chat.log.hover()
    chat.page.mouse.wheel(0, 300)
    wait_until(lambda: top(chat.card("First of two")) < 0)
    before = wait_still(chat.card("First of two"))
    approvals = site.admin.get(f"/api/approvals?status=pending&thread_id={chat.thread}").json()["items"]
    for approval in approvals:
        site.admin.post(f"/api/approvals/{approval['id']}/comment", json={"text": "It makes a card longer."})
    expect(chat.page.get_by_text("It makes a card longer.")).to_have_count(2)
    assert abs(wait_still(chat.card("First of two")) - before) < 2
    chat.page.get_by_role("button", name="Stop").click()


TOP_IN_VIEW = """
(words) => {
  const card = [...document.querySelectorAll("[data-open] article")].find((each) => each.textContent.includes(words));
  const scroller = card && card.closest("[data-scroller]");
  const distance = card ? card.getBoundingClientRect().top - scroller.getBoundingClientRect().top : -1;
  return distance >= 0 && distance < 60;
}
"""


def expect_top_in_view(chat: ChatPage, words: str) -> None:
    chat.page.wait_for_function(TOP_IN_VIEW, arg=words)


def top(element: Locator) -> float:
    box = element.bounding_box()
    assert box is not None
    return box["y"]


def wait_still(element: Locator) -> float:
    """Where it is once it has not moved for two frames of the page."""
    seen = [top(element)]

    def is_still() -> bool:
        element.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        seen.append(top(element))
        return seen[-1] == seen[-2]

    wait_until(is_still)
    return seen[-1]
