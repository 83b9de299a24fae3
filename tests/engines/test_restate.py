"""Handlers of Restate that wait for people: its real server, killed around every step, and effects counted outside."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import yaml

from tests.engines.restate_services import RestateServices, run_restate_services
from tests.frameworks.framework_program import ROOT, TIMEOUT, find_python
from tests.journeys.shell import wait_until
from tests.node_packages import RESTATE

pytestmark = [
    pytest.mark.skipif(not RESTATE.is_installed(), reason=RESTATE.missing),
    pytest.mark.timeout(600),  # only a bound for what hangs: several programs are started on a loaded machine
]
PAGE = ROOT / "docs" / "engines" / "restate.md"
BLOCK = re.compile(r"^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VICTIMS = ("engine", "service", "interlock")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestateServices]:
    with run_restate_services(tmp_path_factory.mktemp("restate")) as made:
        yield made


@pytest.fixture
def services(shared: RestateServices) -> RestateServices:
    """Whatever the test before has killed runs again."""
    for who in VICTIMS:
        if who not in shared.processes:
            shared.start(who)
    return shared


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """An order of this test alone."""
    return str(request.node.name)


# What people say


def test_approved_it_runs_once_and_is_woken_by_the_decision(services: RestateServices, name: str) -> None:  # R33
    """It would look again by itself after an hour."""
    invocation = services.order(name)
    services.wait_suspended(invocation)
    services.decide(invocation)
    assert services.result(invocation).json() == f"paid {name}"
    assert services.payments(name) == 1
    assert [call["status"] for call in services.calls(invocation)] == ["succeeded"]


def test_edited_it_runs_with_what_the_person_wrote(services: RestateServices, name: str) -> None:  # R11, R33
    invocation = services.order(name)
    services.decide(invocation, "edit", f'{{"order": "half of {name}"}}')
    assert services.result(invocation).json() == f"paid half of {name}"
    assert (services.payments(name), services.payments(f"half of {name}")) == (0, 1)


def test_answered_rejected_and_expired_it_never_runs(services: RestateServices, name: str) -> None:  # R11, R35
    orders = {said: f"{name} {said}" for said in ("answered", "rejected", "expired")}
    made = {said: services.order(orders[said]) for said in ("answered", "rejected")}
    services.decide(made["answered"], "respond", "Ask Carol instead")
    services.decide(made["rejected"], "reject", "Not on Sundays")
    made["expired"] = services.order(orders["expired"], soon=True)
    told = {said: services.result(invocation).json() for said, invocation in made.items()}
    assert told["answered"] == "Ask Carol instead"
    assert told["rejected"]["error"] == "Access denied: Not on Sundays"
    assert told["expired"]["status"] == "expired"
    assert [services.payments(order) for order in orders.values()] == [0, 0, 0]


def test_what_a_tool_gives_is_told_as_the_record_has_it(services: RestateServices, name: str) -> None:
    invocation = services.order(name, how="in a thread")
    services.decide(invocation)
    assert services.result(invocation).json() == {"paid": name, "raw": "bytes"}


def test_a_tool_that_raises_is_not_tried_again_by_restate(services: RestateServices, name: str) -> None:  # R46
    invocation = services.order(name, how="badly")
    services.decide(invocation)
    told = services.result(invocation).json()
    assert (told["status"], told["error"]) == ("failed", "TerminalError: The bank is closed.")
    assert services.payments(name) == 1


def test_arguments_that_do_not_fit_are_told_and_nobody_is_asked(services: RestateServices, name: str) -> None:  # R12
    invocation = services.order(name, args={"order": 7})
    assert services.result(invocation).json()["status"] == "invalid"
    assert services.calls(invocation) == []


def test_a_replay_with_other_arguments_ends_the_handler_and_runs_nothing(
    services: RestateServices, name: str
) -> None:  # R47
    """Arguments that are not journaled: what was approved is not what the replay wants."""
    invocation = services.order(name, wavering=True)
    services.wait_suspended(invocation)
    services.decide(invocation)
    assert services.result(invocation).status_code == 409
    assert [call["status"] for call in services.calls(invocation)] == ["cancelled"]
    assert [args for args in services.effects.calls_to("pay") if name in args["order"]] == []


def test_a_handler_that_is_cancelled_withdraws_its_call(services: RestateServices, name: str) -> None:
    invocation = services.order(name)
    services.wait_pending(invocation)
    services.cancel(invocation)
    assert services.result(invocation).status_code == 409
    assert [call["status"] for call in services.calls(invocation)] == ["cancelled"]
    assert services.payments(name) == 0


# What others say


FORGED = (b'{"approved": true}', b'{"decision": "approve"}', b'"true"', b"1", b"null", b'""', b"0", b"{}", b"[]", b"no")


@pytest.mark.parametrize(("how", "bodies"), [("resolve", FORGED), ("reject", FORGED[:2])], ids=["resolve", "reject"])
def test_settling_the_awakeable_decides_nothing(
    services: RestateServices, name: str, how: str, bodies: tuple[bytes, ...]
) -> None:  # R33, R34
    orders = [f"{name} {body.decode()}" for body in bodies]
    made = [services.order(order, points=["looking"]) for order in orders]
    for invocation, body in zip(made, bodies, strict=True):
        awakeable = services.wait_pending(invocation)["call_id"]
        for _ in range(2):
            services.settle(awakeable, how, body)
    for order in orders:
        services.wait_for_point(order, "looking", times=2)
    waiting = [call["run_id"] for call in services.calls("", "pending")]
    assert [f"restate:{invocation}" in waiting for invocation in made] == [True] * len(orders)
    assert [services.payments(order) for order in orders] == [0] * len(orders)
    services.decide(made[0], "reject", "No.")
    for invocation in made[1:]:
        services.decide(invocation)
    rejected, *approved = [services.result(invocation).json() for invocation in made]
    assert rejected["status"] == "rejected"
    assert approved == [f"paid {order}" for order in orders[1:]]
    assert [services.payments(order) for order in orders] == [0, *[1] * len(approved)]
    looks = [args["order"] for args in services.points.calls_to("at")]
    assert max(map(looks.count, orders)) <= 10, "each pause is twice as long as the one before"


def test_it_looks_by_itself_now_and_then(services: RestateServices, name: str) -> None:
    invocation = services.order(name, recheck_after=0.2, points=["looking"])
    services.wait_for_point(name, "looking", times=3)
    services.decide(invocation)
    assert services.result(invocation).json() == f"paid {name}"
    assert services.payments(name) == 1


def test_a_second_wake_up_changes_nothing(services: RestateServices, name: str) -> None:  # R24
    invocation = services.order(name)
    awakeable = services.wait_pending(invocation)["call_id"]
    services.decide(invocation)
    for _ in range(2):
        services.settle(awakeable, "resolve", b"{}")
    assert services.result(invocation).json() == f"paid {name}"
    services.settle(awakeable, "resolve", b"{}")
    assert services.payments(name) == 1


# The page


def test_the_shortest_program_of_the_page_works_as_it_is_shown(services: RestateServices, tmp_path: Path) -> None:
    program, settings, serve, ask, prints = BLOCK.findall(PAGE.read_text())
    assert yaml.safe_load(services.localize(settings)) == yaml.safe_load(
        (services.folder / "interlock.yaml").read_text()
    )
    (tmp_path / "clerk.py").write_text(program)
    with run_in_terminal(services, tmp_path, f"exec {serve}"):
        wait_until(lambda: answers(services.ports["page"]), "the service is up", TIMEOUT)
        with run_in_terminal(services, tmp_path, f"set -e\n{ask}") as asking:
            services.decide()
            out, err = asking.communicate(timeout=TIMEOUT)
    assert out.strip() == prints.strip(), err


@contextmanager
def run_in_terminal(services: RestateServices, folder: Path, script: str) -> Iterator[subprocess.Popen[str]]:
    """Where a reader of the page types: with the commands of the engines' environment."""
    path = f"{find_python('engines').parent}:{os.environ['PATH']}"
    ours = {"INTERLOCK_URL": services.url, "INTERLOCK_KEY": services.keys["agent"], "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(
        ["bash", "-c", services.localize(script)],
        cwd=folder,
        env={**os.environ, **ours, "PATH": path, "NO_PROXY": "*"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the web server has processes of its own
        process.communicate()


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


# Whatever is killed


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("point", ["looking", "Waiting"])
def test_killed_around_the_question_it_asks_once_and_runs_once(
    services: RestateServices, name: str, victim: str, point: str
) -> None:  # R23, R33
    """Before it was asked, and when it was asked and Restate does not know of it yet."""
    with services.points.hold():
        invocation = services.order(name, points=[point])
        services.wait_for_point(name, point)
        services.kill(victim)
    services.start(victim)
    services.decide(invocation)
    assert services.result(invocation).json() == f"paid {name}"
    assert services.payments(name) == 1
    assert [call["status"] for call in services.calls(invocation)] == ["succeeded"]


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_while_it_waits_it_goes_on_when_all_are_back(
    services: RestateServices, name: str, victim: str
) -> None:  # R23, R33
    invocation = services.order(name)
    services.wait_suspended(invocation)
    services.restart(victim)
    services.decide(invocation)
    assert services.result(invocation).json() == f"paid {name}"
    assert services.payments(name) == 1


@pytest.mark.parametrize("victim", VICTIMS)
def test_dead_when_people_decide_it_is_woken_when_it_is_back(
    services: RestateServices, name: str, victim: str
) -> None:  # R33
    invocation = services.order(name)
    services.wait_suspended(invocation)
    services.kill(victim)
    services.decide(invocation)
    services.start(victim)
    assert services.result(invocation).json() == f"paid {name}"
    assert services.payments(name) == 1


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_inside_the_tool_it_is_never_run_again(services: RestateServices, name: str, victim: str) -> None:  # R46
    """Where the tool itself lived on, how it ended is known; where it died, nobody knows, and it says so."""
    with services.effects.hold():
        invocation = services.order(name)
        services.decide(invocation)
        wait_until(lambda: services.payments(name) == 1, "the tool runs", TIMEOUT)
        services.kill(victim)
    services.start(victim)
    told = services.result(invocation).json()
    assert told == f"paid {name}" or "outcome is unknown" in told["error"]
    assert victim != "service" or "outcome is unknown" in told["error"]
    assert victim != "engine" or told == f"paid {name}"
    assert services.payments(name) == 1


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_after_the_tool_and_before_the_journal_its_result_is_told(
    services: RestateServices, name: str, victim: str
) -> None:  # R46
    invocation = services.order(name, points=["Executed"])
    with services.points.hold():
        services.decide(invocation)
        services.wait_for_point(name, "Executed")
        services.kill(victim)
    services.start(victim)
    assert services.result(invocation).json() == f"paid {name}"
    assert services.payments(name) == 1
    assert [call["status"] for call in services.calls(invocation)] == ["succeeded"]
