"""What comes between: people who stop, leave, change their mind or ask back; models that fail; servers that restart."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlock.core.chat.transcript import ModelReply, Prompt
from tests.databases import Database
from tests.fakes.model_server import Fault, ModelServer
from tests.interlock_server import INTERLOCK, run_server
from tests.journeys.chat_client import (
    ChatScenario,
    Event,
    ScriptedModel,
    calls,
    last_user_text,
    merge_deltas,
    scripted_replies,
)
from tests.journeys.chat_server import run_chat_server
from tests.journeys.shell import TIMEOUT, end_group, wait_until


@pytest.mark.smoke
def test_stop_withdraws_the_cards_and_nothing_runs(scenario: ChatScenario) -> None:  # R3
    with scenario.say(f'create issues titled "A {scenario.name}" and "B {scenario.name}"') as talk:
        cards = [talk.read_until("approval_request").data["approval"] for _ in range(2)]
        scenario.bob.stop(talk.thread)
        talk.read_all()
    assert talk.seen[-1].data["stopped"] is True
    assert {scenario.bob.approval(card["id"])["status"] for card in cards} == {"cancelled"}
    body = {"kind": "approve", "args_sha256": cards[0]["args_sha256"]}
    assert scenario.bob.client.post(f"/api/approvals/{cards[0]['id']}/decision", json=body).status_code == 409
    assert [result["status"] for result in talk.results] == ["cancelled", "cancelled"]
    assert (scenario.count_titled("A"), scenario.count_titled("B")) == (0, 0)
    assert len(scenario.model.prompts) == 1  # the model is not asked again
    with scenario.say("list objectives", talk.thread) as more:
        assert more.read_all()[-1].name == "done"


def test_stop_while_the_model_talks_closes_its_connection(scenario: ChatScenario) -> None:
    scenario.model.reply = scripted_replies(ModelReply("word " * 2_000))
    scenario.server.models.pause = 0.01
    with scenario.say("talk") as talk:
        talk.read_until("delta")
        scenario.bob.stop(talk.thread)
        talk.read_all()
    [turn] = scenario.server.models.turns[scenario.started :]
    wait_until(lambda: turn.was_closed, "the fake model sees that nobody listens")
    assert not turn.is_complete
    assert talk.seen[-1].data["stopped"] is True
    [kept] = scenario.bob.entries(talk.thread, "replied")
    assert kept["text"].startswith("word word ")
    assert talk.text.startswith(kept["text"])


@pytest.mark.smoke
def test_new_message_withdraws_the_open_card_and_the_model_goes_on_with_it(scenario: ChatScenario) -> None:  # R55
    with scenario.say(f'create an issue titled "Old {scenario.name}"') as first:
        old = first.read_until("approval_request").data["approval"]
        with scenario.say(f'create an issue titled "New {scenario.name}"', first.thread) as talk:
            new = talk.read_until("approval_request").data["approval"]
            assert (new["args"]["title"], new["status"]) == (f"New {scenario.name}", "pending")
            scenario.bob.decide(new, "approve")
            talk.read_all()
    cancelled = scenario.bob.approval(old["id"])
    assert (cancelled["status"], cancelled["decision"]["by"]) == ("cancelled", "bob")
    assert "new message" in cancelled["decision"]["reason"]
    assert (scenario.count_titled("Old"), scenario.count_titled("New")) == (0, 1)
    assert [result["status"] for result in scenario.bob.entries(first.thread, "resulted")] == ["cancelled", "succeeded"]


def test_reviewer_asks_the_agent_and_the_call_still_waits(scenario: ChatScenario) -> None:  # R55
    def think(prompt: Prompt) -> ModelReply:
        if "asks: Why now?" in last_user_text(prompt):
            assert prompt.tools == ()
            return ModelReply("Because the login has been broken since noon.")
        if any(isinstance(message, ModelReply) for message in prompt.messages):
            return ModelReply("Done.")
        return calls(("linear_create_issue", {"title": f"Why {scenario.name}"}))

    scenario.model.reply = think
    with scenario.say("file it") as talk:
        card = talk.read_until("approval_request").data["approval"]
        scenario.ada.post(f"/api/approvals/{card['id']}/ask", {"question": "Why now?"})
        wait_until(
            lambda: "broken since noon" in str(scenario.ada.approval(card["id"])["timeline"]), "the agent answered"
        )
        assert scenario.ada.approval(card["id"])["status"] == "pending"
        assert scenario.count_titled("Why") == 0
        scenario.ada.decide(card, "approve")
        talk.read_all()
    assert scenario.count_titled("Why") == 1
    assert "broken since noon" not in talk.text  # it was said to the reviewer
    scenario.unrecorded = 1


def test_card_is_decided_while_the_browser_is_away_and_no_event_is_lost(scenario: ChatScenario) -> None:  # R3 R36
    with scenario.say(f'create an issue titled "Away {scenario.name}"') as talk:
        card = talk.read_until("approval_request").data["approval"]
        before, at = list(talk.seen), talk.last_id
    scenario.ada.decide(card, "approve")
    scenario.wait_idle(talk.thread)
    assert scenario.count_titled("Away") == 1
    assert scenario.bob.approval(card["id"])["decision"]["by"] == "ada"
    with scenario.bob.follow(talk.thread, at) as back:
        back.read_until("done")
    with scenario.bob.follow(talk.thread) as whole:
        whole.read_until("done")
    assert merge_deltas(back.seen) == ["approval_resolved", "tool_call_result", "delta", "done"]
    assert [event.id for event in before if event.name != "delta"] + ids(back.seen) == ids(whole.seen)
    assert "".join(event.data["content"] for event in [*before, *back.seen] if event.name == "delta") == whole.text


def test_model_that_fails_twice_is_asked_again(scenario: ChatScenario) -> None:  # R3
    scenario.server.models.faults.extend([Fault("500"), Fault("cut")])
    with scenario.say("list objectives") as talk:
        talk.read_all()
    assert talk.seen[-1].name == "done"
    assert len(scenario.bob.entries(talk.thread, "failed")) == 2
    assert [turn.fault for turn in scenario.server.models.turns[scenario.started :]] == ["500", "cut", "", ""]
    kept = "".join(body["text"] for body in scenario.bob.entries(talk.thread, "replied"))
    assert final_text(talk.seen) == kept  # half a sentence that was cut off is taken back


def test_model_that_fails_for_good_is_an_error_that_can_be_retried(scenario: ChatScenario) -> None:  # R3
    scenario.server.models.faults.append(Fault("401"))
    with scenario.say(f'create an objective "Free {scenario.name}"') as talk:
        talk.read_all()
    assert talk.seen[-1].name == "error"
    assert talk.seen[-1].data["error"]
    scenario.unrecorded = 1
    scenario.bob.post(f"/api/threads/{talk.thread}/retry", {})
    with scenario.bob.follow(talk.thread, talk.last_id) as more:
        more.read_until("done")
    assert scenario.count_titled("Free") == 1


@pytest.mark.parametrize("fault", ["same_ids", "no_ids"])
def test_calls_that_a_provider_does_not_tell_apart_are_decided_apart(scenario: ChatScenario, fault: str) -> None:  # R6
    scenario.server.models.faults.append(Fault(fault))
    with scenario.say(f'create issues titled "A {scenario.name}" and "B {scenario.name}"') as talk:
        cards = [talk.read_until("approval_request").data["approval"] for _ in range(2)]
        first, second = sorted(cards, key=lambda card: card["args"]["title"])
        scenario.bob.decide(second, "approve")
        scenario.bob.decide(first, "reject", reason="Not the first.")
        talk.read_all()
    assert (scenario.count_titled("A"), scenario.count_titled("B")) == (0, 1)
    assert scenario.model.tool_results[0]["status"] == "rejected"


@pytest.mark.parametrize("kind", ["stop", "kill"])
def test_server_that_restarts_in_the_middle_of_a_wait_goes_on(
    database: Database, tmp_path: Path, model_server: ModelServer, kind: str
) -> None:  # R3
    model_server.reply = ScriptedModel()
    with run_chat_server(database, tmp_path, model_server) as ground:
        with ground.bob.say('create an issue titled "Kept"', "openai") as talk:
            card = talk.read_until("approval_request").data["approval"]
            at = talk.last_id
            getattr(ground.server, kind)()
        with run_server(database.url, tmp_path, "--demo") as again, again.client(ground.keys["reviewer"]) as client:
            ground.bob.client = client
            ground.bob.decide(card, "approve")
            with ground.bob.follow(talk.thread, at) as back:
                back.read_until("done")
            assert merge_deltas(back.seen) == ["approval_resolved", "tool_call_result", "delta", "done"]
            assert ground.count_titled("Kept") == 1
            assert len(ground.bob.entries(talk.thread, "replied")) == 2
        ground.assert_valid_ledger()
    assert model_server.violations == []


def test_worker_beside_a_server_without_one_advances_threads(
    database: Database, tmp_path: Path, model_server: ModelServer
) -> None:  # R3
    model_server.reply = ScriptedModel()
    with run_chat_server(database, tmp_path, model_server, "--no-worker") as ground:
        with ground.bob.say('create an objective "Beside"', "anthropic") as talk:
            with run_worker(database.url, tmp_path):
                card = talk.read_until("approval_request").data["approval"]
            ground.bob.decide(card, "approve")  # while nobody works
            assert ground.count_titled("Beside") == 0
            with run_worker(database.url, tmp_path):
                talk.read_all()
        assert ground.count_titled("Beside") == 1
        assert talk.text == "".join(body["text"] for body in ground.bob.entries(talk.thread, "replied"))
        ground.assert_valid_ledger()
    assert model_server.violations == []


@contextmanager
def run_worker(database: str, folder: Path) -> Iterator[None]:
    command = [*INTERLOCK, "worker", "--database", database]
    with (folder / "worker.log").open("a") as log:
        worker = subprocess.Popen(command, cwd=folder, stderr=log, process_group=0)
    try:
        yield
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(TIMEOUT) == 0
    finally:
        end_group(worker)


def ids(events: list[Event]) -> list[str]:
    return [event.id for event in events if event.name != "delta"]


def final_text(events: list[Event]) -> str:
    """What a reader has in the end: a reset takes back what was said since the last line."""
    kept, open_now = "", ""
    for event in events:
        if event.name != "delta":
            kept, open_now = kept + open_now, ""
        elif event.data.get("reset"):
            open_now = ""
        else:
            open_now += event.data["content"]
    return kept + open_now
