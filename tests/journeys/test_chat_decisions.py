"""What people decide about a call of the agent, from the chat: approve, edit, respond, reject, undo, or nothing."""

from __future__ import annotations

import pytest

from interlock.core.chat.transcript import ModelReply, Prompt
from tests.journeys.chat_client import ChatScenario, calls, last_user_text, scripted_replies

EVERY_MODEL = pytest.mark.parametrize("wire", ["openai", "anthropic", "scripted"], indirect=True)


@pytest.mark.smoke
@EVERY_MODEL
def test_approved_call_runs_once_and_the_model_hears_of_it(scenario: ChatScenario) -> None:  # R3 R4 R36
    with scenario.say(f'create an issue titled "Fix {scenario.name}"') as talk:
        card = talk.read_until("approval_request").data["approval"]
        assert (card["tool"], card["status"], scenario.count_titled("Fix")) == ("linear_create_issue", "pending", 0)
        assert {**card, "seconds_left": 0} == {**scenario.bob.approval(card["id"]), "seconds_left": 0}
        assert [item["id"] for item in scenario.bob.pending(talk.thread)] == [card["id"]]
        scenario.bob.decide(card, "approve")
        talk.read_all()
    assert talk.names == [
        *("delta", "tool_call_start", "approval_request", "approval_resolved"),
        *("tool_call_result", "delta", "done"),
    ]
    resolved = talk.events_named("approval_resolved")[0]
    assert (resolved["approval_id"], resolved["status"], resolved["approved"]) == (card["id"], "approved", True)
    assert "`linear_create_issue` ran" in talk.text
    assert scenario.count_titled("Fix") == 1
    ended = scenario.bob.approval(card["id"])
    assert (ended["status"], ended["decision"]["by"]) == ("succeeded", "bob")


@pytest.mark.smoke
def test_edited_call_runs_with_the_persons_arguments_and_the_model_is_told_which(scenario: ChatScenario) -> None:  # R11
    with scenario.say(f'create an issue titled "Fix {scenario.name}"') as talk:
        card = talk.read_until("approval_request").data["approval"]
        scenario.bob.decide(card, "edit", args={**card["args"], "title": f"Better {scenario.name}"})
        talk.read_all()
    assert (scenario.count_titled("Fix"), scenario.count_titled("Better")) == (0, 1)
    [told] = talk.results
    assert told["changed"] == ["title"]
    assert told["ran_with"] == {**card["args"], "title": f"Better {scenario.name}"}
    assert "A person changed" in talk.text
    assert scenario.model.tool_results == [told]


@pytest.mark.parametrize("wire", ["openai", "anthropic"], indirect=True)
def test_nobody_is_asked_about_calls_that_are_known_to_fail(scenario: ChatScenario) -> None:  # R3 R35
    missing = ("cms_publish_post", {"slug": f"no-{scenario.name}"})
    stranger = ("linear_assign_issue", {"id": "DEMO-1", "assignee": f"Nobody {scenario.name}"})
    scenario.model.reply = scripted_replies(calls(missing, stranger), ModelReply(""))
    with scenario.say("publish and assign") as talk:
        talk.read_all()
    assert (talk.events_named("approval_request"), talk.seen[-1].name) == ([], "done")
    assert [result["status"] for result in talk.results] == ["failed", "failed"]
    found = sorted(result["error"].partition("'")[0] for result in talk.results)  # they are looked up at once
    assert found == ["Linear has no person ", "There is no post "]
    assert scenario.bob.pending(talk.thread) == []


def test_answered_call_does_not_run_and_the_model_reads_the_answer(scenario: ChatScenario) -> None:  # R11
    with scenario.say(f'create an issue titled "Fix {scenario.name}"') as talk:
        card = talk.read_until("approval_request").data["approval"]
        scenario.bob.decide(card, "respond", message="We have that one already: DEMO-3.")
        talk.read_all()
    assert talk.results == ["We have that one already: DEMO-3."]
    assert "DEMO-3" in talk.text
    assert scenario.count_titled("Fix") == 0
    assert talk.events_named("approval_resolved")[0]["approved"] is False


@pytest.mark.smoke
def test_rejected_call_does_not_run_and_the_model_acknowledges_it(scenario: ChatScenario) -> None:  # R3 R11 R17 R35
    with scenario.say(f'create an issue titled "Fix {scenario.name}"') as talk:
        card = talk.read_until("approval_request").data["approval"]
        scenario.bob.decide(card, "reject", reason="Not this week.")
        talk.read_all()
    assert talk.results == [
        {
            "success": False,
            "cancelled": True,
            "declined": True,
            "status": "rejected",
            "reason": "Not this week.",
            "error": "Access denied: Not this week.",
        }
    ]
    assert scenario.model.tool_results == talk.results
    assert "declined and did not run" in talk.text
    assert scenario.count_titled("Fix") == 0


def test_short_way_of_the_chat_page_approves_and_declines(scenario: ChatScenario) -> None:  # R17
    for yes in (True, False):
        with scenario.say(f'create an issue titled "Short {scenario.name}"') as talk:
            card = talk.read_until("approval_request").data["approval"]
            body = {"approvalId": card["id"], "approved": yes, "reason": "" if yes else "No more."}
            assert scenario.bob.post("/api/chat/approve", body)["approved"] is yes
            talk.read_all()
    assert scenario.count_titled("Short") == 1


def test_rejection_is_taken_back_and_the_call_runs(scenario: ChatScenario) -> None:  # R11
    with scenario.say(f'create an objective "Undo {scenario.name}"') as talk:
        card = talk.read_until("approval_request").data["approval"]
        rejected = scenario.bob.decide(card, "reject", reason="A slip.")
        at_once = talk.read_until("approval_resolved").data
        assert (at_once["status"], at_once["release_at"]) == ("rejected", rejected["release_at"])
        assert scenario.bob.post(f"/api/approvals/{card['id']}/undo", {})["status"] == "pending"
        assert talk.read_until("approval_request").data["approval"]["status"] == "pending"
        assert scenario.count_titled("Undo") == 0
        scenario.bob.decide(card, "approve")
        talk.read_all()
    assert scenario.count_titled("Undo") == 1
    assert [data["status"] for data in talk.events_named("approval_resolved")] == ["rejected", "approved"]


def test_call_that_nobody_decides_times_out_for_everybody(scenario: ChatScenario) -> None:  # R5
    with scenario.say(f'create an objective "Quick {scenario.name}"') as talk:
        card = talk.read_until("approval_request").data["approval"]
        talk.read_all()
    resolved = talk.events_named("approval_resolved")[0]
    assert (resolved["status"], resolved["approved"]) == ("expired", False)
    assert "timed out" in resolved["reason"]
    assert "timed out" in talk.results[0]["reason"]
    assert "timed out" in talk.text
    assert scenario.bob.approval(card["id"])["status"] == "expired"
    assert scenario.count_titled("Quick") == 0


def test_what_others_have_to_decide_is_not_decided_by_the_person_who_chats(scenario: ChatScenario) -> None:  # R34
    with scenario.say(f'create an objective "Theirs {scenario.name}"') as talk:
        card = talk.read_until("approval_request").data["approval"]
        body = {"kind": "approve", "args_sha256": card["args_sha256"]}
        assert scenario.bob.client.post(f"/api/approvals/{card['id']}/decision", json=body).status_code == 403
        assert scenario.count_titled("Theirs") == 0
        scenario.ada.decide(card, "approve")
        talk.read_all()
    assert scenario.count_titled("Theirs") == 1


def test_of_three_calls_two_ask_and_are_decided_in_the_other_order(scenario: ChatScenario) -> None:  # R6
    def think(prompt: Prompt) -> ModelReply:
        if any(isinstance(message, ModelReply) for message in prompt.messages):
            return ModelReply(f"Done: {last_user_text(prompt)}")
        return calls(
            ("linear_create_issue", {"title": f"First {scenario.name}"}),
            ("okr_create_objective", {"title": f"Free {scenario.name}"}),
            ("linear_create_issue", {"title": f"Second {scenario.name}"}),
        )

    scenario.model.reply = think
    with scenario.say("three at once") as talk:
        cards = [talk.read_until("approval_request").data["approval"] for _ in range(2)]
        if "tool_call_result" not in talk.names:
            talk.read_until("tool_call_result")
        assert (scenario.count_titled("First"), scenario.count_titled("Free"), scenario.count_titled("Second")) == (
            0,
            1,
            0,
        )
        first, second = sorted(cards, key=lambda card: card["args"]["title"])
        scenario.bob.decide(second, "approve")
        while len(talk.events_named("tool_call_result")) < 2:
            talk.next_event()
        assert (scenario.count_titled("First"), scenario.count_titled("Second")) == (0, 1)
        scenario.bob.decide(first, "reject", reason="Not the first.")
        talk.read_all()
    assert (scenario.count_titled("First"), scenario.count_titled("Free"), scenario.count_titled("Second")) == (0, 1, 1)
    told = scenario.model.tool_results  # in the order of the calls
    assert [result.get("title") or result.get("reason") for result in told] == [
        "Not the first.",
        f"Free {scenario.name}",
        f"Second {scenario.name}",
    ]
    assert sorted(data["tool_call"]["id"] for data in talk.events_named("tool_call_start")) == sorted(
        data["tool_call"]["id"] for data in talk.events_named("tool_call_result")
    )


def test_second_call_like_the_first_asks_again(scenario: ChatScenario) -> None:  # R20
    thread = ""
    for count in (1, 2):
        with scenario.say(f'create an objective "Again {scenario.name}"', thread) as talk:
            thread = talk.thread
            card = talk.read_until("approval_request").data["approval"]
            assert scenario.count_titled("Again") == count - 1
            scenario.bob.decide(card, "approve")
            talk.read_all()
    assert scenario.count_titled("Again") == 2


def test_edit_that_a_rule_denies_goes_back_to_the_person_and_not_to_the_model(
    scenario: ChatScenario,
) -> None:  # R11 R34
    with scenario.say(f'create an objective "Edit {scenario.name}"') as talk:
        card = talk.read_until("approval_request").data["approval"]
        for args, error in (
            ({"title": f"Never {scenario.name}"}, "denied_now"),
            ({"title": ""}, "invalid_decision"),
            ({"title": "x", "approved": True}, "invalid_decision"),
        ):
            body = {"kind": "edit", "args_sha256": card["args_sha256"], "args": args}
            refused = scenario.bob.client.post(f"/api/approvals/{card['id']}/decision", json=body)
            assert (refused.status_code, refused.json()["error"]) == (422, error)
        assert scenario.bob.approval(card["id"])["status"] == "pending"
        scenario.bob.decide(card, "approve")
        talk.read_all()
    assert (scenario.count_titled("Edit"), scenario.count_titled("Never")) == (1, 0)
    assert len(scenario.model.prompts) == 2


def test_short_way_counts_only_while_nothing_was_found_in_the_arguments(scenario: ChatScenario) -> None:  # R17
    title = f"Log\u0456n {scenario.name}"  # with a letter that only looks like an i
    with scenario.say(f'create an issue titled "{title}"') as talk:
        card = talk.read_until("approval_request").data["approval"]
        assert card["findings"]
        body = {"approvalId": card["id"], "approved": True}
        blind = scenario.bob.client.post("/api/chat/approve", json=body)
        assert (blind.status_code, blind.json()["error"]) == (409, "digest_mismatch")
        heedless = scenario.bob.client.post("/api/chat/approve", json={**body, "argsSha256": card["args_sha256"]})
        assert (heedless.status_code, heedless.json()["error"]) == (422, "findings_not_acknowledged")
        assert scenario.server.count_titled(title) == 0
        found = [finding["id"] for finding in card["findings"]]
        scenario.bob.decide(card, "approve", acknowledged=found)
        talk.read_all()
    assert scenario.server.count_titled(title) == 1
