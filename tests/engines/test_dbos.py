"""Workflows of DBOS that wait for people, on a real PostgreSQL, killed wherever it hurts."""

from __future__ import annotations

import asyncio
import re
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.dbos_services import TIMEOUT, DbosScenario, Services, prepare_template
from tests.frameworks.auto_approver import auto_approve
from tests.frameworks.framework_program import ROOT, EffectServer, start_program, wait_finished
from tests.interlock_server import create_keys, run_server
from tests.journeys.shell import wait_until
from tests.postgres import Server

pytestmark = pytest.mark.timeout(300)

ORDER = {"amount": 40, "to": "acme"}
PAID = ["before", {"paid": 40}, "after"]
STEP = "dbos._sys_db:SystemDatabase.record_operation_result"
END = "dbos._sys_db:SystemDatabase.update_workflow_outcome"
FORK = "dbos._sys_db:SystemDatabase.fork_workflow"
ATTEMPT = "interlock.sdk.agent:Agent.attempt"
PAUSE = "interlock.sdk.agent:Agent.pause"
OVER = "interlock.sdk.embedded:EmbeddedBackend.complete_pause"
# What a run passes, in this order. Each kills a process that got there; the next process comes one further.
BEFORE_PEOPLE = (
    (PAUSE, "before"),  # nothing is known of the run yet
    (PAUSE, "after"),
    (STEP, "before"),  # a step of its own was done, and is not recorded
    (STEP, "after"),
    (ATTEMPT, "before"),
    (ATTEMPT, "after"),  # people are asked, and DBOS does not know
    (END, "before"),
    (END, "after"),  # it is over in DBOS, and not parked
)
AFTER_PEOPLE = (
    (FORK, "before"),
    (FORK, "after"),
    (ATTEMPT, "before"),
    (ATTEMPT, "after"),  # the call ran, and DBOS does not know
    (END, "before"),
    (END, "after"),
    (OVER, "before"),  # it is over in DBOS, and the pause is still there
    (OVER, "after"),
)


MANY = 1_000
PAGE = ROOT / "docs" / "engines" / "dbos.md"
POLICY = """
version: 1
defaults: {undo_window: 0s}
rules:
  - {name: soon, when: args.to == "expired", then: ask, expires_in: 1s}
  - {name: never, when: args.to == "denied", then: deny, reason: We do not pay them.}
"""


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    made = Services(tmp_path_factory.mktemp("services"))
    yield made
    made.close()


@pytest.fixture
def effects() -> Iterator[EffectServer]:
    with EffectServer().serve() as counted:
        yield counted


@pytest.fixture
def scenario(postgres_server: Server, effects: EffectServer, services: Services) -> Iterator[DbosScenario]:
    name = f"test_{uuid.uuid4().hex}"
    postgres_server.create_database(name, prepare_template(postgres_server, services))
    made = DbosScenario(postgres_server, name, effects, services)
    made.reviewer.put_policy("version: 1\ndefaults: {undo_window: 0s}\n")
    yield made
    postgres_server.drop_database(name)


# R33
def test_a_run_waits_without_a_workflow_and_repeats_no_step(scenario: DbosScenario) -> None:
    with scenario.service() as service:
        service.start(begin={"order-7": ORDER | {"calls": 2}}, watch=["order-7"])
        scenario.wait_parked()
        scenario.reviewer.decide(scenario.wait_pending()[0]["id"], "approve")
        scenario.reviewer.decide(scenario.wait_pending()[0]["id"], "edit", '{"amount": 5, "to": "acme"}')
        assert service.wait_finished("order-7") == ["before", {"paid": 40}, {"paid": 5}, "after"]
    assert [name for name, _ in scenario.effects.calls] == ["before", "pay", "pay", "after"]
    assert scenario.workflows() == {f"run:order-7:seg:{n}": "SUCCESS" for n in (1, 2, 3)}


def test_a_service_that_is_killed_at_every_step_before_people_are_asked_asks_once(scenario: DbosScenario) -> None:
    with scenario.service(begin={"order-7": ORDER}, watch=["order-7"]) as service:
        for at, when in BEFORE_PEOPLE:
            service.start(deaths=[{"at": at, "when": when}])
            assert service.wait_died() == -signal.SIGKILL, (at, when)
        assert len(scenario.wait_pending()) == 1
        scenario.reviewer.decide(scenario.wait_pending()[0]["id"], "approve")
        service.start()
        assert service.wait_finished("order-7") == PAID
        service.stop()
    assert scenario.effects.calls_to("before") == [ORDER, ORDER]  # a step that DBOS had not recorded is done again
    assert scenario.effects.calls_to("pay") == [ORDER]
    assert scenario.effects.calls_to("after") == [ORDER]
    assert len(scenario.reviewer.list_approvals("all")) == 1


def test_a_service_that_is_killed_at_every_step_after_the_approval_runs_the_call_once(scenario: DbosScenario) -> None:
    with scenario.service(begin={"order-7": ORDER}, watch=["order-7"]) as service:
        service.start()
        scenario.wait_parked()
        service.kill()
        scenario.reviewer.decide(scenario.wait_pending()[0]["id"], "approve")
        for at, when in AFTER_PEOPLE:
            service.start(deaths=[{"at": at, "when": when}])
            assert service.wait_died() == -signal.SIGKILL, (at, when)
        service.start()
        assert service.wait_finished("order-7") == PAID
        service.stop()
    assert [name for name, _ in scenario.effects.calls] == ["before", "pay", "after"]
    assert scenario.workflows() == {"run:order-7:seg:1": "SUCCESS", "run:order-7:seg:2": "SUCCESS"}


def test_a_service_that_is_killed_before_it_parks_a_run_that_waits_goes_on_with_it(scenario: DbosScenario) -> None:
    with scenario.service(begin={"order-7": ORDER}, watch=["order-7"]) as service:
        service.start(deaths=[{"at": PAUSE, "when": "before", "nth": 2}])  # the first one is that it began
        assert service.wait_died() == -signal.SIGKILL
        service.start(deaths=[{"at": PAUSE, "when": "after", "nth": 1}])
        scenario.reviewer.decide(scenario.wait_pending()[0]["id"], "approve")
        assert service.wait_died() == -signal.SIGKILL
        service.start()
        assert service.wait_finished("order-7") == PAID
    assert [name for name, _ in scenario.effects.calls] == ["before", "pay", "after"]


def test_a_service_that_is_killed_inside_the_tool_tells_that_nobody_knows(scenario: DbosScenario) -> None:
    with scenario.service(begin={"order-7": ORDER}, watch=["order-7"], lease=5) as service:
        service.start()
        scenario.wait_parked()
        with scenario.effects.hold():
            scenario.reviewer.decide(scenario.wait_pending()[0]["id"], "approve")
            wait_until(lambda: scenario.effects.calls_to("pay") == [ORDER], "the tool runs", TIMEOUT)
            service.kill()
        service.start()
        _, told, after = service.wait_finished("order-7")
    assert (told["status"], after) == ("unknown", "after")
    assert scenario.effects.calls_to("pay") == [ORDER]


def test_two_services_on_the_same_runs_run_each_call_and_each_step_once(scenario: DbosScenario) -> None:
    runs = {f"order-{number}": ORDER | {"to": f"shop-{number}"} for number in range(5)}
    with scenario.service(begin=runs, watch=list(runs)) as one, scenario.service(begin=runs, watch=list(runs)) as other:
        one.start(executor="clerk-1")
        other.start(executor="clerk-2")
        for item in scenario.wait_pending(len(runs)):
            scenario.reviewer.decide(item["id"], "approve")
        for run_id in runs:
            assert one.wait_finished(run_id) == other.wait_finished(run_id) == PAID
    for what in ("before", "pay", "after"):
        assert sorted(args["to"] for args in scenario.effects.calls_to(what)) == sorted(
            each["to"] for each in runs.values()
        )
    assert len(scenario.workflows()) == 2 * len(runs)


def test_a_run_of_an_executor_that_died_is_carried_on_by_another_one(scenario: DbosScenario) -> None:
    """DBOS alone waits until the same executor comes back."""
    with scenario.service(watch=["order-7"], lease=5) as one, scenario.service(watch=["order-7"], lease=5) as other:
        with scenario.effects.hold():
            one.start(executor="clerk-1", begin={"order-7": ORDER})
            wait_until(lambda: scenario.effects.calls_to("before") == [ORDER], "the first step runs", TIMEOUT)
            other.start(executor="clerk-2")
            other.wait_for_line("serving")
            one.kill()
        scenario.reviewer.decide(scenario.wait_pending()[0]["id"], "approve")
        assert other.wait_finished("order-7") == PAID
    assert scenario.effects.calls_to("pay") == [ORDER]


def test_a_segment_of_an_executor_that_died_is_resumed_by_the_one_that_keeps_the_run(scenario: DbosScenario) -> None:
    with scenario.service(lease=5) as keeper, scenario.service(lease=5, keeps=False) as executor:
        keeper.start(executor="clerk-1", deaf=True, begin={"order-7": ORDER}, watch=["order-7"])
        scenario.wait_parked()
        executor.start(executor="clerk-2", deaths=[{"at": ATTEMPT, "when": "before"}])
        scenario.reviewer.decide(scenario.wait_pending()[0]["id"], "approve")
        assert executor.wait_died() == -signal.SIGKILL
        executor.start(executor="clerk-3")
        assert keeper.wait_finished("order-7") == PAID
    assert [name for name, _ in scenario.effects.calls] == ["before", "pay", "after"]


def test_a_segment_shows_signs_of_life(scenario: DbosScenario) -> None:
    with scenario.service(begin={"order-7": ORDER}, lease=5) as service, scenario.effects.hold():
        service.start()
        beats = "select count(*) from dbos.workflow_status where (attributes->>'interlock_beats')::int >= 2"
        wait_until(lambda: scenario.sql(beats)[0][0] == 1, "there were two beats", TIMEOUT)
        assert scenario.unfinished() == ["run:order-7:seg:1"]


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_goes_on_when_the_gate_can_be_reached_again(scenario: DbosScenario, when: str, nth: int) -> None:
    cut = {"at": ATTEMPT, "when": when, "nth": nth, "by": "StoreUnavailable"}
    with scenario.service(begin={"order-7": ORDER}, watch=["order-7"]) as service:
        service.start(deaths=[cut])
        scenario.reviewer.decide(scenario.wait_pending()[0]["id"], "approve")
        assert service.wait_finished("order-7") == PAID
    assert [name for name, _ in scenario.effects.calls] == ["before", "pay", "after"]
    assert len(scenario.reviewer.list_approvals("all")) == 1


@pytest.mark.parametrize(("at", "when"), [(FORK, "before"), (ATTEMPT, "before")])
def test_a_service_that_slept_while_another_one_took_its_run_does_no_harm(
    scenario: DbosScenario, at: str, when: str
) -> None:
    runs = {"begin": {"order-7": ORDER}, "watch": ["order-7"], "lease": 5}
    with scenario.service(**runs) as one, scenario.service(**runs) as other:
        one.start()
        scenario.wait_parked()
        one.stop()
        scenario.reviewer.decide(scenario.wait_pending()[0]["id"], "approve")
        one.start(executor="clerk-1", deaths=[{"at": at, "when": when, "by": "SIGSTOP"}])
        one.wait_stopped()
        other.start(executor="clerk-2")
        assert other.wait_finished("order-7") == PAID
        one.wake()
        assert one.wait_finished("order-7") == PAID
        one.stop()
    assert [name for name, _ in scenario.effects.calls] == ["before", "pay", "after"]
    assert scenario.workflows() == {"run:order-7:seg:1": "SUCCESS", "run:order-7:seg:2": "SUCCESS"}


def test_a_run_waits_at_a_server_as_it_does_at_a_database(scenario: DbosScenario, tmp_path: Path) -> None:
    key = asyncio.run(create_keys(scenario.url))["agent"]
    runs = {"begin": {"order-7": ORDER}, "watch": ["order-7"]}
    with run_server(scenario.url, tmp_path) as server, scenario.service(gate=server.url, key=key, **runs) as service:
        service.start()
        scenario.wait_parked()
        service.kill()
        scenario.reviewer.decide(scenario.wait_pending()[0]["id"], "approve")
        service.start()
        assert service.wait_finished("order-7") == PAID
    assert [name for name, _ in scenario.effects.calls] == ["before", "pay", "after"]


def test_what_people_did_not_approve_is_told_and_never_run(scenario: DbosScenario) -> None:
    names = ("rejected", "answered", "expired", "denied")
    orders: dict[str, Any] = {name: ORDER | {"to": name} for name in names} | {"misfit": ORDER | {"to": 5}}
    scenario.reviewer.put_policy(POLICY)
    with scenario.service(begin=orders, watch=["misfit", "denied", "expired", "rejected", "answered"]) as service:
        service.start()
        told = {name: service.wait_finished(name) for name in ("misfit", "denied", "expired")}
        ids = {item["run_id"]: item["id"] for item in scenario.wait_pending(2)}
        scenario.reviewer.decide(ids["rejected"], "reject", "too much")
        scenario.reviewer.decide(ids["answered"], "respond", "pay in cash")
        told |= {name: service.wait_finished(name) for name in ("rejected", "answered")}
    statuses = {name: said["status"] for name, (_, said, _) in told.items() if name != "answered"}
    assert statuses == {"misfit": "invalid", "denied": "denied", "expired": "expired", "rejected": "rejected"}
    assert "too much" in str(told["rejected"])
    assert told["answered"] == ["before", "pay in cash", "after"]
    assert scenario.effects.calls_to("pay") == []


def test_a_tool_that_fails_is_told_in_the_words_of_the_record(scenario: DbosScenario) -> None:
    with scenario.service(begin={"order-7": ORDER | {"to": "nobody"}}, watch=["order-7"]) as service:
        service.start()
        scenario.wait_parked()
        service.stop()
        scenario.reviewer.decide(scenario.wait_pending()[0]["id"], "approve")
        service.start(deaths=[{"at": ATTEMPT, "when": "after", "nth": 2}])  # the first one raised
        assert service.wait_died() == -signal.SIGKILL
        service.start()
        failed = {"success": False, "status": "failed", "error": "ValueError: there is nobody"}
        assert service.wait_finished("order-7") == ["before", failed, "after"]
    assert len(scenario.effects.calls_to("pay")) == 1


def test_a_workflow_that_asks_for_something_else_after_the_approval_runs_nothing(scenario: DbosScenario) -> None:
    with scenario.service(begin={"order-7": ORDER}, watch=["order-7"]) as service:
        service.start()
        scenario.wait_parked()
        service.stop()
        scenario.reviewer.decide(scenario.wait_pending()[0]["id"], "approve")
        service.start(more=1_000_000)
        assert service.wait_finished("order-7").startswith("CallMismatch")
        service.stop()
    assert scenario.effects.calls_to("pay") == []
    assert scenario.workflows()["run:order-7:seg:2"] == "ERROR"


def test_a_run_whose_last_segment_was_deleted_in_dbos_runs_nothing(scenario: DbosScenario) -> None:
    with scenario.service(begin={"order-7": ORDER}) as service:
        service.start()
        scenario.wait_parked()
        service.stop()
        scenario.reviewer.decide(scenario.wait_pending()[0]["id"], "approve")
        scenario.sql("delete from dbos.workflow_status")
        service.start(begin={})
        wait_until(lambda: scenario.sql("select attempts from pauses")[0][0] >= 2, "it was tried again", TIMEOUT)
    assert scenario.effects.calls_to("pay") == []
    assert scenario.workflows() == {}


def test_a_run_that_is_begun_again_with_another_input_stays_as_it_is(scenario: DbosScenario) -> None:
    with scenario.service(watch=["order-7"]) as service:
        service.start(begin={"order-7": ORDER})
        scenario.wait_parked()
        service.stop()
        service.start(begin={"order-7": ORDER | {"amount": 1_000_000}})
        service.wait_for_line("serving")
        scenario.reviewer.decide(scenario.wait_pending()[0]["id"], "approve")
        assert service.wait_finished("order-7") == PAID
    assert scenario.effects.calls_to("pay") == [ORDER]


def test_a_gated_call_outside_of_a_run_is_refused(scenario: DbosScenario) -> None:
    with scenario.service() as service:
        service.start(astray=True)
        assert service.wait_for_line("astray") == ["Misconfigured", "Misconfigured", "Misconfigured", "Conflict"]
    assert scenario.reviewer.list_approvals("all") == []
    assert scenario.effects.calls_to("pay") == []


def test_a_thousand_runs_that_wait_cost_no_workflow(scenario: DbosScenario) -> None:
    orders = {f"order-{number}": ORDER | {"quiet": True} for number in range(MANY)}
    with scenario.service() as service:
        service.start(begin=orders, at_once=40)
        service.wait_for_line("serving")
        scenario.wait_parked(MANY)
        assert set(scenario.workflows().values()) == {"SUCCESS"}  # none is PENDING, ENQUEUED or DELAYED
        assert len(scenario.workflows()) == MANY
        chosen = scenario.reviewer.list_approvals("pending")[0]
        scenario.reviewer.decide(chosen["id"], "approve")
        wait_until(lambda: len(scenario.effects.calls_to("after")) == 1, "the one that was decided went on", TIMEOUT)
    assert len(scenario.effects.calls_to("pay")) == 1
    assert [name for name in scenario.workflows() if name.endswith(":seg:2")] == [f"run:{chosen['run_id']}:seg:2"]


def test_the_program_of_the_page_prints_what_the_page_shows(tmp_path: Path) -> None:
    page = PAGE.read_text()
    program, printed = (re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)[-1] for kind in ("python", "text"))
    (tmp_path / "program.py").write_text(program)
    running = start_program("engines", tmp_path / "program.py", folder=tmp_path)
    with auto_approve(f"sqlite:///{tmp_path / 'interlock.db'}") as approved:
        out, err = wait_finished(running)
    assert running.returncode == 0, err
    assert out == printed
    assert approved == ["pay"]
