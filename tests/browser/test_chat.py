"""The chat with the demo's agent: ask, see the card, decide, and read what came of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import POLICY, OpenStreams, open_chat_page
from tests.browser.site import Site, Visit, Visitors, run_site

TAB_THEN_ENTER_AT_ONCE = """
field => {
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Tab", bubbles: true, cancelable: true }));
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server for all: every test has threads of its own."""
    folder = tmp_path_factory.mktemp("chat")
    (folder / "interlock.yaml").write_text(POLICY)
    with run_site(f"sqlite:///{folder / 'interlock.db'}", folder, "--demo") as made:
        yield made


# R3 R4
@pytest.mark.smoke
def test_a_newcomer_asks_for_an_issue_approves_it_and_finds_it_in_the_history(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.page.get_by_role("button", name="Create an issue titled").click()
    expect(chat.page).to_have_url(re.compile("/chat/thread-"))
    expect(chat.page.get_by_role("heading", level=1)).to_contain_text("Create an issue")
    expect(chat.card("Fix the login page")).to_have_attribute("data-status", "pending")
    chat.card("Fix the login page").get_by_role("button", name="Approve").click()
    expect(chat.replies.last).to_contain_text(re.compile("ran: id DEMO-"))
    expect(chat.calls("linear_create_issue")).to_have_attribute("data-state", "succeeded")
    expect(chat.page.get_by_role("navigation", name="Chats")).to_contain_text("Create an issue")
    chat.page.get_by_role("link", name="All calls in this chat").click()
    expect(chat.page.get_by_role("link", name="Create issue 'Fix the login page'")).to_be_visible()
    expect(chat.page.get_by_label("Conversation")).to_have_value(re.compile("^Create an issue"))


# R3
def test_a_rejection_is_acknowledged_by_the_agent(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say('create an issue titled "Not this one"')
    expect(chat.card("Not this one")).to_have_attribute("data-status", "pending")
    expect(chat.field).to_be_focused()  # a card takes no focus
    approval = site.admin.get(f"/api/approvals?status=pending&thread_id={chat.thread}").json()["items"][0]
    decision = {"kind": "reject", "args_sha256": approval["args_sha256"], "reason": "Not today."}
    site.admin.post(f"/api/approvals/{approval['id']}/decision", json=decision)  # elsewhere, and seen here
    expect(chat.requests).to_have_attribute("data-status", "rejected")
    expect(chat.calls("linear_create_issue")).to_have_attribute("data-state", "rejected")
    expect(chat.replies.last).to_contain_text("Not today.")


# R14
@pytest.mark.smoke
def test_one_tab_leads_to_the_newest_card_and_enter_approves_it(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say('create an issue titled "By keys"')
    card = chat.card("By keys")
    expect(card).to_have_attribute("data-settled", "true")
    expect(chat.field).to_be_focused()  # a card takes no focus
    chat.page.keyboard.press("Enter")  # an empty message is not sent, and nothing is approved
    chat.field.evaluate(TAB_THEN_ENTER_AT_ONCE)
    expect(card).to_be_focused()
    expect(card).to_have_attribute("data-status", "pending")
    while (
        chat.request("By keys").get_attribute("data-status") == "pending"
    ):  # Enter counts once the card has had the focus for a moment
        chat.page.keyboard.press("Enter")
    expect(chat.replies.last).to_contain_text("By keys")
    expect(chat.calls("linear_create_issue")).to_have_attribute("data-state", "succeeded")


# R14
def test_keys_edit_the_card_and_tab_goes_on_to_stop(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say('create an issue titled "Edited by keys"')
    card, stop = chat.card("Edited by keys"), chat.page.get_by_role("button", name="Stop")
    expect(card).to_have_attribute("data-settled", "true")
    chat.page.keyboard.press("Tab")
    expect(card).to_be_focused()
    chat.page.keyboard.press("ControlOrMeta+e")
    expect(card.get_by_label("Edit arguments")).to_be_visible()
    chat.page.keyboard.press("Escape")
    chat.field.focus()
    chat.page.keyboard.press("Tab")  # the card was visited: no trap
    expect(stop).to_be_focused()
    chat.field.fill("a message")
    chat.field.press("Tab")
    expect(chat.page.get_by_role("button", name="Ask", exact=True)).to_be_focused()
    chat.field.fill("")
    chat.field.press("Tab")  # the field was used again
    expect(card).to_be_focused()
    expect(card).to_have_attribute("data-status", "pending")
    stop.click()


# R14
def test_an_undone_rejection_opens_its_card_again_in_its_place(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say('delete the post "hello-world"')
    card = chat.requests.first
    expect(card).to_have_attribute("data-status", "pending")
    card.get_by_role("button", name="Reject").click()
    card.get_by_role("button", name="Reject").last.click()
    expect(card).to_have_attribute("data-status", "rejected")
    expect(chat.cards).to_have_count(0)  # it is a line
    expect(chat.page.get_by_text("The agent is told about the rejection once it cannot be undone.")).to_be_visible()
    card.get_by_role("button", name="Undo").click()
    expect(card).to_have_attribute("data-status", "pending")
    expect(chat.page.get_by_text("1 request needs a decision.")).to_be_visible()
    expect(chat.cards).to_have_count(1)
    chat.page.get_by_role("button", name="Stop").click()


# R3 R6
def test_reads_run_at_once_and_show_folded_what_they_gave(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say("list pages")
    call = chat.calls("cms_list_pages")
    expect(call).to_have_attribute("data-state", "succeeded")
    chat.wait_idle(2)
    expect(chat.cards).to_have_count(0)
    expect(call).not_to_contain_text("pricing")
    call.locator("summary").click()
    expect(call).to_contain_text("pricing")


# R6
@pytest.mark.smoke
def test_several_calls_of_one_turn_are_decided_in_any_order(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say('create issues "First of two" and "Second of two"')
    expect(chat.cards).to_have_count(2)
    chat.card("Second of two").get_by_role("button", name="Approve").click()
    expect(chat.calls("linear_create_issue").nth(1)).to_have_attribute("data-state", "succeeded")
    expect(chat.calls("linear_create_issue").nth(0)).to_have_attribute("data-state", "waits")
    expect(chat.page.locator("[data-shifting]")).to_have_count(0)  # until then a click may be meant for the other card
    chat.card("First of two").get_by_role("button", name="Approve").click()
    expect(chat.calls("linear_create_issue").nth(0)).to_have_attribute("data-state", "succeeded")
    chat.wait_idle(2)


# R19
@pytest.mark.smoke
def test_a_confirmation_is_answered_by_no_by_something_else_and_by_yes(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say("delete the pricing page")
    expect(chat.confirmation).to_contain_text("Permanently delete page 'pricing'?")
    expect(chat.confirmation).to_contain_text("3 sections")
    chat.confirmation.get_by_role("button", name="No").click()
    expect(chat.replies.last).to_contain_text("left everything as it is")
    expect(chat.confirmation).to_have_count(0)
    closed = chat.page.locator("[data-confirmation=over]")
    expect(closed.last).to_contain_text("You answered no.")
    chat.say("delete the pricing page")
    expect(chat.confirmation).to_be_visible()
    chat.say("hm, what is on it?")
    expect(closed.last).to_contain_text("This question is closed.")
    chat.say("delete the pricing page")
    chat.confirmation.get_by_role("button", name="Hold to approve").click()  # too short: it says how it works
    expect(chat.confirmation.get_by_label("Type cms_delete_page to approve")).to_be_visible()
    chat.confirm()
    expect(chat.replies.last).to_contain_text("deleted")
    expect(chat.calls("cms_delete_page").last).to_have_attribute("data-state", "succeeded")
    expect(chat.said.last).to_have_text(re.compile("yes$"))
    expect(closed.last).to_contain_text("You answered yes.")


# R3
def test_an_unknown_sentence_gets_a_button_for_each_of_the_nearest(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say("plz tell me the pages we have, robot")
    offered = chat.page.get_by_role("group", name="Suggestions").get_by_role("button")
    expect(offered).to_have_count(3)
    chat.page.reload()  # they come from the log as from the stream
    expect(offered).to_have_count(3)
    offered.filter(has_text="List pages").click()
    expect(chat.calls("cms_list_pages")).to_have_attribute("data-state", "succeeded")
    expect(chat.said.last).to_contain_text("List pages")
    expect(offered).to_have_count(0)


# R37
def test_a_question_of_the_agent_is_answered_and_the_agent_goes_on(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say("ask me which colour to use")
    expect(chat.cards).to_have_attribute("data-status", "pending")
    chat.cards.get_by_role("radio", name="green").check()
    chat.cards.get_by_role("button", name="Send").click()
    expect(chat.requests).to_have_attribute("data-status", "responded")
    expect(chat.replies.last).to_contain_text("green")


# R3 R11
def test_a_call_is_changed_in_the_chat_and_the_agent_hears_of_it(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say('create an issue titled "Before"')
    chat.card("Before").get_by_role("button", name="Edit").click()
    editor = chat.page.get_by_label("Edit arguments")
    editor.get_by_label("title", exact=True).fill("Behind")
    editor.get_by_role("button", name="Approve with 1 change").click()
    expect(chat.replies.last).to_contain_text("Behind")
    expect(chat.calls("linear_create_issue")).to_have_attribute("data-state", "succeeded")


# R13
def test_a_card_of_a_sub_agent_says_who_asks(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say('let the writer publish "hello-world"')
    expect(chat.log).to_contain_text(re.compile("Requested by assistant . writer"))
    approve = chat.cards.get_by_role("button", name="Hold to approve")  # publishing is of high risk
    expect(approve).not_to_have_attribute("aria-disabled", "true")
    approve.click(delay=1_200)
    expect(chat.replies.last).to_contain_text("The writer is done")


# R5 R55
def test_what_waits_is_stopped_replaced_or_runs_out_of_time(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say('create an issue titled "Stopped"')
    expect(chat.card("Stopped")).to_have_attribute("data-status", "pending")
    chat.page.get_by_role("button", name="Stop").click()
    expect(chat.request("Stopped")).to_have_attribute("data-status", "cancelled")
    expect(chat.log).to_contain_text("Stopped.")
    chat.say('create an issue titled "Replaced"')
    expect(chat.card("Replaced")).to_have_attribute("data-status", "pending")
    chat.page.get_by_text("New instruction").click()
    expect(chat.page.get_by_text("Withdraws 1 open request.")).to_be_visible()
    chat.field.fill('create an objective "Too late"')
    chat.field.press("Enter")
    expect(chat.request("Replaced")).to_have_attribute("data-status", "cancelled")
    expect(chat.request("Too late")).to_have_attribute("data-status", "expired")
    expect(chat.calls("okr_create_objective")).to_have_attribute("data-state", "expired")
    expect(chat.replies.last).to_contain_text("timed out")


# R3
def test_what_is_typed_is_kept_and_sent_by_enter_alone(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.say("list posts")
    chat.wait_idle(2)
    chat.field.press_sequentially("one")
    chat.field.press("Shift+Enter")
    chat.field.press_sequentially("two")
    chat.field.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    chat.page.reload()
    expect(chat.field).to_have_value("one\ntwo")
    expect(chat.said).to_have_count(1)
    chat.page.get_by_role("link", name="New chat").click()
    expect(chat.field).to_have_value("")
    chat.page.go_back()
    expect(chat.field).to_have_value("one\ntwo")


# R3
def test_a_conversation_is_found_by_its_words_also_on_a_phone(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    for words in ("list objectives", "list images"):
        chat.page.get_by_role("link", name="New chat").click()
        chat.say(words)
        chat.wait_idle(2)
    here = chat.page.get_by_role("navigation", name="Chats")
    expect(here.get_by_role("link").nth(1)).to_contain_text("list images")  # the newest first
    here.get_by_label("Search chats").fill("OBJECT")
    expect(here.get_by_role("link", name="list images")).to_have_count(0)
    here.get_by_role("link", name="list objectives").click()
    expect(chat.said).to_contain_text("list objectives")
    here.get_by_label("Search chats").fill("no such words")
    expect(here).to_contain_text("No chat has these words in its title")

    phone = open_chat_page(site, visit, viewport={"width": 390, "height": 844}, has_touch=True)
    expect(phone.page.get_by_label("Search chats")).to_be_hidden()
    phone.page.get_by_role("button", name="Chats").click()
    phone.page.get_by_role("dialog").get_by_role("link", name="list images").click()
    expect(phone.page.get_by_role("dialog")).to_have_count(0)
    expect(phone.said).to_contain_text("list images")
    width = phone.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]


# R3
def test_eight_tabs_with_open_cards_hold_no_stream_and_one_more_works(site: Site, visitors: Visitors) -> None:
    context = visitors.context(site.admin)
    typed = context.new_page()
    streams = {typed: OpenStreams(typed)}
    typed.goto("/chat")
    typed.get_by_role("textbox", name="Message").fill('create an issue titled "Typed"')
    typed.get_by_role("textbox", name="Message").press("Enter")
    for number in range(7):
        page = context.new_page()
        streams[page] = OpenStreams(page)
        thread = start_pending_thread(site, f'create an issue titled "Tab {number}"')
        page.goto(f"/chat/{thread}")
    for page in streams:
        expect(page.locator("article[data-status=pending]")).to_be_visible()
    assert streams[typed].started == 1
    another = context.new_page()
    another.goto(typed.url)
    another.get_by_role("button", name="Approve").click()
    for page in (another, typed):  # and the first tab knows of it
        expect(page.locator("[data-reply=whole]").last).to_contain_text("ran")
        expect(page.get_by_role("button", name="Send")).to_be_visible()
    assert [seen.open for seen in streams.values()] == [set()] * 8


def start_pending_thread(site: Site, message: str) -> str:
    """A thread in which a card is open."""
    with site.admin.stream("POST", "/api/chat", json={"message": message}) as answer:
        for line in answer.iter_lines():
            if line == "event: approval_request":
                break
        return str(answer.headers["x-thread-id"])


# R3
def test_an_admin_reads_the_conversation_of_somebody_else_and_cannot_speak_in_it(site: Site, visit: Visit) -> None:
    bob = site.person("bob")
    with bob.stream("POST", "/api/chat", json={"message": "list posts"}) as answer:
        thread = answer.headers["x-thread-id"]
        answer.read()
    page = visit(site.admin, f"/chat/{thread}")
    expect(page.get_by_text("This chat belongs to bob")).to_be_visible()
    expect(page.get_by_role("log")).to_contain_text("list posts")
    expect(page.get_by_role("textbox", name="Message")).to_have_count(0)
    eve = visit(site.person("eve"), f"/chat/{thread}")
    expect(eve.get_by_role("alert")).to_contain_text("no thread")
