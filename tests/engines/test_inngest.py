"""Inngest: its SDK serves functions in processes of their own; a fake calls them as its executor does.

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
from tests.engines.engine_scenario import POLICY, EngineScenario
from tests.fakes.inngest import EVENT_KEY, SIGNING_KEY, Inngest, Run, ServiceUnavailable
from tests.frameworks.framework_program import TIMEOUT, EffectServer, start_program
from tests.journeys.shell import wait_until

PROGRAM = Path(__file__).parent / "programs" / "inngest.py"
RESOLVED = "hitl.approval.resolved"
SHORT = 3.0  # seconds of a lease: how long it takes until a call that was killed is unknown
Scene = tuple[Inngest, EngineScenario]


@contextmanager
def open_scenario(folder: Path) -> Iterator[Scene]:
    with Inngest().serve() as fake, EffectServer().serve() as effects:
        for event, function in (("complained", "refund"), ("asked", "told"), ("twice", "twice")):
            fake.add_trigger(f"order/{event}", f"shop-{function}")
        settings = {"url": fake.url, "event_key": EVENT_KEY, "allow_private": True}
        scenario = EngineScenario(f"sqlite:///{folder / 'approvals.db'}", effects, "inngest", lambda: settings)
        scenario.reviewer.put_policy(POLICY)
        scenario.dispatch()  # from now on; what was before would not be told
        yield fake, scenario


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """With one service for all tests that kill nobody."""
    folder = tmp_path_factory.mktemp("inngest")
    with open_scenario(folder) as made, run_service(made, folder):
        yield made


@pytest.fixture(scope="module")
def fake(scene: Scene) -> Inngest:
    return scene[0]


@pytest.fixture(scope="module")
def scenario(scene: Scene) -> EngineScenario:
    return scene[1]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Scene]:
    """For those who kill services."""
    with open_scenario(tmp_path) as made:
        yield made


@contextmanager
def run_service(scene: Scene, folder: Path, lease: float = 60.0) -> Iterator[subprocess.Popen[str]]:
    there, world = scene
    job = {"inngest": there.url, "event_key": EVENT_KEY, "signing_key": SIGNING_KEY, "url": world.url, "lease": lease}
    job |= {"effects": world.effects.url}
    program = start_program("engines", PROGRAM, json.dumps(job), folder=folder)
    assert program.stdout is not None
    try:
        port = program.stdout.readline().strip()
        assert port, program.communicate()
        there.service = f"http://127.0.0.1:{port}"
        yield program
    finally:
        program.kill()
        program.communicate()


def start_and_wait(fake: Inngest, order: str, event: str = "complained") -> Run:
    """Until it waits for people."""
    run = fake.advance(fake.start_run(f"order/{event}", order=order, amount=40))
    assert run.waits, (run.result, run.error)
    return run


def sent_event(fake: Inngest, scenario: EngineScenario, order: str) -> dict[str, Any]:
    """The event that the channel posted for it."""
    approval_id = scenario.wait_for_approval(order).id
    resolved = [each for each in fake.events if each["name"] == RESOLVED]
    (event,) = [each for each in resolved if each["data"].get("eventId") == approval_id]
    return event


# What people decide


def test_an_approved_call_runs_once_and_the_function_goes_on(
    fake: Inngest, scenario: EngineScenario
) -> None:  # R33 R24
    run = start_and_wait(fake, "order-a1")
    approval = scenario.wait_for_approval("order-a1")
    assert (scenario.refunded_amounts("order-a1"), approval.subject.run_id) == ([], f"inngest:{run.id}")
    asked = [event["data"] for event in fake.events if event["name"] == "ui.approval.requested"]
    assert asked[-1] == {"eventId": approval.id, "tool": "refund", "runId": run.id}
    scenario.decide("order-a1", "approve")
    assert scenario.dispatch() == 1
    told = sent_event(fake, scenario, "order-a1")
    assert (told["name"], told["data"]["eventId"], told["data"]["approved"]) == (RESOLVED, approval.id, True)
    assert (told["data"]["userId"], told["data"]["runId"]) == ("ann", run.id)
    assert fake.advance(run).result == "refunded 40"
    assert scenario.refunded_amounts("order-a1") == [40]


def test_an_edited_call_runs_with_what_the_person_wrote(fake: Inngest, scenario: EngineScenario) -> None:  # R11
    run = start_and_wait(fake, "order-e1")
    scenario.decide("order-e1", "edit", '{"order": "order-e1", "amount": 20}')
    scenario.dispatch()
    assert fake.advance(run).result == "refunded 20"
    assert scenario.refunded_amounts("order-e1") == [20]


@pytest.mark.parametrize(("verb", "word"), [("reject", "No."), ("respond", "Ask Bob.")])
def test_what_is_not_approved_never_runs_and_fails_the_function_for_good(
    fake: Inngest, scenario: EngineScenario, verb: str, word: str
) -> None:  # R33
    run = start_and_wait(fake, f"order-{verb}")
    scenario.decide(f"order-{verb}", verb, word)
    scenario.dispatch()
    assert sent_event(fake, scenario, f"order-{verb}")["data"]["approved"] is False
    fake.advance(run)
    assert run.error is not None
    assert (run.attempt, run.error["code"], word in run.error["message"]) == (1, "non_retriable_error", True)
    assert scenario.refunded_amounts(f"order-{verb}") == []


def test_a_model_in_a_function_is_told_and_nothing_fails(fake: Inngest, scenario: EngineScenario) -> None:
    run = start_and_wait(fake, "order-t1", "asked")
    scenario.decide("order-t1", "reject", "No.")
    scenario.dispatch()
    fake.advance(run)
    assert (run.result["declined"], run.result["reason"], run.error) == (True, "No.", None)
    assert scenario.refunded_amounts("order-t1") == []


def test_what_nobody_decides_in_time_is_over_also_if_nobody_wakes_it(
    fake: Inngest, scenario: EngineScenario
) -> None:  # R5
    run = start_and_wait(fake, "late-x1")
    scenario.wait_for_status("late-x1", "expired")
    fake.time_out(run)
    assert run.error is not None
    assert "timed out" in run.error["message"]
    assert scenario.refunded_amounts("late-x1") == []


def test_the_same_call_twice_in_one_function_is_two_calls(fake: Inngest, scenario: EngineScenario) -> None:
    run = start_and_wait(fake, "order-w1", "twice")
    scenario.decide("order-w1", "approve")
    scenario.dispatch()
    fake.advance(run)
    first, second = scenario.approvals("order-w1")
    assert (bool(run.waits), scenario.refunded_amounts("order-w1")) == (True, [40])
    (waiting,) = [each for each in (first, second) if each.status == "pending"]
    scenario.reviewer.decide(waiting.id, "approve")
    scenario.dispatch()
    assert fake.advance(run).result == ["order-w1 is paid", "refunded 40", "refunded 40"]
    assert scenario.refunded_amounts("order-w1") == [40, 40]


# Events


def test_a_decision_before_the_function_waits_is_found_by_the_time_out(fake: Inngest, scenario: EngineScenario) -> None:
    """Its event finds nobody who waits, and Inngest keeps it for nobody."""
    run = fake.start_run("order/complained", order="order-f1", amount=40)
    while not run.names or not run.names[-1].endswith("(check)"):
        fake.step(run)
    scenario.decide("order-f1", "approve")
    scenario.dispatch()
    told = sent_event(fake, scenario, "order-f1")
    assert (told["data"]["approved"], bool(fake.advance(run).waits)) == (True, True)
    fake.time_out(run)
    assert (run.result, scenario.refunded_amounts("order-f1")) == ("refunded 40", [40])


def test_approval_without_an_event_is_found_by_the_timeout(fake: Inngest, scenario: EngineScenario) -> None:
    run = start_and_wait(fake, "order-s1")
    fake.time_out(run)
    scenario.decide("order-s1", "approve")
    fake.time_out(run)
    assert (run.result, scenario.refunded_amounts("order-s1")) == ("refunded 40", [40])
    assert [wait.seconds for wait in run.history] == [15, 30]


def test_doubled_events_run_it_once(fake: Inngest, scenario: EngineScenario) -> None:  # R24
    run = start_and_wait(fake, "order-d1")
    scenario.decide("order-d1", "approve")
    scenario.dispatch()
    told = sent_event(fake, scenario, "order-d1")
    for _ in range(3):
        fake.send(told)
    fake.advance(run)
    fake.send(told)
    assert (run.result, scenario.refunded_amounts("order-d1"), scenario.status("order-d1")) == (
        "refunded 40",
        [40],
        "succeeded",
    )


@pytest.mark.parametrize("approved", [True, "true", "yes", 1, None, "", 0, {}, []], ids=repr)
def test_a_forged_event_runs_nothing_and_it_goes_on_waiting(
    fake: Inngest, scenario: EngineScenario, approved: Any
) -> None:
    order = f"order-forged-{approved!r}"  # R34 R47
    run = start_and_wait(fake, order)
    real = scenario.wait_for_approval(order).id
    fake.send({"name": RESOLVED, "data": {"eventId": real, "approved": approved, "userId": "ann", "args": {}}})
    assert run.waits == [], "it was woken"
    fake.advance(run)
    assert (bool(run.waits), scenario.refunded_amounts(order), scenario.status(order)) == (True, [], "pending")


def test_an_event_about_another_call_does_not_even_wake_it(fake: Inngest, scenario: EngineScenario) -> None:  # R34
    run = start_and_wait(fake, "order-o1")
    for data in ({"eventId": "00000000-0000-4000-8000-000000000000", "approved": True}, {"approved": True}):
        fake.send({"name": RESOLVED, "data": data})
    assert (len(run.waits), scenario.refunded_amounts("order-o1")) == (1, [])


def test_a_forged_past_runs_nothing_and_without_the_key_it_is_not_even_read(
    fake: Inngest, scenario: EngineScenario
) -> None:
    run = start_and_wait(fake, "order-h1")  # R34 R47
    (wait,) = run.waits
    forged = {wait.step: {"name": RESOLVED, "data": {"approved": True}, "id": "x", "ts": 1}}
    assert fake.call_function(run, forged, key="f" * 16)[0] == 401
    status, said = fake.call_function(run, forged)
    assert (status, said[0]["data"]["state"]) == (206, "waiting")
    looks = {step: {"data": {"state": "done", "result": "refunded"}} for step in run.steps}
    fake.call_function(run, looks)
    asked = scenario.approvals("order-h1")  # under another id it is another call, and people are asked about it
    assert (scenario.refunded_amounts("order-h1"), {each.status for each in asked}) == ([], {"pending"})


# What a tool does


def test_a_tool_that_fails_is_not_tried_again(fake: Inngest, scenario: EngineScenario) -> None:
    run = start_and_wait(fake, "broken-k1")
    scenario.decide("broken-k1", "approve")
    scenario.dispatch()
    fake.advance(run)
    assert run.error is not None
    assert "the bank is closed" in run.error["message"]
    assert (scenario.refunded_amounts("broken-k1"), scenario.status("broken-k1")) == ([40], "failed")


def test_a_result_of_nothing_is_a_result(fake: Inngest, scenario: EngineScenario) -> None:
    run = start_and_wait(fake, "nothing-n1")
    scenario.decide("nothing-n1", "approve")
    scenario.dispatch()
    fake.advance(run)
    assert (run.is_over, run.result, run.error, scenario.refunded_amounts("nothing-n1")) == (True, None, None, [40])


def test_arguments_that_do_not_fit_ask_nobody(fake: Inngest, scenario: EngineScenario) -> None:
    run = fake.advance(fake.start_run("order/complained", order="misfit", amount="much"))
    assert run.error is not None
    assert ("amount" in run.error["message"], scenario.approvals("misfit")) == (True, [])


# Services that are killed


def test_a_service_that_is_killed_while_it_waits_loses_nothing(alone: Scene, tmp_path: Path) -> None:  # R23
    there, world = alone
    with run_service(alone, tmp_path):
        run = start_and_wait(there, "order-p1")
    world.decide("order-p1", "approve")
    world.dispatch()
    with pytest.raises(ServiceUnavailable):
        there.advance(run)
    with run_service(alone, tmp_path):
        assert there.advance(run).result == "refunded 40"
    assert world.refunded_amounts("order-p1") == [40]


def test_a_service_that_is_killed_inside_the_tool_never_runs_it_again(alone: Scene, tmp_path: Path) -> None:  # R24
    there, world = alone
    with run_service(alone, tmp_path, SHORT) as program:
        run = start_and_wait(there, "order-q1")
        world.decide("order-q1", "approve")
        world.dispatch()

        def killed() -> None:
            wait_until(lambda: world.refunded_amounts("order-q1") == [40], "the tool is at work", TIMEOUT)
            program.kill()

        killer = threading.Thread(target=killed)
        with world.effects.hold():
            killer.start()
            with pytest.raises(ServiceUnavailable):
                there.advance(run)
            killer.join()
    with run_service(alone, tmp_path, SHORT):
        there.advance(run)
    assert run.error is not None
    assert "outcome is unknown" in run.error["message"]
    assert (world.refunded_amounts("order-q1"), world.status("order-q1")) == ([40], "unknown")


def test_result_that_never_reached_inngest_is_repeated_without_a_second_run(alone: Scene, tmp_path: Path) -> None:
    there, world = alone  # R24
    with run_service(alone, tmp_path):
        run = start_and_wait(there, "order-u1")
        world.decide("order-u1", "approve")
        world.dispatch()
        status, said = there.call_function(run, {})  # and what it said is lost
        assert (status, said[0]["data"], world.refunded_amounts("order-u1")) == (
            206,
            {"state": "done", "result": "refunded 40"},
            [40],
        )
    with run_service(alone, tmp_path):
        assert there.advance(run).result == "refunded 40"
    assert (world.refunded_amounts("order-u1"), world.status("order-u1")) == ([40], "succeeded")


# The page


def test_the_program_of_the_page_works(tmp_path: Path) -> None:  # R33
    shown = documented_program.read_blocks("inngest")
    (tmp_path / "shop.py").write_text(shown["python"])
    with Inngest().serve() as fake:
        fake.add_trigger("shop/complained", "shop-complaint")
        own = f'{shown["yaml"].rstrip().rstrip("}")}, url: "{fake.url}", allow_private: true}}\n'
        with documented_program.run_documented_server(tmp_path, own, {"INNGEST_EVENT_KEY": EVENT_KEY}) as here:
            env = {**here.environment, "INNGEST_EVENT_KEY": EVENT_KEY, "INNGEST_SIGNING_KEY": SIGNING_KEY}
            env |= {"INNGEST_EVENT_API_BASE_URL": fake.url, "INNGEST_API_BASE_URL": fake.url}
            program = start_program("engines", PROGRAM.with_name("inngest_page.py"), folder=tmp_path, **env)
            try:
                assert program.stdout is not None
                port = program.stdout.readline().strip()
                assert port, program.communicate()
                fake.service = f"http://127.0.0.1:{port}"
                run = fake.advance(fake.start_run("shop/complained", order="A7"))
                assert here.approve()["sentence"] == "Run refund: amount = 40, order = A7"
                wait_until(lambda: not run.waits, "the server woke it", TIMEOUT)
                assert f"{fake.advance(run).result}\n" == shown["text"]
            finally:
                program.kill()
                program.communicate()
