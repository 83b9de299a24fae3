"""Temporal: real workers in processes of their own, against a fake of its service that keeps real histories.

Its own server is a download, so that it is not tried here: tests/fakes/temporal.py says what is assumed of it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from tests.engines import documented_program
from tests.engines.engine_scenario import POLICY, EngineScenario
from tests.engines.programs.temporal import WORKFLOWS
from tests.fakes.temporal import Temporal, temporal
from tests.frameworks.framework_program import TIMEOUT, EffectServer, start_program, wait_finished
from tests.journeys.shell import wait_until

PROGRAM = Path(__file__).parent / "programs" / "temporal.py"
HISTORIES = Path(__file__).parent / "histories"
WOKEN = "interlock_woken"
SHORT = 3.0  # seconds of a lease: how long it takes until a call that was killed is unknown


Scene = tuple[Temporal, EngineScenario]


@contextmanager
def open_scenario(folder: Path) -> Iterator[Scene]:
    with temporal() as there, EffectServer().serve() as effects:
        url = f"sqlite:///{folder / 'approvals.db'}"
        scenario = EngineScenario(url, effects, "temporal", lambda: {"target": there.target})
        scenario.reviewer.put_policy(POLICY)
        scenario.dispatch()  # from now on; what was before would not be told
        yield there, scenario


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with open_scenario(tmp_path_factory.mktemp("temporal")) as made:
        yield made


@pytest.fixture(scope="module")
def fake(scene: Scene) -> Temporal:
    return scene[0]


@pytest.fixture(scope="module")
def scenario(scene: Scene) -> EngineScenario:
    return scene[1]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Scene]:
    """For those who kill workers."""
    with open_scenario(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def worker(fake: Temporal, scenario: EngineScenario, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One for all tests that kill nobody."""
    with run_worker(fake, scenario, tmp_path_factory.mktemp("worker")):
        yield


@contextmanager
def run_worker(
    fake: Temporal, scenario: EngineScenario, folder: Path, lease: float = 60.0
) -> Iterator[subprocess.Popen[str]]:
    job = {"target": fake.target, "url": scenario.url, "effects": scenario.effects.url, "lease": lease}
    program = start_program("engines", PROGRAM, json.dumps(job), folder=folder)
    try:
        fake.wait_until(lambda: fake.polls > 0 or program.poll() is not None, "a worker asks for work")
        assert program.poll() is None, program.communicate()
        yield program
    finally:
        kill(fake, program)


def kill(fake: Temporal, program: subprocess.Popen[str]) -> None:
    """-9, and until the fake knows that nobody asks any more."""
    program.kill()
    program.communicate()
    fake.wait_until(lambda: fake.polls == 0, "nobody asks for work")


def failure_of_run(ended: Any) -> tuple[str, bool]:
    info = ended.application_failure_info
    return info.type, info.non_retryable


# What people decide


@pytest.mark.usefixtures("worker")
def test_an_approved_call_runs_once_and_the_workflow_goes_on(
    fake: Temporal, scenario: EngineScenario
) -> None:  # R33 R24
    run = fake.start("a1", "Refund", "order-a1", 40)
    fake.wait_parked("a1")
    assert scenario.refunded_amounts("order-a1") == []
    scenario.decide("order-a1", "approve")
    assert scenario.dispatch() >= 1
    assert fake.wait_ended("a1") == "refunded 40"
    assert scenario.refunded_amounts("order-a1") == [40]
    assert "TIMER_FIRED" not in run.kinds, "it was woken"
    assert scenario.wait_for_approval("order-a1").subject.run_id == "temporal:a1"


@pytest.mark.usefixtures("worker")
def test_an_edited_call_runs_with_what_the_person_wrote(fake: Temporal, scenario: EngineScenario) -> None:  # R11
    fake.start("e1", "Refund", "order-e1", 40)
    fake.wait_parked("e1")
    scenario.decide("order-e1", "edit", '{"order": "order-e1", "amount": 20}')
    scenario.dispatch()
    assert fake.wait_ended("e1") == "refunded 20"
    assert scenario.refunded_amounts("order-e1") == [20]


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(("verb", "word", "why"), [("reject", "No.", "refused"), ("respond", "Ask Bob.", "answered")])
def test_what_is_not_approved_never_runs_and_fails_the_workflow_for_good(
    fake: Temporal, scenario: EngineScenario, verb: str, word: str, why: str
) -> None:  # R33
    fake.start(f"no-{verb}", "Refund", f"order-{verb}", 40)
    fake.wait_parked(f"no-{verb}")
    scenario.decide(f"order-{verb}", verb, word)
    scenario.dispatch()
    ended = fake.wait_ended(f"no-{verb}")
    assert (failure_of_run(ended), word in ended.message) == ((why, True), True)
    assert scenario.refunded_amounts(f"order-{verb}") == []


@pytest.mark.usefixtures("worker")
def test_a_model_in_a_workflow_is_told_and_nothing_fails(fake: Temporal, scenario: EngineScenario) -> None:
    fake.start("t1", "RefundForModel", "order-t1")
    fake.wait_parked("t1")
    scenario.decide("order-t1", "respond", "Ask Bob.")
    scenario.dispatch()
    assert fake.wait_ended("t1") == "Ask Bob."
    assert scenario.refunded_amounts("order-t1") == []


@pytest.mark.usefixtures("worker")
def test_what_nobody_decides_in_time_is_over_also_if_nobody_wakes_it(
    fake: Temporal, scenario: EngineScenario
) -> None:  # R5
    run = fake.start("x1", "Refund", "late-x1", 40)
    fake.wait_parked("x1")
    scenario.wait_for_status("late-x1", "expired")
    fake.fire("x1")
    ended = fake.wait_ended("x1")
    assert (failure_of_run(ended), "timed out" in ended.message) == (("refused", True), True)
    assert (scenario.refunded_amounts("late-x1"), "TIMER_FIRED" in run.kinds) == ([], True)


@pytest.mark.usefixtures("worker")
def test_approval_without_a_signal_is_found_by_the_timer(fake: Temporal, scenario: EngineScenario) -> None:
    fake.start("s1", "Refund", "order-s1", 40)
    fake.wait_parked("s1")
    fake.fire("s1")
    fake.wait_parked("s1", times=2)
    scenario.decide("order-s1", "approve")
    fake.fire("s1")
    assert fake.wait_ended("s1") == "refunded 40"
    waits = [
        event.timer_started_event_attributes.start_to_fire_timeout.seconds
        for event in fake.runs["s1"].events
        if event.HasField("timer_started_event_attributes")
    ]
    assert (waits, scenario.refunded_amounts("order-s1")) == ([15, 30], [40])


@pytest.mark.usefixtures("worker")
def test_two_calls_wait_at_once_and_each_is_decided_for_itself(fake: Temporal, scenario: EngineScenario) -> None:
    fake.start("b1", "Both", "order-b1", "order-b2")
    fake.wait_parked("b1", times=2)
    scenario.decide("order-b2", "approve")
    scenario.dispatch()
    wait_until(lambda: scenario.refunded_amounts("order-b2") == [1], "the second one ran", TIMEOUT)
    assert scenario.refunded_amounts("order-b1") == []
    scenario.decide("order-b1", "approve")
    scenario.dispatch()
    assert fake.wait_ended("b1") == ["order-b1 is paid", "refunded 1", "refunded 1"]
    assert scenario.refunded_amounts("order-b1") == [1]


@pytest.mark.usefixtures("worker")
def test_a_workflow_that_is_cancelled_withdraws_its_call(fake: Temporal, scenario: EngineScenario) -> None:
    run = fake.start("c1", "Refund", "order-c1", 40)
    fake.wait_parked("c1")
    fake.cancel("c1")
    assert (fake.wait_ended("c1"), run.kinds[-1]) == (None, "WORKFLOW_EXECUTION_CANCELED")
    assert (scenario.refunded_amounts("order-c1"), scenario.status("order-c1")) == ([], "cancelled")


@pytest.mark.usefixtures("worker")
def test_a_workflow_that_is_cancelled_when_it_was_decided_ends_all_the_same(
    fake: Temporal, scenario: EngineScenario
) -> None:
    fake.start("c2", "Refund", "order-c2", 40)
    fake.wait_parked("c2")
    scenario.decide("order-c2", "reject", "No.")
    fake.cancel("c2")
    assert (fake.wait_ended("c2"), scenario.refunded_amounts("order-c2"), scenario.status("order-c2")) == (
        None,
        [],
        "rejected",
    )


# Signals


@pytest.mark.usefixtures("worker")
def test_a_decision_before_the_workflow_waits_is_not_missed(fake: Temporal, scenario: EngineScenario) -> None:
    """The signal is in the history before the workflow knows that its call waits."""

    def decided() -> None:
        scenario.decide("order-f1", "approve")
        scenario.dispatch()

    fake.before_result = decided
    run = fake.start("f1", "Refund", "order-f1", 40)
    assert fake.wait_ended("f1") == "refunded 40"
    assert run.kinds.index("WORKFLOW_EXECUTION_SIGNALED") < run.kinds.index("ACTIVITY_TASK_COMPLETED")
    assert ("TIMER_FIRED" in run.kinds, scenario.refunded_amounts("order-f1")) == (False, [40])


@pytest.mark.usefixtures("worker")
def test_doubled_signals_run_it_once(fake: Temporal, scenario: EngineScenario) -> None:  # R24
    run = fake.start("d1", "Refund", "order-d1", 40)
    fake.wait_parked("d1")
    scenario.decide("order-d1", "approve")
    approval_id = scenario.wait_for_approval("order-d1").id
    with scenario.effects.hold():  # so that it cannot end before all have come
        for _ in range(5):
            fake.signal("d1", WOKEN, {"approval_id": approval_id})
        scenario.dispatch()
    assert fake.wait_ended("d1") == "refunded 40"
    assert run.kinds.count("WORKFLOW_EXECUTION_SIGNALED") == 6
    assert scenario.refunded_amounts("order-d1") == [40]


FORGED: list[Callable[[str], tuple[Any, ...]]] = [
    lambda _: ({"approved": True},),
    lambda _: ({"approval_id": True},),
    lambda _: ({"approval_id": "00000000-0000-4000-8000-000000000000", "approved": True},),
    lambda real: (real, True),
    lambda _: (True,),
    lambda _: ("true",),
    lambda _: ("yes",),
    lambda _: (1,),
    lambda _: (None,),
    lambda _: ("",),
    lambda _: (0,),
    lambda _: ({},),
    lambda _: ([],),
    lambda _: (),
    lambda real: ({"approval_id": real, "approved": True, "status": "approved", "args": {"amount": 4_000}},),
]


@pytest.mark.usefixtures("worker")
def test_forged_signals_run_nothing_and_it_goes_on_waiting(fake: Temporal, scenario: EngineScenario) -> None:  # R34 R47
    run = fake.start("g1", "Refund", "order-g1", 40)
    fake.wait_parked("g1")
    real = scenario.wait_for_approval("order-g1").id
    for make in FORGED:
        fake.signal("g1", WOKEN, *make(real))
    fake.wait_parked("g1", times=2)  # the last one names it, so that it was looked at
    assert (scenario.refunded_amounts("order-g1"), scenario.status("order-g1"), run.is_closed) == ([], "pending", False)
    scenario.decide("order-g1", "approve")
    scenario.dispatch()
    assert fake.wait_ended("g1") == "refunded 40"
    assert scenario.refunded_amounts("order-g1") == [40]


# What a tool does


@pytest.mark.usefixtures("worker")
def test_a_tool_that_fails_is_not_tried_again(fake: Temporal, scenario: EngineScenario) -> None:
    fake.start("k1", "Refund", "broken-k1", 40)
    fake.wait_parked("k1")
    scenario.decide("broken-k1", "approve")
    scenario.dispatch()
    ended = fake.wait_ended("k1")
    assert (failure_of_run(ended), "the bank is closed" in ended.message) == (("failed", True), True)
    assert (scenario.refunded_amounts("broken-k1"), scenario.status("broken-k1")) == ([40], "failed")


@pytest.mark.usefixtures("worker")
def test_a_result_of_nothing_is_a_result(fake: Temporal, scenario: EngineScenario) -> None:
    fake.start("n1", "Refund", "nothing-n1", 40)
    fake.wait_parked("n1")
    scenario.decide("nothing-n1", "approve")
    scenario.dispatch()
    assert fake.wait_ended("n1") is None
    assert scenario.refunded_amounts("nothing-n1") == [40]


@pytest.mark.usefixtures("worker")
def test_arguments_that_do_not_fit_ask_nobody(fake: Temporal, scenario: EngineScenario) -> None:
    fake.start("m1", "InvalidRefund")
    ended = fake.wait_ended("m1")
    assert (failure_of_run(ended), "amount" in ended.message) == (("invalid_request", True), True)
    assert scenario.approvals("misfit") == []


@pytest.mark.usefixtures("worker")
def test_an_activity_that_is_tried_again_while_the_first_one_runs_waits_for_it(
    fake: Temporal, scenario: EngineScenario
) -> None:  # R24
    run = fake.start("r1", "Refund", "order-r1", 40)
    fake.wait_parked("r1")
    scenario.decide("order-r1", "approve")
    with scenario.effects.hold():
        scenario.dispatch()
        wait_until(lambda: scenario.refunded_amounts("order-r1") == [40], "the tool is at work", TIMEOUT)
        fake.time_out()
        fake.wait_until(
            lambda: any(each.attempt == 2 and each.is_taken for each in run.activities.values()), "a second"
        )
    assert fake.wait_ended("r1") == "refunded 40"
    assert scenario.refunded_amounts("order-r1") == [40]


# Workers that are killed


def test_a_worker_that_is_killed_while_it_waits_loses_nothing(alone: Scene, tmp_path: Path) -> None:
    there, world = alone
    with run_worker(there, world, tmp_path):  # R23
        there.start("p1", "Refund", "order-p1", 40)
        there.wait_parked("p1")
    world.decide("order-p1", "approve")
    world.dispatch()
    with run_worker(there, world, tmp_path):
        assert there.wait_ended("p1") == "refunded 40"
    assert world.refunded_amounts("order-p1") == [40]


def test_a_worker_that_is_killed_inside_the_tool_never_runs_it_again(alone: Scene, tmp_path: Path) -> None:  # R24
    there, world = alone
    with run_worker(there, world, tmp_path, SHORT):
        there.start("q1", "Refund", "order-q1", 40)
        there.wait_parked("q1")
        world.decide("order-q1", "approve")
        with world.effects.hold():
            world.dispatch()
            wait_until(lambda: world.refunded_amounts("order-q1") == [40], "the tool is at work", TIMEOUT)
    there.time_out()
    with run_worker(there, world, tmp_path, SHORT):
        ended = there.wait_ended("q1")
    assert (failure_of_run(ended), "outcome is unknown" in ended.message) == (("unknown", True), True)
    assert (world.refunded_amounts("order-q1"), world.status("order-q1")) == ([40], "unknown")


def test_a_worker_that_is_killed_before_it_told_of_the_result_does_not_run_it_again(
    alone: Scene, tmp_path: Path
) -> None:  # R24
    there, world = alone
    with run_worker(there, world, tmp_path) as program:
        there.start("u1", "Refund", "order-u1", 40)
        there.wait_parked("u1")
        world.decide("order-u1", "approve")
        killed: list[int] = []

        def dead() -> None:
            program.kill()
            killed.append(program.wait())
            there.time_out()

        there.before_result = dead
        world.dispatch()
        wait_until(lambda: bool(killed), "it was killed", TIMEOUT)
    there.time_out()
    with run_worker(there, world, tmp_path):
        assert there.wait_ended("u1") == "refunded 40"
    assert (world.refunded_amounts("order-u1"), world.status("order-u1")) == ([40], "succeeded")


# Workflows that began under an older version: what they did is in their histories, which `Calls` has to do again


@pytest.mark.parametrize("name", sorted(path.stem for path in HISTORIES.glob("*.json")))
async def test_a_workflow_that_began_long_ago_goes_on(name: str) -> None:  # R23
    replayed = await Replayer(workflows=WORKFLOWS).replay_workflow(stored_history(name))
    assert replayed.replay_failure is None


async def test_a_history_that_it_would_not_have_made_is_noticed() -> None:
    history = stored_history("woken")
    for event in history.events:
        if event.HasField("activity_task_scheduled_event_attributes"):
            event.activity_task_scheduled_event_attributes.activity_type.name = "another"
    with pytest.raises(workflow.NondeterminismError):
        await Replayer(workflows=WORKFLOWS).replay_workflow(history)


def stored_history(name: str) -> WorkflowHistory:
    """As `Run.history.to_json()` gave it. They are never made again, only added."""
    return WorkflowHistory.from_json(name, (HISTORIES / f"{name}.json").read_text())


# The page


def test_the_program_of_the_page_works(tmp_path: Path) -> None:  # R33
    shown = documented_program.read_blocks("temporal")
    (tmp_path / "refunds.py").write_text(shown["python"])
    with (
        temporal() as there,
        documented_program.run_documented_server(tmp_path, shown["yaml"], {"TEMPORAL": there.target}) as here,
    ):
        env = {**here.environment, "TEMPORAL": there.target}
        program = start_program("engines", "refunds.py", folder=tmp_path, **env)
        assert here.approve()["sentence"] == "Run refund: amount = 40, order = A7"
        out, err = wait_finished(program)
        assert (out, program.returncode) == (shown["text"], 0), err
        assert "TIMER_FIRED" not in there.runs["refund-A7"].kinds, "the server woke it"
