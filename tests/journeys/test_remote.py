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
from tests.databases import Database
from tests.interlock_server import make_keys, run_server
from tests.journeys.shell import TIMEOUT, end_group
from tests.support import BOB, event_kinds, ledger_violations

TOP = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(__file__).with_name("mail_program.py"))
PROGRAMS = 20
LEASE = 2.0  # seconds; a program that a busy machine holds up for longer counts as lost
ALLOW = "version: 1\nrules: [{name: all, then: allow}]\n"


@pytest.fixture
async def desk(database: Database) -> AsyncIterator[AppServices]:
    services = build_services(database.url)
    await services.store.open()
    yield services
    await services.store.close()


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


def sent_mails(folder: Path) -> Counter[str]:
    file = folder / "ran"
    return Counter(file.read_text().split() if file.exists() else ())


async def wait_pending(desk: AppServices, count: int) -> list[Stored]:
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
    desk: AppServices, key: str, database: Database, tmp_path: Path
) -> None:
    with run_server(database.url, tmp_path) as server:
        with program(tmp_path, server.url, key, "mailer", 60, "ann", "bob") as first:
            await approve(desk, (await wait_pending(desk, 1))[0])
            assert first.stdout is not None
            assert first.stdout.readline() == "sent to ann\n"
            (waiting,) = await wait_pending(desk, 1)
            first.kill()
            first.wait()
        with program(tmp_path, server.url, key, "mailer", 60, "ann", "bob") as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "sent to ann\n"  # known, and not run again
            await approve(desk, waiting)
            assert second.stdout.readline() == "sent to bob\n"
            assert second.wait(TIMEOUT) == 0
    assert sent_mails(tmp_path) == {"ann": 1, "bob": 1}
    seen = await event_kinds(desk)
    assert (seen.count("proposed"), seen.count("run_opened"), seen.count("run_closed")) == (2, 1, 1)
    assert await ledger_violations(desk) == []


# R3, R23
async def test_programs_that_wait_go_on_when_their_server_was_killed(
    desk: AppServices, key: str, database: Database, tmp_path: Path, port: int
) -> None:
    names, url = [f"agent{number}" for number in range(PROGRAMS)], f"http://127.0.0.1:{port}"
    with ExitStack() as stack:
        with run_server(database.url, tmp_path, port=port) as server:
            running = [stack.enter_context(program(tmp_path, url, key, name, 60, name)) for name in names]
            waiting = await wait_pending(desk, PROGRAMS)
            server.kill()
        for stored in waiting[: PROGRAMS // 2]:  # decided while there is no server
            await approve(desk, stored)
        with run_server(database.url, tmp_path, port=port):
            for stored in waiting[PROGRAMS // 2 :]:
                await approve(desk, stored)
            assert [each.wait(TIMEOUT) for each in running] == [0] * PROGRAMS
    assert sent_mails(tmp_path) == dict.fromkeys(names, 1)
    seen = await event_kinds(desk)
    assert Counter(seen)["proposed"] == Counter(seen)["started"] == Counter(seen)["succeeded"] == PROGRAMS
    assert await ledger_violations(desk) == []


# R46
async def test_a_program_killed_anywhere_runs_its_tool_at_most_once(tmp_path: Path) -> None:
    """Before and after every request and the tool; what is started next goes on, or is told that nobody knows."""
    database = f"sqlite:///{tmp_path}/interlock.db"
    services = build_services(database)
    await services.store.open()
    await services.put_policy("default", ALLOW, "ada", {})
    key = (await make_keys(services))["agent"]
    ends = Counter[str]()
    with run_server(database, tmp_path) as server:
        for number in range(1, 30):
            name = f"p{number}"
            with program(tmp_path, server.url, key, name, LEASE, name, fault=f"kill:{number}") as first:
                first.wait(TIMEOUT)
                printed = first.communicate()[0]
            if printed and not await services.store.runs("default", name):  # it had finished, and said so
                break
            with program(tmp_path, server.url, key, name, LEASE, name) as second:
                printed = second.communicate(timeout=TIMEOUT)[0].strip()
            times = sent_mails(tmp_path)[name]
            assert (printed, times) in ((f"sent to {name}", 1), ("unknown", 0), ("unknown", 1)), number
            ends[printed.split()[0]] += 1
    assert number >= 13
    assert ends["sent"] >= 8
    assert ends["unknown"] >= 2
    assert set(sent_mails(tmp_path).values()) == {1}
    assert await ledger_violations(services) == []
    await services.store.close()


# R46
async def test_a_program_killed_inside_its_tool_is_not_run_again(
    desk: AppServices, key: str, database: Database, tmp_path: Path
) -> None:
    await desk.put_policy("default", ALLOW, "ada", {})
    with run_server(database.url, tmp_path) as server:
        with program(tmp_path, server.url, key, "mailer", LEASE, "ann", fault="kill:after the tool#1") as first:
            assert first.wait(TIMEOUT) == -9
        with program(tmp_path, server.url, key, "mailer", LEASE, "ann") as second:
            assert second.communicate(timeout=TIMEOUT)[0] == "unknown\n"
            assert second.returncode == 1
    assert sent_mails(tmp_path) == {"ann": 1}
