"""Programs and a server in processes of their own, killed and started again: nothing is asked or run twice."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.decision import Acknowledgement, Approve
from interlock.core.ledger.event import Stored
from interlock.core.ports import ApprovalQuery
from tests.databases import Place
from tests.interlock_server import make_keys, serving
from tests.journeys.shell import PATIENCE, end_group
from tests.support import BOB, faults, kinds

TOP = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(__file__).with_name("mail_program.py"))
PROGRAMS = 20
LEASE = 2.0  # seconds; a program that a busy machine holds up for longer counts as lost
ALLOW = "version: 1\nrules: [{name: all, then: allow}]\n"


@pytest.fixture
async def desk(place: Place) -> AsyncIterator[AppServices]:
    parts = build_services(place.url)
    await parts.store.open()
    yield parts
    await parts.store.close()


@pytest.fixture
async def key(desk: AppServices) -> str:
    return (await make_keys(desk))["agent"]


@pytest.fixture
def port() -> int:
    """One that is free, and stays the server's when it is started again."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free: int = taken.getsockname()[1]
    return free


@contextmanager
def program(
    folder: Path, url: str, key: str, agent: str, lease: float, *to: str, fault: str = ""
) -> Iterator[subprocess.Popen[str]]:
    with_faults = ["-m", "tests.faults.points", fault] if fault else []
    command = [sys.executable, *with_faults, PROGRAM, agent, str(lease), *to]
    env = {**os.environ, "SERVER": url, "KEY": key, "PYTHONPATH": f"{TOP}:{TOP / 'src'}"}
    with (folder / "program.log").open("a") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=log, text=True, process_group=0
        )
    try:
        yield process
    finally:
        end_group(process)


def ran(folder: Path) -> Counter[str]:
    file = folder / "ran"
    return Counter(file.read_text().split() if file.exists() else ())


async def pending(desk: AppServices, count: int) -> list[Stored]:
    """Waits until so many wait for people."""
    async with desk.store.watch("default") as watch:
        while True:
            page = await desk.store.list("default", ApprovalQuery(statuses=("pending",), limit=100))
            if len(page.items) >= count:
                return list(page.items)
            await watch.wait(1)


async def approve(desk: AppServices, stored: Stored) -> None:
    await desk.inbox.decide("default", stored.approval.id, Approve(Acknowledgement(stored.approval.args_sha256)), BOB)


# R23, R46
@pytest.mark.smoke
async def test_a_program_that_is_killed_and_started_again_asks_nothing_twice(
    desk: AppServices, key: str, place: Place, tmp_path: Path
) -> None:
    with serving(place.url, tmp_path) as server:
        with program(tmp_path, server.url, key, "mailer", 60, "ann", "bob") as first:
            await approve(desk, (await pending(desk, 1))[0])
            assert first.stdout is not None
            assert first.stdout.readline() == "sent to ann\n"
            (waiting,) = await pending(desk, 1)
            first.kill()
            first.wait()
        with program(tmp_path, server.url, key, "mailer", 60, "ann", "bob") as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "sent to ann\n"  # known, and not run again
            await approve(desk, waiting)
            assert second.stdout.readline() == "sent to bob\n"
            assert second.wait(PATIENCE) == 0
    assert ran(tmp_path) == {"ann": 1, "bob": 1}
    seen = await kinds(desk)
    assert (seen.count("proposed"), seen.count("run_opened"), seen.count("run_closed")) == (2, 1, 1)
    assert await faults(desk) == []


# R3, R23
async def test_programs_that_wait_go_on_when_their_server_was_killed(
    desk: AppServices, key: str, place: Place, tmp_path: Path, port: int
) -> None:
    names, url = [f"agent{number}" for number in range(PROGRAMS)], f"http://127.0.0.1:{port}"
    with ExitStack() as stack:
        with serving(place.url, tmp_path, port=port) as server:
            running = [stack.enter_context(program(tmp_path, url, key, name, 60, name)) for name in names]
            waiting = await pending(desk, PROGRAMS)
            server.kill()
        for stored in waiting[: PROGRAMS // 2]:  # decided while there is no server
            await approve(desk, stored)
        with serving(place.url, tmp_path, port=port):
            for stored in waiting[PROGRAMS // 2 :]:
                await approve(desk, stored)
            assert [each.wait(PATIENCE) for each in running] == [0] * PROGRAMS
    assert ran(tmp_path) == dict.fromkeys(names, 1)
    seen = await kinds(desk)
    assert Counter(seen)["proposed"] == Counter(seen)["started"] == Counter(seen)["succeeded"] == PROGRAMS
    assert await faults(desk) == []


# R46
async def test_a_program_killed_anywhere_runs_its_tool_at_most_once(tmp_path: Path) -> None:
    """Before and after every request and the tool; what is started next goes on, or is told that nobody knows."""
    database = f"sqlite:///{tmp_path}/interlock.db"
    parts = build_services(database)
    await parts.store.open()
    await parts.put_policy("default", ALLOW, "ada", {})
    key = (await make_keys(parts))["agent"]
    ends = Counter[str]()
    with serving(database, tmp_path) as server:
        for number in range(1, 30):
            name = f"p{number}"
            with program(tmp_path, server.url, key, name, LEASE, name, fault=f"kill:{number}") as first:
                first.wait(PATIENCE)
                printed = first.communicate()[0]
            if printed and not await parts.store.runs("default", name):  # it had finished, and said so
                break
            with program(tmp_path, server.url, key, name, LEASE, name) as second:
                printed = second.communicate(timeout=PATIENCE)[0].strip()
            times = ran(tmp_path)[name]
            assert (printed, times) in ((f"sent to {name}", 1), ("unknown", 0), ("unknown", 1)), number
            ends[printed.split()[0]] += 1
    assert number >= 13
    assert ends["sent"] >= 8
    assert ends["unknown"] >= 2
    assert set(ran(tmp_path).values()) == {1}
    assert await faults(parts) == []
    await parts.store.close()


# R46
async def test_a_program_killed_inside_its_tool_is_not_run_again(
    desk: AppServices, key: str, place: Place, tmp_path: Path
) -> None:
    await desk.put_policy("default", ALLOW, "ada", {})
    with serving(place.url, tmp_path) as server:
        with program(tmp_path, server.url, key, "mailer", LEASE, "ann", fault="kill:after the tool#1") as first:
            assert first.wait(PATIENCE) == -9
        with program(tmp_path, server.url, key, "mailer", LEASE, "ann") as second:
            assert second.communicate(timeout=PATIENCE)[0] == "unknown\n"
            assert second.returncode == 1
    assert ran(tmp_path) == {"ann": 1}
