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

from tests.engines.restate_services import Place, place
from tests.frameworks.framework_program import PATIENCE, ROOT, python_of
from tests.journeys.shell import wait_until
from tests.node_packages import MISSING, RESTATE

pytestmark = [
    pytest.mark.skipif(not RESTATE.is_installed(), reason=MISSING),
    pytest.mark.timeout(600),  # only a bound for what hangs: several programs are started on a busy machine
]
PAGE = ROOT / "docs" / "engines" / "restate.md"
BLOCK = re.compile(r"^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VICTIMS = ("engine", "service", "interlock")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with place(tmp_path_factory.mktemp("restate")) as made:
        yield made


@pytest.fixture
def there(shared: Place) -> Place:
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


def test_approved_it_runs_once_and_is_woken_by_the_decision(there: Place, name: str) -> None:  # R33
    """It would look again by itself after an hour."""
    invocation = there.order(name)
    there.suspended(invocation)
    there.decide(invocation)
    assert there.result(invocation).json() == f"paid {name}"
    assert there.paid(name) == 1
    assert [call["status"] for call in there.calls(invocation)] == ["succeeded"]


def test_edited_it_runs_with_what_the_person_wrote(there: Place, name: str) -> None:  # R11, R33
    invocation = there.order(name)
    there.decide(invocation, "edit", f'{{"order": "half of {name}"}}')
    assert there.result(invocation).json() == f"paid half of {name}"
    assert (there.paid(name), there.paid(f"half of {name}")) == (0, 1)


def test_answered_rejected_and_expired_it_never_runs(there: Place, name: str) -> None:  # R11, R35
    orders = {said: f"{name} {said}" for said in ("answered", "rejected", "expired")}
    made = {said: there.order(orders[said]) for said in ("answered", "rejected")}
    there.decide(made["answered"], "respond", "Ask Carol instead")
    there.decide(made["rejected"], "reject", "Not on Sundays")
    made["expired"] = there.order(orders["expired"], soon=True)
    told = {said: there.result(invocation).json() for said, invocation in made.items()}
    assert told["answered"] == "Ask Carol instead"
    assert told["rejected"]["error"] == "Access denied: Not on Sundays"
    assert told["expired"]["status"] == "expired"
    assert [there.paid(order) for order in orders.values()] == [0, 0, 0]


def test_what_a_tool_gives_is_told_as_the_record_has_it(there: Place, name: str) -> None:
    invocation = there.order(name, how="in a thread")
    there.decide(invocation)
    assert there.result(invocation).json() == {"paid": name, "raw": "bytes"}


def test_a_tool_that_raises_is_not_tried_again_by_restate(there: Place, name: str) -> None:  # R46
    invocation = there.order(name, how="badly")
    there.decide(invocation)
    told = there.result(invocation).json()
    assert (told["status"], told["error"]) == ("failed", "TerminalError: The bank is closed.")
    assert there.paid(name) == 1


def test_arguments_that_do_not_fit_are_told_and_nobody_is_asked(there: Place, name: str) -> None:  # R12
    invocation = there.order(name, args={"order": 7})
    assert there.result(invocation).json()["status"] == "invalid"
    assert there.calls(invocation) == []


def test_a_replay_with_other_arguments_ends_the_handler_and_runs_nothing(there: Place, name: str) -> None:  # R47
    """Arguments that are not journaled: what was approved is not what the replay wants."""
    invocation = there.order(name, wavering=True)
    there.suspended(invocation)
    there.decide(invocation)
    assert there.result(invocation).status_code == 409
    assert [call["status"] for call in there.calls(invocation)] == ["cancelled"]
    assert [args for args in there.effects.of("pay") if name in args["order"]] == []


def test_a_handler_that_is_cancelled_withdraws_its_call(there: Place, name: str) -> None:
    invocation = there.order(name)
    there.waiting(invocation)
    there.cancel(invocation)
    assert there.result(invocation).status_code == 409
    assert [call["status"] for call in there.calls(invocation)] == ["cancelled"]
    assert there.paid(name) == 0


# What others say


FORGED = (b'{"approved": true}', b'{"decision": "approve"}', b'"true"', b"1", b"null", b'""', b"0", b"{}", b"[]", b"no")


@pytest.mark.parametrize(("how", "bodies"), [("resolve", FORGED), ("reject", FORGED[:2])], ids=["resolve", "reject"])
def test_whoever_settles_the_awakeable_decides_nothing_and_it_goes_on_waiting(
    there: Place, name: str, how: str, bodies: tuple[bytes, ...]
) -> None:  # R33, R34
    orders = [f"{name} {body.decode()}" for body in bodies]
    made = [there.order(order, points=["looking"]) for order in orders]
    for invocation, body in zip(made, bodies, strict=True):
        awakeable = there.waiting(invocation)["call_id"]
        for _ in range(2):
            there.settle(awakeable, how, body)
    for order in orders:
        there.came(order, "looking", times=2)
    waiting = [call["run_id"] for call in there.calls("", "pending")]
    assert [f"restate:{invocation}" in waiting for invocation in made] == [True] * len(orders)
    assert [there.paid(order) for order in orders] == [0] * len(orders)
    there.decide(made[0], "reject", "No.")
    for invocation in made[1:]:
        there.decide(invocation)
    rejected, *approved = [there.result(invocation).json() for invocation in made]
    assert rejected["status"] == "rejected"
    assert approved == [f"paid {order}" for order in orders[1:]]
    assert [there.paid(order) for order in orders] == [0, *[1] * len(approved)]
    looks = [args["order"] for args in there.points.of("at")]
    assert max(map(looks.count, orders)) <= 10, "each pause is twice as long as the one before"


def test_it_looks_by_itself_now_and_then(there: Place, name: str) -> None:
    invocation = there.order(name, look_again=0.2, points=["looking"])
    there.came(name, "looking", times=3)
    there.decide(invocation)
    assert there.result(invocation).json() == f"paid {name}"
    assert there.paid(name) == 1


def test_a_second_wake_up_changes_nothing(there: Place, name: str) -> None:  # R24
    invocation = there.order(name)
    awakeable = there.waiting(invocation)["call_id"]
    there.decide(invocation)
    for _ in range(2):
        there.settle(awakeable, "resolve", b"{}")
    assert there.result(invocation).json() == f"paid {name}"
    there.settle(awakeable, "resolve", b"{}")
    assert there.paid(name) == 1


# The page


def test_the_shortest_program_of_the_page_works_as_it_is_shown(there: Place, tmp_path: Path) -> None:
    program, settings, serve, ask, prints = BLOCK.findall(PAGE.read_text())
    assert yaml.safe_load(there.here(settings)) == yaml.safe_load((there.folder / "interlock.yaml").read_text())
    (tmp_path / "clerk.py").write_text(program)
    with terminal(there, tmp_path, f"exec {serve}"):
        wait_until(lambda: answers(there.ports["page"]), "the service is up", PATIENCE)
        with terminal(there, tmp_path, f"set -e\n{ask}") as asking:
            there.decide()
            out, err = asking.communicate(timeout=PATIENCE)
    assert out.strip() == prints.strip(), err


@contextmanager
def terminal(there: Place, folder: Path, script: str) -> Iterator[subprocess.Popen[str]]:
    """Where a reader of the page types: with the commands of the engines' environment."""
    path = f"{python_of('engines').parent}:{os.environ['PATH']}"
    ours = {"INTERLOCK_URL": there.url, "INTERLOCK_KEY": there.keys["agent"], "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(
        ["bash", "-c", there.here(script)],
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
    there: Place, name: str, victim: str, point: str
) -> None:  # R23, R33
    """Before it was asked, and when it was asked and Restate does not know of it yet."""
    with there.points.closed():
        invocation = there.order(name, points=[point])
        there.came(name, point)
        there.kill(victim)
    there.start(victim)
    there.decide(invocation)
    assert there.result(invocation).json() == f"paid {name}"
    assert there.paid(name) == 1
    assert [call["status"] for call in there.calls(invocation)] == ["succeeded"]


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_while_it_waits_it_goes_on_when_all_are_back(there: Place, name: str, victim: str) -> None:  # R23, R33
    invocation = there.order(name)
    there.suspended(invocation)
    there.again(victim)
    there.decide(invocation)
    assert there.result(invocation).json() == f"paid {name}"
    assert there.paid(name) == 1


@pytest.mark.parametrize("victim", VICTIMS)
def test_dead_when_people_decide_it_is_woken_when_it_is_back(there: Place, name: str, victim: str) -> None:  # R33
    invocation = there.order(name)
    there.suspended(invocation)
    there.kill(victim)
    there.decide(invocation)
    there.start(victim)
    assert there.result(invocation).json() == f"paid {name}"
    assert there.paid(name) == 1


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_inside_the_tool_it_is_never_run_again(there: Place, name: str, victim: str) -> None:  # R46
    """Where the tool itself lived on, how it ended is known; where it died, nobody knows, and it says so."""
    with there.effects.closed():
        invocation = there.order(name)
        there.decide(invocation)
        wait_until(lambda: there.paid(name) == 1, "the tool runs", PATIENCE)
        there.kill(victim)
    there.start(victim)
    told = there.result(invocation).json()
    assert told == f"paid {name}" or "nobody knows" in told["error"]
    assert victim != "service" or "nobody knows" in told["error"]
    assert victim != "engine" or told == f"paid {name}"
    assert there.paid(name) == 1


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_after_the_tool_and_before_the_journal_its_result_is_told(
    there: Place, name: str, victim: str
) -> None:  # R46
    invocation = there.order(name, points=["Executed"])
    with there.points.closed():
        there.decide(invocation)
        there.came(name, "Executed")
        there.kill(victim)
    there.start(victim)
    assert there.result(invocation).json() == f"paid {name}"
    assert there.paid(name) == 1
    assert [call["status"] for call in there.calls(invocation)] == ["succeeded"]
