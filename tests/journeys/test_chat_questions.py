"""The agent asks a person, and agents call agents: answers from chat and inbox, gates that only tighten."""

from __future__ import annotations

import pytest

from interlock.core.chat.transcript import ModelReply, Prompt
from tests.journeys.chat_client import ChatScenario, calls, last_user_text, scripted_replies
from tests.journeys.shell import wait_until

EVERY_MODEL = pytest.mark.parametrize("wire", ["openai", "anthropic", "scripted"], indirect=True)


@pytest.mark.smoke
@EVERY_MODEL
def test_question_with_choices_is_answered_in_the_chat(scenario: ChatScenario) -> None:  # R37
    with scenario.say("ask me which colour to use") as talk:
        card = talk.read_until("approval_request").data["approval"]
        assert card["args"]["choices"] == ["red", "green", "blue"]
        refused = scenario.bob.client.post(
            f"/api/approvals/{card['id']}/decision",
            json={"kind": "respond", "args_sha256": card["args_sha256"], "answer": "pink"},
        )
        assert refused.status_code == 422
        scenario.bob.decide(card, "respond", answer="green")
        talk.read_all()
    assert talk.results == ["green"]
    assert "green" in talk.text
    assert talk.events_named("approval_resolved")[0]["status"] == "responded"


def test_question_is_answered_from_the_inbox_while_nobody_reads(scenario: ChatScenario) -> None:  # R36 R37
    with scenario.say("ask me which colour to use") as talk:
        talk.read_until("approval_request")
    [item] = scenario.ada.pending(talk.thread)
    scenario.ada.decide(scenario.ada.approval(item["id"]), "respond", answer="blue")
    scenario.wait_idle(talk.thread)
    assert scenario.model.tool_results == ["blue"]
    assert scenario.bob.approval(item["id"])["decision"]["by"] == "ada"


def test_question_by_schema_gives_data_and_approves_nothing(scenario: ChatScenario) -> None:  # R34 R37
    form = {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}}
    scenario.model.reply = scripted_replies(
        calls(("request_human_input", {"question": "May I create it?", "schema": form})),
        calls(("linear_create_issue", {"title": f"Asked {scenario.name}"})),
    )
    with scenario.say("create it") as talk:
        question = talk.read_until("approval_request").data["approval"]
        scenario.bob.decide(question, "respond", answer={"ok": True})
        card = talk.read_until("approval_request").data["approval"]  # a yes to a question is no approval
        assert (card["tool"], scenario.count_titled("Asked")) == ("linear_create_issue", 0)
        scenario.bob.decide(card, "reject")
        talk.read_all()
    assert talk.results[0] == {"ok": True}
    assert scenario.count_titled("Asked") == 0


def make_objective(scenario: ChatScenario) -> str:
    """A new objective, which agents may change."""
    name = f"O-{scenario.name}"
    scenario.server.put(
        "objective", name, {"title": "Before", "description": "", "quarter": "2026-Q1", "status": "active"}
    )
    return name


def read_title(scenario: ChatScenario, name: str) -> str:
    return str(scenario.server.items("objective")[name]["title"])


@pytest.mark.smoke
def test_sub_agent_with_a_stricter_gate_asks_where_its_caller_would_not(scenario: ChatScenario) -> None:  # R13
    name = make_objective(scenario)
    strict = f"agent_{scenario.agent}_strict"

    def think(prompt: Prompt) -> ModelReply:
        if any(isinstance(message, ModelReply) for message in prompt.messages):
            return ModelReply("Done.")
        if last_user_text(prompt) == "delegate":
            return calls((strict, {"task": "below"}))
        return calls(("okr_update_objective", {"id": name, "title": f"By {last_user_text(prompt)}"}))

    scenario.model.reply = think
    with scenario.say("itself") as alone:
        alone.read_all()
    assert "approval_request" not in alone.names
    assert read_title(scenario, name) == "By itself"
    with scenario.say("delegate") as talk:
        event = talk.read_until("approval_request").data
        card = event["approval"]
        assert event["agent_path"] == [scenario.agent, f"{scenario.agent}_strict"]
        assert (card["thread_id"], card["agent"]) == (talk.thread, f"{scenario.agent}_strict")
        assert read_title(scenario, name) == "By itself"
        scenario.bob.decide(card, "approve")
        talk.read_all()
    assert read_title(scenario, name) == "By below"
    assert talk.events_named("approval_resolved")[0]["agent_path"] == [scenario.agent, f"{scenario.agent}_strict"]
    assert talk.results[-1]["said"] == "Done."


def test_sub_agent_with_a_looser_gate_asks_all_the_same(scenario: ChatScenario) -> None:  # R13
    def think(prompt: Prompt) -> ModelReply:
        if any(isinstance(message, ModelReply) for message in prompt.messages):
            return ModelReply("Done.")
        if last_user_text(prompt) == "delegate":
            return calls((f"agent_{scenario.agent}_loose", {"task": "below"}))
        return calls(("linear_create_issue", {"title": f"Loose {scenario.name}"}))

    scenario.model.reply = think
    with scenario.say("delegate") as talk:
        card = talk.read_until("approval_request").data["approval"]
        assert (card["tool"], scenario.count_titled("Loose")) == ("linear_create_issue", 0)
        scenario.bob.decide(card, "reject", reason="Not below either.")
        talk.read_all()
    assert scenario.count_titled("Loose") == 0
    with scenario.say("below", agent=f"{scenario.agent}_loose") as alone:  # called by itself, its own switch counts
        alone.read_all()
    assert "approval_request" not in alone.names
    assert scenario.count_titled("Loose") == 1


@EVERY_MODEL
def test_sub_agent_of_the_script_does_its_task_under_a_card(scenario: ChatScenario) -> None:  # R13
    with scenario.say(f'let the {scenario.agent}_loose create an issue titled "Sub {scenario.name}"') as talk:
        card = talk.read_until("approval_request").data["approval"]
        scenario.bob.decide(card, "approve")
        talk.read_all()
    assert scenario.count_titled("Sub") == 1
    assert "linear_create_issue` ran" in talk.text


def test_stop_of_the_caller_withdraws_the_sub_agents_card(scenario: ChatScenario) -> None:  # R13
    with scenario.say(f'let the {scenario.agent}_loose create an issue titled "Stop {scenario.name}"') as talk:
        card = talk.read_until("approval_request").data["approval"]
        scenario.bob.stop(talk.thread)
        talk.read_all()
    assert talk.seen[-1].data["stopped"] is True
    assert scenario.bob.approval(card["id"])["status"] == "cancelled"
    assert scenario.count_titled("Stop") == 0
    [child] = [body["thread"] for body in scenario.bob.entries(talk.thread, "delegated")]
    wait_until(lambda: scenario.bob.thread(child)["status"] == "idle", "the sub-agent is stopped too")
