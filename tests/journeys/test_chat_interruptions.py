"""What comes between: people who stop, leave, change their mind or ask back; models that fail; servers that restart."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlock.core.chat.transcript import ModelReply, Prompt
from tests.databases import Place
from tests.fakes.model_server import Fault, Models
from tests.interlock_server import INTERLOCK, serving
from tests.journeys.chat_client import Event, Mind, World, calls, last_said, plays, squeezed
from tests.journeys.chat_server import ground_on
from tests.journeys.shell import PATIENCE, end_group, wait_until


@pytest.mark.smoke
def test_stop_withdraws_the_cards_and_nothing_runs(world: World) -> None:  # R3
    with world.say(f'create issues titled "A {world.name}" and "B {world.name}"') as talk:
        cards = [talk.until("approval_request").data["approval"] for _ in range(2)]
        world.bob.stop(talk.thread)
        talk.rest()
    assert talk.seen[-1].data["stopped"] is True
    assert {world.bob.approval(card["id"])["status"] for card in cards} == {"cancelled"}
    body = {"kind": "approve", "args_sha256": cards[0]["args_sha256"]}
    assert world.bob.client.post(f"/api/approvals/{cards[0]['id']}/decision", json=body).status_code == 409
    assert [result["status"] for result in talk.results] == ["cancelled", "cancelled"]
    assert (world.titled("A"), world.titled("B")) == (0, 0)
    assert len(world.mind.prompts) == 1  # the model is not asked again
    with world.say("list objectives", talk.thread) as more:
        assert more.rest()[-1].name == "done"


def test_stop_while_the_model_talks_closes_its_connection(world: World) -> None:
    world.mind.think = plays(ModelReply("word " * 2_000))
    world.ground.models.pause = 0.01
    with world.say("talk") as talk:
        talk.until("delta")
        world.bob.stop(talk.thread)
        talk.rest()
    [turn] = world.ground.models.turns[world.begun :]
    wait_until(lambda: turn.left, "the stand-in sees that nobody listens")
    assert not turn.whole
    assert talk.seen[-1].data["stopped"] is True
    assert world.bob.lines(talk.thread, "replied") == []
    world.unrecorded = 1


@pytest.mark.smoke
def test_new_message_withdraws_the_open_card_and_the_model_goes_on_with_it(world: World) -> None:  # R55
    with world.say(f'create an issue titled "Old {world.name}"') as first:
        old = first.until("approval_request").data["approval"]
        with world.say(f'create an issue titled "New {world.name}"', first.thread) as talk:
            new = talk.until("approval_request").data["approval"]
            assert (new["args"]["title"], new["status"]) == (f"New {world.name}", "pending")
            world.bob.decide(new, "approve")
            talk.rest()
    cancelled = world.bob.approval(old["id"])
    assert (cancelled["status"], cancelled["decision"]["by"]) == ("cancelled", "bob")
    assert "new message" in cancelled["decision"]["reason"]
    assert (world.titled("Old"), world.titled("New")) == (0, 1)
    assert [result["status"] for result in world.bob.lines(first.thread, "resulted")] == ["cancelled", "succeeded"]


def test_reviewer_asks_the_agent_and_the_call_still_waits(world: World) -> None:  # R55
    def think(prompt: Prompt) -> ModelReply:
        if "asks: Why now?" in last_said(prompt):
            assert prompt.tools == ()
            return ModelReply("Because the login has been broken since noon.")
        if any(isinstance(message, ModelReply) for message in prompt.messages):
            return ModelReply("Done.")
        return calls(("linear_create_issue", {"title": f"Why {world.name}"}))

    world.mind.think = think
    with world.say("file it") as talk:
        card = talk.until("approval_request").data["approval"]
        world.ada.post(f"/api/approvals/{card['id']}/ask", {"question": "Why now?"})
        wait_until(lambda: "broken since noon" in str(world.ada.approval(card["id"])["timeline"]), "the agent answered")
        assert world.ada.approval(card["id"])["status"] == "pending"
        assert world.titled("Why") == 0
        world.ada.decide(card, "approve")
        talk.rest()
    assert world.titled("Why") == 1
    assert "broken since noon" not in talk.text  # it was said to the reviewer
    world.unrecorded = 1


def test_card_is_decided_while_the_browser_is_away_and_no_event_is_lost(world: World) -> None:  # R3 R36
    with world.say(f'create an issue titled "Away {world.name}"') as talk:
        card = talk.until("approval_request").data["approval"]
        before, at = list(talk.seen), talk.last_id
    world.ada.decide(card, "approve")
    world.wait_for_rest(talk.thread)
    assert world.titled("Away") == 1
    assert world.bob.approval(card["id"])["decision"]["by"] == "ada"
    with world.bob.follow(talk.thread, at) as back:
        back.until("done")
    with world.bob.follow(talk.thread) as whole:
        whole.until("done")
    assert squeezed(back.seen) == ["approval_resolved", "tool_call_result", "delta", "done"]
    assert [event.id for event in before if event.name != "delta"] + ids(back.seen) == ids(whole.seen)
    assert "".join(event.data["content"] for event in [*before, *back.seen] if event.name == "delta") == whole.text


def test_model_that_fails_twice_is_asked_again(world: World) -> None:  # R3
    world.ground.models.faults.extend([Fault("500"), Fault("cut")])
    with world.say("list objectives") as talk:
        talk.rest()
    assert talk.seen[-1].name == "done"
    assert len(world.bob.lines(talk.thread, "failed")) == 2
    assert [turn.fault for turn in world.ground.models.turns[world.begun :]] == ["500", "cut", "", ""]
    kept = "".join(body["text"] for body in world.bob.lines(talk.thread, "replied"))
    assert said(talk.seen) == kept  # half a sentence that was cut off is taken back


def test_model_that_fails_for_good_is_an_error_that_can_be_retried(world: World) -> None:  # R3
    world.ground.models.faults.append(Fault("401"))
    with world.say(f'create an objective "Free {world.name}"') as talk:
        talk.rest()
    assert talk.seen[-1].name == "error"
    assert talk.seen[-1].data["error"]
    world.unrecorded = 1
    world.bob.post(f"/api/threads/{talk.thread}/retry", {})
    with world.bob.follow(talk.thread, talk.last_id) as more:
        more.until("done")
    assert world.titled("Free") == 1


@pytest.mark.parametrize("fault", ["same_ids", "no_ids"])
def test_calls_that_a_provider_does_not_tell_apart_are_decided_apart(world: World, fault: str) -> None:  # R6
    world.ground.models.faults.append(Fault(fault))
    with world.say(f'create issues titled "A {world.name}" and "B {world.name}"') as talk:
        cards = [talk.until("approval_request").data["approval"] for _ in range(2)]
        first, second = sorted(cards, key=lambda card: card["args"]["title"])
        world.bob.decide(second, "approve")
        world.bob.decide(first, "reject", reason="Not the first.")
        talk.rest()
    assert (world.titled("A"), world.titled("B")) == (0, 1)
    assert world.mind.told[0]["status"] == "rejected"


@pytest.mark.parametrize("kind", ["stop", "kill"])
def test_server_that_restarts_in_the_middle_of_a_wait_goes_on(
    place: Place, tmp_path: Path, stand_in: Models, kind: str
) -> None:  # R3
    stand_in.brain = Mind()
    with ground_on(place, tmp_path, stand_in) as ground:
        with ground.bob.say('create an issue titled "Kept"', "openai") as talk:
            card = talk.until("approval_request").data["approval"]
            at = talk.last_id
            getattr(ground.served, kind)()
        with serving(place.url, tmp_path, "--demo") as again, again.client(ground.keys["reviewer"]) as client:
            ground.bob.client = client
            ground.bob.decide(card, "approve")
            with ground.bob.follow(talk.thread, at) as back:
                back.until("done")
            assert squeezed(back.seen) == ["approval_resolved", "tool_call_result", "delta", "done"]
            assert ground.titled("Kept") == 1
            assert len(ground.bob.lines(talk.thread, "replied")) == 2
        ground.assert_valid_ledger()
    assert stand_in.violations == []


def test_worker_beside_a_server_without_one_advances_threads(
    place: Place, tmp_path: Path, stand_in: Models
) -> None:  # R3
    stand_in.brain = Mind()
    with ground_on(place, tmp_path, stand_in, "--no-worker") as ground:
        with ground.bob.say('create an objective "Beside"', "anthropic") as talk:
            with working(place.url, tmp_path):
                card = talk.until("approval_request").data["approval"]
            ground.bob.decide(card, "approve")  # while nobody works
            assert ground.titled("Beside") == 0
            with working(place.url, tmp_path):
                talk.rest()
        assert ground.titled("Beside") == 1
        assert talk.text == "".join(body["text"] for body in ground.bob.lines(talk.thread, "replied"))
        ground.assert_valid_ledger()
    assert stand_in.violations == []


@contextmanager
def working(database: str, folder: Path) -> Iterator[None]:
    command = [*INTERLOCK, "worker", "--database", database]
    with (folder / "worker.log").open("a") as log:
        worker = subprocess.Popen(command, cwd=folder, stderr=log, process_group=0)
    try:
        yield
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 0
    finally:
        end_group(worker)


def ids(events: list[Event]) -> list[str]:
    return [event.id for event in events if event.name != "delta"]


def said(events: list[Event]) -> str:
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
