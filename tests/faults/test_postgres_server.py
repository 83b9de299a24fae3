"""The PostgreSQL server of the tests: its owner, who can reach it, and that nothing of it is left behind."""

from __future__ import annotations

import os
import pwd
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres import ForeignServer, Server, find_binaries
from tests.server_process import MEMORY_FOLDER, has_room

REPOSITORY = Path(__file__).resolve().parents[2]
HOLDER = """
import os, sys
from tests.postgres import Server
server = Server(durable=False)
server.start()
with server.connect() as connection:
    print(server.folder, server.pid(), os.getpid(), flush=True)
    sys.stdin.read()
"""

if not sys.platform.startswith("linux"):
    pytest.skip("looks into /proc", allow_module_level=True)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(durable=False) as started:
        yield started


def test_server_runs_as_an_ordinary_user(server: Server) -> None:
    owner = Path(f"/proc/{server.pid()}").stat().st_uid
    assert owner != 0
    assert owner == (pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid())


def test_server_is_reached_by_its_socket_only_and_by_no_other_user(server: Server) -> None:
    with server.connect() as connection:
        assert connection.execute("show listen_addresses").fetchone() == ("",)
    assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700
    sockets = [path for path in server.folder.iterdir() if path.is_socket()]
    assert [len(str(path)) < 100 for path in sockets] == [True]
    assert listening(server.pid(), "tcp") | listening(server.pid(), "tcp6") == set()


def test_durable_unless_told_otherwise(postgres_server: Server, server: Server) -> None:
    answers = []
    for each in (postgres_server, server):
        with each.connect() as connection:
            answers.append([connection.execute(f"show {name}").fetchone() for name in ("fsync", "synchronous_commit")])
    assert answers == [[("on",), ("on",)], [("off",), ("off",)]]


@pytest.mark.skipif(not has_room(MEMORY_FOLDER), reason="there is not enough memory to keep a server in")
def test_a_server_in_memory_is_kept_in_memory() -> None:
    with Server(in_memory=True) as server, server.connect():
        assert server.data.is_relative_to(MEMORY_FOLDER)


def test_each_test_gets_a_database_of_its_own(postgres_url: str, postgres_server: Server) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("create table t (n int)")
    other = postgres_server.create_database("other")
    with psycopg.connect(other) as connection, pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("select from t")
    postgres_server.drop_database("other")


def test_a_template_is_filled_once_and_cloned(server: Server) -> None:
    fillings = []

    def fill(url: str) -> None:
        fillings.append(url)
        with psycopg.connect(url) as connection:
            connection.execute("create table t as select 7 as n")

    urls = [server.create_database(name, server.template("filled", fill)) for name in ("one", "two")]
    assert fillings == [server.url("filled")]
    for url in urls:
        with psycopg.connect(url) as connection:
            assert connection.execute("select n from t").fetchone() == (7,)


def test_dropping_a_database_throws_out_who_is_connected(server: Server) -> None:
    with psycopg.connect(server.create_database("used"), autocommit=True) as connection:
        server.drop_database("used")
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")


def test_nothing_is_done_on_a_server_that_is_not_ours(server: Server, postgres_server: Server) -> None:
    server.sockets = postgres_server.sockets
    with pytest.raises(ForeignServer):
        server.create_database("intruder")
    with pytest.raises(ForeignServer):
        server.drop_database("postgres")
    with postgres_server.connect() as connection:
        assert connection.execute("select from pg_database where datname = 'intruder'").fetchone() is None


@pytest.mark.parametrize("crash", [lambda server: server.stop("immediate"), Server.kill], ids=["immediate", "kill"])
def test_what_was_committed_is_there_after_a_crash(crash: Callable[[Server], None]) -> None:
    with Server() as server, psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("create table t as select 7 as n")
        before = server.pid()
        crash(server)
        assert not server.running()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")
        server.start()
        assert server.pid() != before
        with server.connect() as again:
            assert again.execute("select n from t").fetchone() == (7,)


def test_restart_is_the_same_server_with_another_postmaster(server: Server) -> None:
    before = server.pid()
    server.restart("fast")
    assert server.running()
    assert server.pid() != before


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(RuntimeError, match=r"no_such_setting"), Server(settings={"no_such_setting": "1"}):
        pytest.fail("it started")


@pytest.mark.parametrize("end", ["leave", "interrupt", "kill", "kill the keeper"])
def test_nothing_stays_behind(end: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        cwd=REPOSITORY,
        env={name: value for name, value in os.environ.items() if name != "HOME"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        folder, postmaster, pid = holder.stdout.readline().split()
        assert Path(folder).exists()
        match end:
            case "leave":
                holder.communicate()
            case "interrupt":
                holder.send_signal(signal.SIGINT)
            case "kill":
                holder.kill()
            case _:
                os.kill(keeper_pid(int(pid)), signal.SIGKILL)
    wait_until(lambda: not is_alive(int(postmaster)))
    if end != "kill the keeper":  # nobody is left to remove the folder then
        wait_until(lambda: not Path(folder).exists())
    else:
        remove(Path(folder))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands its server to another user")
def test_programs_that_nobody_can_reach_are_copied(tmp_path: Path) -> None:
    """A clone below a closed folder, as root's home is."""
    found = find_binaries()
    (tmp_path / "closed").mkdir(mode=0o700)
    (tmp_path / "closed" / "packages").symlink_to(found.parents[2])
    hidden = tmp_path / "closed" / "packages" / found.relative_to(found.parents[2])
    with Server(durable=False, binaries=hidden) as server, server.connect():
        assert server.binaries.is_relative_to(server.folder)
        dump = [str(server.program("pg_dump")), "--dbname", server.url()]
        assert "PostgreSQL database dump" in subprocess.run(dump, capture_output=True, text=True, check=True).stdout


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not happen within 30 seconds"
        time.sleep(0.01)


def listening(pid: int, kind: str) -> set[str]:
    """Sockets of this process that listen for this kind of connection."""
    inodes = {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
    rows = [line.split() for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]]
    return {row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes}


def keeper_pid(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(next(child for child in children if b"server_process.py" in Path(f"/proc/{child}/cmdline").read_bytes()))


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def remove(folder: Path) -> None:
    subprocess.run(["rm", "-r", folder], check=True)
