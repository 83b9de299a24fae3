"""What people decide about a call of the agent, from the chat: approve, edit, respond, reject, undo, or nothing."""

from __future__ import annotations

import pytest

from interlock.core.chat.transcript import ModelReply, Prompt
from tests.journeys.chat_client import World, calls, last_said

EVERY_MODEL = pytest.mark.parametrize("wire", ["openai", "anthropic", "scripted"], indirect=True)


@pytest.mark.smoke
@EVERY_MODEL
def test_approved_call_runs_once_and_the_model_hears_of_it(world: World) -> None:  # R3 R4
    with world.say(f'create an issue titled "Fix {world.name}"') as talk:
        card = talk.until("approval_request").data["approval"]
        assert (card["tool"], card["status"], world.titled("Fix")) == ("linear_create_issue", "pending", 0)
        assert {**card, "seconds_left": 0} == {**world.bob.approval(card["id"]), "seconds_left": 0}
        assert [item["id"] for item in world.bob.pending(talk.thread)] == [card["id"]]  # R36
        world.bob.decide(card, "approve")
        talk.rest()
    assert talk.names == [
        *("delta", "tool_call_start", "approval_request", "approval_resolved"),
        *("tool_call_result", "delta", "done"),
    ]
    resolved = talk.of("approval_resolved")[0]
    assert (resolved["approval_id"], resolved["status"], resolved["approved"]) == (card["id"], "approved", True)
    assert "`linear_create_issue` ran" in talk.text
    assert world.titled("Fix") == 1
    ended = world.bob.approval(card["id"])
    assert (ended["status"], ended["decision"]["by"]) == ("succeeded", "bob")


@pytest.mark.smoke
def test_edited_call_runs_with_the_persons_arguments_and_the_model_is_told_which(world: World) -> None:  # R11
    with world.say(f'create an issue titled "Fix {world.name}"') as talk:
        card = talk.until("approval_request").data["approval"]
        world.bob.decide(card, "edit", args={**card["args"], "title": f"Better {world.name}"})
        talk.rest()
    assert (world.titled("Fix"), world.titled("Better")) == (0, 1)
    [told] = talk.results
    assert told["changed"] == ["title"]
    assert told["ran_with"] == {**card["args"], "title": f"Better {world.name}"}
    assert "A person changed" in talk.text
    assert world.mind.told == [told]


def test_answered_call_does_not_run_and_the_model_reads_the_answer(world: World) -> None:  # R11
    with world.say(f'create an issue titled "Fix {world.name}"') as talk:
        card = talk.until("approval_request").data["approval"]
        world.bob.decide(card, "respond", message="We have that one already: DEMO-3.")
        talk.rest()
    assert talk.results == ["We have that one already: DEMO-3."]
    assert "DEMO-3" in talk.text
    assert world.titled("Fix") == 0
    assert talk.of("approval_resolved")[0]["approved"] is False


@pytest.mark.smoke
def test_rejected_call_does_not_run_and_the_model_acknowledges_it(world: World) -> None:  # R3 R11 R17 R35
    with world.say(f'create an issue titled "Fix {world.name}"') as talk:
        card = talk.until("approval_request").data["approval"]
        world.bob.decide(card, "reject", reason="Not this week.")
        talk.rest()
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
    assert world.mind.told == talk.results
    assert "declined and did not run" in talk.text
    assert world.titled("Fix") == 0


def test_short_way_of_the_chat_page_approves_and_declines(world: World) -> None:  # R17
    for yes in (True, False):
        with world.say(f'create an issue titled "Short {world.name}"') as talk:
            card = talk.until("approval_request").data["approval"]
            body = {"approvalId": card["id"], "approved": yes, "reason": "" if yes else "No more."}
            assert world.bob.post("/api/chat/approve", body)["approved"] is yes
            talk.rest()
    assert world.titled("Short") == 1


def test_rejection_is_taken_back_and_the_call_runs(world: World) -> None:  # R11
    with world.say(f'create an objective "Undo {world.name}"') as talk:
        card = talk.until("approval_request").data["approval"]
        assert world.bob.decide(card, "reject", reason="A slip.")["status"] == "rejected"
        assert world.bob.post(f"/api/approvals/{card['id']}/undo", {})["status"] == "pending"
        assert world.titled("Undo") == 0
        world.bob.decide(card, "approve")
        talk.rest()
    assert world.titled("Undo") == 1
    assert [data["status"] for data in talk.of("approval_resolved")] == ["approved"]


def test_call_that_nobody_decides_times_out_for_everybody(world: World) -> None:  # R5
    with world.say(f'create an objective "Quick {world.name}"') as talk:
        card = talk.until("approval_request").data["approval"]
        talk.rest()
    resolved = talk.of("approval_resolved")[0]
    assert (resolved["status"], resolved["approved"]) == ("expired", False)
    assert "timed out" in resolved["reason"]
    assert "timed out" in talk.results[0]["reason"]
    assert "timed out" in talk.text
    assert world.bob.approval(card["id"])["status"] == "expired"
    assert world.titled("Quick") == 0


def test_what_others_have_to_decide_is_not_decided_by_the_person_who_chats(world: World) -> None:  # R34
    with world.say(f'create an objective "Theirs {world.name}"') as talk:
        card = talk.until("approval_request").data["approval"]
        body = {"kind": "approve", "args_sha256": card["args_sha256"]}
        assert world.bob.client.post(f"/api/approvals/{card['id']}/decision", json=body).status_code == 403
        assert world.titled("Theirs") == 0
        world.ada.decide(card, "approve")
        talk.rest()
    assert world.titled("Theirs") == 1


def test_of_three_calls_two_ask_and_are_decided_in_the_other_order(world: World) -> None:  # R6
    def think(prompt: Prompt) -> ModelReply:
        if any(isinstance(message, ModelReply) for message in prompt.messages):
            return ModelReply(f"Done: {last_said(prompt)}")
        return calls(
            ("linear_create_issue", {"title": f"First {world.name}"}),
            ("okr_create_objective", {"title": f"Free {world.name}"}),
            ("linear_create_issue", {"title": f"Second {world.name}"}),
        )

    world.mind.think = think
    with world.say("three at once") as talk:
        cards = [talk.until("approval_request").data["approval"] for _ in range(2)]
        if "tool_call_result" not in talk.names:
            talk.until("tool_call_result")
        assert (world.titled("First"), world.titled("Free"), world.titled("Second")) == (0, 1, 0)
        first, second = sorted(cards, key=lambda card: card["args"]["title"])
        world.bob.decide(second, "approve")
        while len(talk.of("tool_call_result")) < 2:
            talk.next()
        assert (world.titled("First"), world.titled("Second")) == (0, 1)
        world.bob.decide(first, "reject", reason="Not the first.")
        talk.rest()
    assert (world.titled("First"), world.titled("Free"), world.titled("Second")) == (0, 1, 1)
    told = world.mind.told  # in the order of the calls
    assert [result.get("title") or result.get("reason") for result in told] == [
        "Not the first.",
        f"Free {world.name}",
        f"Second {world.name}",
    ]
    assert sorted(data["tool_call"]["id"] for data in talk.of("tool_call_start")) == sorted(
        data["tool_call"]["id"] for data in talk.of("tool_call_result")
    )


def test_second_call_like_the_first_asks_again(world: World) -> None:  # R20
    thread = ""
    for count in (1, 2):
        with world.say(f'create an objective "Again {world.name}"', thread) as talk:
            thread = talk.thread
            card = talk.until("approval_request").data["approval"]
            assert world.titled("Again") == count - 1
            world.bob.decide(card, "approve")
            talk.rest()
    assert world.titled("Again") == 2


def test_edit_that_a_rule_denies_goes_back_to_the_person_and_not_to_the_model(world: World) -> None:  # R11 R34
    with world.say(f'create an objective "Edit {world.name}"') as talk:
        card = talk.until("approval_request").data["approval"]
        for args, error in (
            ({"title": f"Never {world.name}"}, "denied_now"),
            ({"title": ""}, "invalid_decision"),
            ({"title": "x", "approved": True}, "invalid_decision"),
        ):
            body = {"kind": "edit", "args_sha256": card["args_sha256"], "args": args}
            refused = world.bob.client.post(f"/api/approvals/{card['id']}/decision", json=body)
            assert (refused.status_code, refused.json()["error"]) == (422, error)
        assert world.bob.approval(card["id"])["status"] == "pending"
        world.bob.decide(card, "approve")
        talk.rest()
    assert (world.titled("Edit"), world.titled("Never")) == (1, 0)
    assert len(world.mind.prompts) == 2


def test_short_way_counts_only_while_nothing_was_found_in_the_arguments(world: World) -> None:  # R17
    title = f"Log\u0456n {world.name}"  # with a letter that only looks like an i
    with world.say(f'create an issue titled "{title}"') as talk:
        card = talk.until("approval_request").data["approval"]
        assert card["findings"]
        body = {"approvalId": card["id"], "approved": True}
        blind = world.bob.client.post("/api/chat/approve", json=body)
        assert (blind.status_code, blind.json()["error"]) == (409, "digest_mismatch")
        heedless = world.bob.client.post("/api/chat/approve", json={**body, "argsSha256": card["args_sha256"]})
        assert (heedless.status_code, heedless.json()["error"]) == (422, "findings_not_acknowledged")
        assert world.ground.titled(title) == 0
        found = [finding["id"] for finding in card["findings"]]
        world.bob.decide(card, "approve", acknowledged=found)
        talk.rest()
    assert world.ground.titled(title) == 1
