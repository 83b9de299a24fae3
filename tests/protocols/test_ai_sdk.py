"""Pages of the AI SDK as it is (useChat, DefaultChatTransport), in front of a real server."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node_packages import CLIENTS, node_command
from tests.protocols.ai_sdk_scenario import (
    AiSdkScenario,
    Browser,
    Json,
    calls,
    in_state,
    open_ai_sdk_scenario,
    run_browser,
    text_parts,
    user,
)
from tests.protocols.node_client import TIMEOUT

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients" / "ai-sdk.md"
PRINTED = r"It prints:\n\n```text\n(.*?)```"
pytestmark = pytest.mark.skipif(not CLIENTS.is_installed(), reason=CLIENTS.missing)


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AiSdkScenario]:
    with open_ai_sdk_scenario(tmp_path_factory.mktemp("ai_sdk")) as world:
        yield world


@pytest.fixture(scope="module")
def tabs(scenario: AiSdkScenario) -> Iterator[Browser]:
    with run_browser(scenario) as browser:
        yield browser


# R16, R54
def test_an_approved_call_runs_once_and_the_message_goes_on(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page()
    page.say('create an issue titled "Approved"')
    [call] = page.wait_for_approvals()
    assert (call["toolName"], call["input"]) == ("linear_create_issue", {"title": "Approved"})
    assert (call["approval"]["requestReason"], scenario.count_made("Approved")) == (
        "Create issue 'Approved', unassigned",
        0,
    )
    page.do("click", selector=".yes")
    told = page.wait_ended("output-available")
    assert scenario.count_made("Approved") == 1
    assert calls(told)[0]["approval"]["approved"] is True
    assert calls(told)[0]["output"]["title"] == "Approved"
    assert [message["role"] for message in told["messages"]] == ["user", "assistant"]  # the answer goes on in the same
    assert "Approved" in told["text"]
    assert told["requests"] == 2


def test_a_rejected_call_is_denied_with_its_reason(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page()
    page.say('create an issue titled "Rejected"')
    page.wait_for_approvals()
    page.do("click", selector=".no")
    told = page.wait_ended("output-denied")
    assert calls(told)[0]["approval"]["approved"] is False
    assert calls(told)[0]["approval"]["reason"] == "Not today."
    assert (scenario.count_made("Rejected"), told["requests"]) == (0, 2)
    assert "Not today." in text_parts(told)


def test_a_question_is_answered_by_an_output(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page()
    page.say("ask me which colour to use")
    told = page.wait_ended("input-available")
    [call] = calls(told)
    assert (call["toolName"], call["input"]["choices"]) == ("request_human_input", ["red", "green", "blue"])
    page.do("output", given={"tool": call["toolName"], "toolCallId": call["toolCallId"], "output": "green"})
    told = page.wait_until(lambda shown: shown["status"] == "ready" and "green" in text_parts(shown), "it goes on")
    assert in_state(told, "output-available")[0]["output"] == "green"
    assert told["requests"] == 2


def test_an_answer_that_does_not_fit_the_question_is_refused_and_it_stays_open(tabs: Browser) -> None:
    page = tabs.page()
    page.say("ask me which colour to use")
    [call] = calls(page.wait_ended("input-available"))
    given = {"tool": call["toolName"], "toolCallId": call["toolCallId"]}
    page.do("output", given={**given, "output": "pink"})
    assert "does not fit the question" in page.wait_failed()["error"]
    page.do("resume")
    assert "output" not in calls(page.wait_ended("input-available"))[0]
    page.do("output", given={**given, "output": "blue"})
    assert calls(page.wait_ended("output-available"))[0]["output"] == "blue"


def test_an_edit_from_the_page_runs_with_what_the_person_wrote(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page()
    page.say('create an issue titled "Model\'s"')
    [call] = page.wait_for_approvals()
    approval = call["approval"]["id"]
    decision = {"kind": "edit", "args": {"title": "Person's"}}
    page.do(
        "answer", given={"id": approval, "approved": True, "options": {"body": {"decisions": {approval: decision}}}}
    )
    told = page.wait_ended("output-available")
    assert calls(told)[0]["input"] == {"title": "Person's"}
    assert calls(told)[0]["output"]["ran_with"] == {"title": "Person's"}
    assert (scenario.count_made("Model's"), scenario.count_made("Person's")) == (0, 1)


def test_an_edit_elsewhere_is_what_runs_and_what_the_page_shows(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page()
    page.say('create an issue titled "Before"')
    [call] = page.wait_for_approvals()
    card = scenario.ada.approval(call["approval"]["id"])
    scenario.ada.decide(card, "edit", args={"title": "After"})
    page.do("click", selector=".no")  # too late: what stands is told
    told = page.wait_ended("output-available")
    assert (calls(told)[0]["input"], calls(told)[0]["approval"]["approved"]) == ({"title": "After"}, True)
    assert (scenario.count_made("Before"), scenario.count_made("After")) == (0, 1)


def test_what_was_rejected_elsewhere_is_not_run_by_a_late_yes(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page()
    page.say('create an issue titled "Elsewhere"')
    [call] = page.wait_for_approvals()
    scenario.ada.decide(scenario.ada.approval(call["approval"]["id"]), "reject", reason="Ada says no.")
    page.do("click", selector=".yes")
    told = page.wait_ended("output-denied")
    assert (calls(told)[0]["approval"]["approved"], calls(told)[0]["approval"]["reason"]) == (False, "Ada says no.")
    assert scenario.count_made("Elsewhere") == 0


def test_a_page_that_looks_again_sees_what_was_decided_elsewhere(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page()
    page.say('create an issue titled "Replayed"')
    [call] = page.wait_for_approvals()
    scenario.ada.decide(scenario.ada.approval(call["approval"]["id"]), "approve")
    page.do("resume")
    told = page.wait_ended("output-available")
    assert (len(told["messages"]), scenario.count_made("Replayed")) == (2, 1)
    assert calls(told)[0]["approval"]["approved"] is True


def test_a_call_answered_by_a_person_elsewhere_has_their_words_as_its_output(
    tabs: Browser, scenario: AiSdkScenario
) -> None:
    page = tabs.page()
    page.say('create an issue titled "Answered"')
    [call] = page.wait_for_approvals()
    scenario.ada.decide(scenario.ada.approval(call["approval"]["id"]), "respond", message="There is one already.")
    page.do("click", selector=".yes")
    assert calls(page.wait_ended("output-available"))[0]["output"] == "There is one already."
    assert scenario.count_made("Answered") == 0


def test_an_expired_call_is_denied_as_timed_out(tabs: Browser, scenario: AiSdkScenario) -> None:
    """Also where the time was over before the page could show a button."""
    page = tabs.page()
    page.say('create an objective "Quick one"')
    told = page.wait_until(
        lambda shown: in_state(shown, "approval-requested") or in_state(shown, "output-denied"), "asked"
    )
    for call in in_state(told, "approval-requested"):
        page.wait_until(lambda _, id=call["approval"]["id"]: scenario.status(id) == "expired", "it expires")
        page.do("click", selector=".yes")
    told = page.wait_ended("output-denied")
    assert calls(told)[0]["approval"]["approved"] is False
    assert "timed out" in calls(told)[0]["approval"]["reason"]
    assert scenario.count_made("Quick one") == 0


def test_a_reloaded_page_has_the_open_call_and_can_answer_it(tabs: Browser, scenario: AiSdkScenario) -> None:
    first = tabs.page()
    first.say('create an issue titled "Reloaded"')
    first.wait_for_approvals()
    second = tabs.page(first.chat, resume=True)
    second.wait_for_approvals()
    second.do("click", selector=".yes")
    second.wait_ended("output-available")
    first.do("click", selector=".yes")  # the other tab still shows the buttons
    first.wait_ended("output-available")
    assert scenario.count_made("Reloaded") == 1


def test_a_page_that_is_loaded_anew_has_all_that_the_first_one_had(tabs: Browser, scenario: AiSdkScenario) -> None:
    """What the server gives for a page's `messages` is what the client itself made of the streams."""
    first = tabs.page()
    first.say('create issues "Loaded" and "Refused"')
    one, other = first.wait_for_approvals(2)
    first.do("answer", given={"id": one["approval"]["id"], "approved": True})
    first.do("answer", given={"id": other["approval"]["id"], "approved": False, "reason": "No."})
    first.wait_ended("output-available", "output-denied")
    first.say('create an issue titled "Open"')
    first.wait_for_approvals()
    loaded = scenario.bob.get(f"/ai-sdk/chat/{first.chat}")["messages"]
    had = first.do("look")["messages"]
    assert [told["role"] for told in loaded] == ["user", "assistant"] * 2
    assert [parts_without_versions(told) for told in loaded] == [parts_without_versions(told) for told in had]
    assert [told["id"] for told in loaded][1::2] == [told["id"] for told in had][1::2]
    second = tabs.page(first.chat, messages=loaded)
    second.wait_for_approvals()
    second.do("click", selector=".yes")
    second.wait_ended("output-available")
    assert (scenario.count_made("Loaded"), scenario.count_made("Refused"), scenario.count_made("Open")) == (1, 0, 1)


def parts_without_versions(message: Json) -> list[Json]:
    """Its parts, but for how far a card was when it was told."""
    return [{**part, "data": None} if part["type"] == "data-approval" else part for part in message["parts"]]


def test_a_new_chat_has_nothing_to_go_on_with(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page(resume=True)
    told = page.wait_until(lambda shown: shown["requests"] == 1 and shown["status"] == "ready", "it has asked")
    assert (told["messages"], told["error"]) == ([], None)
    assert scenario.bob.get(f"/ai-sdk/chat/{page.chat}") == {"messages": []}


def test_several_calls_are_answered_together(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page()
    page.say('create issues "First of two" and "Second of two"')
    one, other = page.wait_for_approvals(2)
    page.do("answer", given={"id": one["approval"]["id"], "approved": True})
    assert len(page.wait_for_approvals(1)) == 1
    assert page.do("look")["requests"] == 1
    page.do("answer", given={"id": other["approval"]["id"], "approved": False})
    page.wait_ended("output-available", "output-denied")
    assert (scenario.count_made("First of two"), scenario.count_made("Second of two")) == (1, 0)


def test_one_of_several_is_answered_by_itself_and_the_other_stays_open(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page()
    page.say('create issues "Now" and "Later"')
    one, _ = page.wait_for_approvals(2)
    page.do("answer", given={"id": one["approval"]["id"], "approved": True})
    page.do("send")
    page.wait_ended("output-available", "approval-requested")
    assert (scenario.count_made("Now"), scenario.count_made("Later")) == (1, 0)
    page.do("click", selector=".yes")
    page.wait_ended("output-available", "output-available")
    assert (scenario.count_made("Now"), scenario.count_made("Later")) == (1, 1)


def test_what_others_have_to_approve_is_no_request_here_and_is_told_when_they_did(
    tabs: Browser, scenario: AiSdkScenario
) -> None:
    page = tabs.page()
    page.say('create an objective "Theirs to approve"')
    told = page.wait_until(lambda shown: in_state(shown, "input-available") and "data" in str(shown), "it waits")
    [card] = [part["data"] for part in told["messages"][-1]["parts"] if part["type"] == "data-approval"]
    assert (card["may_decide"], told["status"]) == ([], "streaming")
    scenario.ada.decide(scenario.ada.approval(card["id"]), "approve")
    page.wait_ended("output-available")
    assert scenario.count_made("Theirs to approve") == 1


def test_a_first_vote_of_two_waits_for_the_second_without_asking_again(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page()
    page.say('create an objective "Two votes"')
    [call] = page.wait_for_approvals()
    page.do("click", selector=".yes")
    page.wait_until(lambda shown: shown["status"] == "streaming" and in_state(shown, "approval-responded"), "it waits")
    assert scenario.count_made("Two votes") == 0
    scenario.ada.decide(scenario.ada.approval(call["approval"]["id"]), "approve")
    told = page.wait_ended("output-available")
    assert (scenario.count_made("Two votes"), told["requests"]) == (1, 2)


def test_a_rejection_that_is_undone_asks_again(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page()
    page.say('create an objective "Undo this"')
    [call] = page.wait_for_approvals()
    page.do("click", selector=".no")
    page.wait_until(lambda shown: shown["status"] == "streaming" and in_state(shown, "approval-responded"), "it waits")
    scenario.bob.post(f"/api/approvals/{call['approval']['id']}/undo", {})
    page.wait_for_approvals()
    page.do("click", selector=".yes")
    told = page.wait_ended("output-available")
    assert (scenario.count_made("Undo this"), told["requests"]) == (1, 3)


def test_a_rejection_is_told_once_it_can_no_longer_be_undone(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page()
    page.say('create an objective "Soon over"')
    page.wait_for_approvals()
    page.do("click", selector=".no")
    told = page.wait_ended("output-denied")
    assert (scenario.count_made("Soon over"), told["requests"]) == (0, 2)


def test_what_a_policy_allows_or_forbids_needs_no_answer(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page()
    page.say('create an objective "Free of charge"')
    page.wait_ended("output-available")
    page.say('create an objective "Never at all"')
    told = page.wait_ended("output-error")
    assert calls(told)[0]["errorText"] == "Not this one."
    assert (scenario.count_made("Free of charge"), scenario.count_made("Never at all")) == (1, 0)


def test_a_sub_agents_call_is_asked_about_in_the_same_message(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page()
    page.say("ask the writer to publish the post hello-world")
    [call] = page.wait_for_approvals()
    assert call["toolName"] == "cms_publish_post"
    page.do("click", selector=".yes")
    told = page.wait_until(lambda shown: shown["status"] == "ready" and shown["requests"] == 2, "it is over")
    assert [(each["toolName"], each["state"]) for each in calls(told)] == [
        ("cms_publish_post", "output-available"),
        ("agent_writer", "output-available"),
    ]
    assert calls(told)[1]["input"] == {"task": "publish the post hello-world"}


def test_a_new_message_withdraws_what_is_open(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page()
    page.say('create an issue titled "Withdrawn"')
    [call] = page.wait_for_approvals()
    page.say("list issues")
    page.wait_until(lambda shown: shown["status"] == "ready" and len(shown["messages"]) == 4, "it goes on")
    assert scenario.status(call["approval"]["id"]) == "cancelled"
    assert scenario.count_made("Withdrawn") == 0


def test_what_is_done_is_not_done_again(tabs: Browser, scenario: AiSdkScenario) -> None:
    page = tabs.page()
    page.say('create an objective "Free once"')
    page.wait_ended("output-available")
    page.do("regenerate")
    assert "not done again" in page.wait_failed()["error"]
    assert scenario.count_made("Free once") == 1


def test_each_person_has_chats_of_their_own_under_any_name(tabs: Browser) -> None:
    page = tabs.page()
    page.say('create an issue titled "Mine"')
    page.wait_for_approvals()
    other = tabs.page(page.chat, "admin", resume=True)
    told = other.wait_until(lambda shown: shown["requests"] == 1 and shown["status"] == "ready", "it has asked")
    assert told["messages"] == []


def test_the_program_of_the_page_prints_what_the_page_says(scenario: AiSdkScenario, tmp_path: Path) -> None:
    program, printed = (re.search(block, PAGE.read_text(), re.DOTALL) for block in (r"```js\n(.*?)```", PRINTED))
    assert program
    assert printed
    (tmp_path / "chat.mjs").write_text(program[1])
    (tmp_path / "node_modules").symlink_to(CLIENTS.modules)
    environ = {**os.environ, "INTERLOCK_URL": scenario.url, "INTERLOCK_KEY": scenario.keys["reviewer"], "NO_COLOR": "1"}
    command = node_command(tmp_path / "chat.mjs")
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    assert re.sub(r"DEMO-\d+", "DEMO-13", done.stdout) == printed[1]


def test_the_short_post_of_the_page_is_enough(tabs: Browser, scenario: AiSdkScenario) -> None:
    """As the page's last program makes it: the newest message alone."""
    page = tabs.page(short=True)
    page.say('create an issue titled "Short"')
    page.wait_for_approvals()
    page.do("click", selector=".yes")
    page.wait_ended("output-available")
    assert [len(body["messages"]) for body in page.do("requests")] == [1, 1]
    assert scenario.count_made("Short") == 1


def test_a_bare_ok_deletes_nothing_where_no_question_is_shown(tabs: Browser, scenario: AiSdkScenario) -> None:
    """What our own page asks in the conversation is a card here: an ok may be to another question of the model's."""
    page = tabs.page()
    page.say('delete the page "about"')
    page.wait_for_approvals()
    yes = {"id": page.chat, "messages": [user("ok", "the-ok")]}
    assert scenario.post(yes).status_code == 200
    assert about(scenario) == 1
    again = tabs.page()
    again.say('delete the page "about"')
    again.wait_for_approvals()
    again.do("click", selector=".yes")
    again.wait_ended("output-available")
    assert about(scenario) == 0


def about(scenario: AiSdkScenario) -> int:
    return len(scenario.database.sql("select 1 from records where kind = 'page' and id = 'about'"))
