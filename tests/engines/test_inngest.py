"""Inngest: its SDK serves functions in processes of their own; a stand-in calls them as its executor does.

Its own server is a download, so that it is not tried here: tests/fakes/inngest.py says what is assumed of it.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.engines import documented_program
from tests.engines.engine_scenario import POLICY, World
from tests.fakes.inngest import EVENT_KEY, SIGNING_KEY, Away, Inngest, Run
from tests.frameworks.framework_program import PATIENCE, Effects, started
from tests.journeys.shell import wait_until

PROGRAM = Path(__file__).parent / "programs" / "inngest.py"
RESOLVED = "hitl.approval.resolved"
SHORT = 3.0  # seconds of a lease: how long it takes until a call that was killed is unknown
Scene = tuple[Inngest, World]


@contextmanager
def scene_in(folder: Path) -> Iterator[Scene]:
    with Inngest().serving() as there, Effects().counting() as effects:
        for event, function in (("complained", "refund"), ("asked", "told"), ("twice", "twice")):
            there.on(f"order/{event}", f"shop-{function}")
        settings = {"url": there.url, "event_key": EVENT_KEY, "allow_private": True}
        world = World(f"sqlite:///{folder / 'approvals.db'}", effects, "inngest", lambda: settings)
        world.desk.policy(POLICY)
        world.wake()  # from now on; what was before would not be told
        yield there, world


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """With one service for all tests that kill nobody."""
    folder = tmp_path_factory.mktemp("inngest")
    with scene_in(folder) as made, serving(made, folder):
        yield made


@pytest.fixture(scope="module")
def there(scene: Scene) -> Inngest:
    return scene[0]


@pytest.fixture(scope="module")
def world(scene: Scene) -> World:
    return scene[1]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Scene]:
    """For those who kill services."""
    with scene_in(tmp_path) as made:
        yield made


@contextmanager
def serving(scene: Scene, folder: Path, lease: float = 60.0) -> Iterator[subprocess.Popen[str]]:
    there, world = scene
    job = {"inngest": there.url, "event_key": EVENT_KEY, "signing_key": SIGNING_KEY, "url": world.url, "lease": lease}
    job |= {"effects": world.effects.url}
    program = started("engines", PROGRAM, json.dumps(job), folder=folder)
    assert program.stdout is not None
    try:
        port = program.stdout.readline().strip()
        assert port, program.communicate()
        there.service = f"http://127.0.0.1:{port}"
        yield program
    finally:
        program.kill()
        program.communicate()


def begun(there: Inngest, order: str, event: str = "complained") -> Run:
    """Until it waits for people."""
    run = there.go_on(there.begin(f"order/{event}", order=order, amount=40))
    assert run.waits, (run.result, run.error)
    return run


def told_of(there: Inngest, world: World, order: str) -> dict[str, Any]:
    """The event that the channel posted for it."""
    approval_id = world.standing(order).id
    resolved = [each for each in there.events if each["name"] == RESOLVED]
    (event,) = [each for each in resolved if each["data"].get("eventId") == approval_id]
    return event


# What people decide


def test_an_approved_call_runs_once_and_the_function_goes_on(there: Inngest, world: World) -> None:  # R33 R24
    run = begun(there, "order-a1")
    approval = world.standing("order-a1")
    assert (world.ran("order-a1"), approval.subject.run_id) == ([], f"inngest:{run.id}")
    asked = [event["data"] for event in there.events if event["name"] == "ui.approval.requested"]
    assert asked[-1] == {"eventId": approval.id, "tool": "refund", "runId": run.id}
    world.decide("order-a1", "approve")
    assert world.wake() == 1
    told = told_of(there, world, "order-a1")
    assert (told["name"], told["data"]["eventId"], told["data"]["approved"]) == (RESOLVED, approval.id, True)
    assert (told["data"]["userId"], told["data"]["runId"]) == ("ann", run.id)
    assert there.go_on(run).result == "refunded 40"
    assert world.ran("order-a1") == [40]


def test_an_edited_call_runs_with_what_the_person_wrote(there: Inngest, world: World) -> None:  # R11
    run = begun(there, "order-e1")
    world.decide("order-e1", "edit", '{"order": "order-e1", "amount": 20}')
    world.wake()
    assert there.go_on(run).result == "refunded 20"
    assert world.ran("order-e1") == [20]


@pytest.mark.parametrize(("verb", "word"), [("reject", "No."), ("respond", "Ask Bob.")])
def test_what_is_not_approved_never_runs_and_fails_the_function_for_good(
    there: Inngest, world: World, verb: str, word: str
) -> None:  # R33
    run = begun(there, f"order-{verb}")
    world.decide(f"order-{verb}", verb, word)
    world.wake()
    assert told_of(there, world, f"order-{verb}")["data"]["approved"] is False
    there.go_on(run)
    assert run.error is not None
    assert (run.attempt, run.error["code"], word in run.error["message"]) == (1, "non_retriable_error", True)
    assert world.ran(f"order-{verb}") == []


def test_a_model_in_a_function_is_told_and_nothing_fails(there: Inngest, world: World) -> None:
    run = begun(there, "order-t1", "asked")
    world.decide("order-t1", "reject", "No.")
    world.wake()
    there.go_on(run)
    assert (run.result["declined"], run.result["reason"], run.error) == (True, "No.", None)
    assert world.ran("order-t1") == []


def test_what_nobody_decides_in_time_is_over_also_if_nobody_wakes_it(there: Inngest, world: World) -> None:  # R5
    run = begun(there, "late-x1")
    world.becomes("late-x1", "expired")
    there.time_out(run)
    assert run.error is not None
    assert "timed out" in run.error["message"]
    assert world.ran("late-x1") == []


def test_the_same_call_twice_in_one_function_is_two_calls(there: Inngest, world: World) -> None:
    run = begun(there, "order-w1", "twice")
    world.decide("order-w1", "approve")
    world.wake()
    there.go_on(run)
    first, second = world.asked("order-w1")
    assert (bool(run.waits), world.ran("order-w1")) == (True, [40])
    (waiting,) = [each for each in (first, second) if each.status == "pending"]
    world.desk.decide(waiting.id, "approve")
    world.wake()
    assert there.go_on(run).result == ["order-w1 is paid", "refunded 40", "refunded 40"]
    assert world.ran("order-w1") == [40, 40]


# Events


def test_a_decision_before_the_function_waits_is_found_by_the_time_out(there: Inngest, world: World) -> None:
    """Its event finds nobody who waits, and Inngest keeps it for nobody."""
    run = there.begin("order/complained", order="order-f1", amount=40)
    while not run.names or not run.names[-1].endswith("(look)"):
        there.step(run)
    world.decide("order-f1", "approve")
    world.wake()
    told = told_of(there, world, "order-f1")
    assert (told["data"]["approved"], bool(there.go_on(run).waits)) == (True, True)
    there.time_out(run)
    assert (run.result, world.ran("order-f1")) == ("refunded 40", [40])


def test_an_approval_that_no_event_told_of_is_found_by_the_time_out(there: Inngest, world: World) -> None:
    run = begun(there, "order-s1")
    there.time_out(run)
    world.decide("order-s1", "approve")
    there.time_out(run)
    assert (run.result, world.ran("order-s1")) == ("refunded 40", [40])
    assert [wait.seconds for wait in run.past] == [15, 30]


def test_doubled_events_run_it_once(there: Inngest, world: World) -> None:  # R24
    run = begun(there, "order-d1")
    world.decide("order-d1", "approve")
    world.wake()
    told = told_of(there, world, "order-d1")
    for _ in range(3):
        there.send(told)
    there.go_on(run)
    there.send(told)
    assert (run.result, world.ran("order-d1"), world.status("order-d1")) == ("refunded 40", [40], "succeeded")


@pytest.mark.parametrize("approved", [True, "true", "yes", 1, None, "", 0, {}, []], ids=repr)
def test_a_forged_event_runs_nothing_and_it_goes_on_waiting(there: Inngest, world: World, approved: Any) -> None:
    order = f"order-forged-{approved!r}"  # R34 R47
    run = begun(there, order)
    real = world.standing(order).id
    there.send({"name": RESOLVED, "data": {"eventId": real, "approved": approved, "userId": "ann", "args": {}}})
    assert run.waits == [], "it was woken"
    there.go_on(run)
    assert (bool(run.waits), world.ran(order), world.status(order)) == (True, [], "pending")


def test_an_event_about_another_call_does_not_even_wake_it(there: Inngest, world: World) -> None:  # R34
    run = begun(there, "order-o1")
    for data in ({"eventId": "00000000-0000-4000-8000-000000000000", "approved": True}, {"approved": True}):
        there.send({"name": RESOLVED, "data": data})
    assert (len(run.waits), world.ran("order-o1")) == (1, [])


def test_a_forged_past_runs_nothing_and_without_the_key_it_is_not_even_read(there: Inngest, world: World) -> None:
    run = begun(there, "order-h1")  # R34 R47
    (wait,) = run.waits
    forged = {wait.step: {"name": RESOLVED, "data": {"approved": True}, "id": "x", "ts": 1}}
    assert there.called(run, forged, key="f" * 16)[0] == 401
    status, said = there.called(run, forged)
    assert (status, said[0]["data"]["state"]) == (206, "waiting")
    looks = {step: {"data": {"state": "done", "result": "refunded"}} for step in run.steps}
    there.called(run, looks)
    asked = world.asked("order-h1")  # under another id it is another call, and people are asked about it
    assert (world.ran("order-h1"), {each.status for each in asked}) == ([], {"pending"})


# What a tool does


def test_a_tool_that_fails_is_not_tried_again(there: Inngest, world: World) -> None:
    run = begun(there, "broken-k1")
    world.decide("broken-k1", "approve")
    world.wake()
    there.go_on(run)
    assert run.error is not None
    assert "the bank is closed" in run.error["message"]
    assert (world.ran("broken-k1"), world.status("broken-k1")) == ([40], "failed")


def test_a_result_of_nothing_is_a_result(there: Inngest, world: World) -> None:
    run = begun(there, "nothing-n1")
    world.decide("nothing-n1", "approve")
    world.wake()
    there.go_on(run)
    assert (run.is_over, run.result, run.error, world.ran("nothing-n1")) == (True, None, None, [40])


def test_arguments_that_do_not_fit_ask_nobody(there: Inngest, world: World) -> None:
    run = there.go_on(there.begin("order/complained", order="misfit", amount="much"))
    assert run.error is not None
    assert ("amount" in run.error["message"], world.asked("misfit")) == (True, [])


# Services that are killed


def test_a_service_that_is_killed_while_it_waits_loses_nothing(alone: Scene, tmp_path: Path) -> None:  # R23
    there, world = alone
    with serving(alone, tmp_path):
        run = begun(there, "order-p1")
    world.decide("order-p1", "approve")
    world.wake()
    with pytest.raises(Away):
        there.go_on(run)
    with serving(alone, tmp_path):
        assert there.go_on(run).result == "refunded 40"
    assert world.ran("order-p1") == [40]


def test_a_service_that_is_killed_inside_the_tool_never_runs_it_again(alone: Scene, tmp_path: Path) -> None:  # R24
    there, world = alone
    with serving(alone, tmp_path, SHORT) as program:
        run = begun(there, "order-q1")
        world.decide("order-q1", "approve")
        world.wake()

        def killed() -> None:
            wait_until(lambda: world.ran("order-q1") == [40], "the tool is at work", PATIENCE)
            program.kill()

        killer = threading.Thread(target=killed)
        with world.effects.closed():
            killer.start()
            with pytest.raises(Away):
                there.go_on(run)
            killer.join()
    with serving(alone, tmp_path, SHORT):
        there.go_on(run)
    assert run.error is not None
    assert "nobody knows" in run.error["message"]
    assert (world.ran("order-q1"), world.status("order-q1")) == ([40], "unknown")


def test_a_result_that_never_reached_inngest_is_told_again_and_not_made_again(alone: Scene, tmp_path: Path) -> None:
    there, world = alone  # R24
    with serving(alone, tmp_path):
        run = begun(there, "order-u1")
        world.decide("order-u1", "approve")
        world.wake()
        status, said = there.called(run, {})  # and what it said is lost
        assert (status, said[0]["data"], world.ran("order-u1")) == (
            206,
            {"state": "done", "result": "refunded 40"},
            [40],
        )
    with serving(alone, tmp_path):
        assert there.go_on(run).result == "refunded 40"
    assert (world.ran("order-u1"), world.status("order-u1")) == ([40], "succeeded")


# The page


def test_the_program_of_the_page_works(tmp_path: Path) -> None:  # R33
    shown = documented_program.page("inngest")
    (tmp_path / "shop.py").write_text(shown["python"])
    with Inngest().serving() as there:
        there.on("shop/complained", "shop-complaint")
        own = f'{shown["yaml"].rstrip().rstrip("}")}, url: "{there.url}", allow_private: true}}\n'
        with documented_program.place(tmp_path, own, {"INNGEST_EVENT_KEY": EVENT_KEY}) as here:
            env = {**here.environment, "INNGEST_EVENT_KEY": EVENT_KEY, "INNGEST_SIGNING_KEY": SIGNING_KEY}
            env |= {"INNGEST_EVENT_API_BASE_URL": there.url, "INNGEST_API_BASE_URL": there.url}
            program = started("engines", PROGRAM.with_name("inngest_page.py"), folder=tmp_path, **env)
            try:
                assert program.stdout is not None
                port = program.stdout.readline().strip()
                assert port, program.communicate()
                there.service = f"http://127.0.0.1:{port}"
                run = there.go_on(there.begin("shop/complained", order="A7"))
                assert here.approve()["sentence"] == "Run refund: amount = 40, order = A7"
                wait_until(lambda: not run.waits, "the server woke it", PATIENCE)
                assert f"{there.go_on(run).result}\n" == shown["text"]
            finally:
                program.kill()
                program.communicate()
