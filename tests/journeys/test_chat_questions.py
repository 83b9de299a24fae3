"""The agent asks a person, and agents call agents: answers from chat and inbox, gates that only tighten."""

from __future__ import annotations

import pytest

from interlock.core.chat.transcript import ModelReply, Prompt
from tests.journeys.chat_client import World, calls, last_said, plays
from tests.journeys.shell import wait_until

EVERY_MODEL = pytest.mark.parametrize("wire", ["openai", "anthropic", "scripted"], indirect=True)


@pytest.mark.smoke
@EVERY_MODEL
def test_question_with_choices_is_answered_in_the_chat(world: World) -> None:  # R37
    with world.say("ask me which colour to use") as talk:
        card = talk.until("approval_request").data["approval"]
        assert card["args"]["choices"] == ["red", "green", "blue"]
        refused = world.bob.client.post(
            f"/api/approvals/{card['id']}/decision",
            json={"kind": "respond", "args_sha256": card["args_sha256"], "answer": "pink"},
        )
        assert refused.status_code == 422
        world.bob.decide(card, "respond", answer="green")
        talk.rest()
    assert talk.results == ["green"]
    assert "green" in talk.text
    assert talk.of("approval_resolved")[0]["status"] == "responded"


def test_question_is_answered_from_the_inbox_while_nobody_reads(world: World) -> None:  # R36 R37
    with world.say("ask me which colour to use") as talk:
        talk.until("approval_request")
    [item] = world.ada.pending(talk.thread)
    world.ada.decide(world.ada.approval(item["id"]), "respond", answer="blue")
    world.wait_for_rest(talk.thread)
    assert world.mind.told == ["blue"]
    assert world.bob.approval(item["id"])["decision"]["by"] == "ada"


def test_question_by_schema_gives_data_and_approves_nothing(world: World) -> None:  # R34 R37
    form = {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}}
    world.mind.think = plays(
        calls(("request_human_input", {"question": "May I create it?", "schema": form})),
        calls(("linear_create_issue", {"title": f"Asked {world.name}"})),
    )
    with world.say("create it") as talk:
        question = talk.until("approval_request").data["approval"]
        world.bob.decide(question, "respond", answer={"ok": True})
        card = talk.until("approval_request").data["approval"]  # a yes to a question is no approval
        assert (card["tool"], world.titled("Asked")) == ("linear_create_issue", 0)
        world.bob.decide(card, "reject")
        talk.rest()
    assert talk.results[0] == {"ok": True}
    assert world.titled("Asked") == 0


def objective(world: World) -> str:
    """A new objective, which agents may change."""
    name = f"O-{world.name}"
    world.ground.put(
        "objective", name, {"title": "Before", "description": "", "quarter": "2026-Q1", "status": "active"}
    )
    return name


def title_of(world: World, name: str) -> str:
    return str(world.ground.records("objective")[name]["title"])


@pytest.mark.smoke
def test_sub_agent_with_a_stricter_gate_asks_where_its_caller_would_not(world: World) -> None:  # R13
    name = objective(world)
    strict = f"agent_{world.agent}_strict"

    def think(prompt: Prompt) -> ModelReply:
        if any(isinstance(message, ModelReply) for message in prompt.messages):
            return ModelReply("Done.")
        if last_said(prompt) == "delegate":
            return calls((strict, {"task": "below"}))
        return calls(("okr_update_objective", {"id": name, "title": f"By {last_said(prompt)}"}))

    world.mind.think = think
    with world.say("itself") as alone:
        alone.rest()
    assert "approval_request" not in alone.names
    assert title_of(world, name) == "By itself"
    with world.say("delegate") as talk:
        event = talk.until("approval_request").data
        card = event["approval"]
        assert event["agent_path"] == [world.agent, f"{world.agent}_strict"]
        assert (card["thread_id"], card["agent"]) == (talk.thread, f"{world.agent}_strict")
        assert title_of(world, name) == "By itself"
        world.bob.decide(card, "approve")
        talk.rest()
    assert title_of(world, name) == "By below"
    assert talk.of("approval_resolved")[0]["agent_path"] == [world.agent, f"{world.agent}_strict"]
    assert talk.results[-1]["said"] == "Done."


def test_sub_agent_with_a_looser_gate_asks_all_the_same(world: World) -> None:  # R13
    def think(prompt: Prompt) -> ModelReply:
        if any(isinstance(message, ModelReply) for message in prompt.messages):
            return ModelReply("Done.")
        if last_said(prompt) == "delegate":
            return calls((f"agent_{world.agent}_loose", {"task": "below"}))
        return calls(("linear_create_issue", {"title": f"Loose {world.name}"}))

    world.mind.think = think
    with world.say("delegate") as talk:
        card = talk.until("approval_request").data["approval"]
        assert (card["tool"], world.titled("Loose")) == ("linear_create_issue", 0)
        world.bob.decide(card, "reject", reason="Not below either.")
        talk.rest()
    assert world.titled("Loose") == 0
    with world.say("below", agent=f"{world.agent}_loose") as alone:  # called by itself, its own switch counts
        alone.rest()
    assert "approval_request" not in alone.names
    assert world.titled("Loose") == 1


@EVERY_MODEL
def test_sub_agent_of_the_script_does_its_task_under_a_card(world: World) -> None:  # R13
    with world.say(f'let the {world.agent}_loose create an issue titled "Sub {world.name}"') as talk:
        card = talk.until("approval_request").data["approval"]
        world.bob.decide(card, "approve")
        talk.rest()
    assert world.titled("Sub") == 1
    assert "linear_create_issue` ran" in talk.text


def test_stop_of_the_caller_withdraws_the_sub_agents_card(world: World) -> None:  # R13
    with world.say(f'let the {world.agent}_loose create an issue titled "Stop {world.name}"') as talk:
        card = talk.until("approval_request").data["approval"]
        world.bob.stop(talk.thread)
        talk.rest()
    assert talk.seen[-1].data["stopped"] is True
    assert world.bob.approval(card["id"])["status"] == "cancelled"
    assert world.titled("Stop") == 0
    [child] = [body["thread"] for body in world.bob.lines(talk.thread, "delegated")]
    wait_until(lambda: world.bob.thread(child)["status"] == "idle", "the sub-agent is stopped too")
