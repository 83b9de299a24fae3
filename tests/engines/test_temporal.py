"""Temporal: real workers in processes of their own, against a stand-in of its service that keeps real histories.

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
from tests.engines.engine_scenario import POLICY, World
from tests.engines.programs.temporal import WORKFLOWS
from tests.fakes.temporal import Temporal, temporal
from tests.frameworks.framework_program import PATIENCE, Effects, finished, started
from tests.journeys.shell import wait_until

PROGRAM = Path(__file__).parent / "programs" / "temporal.py"
HISTORIES = Path(__file__).parent / "histories"
WOKEN = "interlock_woken"
SHORT = 3.0  # seconds of a lease: how long it takes until a call that was killed is unknown


Scene = tuple[Temporal, World]


@contextmanager
def scene_in(folder: Path) -> Iterator[Scene]:
    with temporal() as there, Effects().counting() as effects:
        url = f"sqlite:///{folder / 'approvals.db'}"
        world = World(url, effects, "temporal", lambda: {"target": there.target})
        world.desk.policy(POLICY)
        world.wake()  # from now on; what was before would not be told
        yield there, world


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene_in(tmp_path_factory.mktemp("temporal")) as made:
        yield made


@pytest.fixture(scope="module")
def there(scene: Scene) -> Temporal:
    return scene[0]


@pytest.fixture(scope="module")
def world(scene: Scene) -> World:
    return scene[1]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Scene]:
    """For those who kill workers."""
    with scene_in(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def worker(there: Temporal, world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One for all tests that kill nobody."""
    with working(there, world, tmp_path_factory.mktemp("worker")):
        yield


@contextmanager
def working(there: Temporal, world: World, folder: Path, lease: float = 60.0) -> Iterator[subprocess.Popen[str]]:
    job = {"target": there.target, "url": world.url, "effects": world.effects.url, "lease": lease}
    program = started("engines", PROGRAM, json.dumps(job), folder=folder)
    try:
        there.until(lambda: there.polls > 0 or program.poll() is not None, "a worker asks for work")
        assert program.poll() is None, program.communicate()
        yield program
    finally:
        kill(there, program)


def kill(there: Temporal, program: subprocess.Popen[str]) -> None:
    """-9, and until the stand-in knows that nobody asks any more."""
    program.kill()
    program.communicate()
    there.until(lambda: there.polls == 0, "nobody asks for work")


def failure(ended: Any) -> tuple[str, bool]:
    info = ended.application_failure_info
    return info.type, info.non_retryable


# What people decide


@pytest.mark.usefixtures("worker")
def test_an_approved_call_runs_once_and_the_workflow_goes_on(there: Temporal, world: World) -> None:  # R33 R24
    run = there.start("a1", "Refund", "order-a1", 40)
    there.waits("a1")
    assert world.ran("order-a1") == []
    world.decide("order-a1", "approve")
    assert world.wake() >= 1
    assert there.ended("a1") == "refunded 40"
    assert world.ran("order-a1") == [40]
    assert "TIMER_FIRED" not in run.kinds, "it was woken"
    assert world.standing("order-a1").subject.run_id == "temporal:a1"


@pytest.mark.usefixtures("worker")
def test_an_edited_call_runs_with_what_the_person_wrote(there: Temporal, world: World) -> None:  # R11
    there.start("e1", "Refund", "order-e1", 40)
    there.waits("e1")
    world.decide("order-e1", "edit", '{"order": "order-e1", "amount": 20}')
    world.wake()
    assert there.ended("e1") == "refunded 20"
    assert world.ran("order-e1") == [20]


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(("verb", "word", "why"), [("reject", "No.", "refused"), ("respond", "Ask Bob.", "answered")])
def test_what_is_not_approved_never_runs_and_fails_the_workflow_for_good(
    there: Temporal, world: World, verb: str, word: str, why: str
) -> None:  # R33
    there.start(f"no-{verb}", "Refund", f"order-{verb}", 40)
    there.waits(f"no-{verb}")
    world.decide(f"order-{verb}", verb, word)
    world.wake()
    ended = there.ended(f"no-{verb}")
    assert (failure(ended), word in ended.message) == ((why, True), True)
    assert world.ran(f"order-{verb}") == []


@pytest.mark.usefixtures("worker")
def test_a_model_in_a_workflow_is_told_and_nothing_fails(there: Temporal, world: World) -> None:
    there.start("t1", "Told", "order-t1")
    there.waits("t1")
    world.decide("order-t1", "respond", "Ask Bob.")
    world.wake()
    assert there.ended("t1") == "Ask Bob."
    assert world.ran("order-t1") == []


@pytest.mark.usefixtures("worker")
def test_what_nobody_decides_in_time_is_over_also_if_nobody_wakes_it(there: Temporal, world: World) -> None:  # R5
    run = there.start("x1", "Refund", "late-x1", 40)
    there.waits("x1")
    world.becomes("late-x1", "expired")
    there.fire("x1")
    ended = there.ended("x1")
    assert (failure(ended), "timed out" in ended.message) == (("refused", True), True)
    assert (world.ran("late-x1"), "TIMER_FIRED" in run.kinds) == ([], True)


@pytest.mark.usefixtures("worker")
def test_an_approval_that_no_signal_told_of_is_found_by_the_timer(there: Temporal, world: World) -> None:
    there.start("s1", "Refund", "order-s1", 40)
    there.waits("s1")
    there.fire("s1")
    there.waits("s1", times=2)
    world.decide("order-s1", "approve")
    there.fire("s1")
    assert there.ended("s1") == "refunded 40"
    waits = [
        event.timer_started_event_attributes.start_to_fire_timeout.seconds
        for event in there.runs["s1"].events
        if event.HasField("timer_started_event_attributes")
    ]
    assert (waits, world.ran("order-s1")) == ([15, 30], [40])


@pytest.mark.usefixtures("worker")
def test_two_calls_wait_at_once_and_each_is_decided_for_itself(there: Temporal, world: World) -> None:
    there.start("b1", "Both", "order-b1", "order-b2")
    there.waits("b1", times=2)
    world.decide("order-b2", "approve")
    world.wake()
    wait_until(lambda: world.ran("order-b2") == [1], "the second one ran", PATIENCE)
    assert world.ran("order-b1") == []
    world.decide("order-b1", "approve")
    world.wake()
    assert there.ended("b1") == ["order-b1 is paid", "refunded 1", "refunded 1"]
    assert world.ran("order-b1") == [1]


@pytest.mark.usefixtures("worker")
def test_a_workflow_that_is_cancelled_withdraws_its_call(there: Temporal, world: World) -> None:
    run = there.start("c1", "Refund", "order-c1", 40)
    there.waits("c1")
    there.cancel("c1")
    assert (there.ended("c1"), run.kinds[-1]) == (None, "WORKFLOW_EXECUTION_CANCELED")
    assert (world.ran("order-c1"), world.status("order-c1")) == ([], "cancelled")


@pytest.mark.usefixtures("worker")
def test_a_workflow_that_is_cancelled_when_it_was_decided_ends_all_the_same(there: Temporal, world: World) -> None:
    there.start("c2", "Refund", "order-c2", 40)
    there.waits("c2")
    world.decide("order-c2", "reject", "No.")
    there.cancel("c2")
    assert (there.ended("c2"), world.ran("order-c2"), world.status("order-c2")) == (None, [], "rejected")


# Signals


@pytest.mark.usefixtures("worker")
def test_a_decision_before_the_workflow_waits_is_not_missed(there: Temporal, world: World) -> None:
    """The signal is in the history before the workflow knows that its call waits."""

    def decided() -> None:
        world.decide("order-f1", "approve")
        world.wake()

    there.before_result = decided
    run = there.start("f1", "Refund", "order-f1", 40)
    assert there.ended("f1") == "refunded 40"
    assert run.kinds.index("WORKFLOW_EXECUTION_SIGNALED") < run.kinds.index("ACTIVITY_TASK_COMPLETED")
    assert ("TIMER_FIRED" in run.kinds, world.ran("order-f1")) == (False, [40])


@pytest.mark.usefixtures("worker")
def test_doubled_signals_run_it_once(there: Temporal, world: World) -> None:  # R24
    run = there.start("d1", "Refund", "order-d1", 40)
    there.waits("d1")
    world.decide("order-d1", "approve")
    approval_id = world.standing("order-d1").id
    with world.effects.closed():  # so that it cannot end before all have come
        for _ in range(5):
            there.signal("d1", WOKEN, {"approval_id": approval_id})
        world.wake()
    assert there.ended("d1") == "refunded 40"
    assert run.kinds.count("WORKFLOW_EXECUTION_SIGNALED") == 6
    assert world.ran("order-d1") == [40]


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
def test_forged_signals_run_nothing_and_it_goes_on_waiting(there: Temporal, world: World) -> None:  # R34 R47
    run = there.start("g1", "Refund", "order-g1", 40)
    there.waits("g1")
    real = world.standing("order-g1").id
    for make in FORGED:
        there.signal("g1", WOKEN, *make(real))
    there.waits("g1", times=2)  # the last one names it, so that it was looked at
    assert (world.ran("order-g1"), world.status("order-g1"), run.is_closed) == ([], "pending", False)
    world.decide("order-g1", "approve")
    world.wake()
    assert there.ended("g1") == "refunded 40"
    assert world.ran("order-g1") == [40]


# What a tool does


@pytest.mark.usefixtures("worker")
def test_a_tool_that_fails_is_not_tried_again(there: Temporal, world: World) -> None:
    there.start("k1", "Refund", "broken-k1", 40)
    there.waits("k1")
    world.decide("broken-k1", "approve")
    world.wake()
    ended = there.ended("k1")
    assert (failure(ended), "the bank is closed" in ended.message) == (("failed", True), True)
    assert (world.ran("broken-k1"), world.status("broken-k1")) == ([40], "failed")


@pytest.mark.usefixtures("worker")
def test_a_result_of_nothing_is_a_result(there: Temporal, world: World) -> None:
    there.start("n1", "Refund", "nothing-n1", 40)
    there.waits("n1")
    world.decide("nothing-n1", "approve")
    world.wake()
    assert there.ended("n1") is None
    assert world.ran("nothing-n1") == [40]


@pytest.mark.usefixtures("worker")
def test_arguments_that_do_not_fit_ask_nobody(there: Temporal, world: World) -> None:
    there.start("m1", "Misfit")
    ended = there.ended("m1")
    assert (failure(ended), "amount" in ended.message) == (("invalid_request", True), True)
    assert world.asked("misfit") == []


@pytest.mark.usefixtures("worker")
def test_an_activity_that_is_tried_again_while_the_first_one_runs_waits_for_it(
    there: Temporal, world: World
) -> None:  # R24
    run = there.start("r1", "Refund", "order-r1", 40)
    there.waits("r1")
    world.decide("order-r1", "approve")
    with world.effects.closed():
        world.wake()
        wait_until(lambda: world.ran("order-r1") == [40], "the tool is at work", PATIENCE)
        there.time_out()
        there.until(lambda: any(each.attempt == 2 and each.is_taken for each in run.activities.values()), "a second")
    assert there.ended("r1") == "refunded 40"
    assert world.ran("order-r1") == [40]


# Workers that are killed


def test_a_worker_that_is_killed_while_it_waits_loses_nothing(alone: Scene, tmp_path: Path) -> None:
    there, world = alone
    with working(there, world, tmp_path):  # R23
        there.start("p1", "Refund", "order-p1", 40)
        there.waits("p1")
    world.decide("order-p1", "approve")
    world.wake()
    with working(there, world, tmp_path):
        assert there.ended("p1") == "refunded 40"
    assert world.ran("order-p1") == [40]


def test_a_worker_that_is_killed_inside_the_tool_never_runs_it_again(alone: Scene, tmp_path: Path) -> None:  # R24
    there, world = alone
    with working(there, world, tmp_path, SHORT):
        there.start("q1", "Refund", "order-q1", 40)
        there.waits("q1")
        world.decide("order-q1", "approve")
        with world.effects.closed():
            world.wake()
            wait_until(lambda: world.ran("order-q1") == [40], "the tool is at work", PATIENCE)
    there.time_out()
    with working(there, world, tmp_path, SHORT):
        ended = there.ended("q1")
    assert (failure(ended), "nobody knows" in ended.message) == (("unknown", True), True)
    assert (world.ran("order-q1"), world.status("order-q1")) == ([40], "unknown")


def test_a_worker_that_is_killed_before_it_told_of_the_result_does_not_run_it_again(
    alone: Scene, tmp_path: Path
) -> None:  # R24
    there, world = alone
    with working(there, world, tmp_path) as program:
        there.start("u1", "Refund", "order-u1", 40)
        there.waits("u1")
        world.decide("order-u1", "approve")
        killed: list[int] = []

        def dead() -> None:
            program.kill()
            killed.append(program.wait())
            there.time_out()

        there.before_result = dead
        world.wake()
        wait_until(lambda: bool(killed), "it was killed", PATIENCE)
    there.time_out()
    with working(there, world, tmp_path):
        assert there.ended("u1") == "refunded 40"
    assert (world.ran("order-u1"), world.status("order-u1")) == ([40], "succeeded")


# Workflows that began under an older version: what they did is in their histories, which `Calls` has to do again


@pytest.mark.parametrize("name", sorted(path.stem for path in HISTORIES.glob("*.json")))
async def test_a_workflow_that_began_long_ago_goes_on(name: str) -> None:  # R23
    replayed = await Replayer(workflows=WORKFLOWS).replay_workflow(kept(name))
    assert replayed.replay_failure is None


async def test_a_history_that_it_would_not_have_made_is_noticed() -> None:
    history = kept("woken")
    for event in history.events:
        if event.HasField("activity_task_scheduled_event_attributes"):
            event.activity_task_scheduled_event_attributes.activity_type.name = "another"
    with pytest.raises(workflow.NondeterminismError):
        await Replayer(workflows=WORKFLOWS).replay_workflow(history)


def kept(name: str) -> WorkflowHistory:
    """As `Run.history.to_json()` gave it. They are never made again, only added."""
    return WorkflowHistory.from_json(name, (HISTORIES / f"{name}.json").read_text())


# The page


def test_the_program_of_the_page_works(tmp_path: Path) -> None:  # R33
    shown = documented_program.page("temporal")
    (tmp_path / "refunds.py").write_text(shown["python"])
    with temporal() as there, documented_program.place(tmp_path, shown["yaml"], {"TEMPORAL": there.target}) as here:
        env = {**here.environment, "TEMPORAL": there.target}
        program = started("engines", "refunds.py", folder=tmp_path, **env)
        assert here.approve()["sentence"] == "Run refund: amount = 40, order = A7"
        out, err = finished(program)
        assert (out, program.returncode) == (shown["text"], 0), err
        assert "TIMER_FIRED" not in there.runs["refund-A7"].kinds, "the server woke it"
