"""People who act at the same moment: whatever wins, the record, the effect and what the model hears agree."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from interlock.core.chat.transcript import ModelReply
from tests.journeys.chat_client import ChatScenario, ChatUser, Json, scripted_replies

ROUNDS = 6


@pytest.fixture(params=["openai"])
def wire(request: pytest.FixtureRequest) -> str:
    """One is enough: these are about people."""
    return str(request.param)


def at_once(*acts: Callable[[], httpx2.Response]) -> list[httpx2.Response]:
    start = threading.Barrier(len(acts))

    def act(what: Callable[[], httpx2.Response]) -> httpx2.Response:
        start.wait()
        return what()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(act, acts))


def decision(person: ChatUser, card: Json, kind: str, **more: object) -> Callable[[], httpx2.Response]:
    body = {"kind": kind, "args_sha256": card["args_sha256"], **more}
    return lambda: person.client.post(f"/api/approvals/{card['id']}/decision", json=body)


def assert_agree(scenario: ChatScenario, thread: str, card: Json, title: str) -> str:
    """The approval, the one result and the effect say the same; gives the status."""
    scenario.wait_idle(thread)
    status = str(scenario.bob.approval(card["id"])["status"])
    [result] = [body for body in scenario.bob.entries(thread, "resulted") if body.get("approval") == card["id"]]
    assert result["status"] == status
    assert scenario.server.count_titled(title) == (status == "succeeded")
    return status


def test_of_two_people_who_decide_one_counts(scenario: ChatScenario) -> None:  # R3
    for number in range(ROUNDS):
        title = f"Two {scenario.name} {number}"
        with scenario.say(f'create an objective "{title}"') as talk:
            card = talk.read_until("approval_request").data["approval"]
            answers = at_once(decision(scenario.bob, card, "approve"), decision(scenario.ada, card, "reject"))
            talk.read_all()
        assert sorted(answer.status_code for answer in answers) == [200, 409]
        status = assert_agree(scenario, talk.thread, card, title)
        assert (status == "succeeded") == (answers[0].status_code == 200)


def test_approval_and_stop_at_once_agree(scenario: ChatScenario) -> None:  # R3
    scenario.interrupted = ROUNDS
    for number in range(ROUNDS):
        title = f"Stop {scenario.name} {number}"
        with scenario.say(f'create an objective "{title}"') as talk:
            card = talk.read_until("approval_request").data["approval"]
            stop = f"/api/threads/{talk.thread}/stop"
            at_once(decision(scenario.bob, card, "approve"), lambda stop=stop: scenario.ada.client.post(stop, json={}))
            talk.read_all()
        assert assert_agree(scenario, talk.thread, card, title) in ("succeeded", "cancelled")


def test_approval_and_a_new_message_at_once_agree(scenario: ChatScenario) -> None:  # R55
    for number in range(ROUNDS):
        title = f"Said {scenario.name} {number}"
        with scenario.say(f'create an objective "{title}"') as talk:
            card = talk.read_until("approval_request").data["approval"]
            body = {"message": "list objectives", "thread_id": talk.thread}
            _, told = at_once(
                decision(scenario.ada, card, "approve"),
                lambda body=body: scenario.bob.client.post("/api/chat", json=body),
            )
            assert told.status_code == 200
        assert assert_agree(scenario, talk.thread, card, title) in ("succeeded", "cancelled")
        assert "okr_list_objectives" in str(scenario.bob.entries(talk.thread, "resulted"))


def test_message_while_the_model_talks_is_heard_and_what_it_wanted_is_withdrawn(scenario: ChatScenario) -> None:  # R55
    scenario.server.models.pause = 0.02
    title = f"Late {scenario.name}"
    with scenario.say(f'create an objective "{title}"') as first:
        first.read_until("delta")
        scenario.server.models.pause = 0.0
        with scenario.say("list objectives", first.thread) as talk:
            talk.read_all()
        scenario.wait_idle(first.thread)
    assert scenario.server.count_titled(title) == 0
    assert "okr_list_objectives" in str(scenario.bob.entries(first.thread, "resulted"))
    assert {body["status"] for body in scenario.bob.entries(first.thread, "ended")} == {"done"}


def test_many_messages_at_once_are_all_heard(scenario: ChatScenario) -> None:  # R55
    scenario.model.reply = scripted_replies(ModelReply("Hello."))
    with scenario.say("hello") as talk:
        talk.read_all()
    bodies = [{"message": f"number {number}", "thread_id": talk.thread} for number in range(5)]
    answers = at_once(*(lambda body=body: scenario.bob.client.post("/api/chat", json=body) for body in bodies))
    assert {answer.status_code for answer in answers} == {200}
    scenario.wait_idle(talk.thread)
    heard = str(scenario.model.prompts[-1].messages)
    assert all(f"number {number}" in heard for number in range(5))
