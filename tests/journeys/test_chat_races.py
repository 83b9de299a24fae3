"""People who act at the same moment: whatever wins, the record, the effect and what the model hears agree."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from interlock.core.chat.transcript import ModelReply
from tests.journeys.chat_client import Json, Person, World, plays

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


def decision(person: Person, card: Json, kind: str, **more: object) -> Callable[[], httpx2.Response]:
    body = {"kind": kind, "args_sha256": card["args_sha256"], **more}
    return lambda: person.client.post(f"/api/approvals/{card['id']}/decision", json=body)


def assert_agree(world: World, thread: str, card: Json, title: str) -> str:
    """The approval, the one result and the effect say the same; gives the status."""
    world.wait_for_rest(thread)
    status = str(world.bob.approval(card["id"])["status"])
    [result] = [body for body in world.bob.lines(thread, "resulted") if body.get("approval") == card["id"]]
    assert result["status"] == status
    assert world.ground.titled(title) == (status == "succeeded")
    return status


def test_of_two_people_who_decide_one_counts(world: World) -> None:  # R3
    for number in range(ROUNDS):
        title = f"Two {world.name} {number}"
        with world.say(f'create an objective "{title}"') as talk:
            card = talk.until("approval_request").data["approval"]
            answers = at_once(decision(world.bob, card, "approve"), decision(world.ada, card, "reject"))
            talk.rest()
        assert sorted(answer.status_code for answer in answers) == [200, 409]
        status = assert_agree(world, talk.thread, card, title)
        assert (status == "succeeded") == (answers[0].status_code == 200)


def test_approval_and_stop_at_once_agree(world: World) -> None:  # R3
    world.cut_off = ROUNDS
    for number in range(ROUNDS):
        title = f"Stop {world.name} {number}"
        with world.say(f'create an objective "{title}"') as talk:
            card = talk.until("approval_request").data["approval"]
            stop = f"/api/threads/{talk.thread}/stop"
            at_once(decision(world.bob, card, "approve"), lambda stop=stop: world.ada.client.post(stop, json={}))
            talk.rest()
        assert assert_agree(world, talk.thread, card, title) in ("succeeded", "cancelled")


def test_approval_and_a_new_message_at_once_agree(world: World) -> None:  # R55
    for number in range(ROUNDS):
        title = f"Said {world.name} {number}"
        with world.say(f'create an objective "{title}"') as talk:
            card = talk.until("approval_request").data["approval"]
            body = {"message": "list objectives", "thread_id": talk.thread}
            _, told = at_once(
                decision(world.ada, card, "approve"), lambda body=body: world.bob.client.post("/api/chat", json=body)
            )
            assert told.status_code == 200
        assert assert_agree(world, talk.thread, card, title) in ("succeeded", "cancelled")
        assert "okr_list_objectives" in str(world.bob.lines(talk.thread, "resulted"))


def test_message_while_the_model_talks_is_heard_and_what_it_wanted_is_withdrawn(world: World) -> None:  # R55
    world.ground.models.pause = 0.02
    title = f"Late {world.name}"
    with world.say(f'create an objective "{title}"') as first:
        first.until("delta")
        world.ground.models.pause = 0.0
        with world.say("list objectives", first.thread) as talk:
            talk.rest()
        world.wait_for_rest(first.thread)
    assert world.ground.titled(title) == 0
    assert "okr_list_objectives" in str(world.bob.lines(first.thread, "resulted"))
    assert {body["status"] for body in world.bob.lines(first.thread, "ended")} == {"done"}


def test_many_messages_at_once_are_all_heard(world: World) -> None:  # R55
    world.mind.think = plays(ModelReply("Hello."))
    with world.say("hello") as talk:
        talk.rest()
    bodies = [{"message": f"number {number}", "thread_id": talk.thread} for number in range(5)]
    answers = at_once(*(lambda body=body: world.bob.client.post("/api/chat", json=body) for body in bodies))
    assert {answer.status_code for answer in answers} == {200}
    world.wait_for_rest(talk.thread)
    heard = str(world.mind.prompts[-1].messages)
    assert all(f"number {number}" in heard for number in range(5))
