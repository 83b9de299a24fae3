"""A database that can only be read; `python -m tests.faults.read_only --times 20` for longer runs."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from interlock.app.bootstrap import build_services
from interlock.core.errors import StoreUnavailable
from interlock.storage.postgres.connection import retry_on_lost_connection
from tests.databases import SqliteFile, migrated_template
from tests.faults.cuts import SOCKET, CuttingProxy
from tests.faults.database_controls import NOTICED
from tests.faults.read_only import start_standby
from tests.faults.reports import is_caught, run_suite
from tests.postgres import Server
from tests.support import Clock, approve, ledger_violations, open_services, propose_pending, status

REPOSITORY = Path(__file__).resolve().parents[2]
LOOK = """
import asyncio, sys
from interlock.core.errors import StoreUnavailable
from interlock.app.bootstrap import build_services
try:
    asyncio.run(build_services(sys.argv[1]).store.open())
except StoreUnavailable as error:
    print(error.message)
"""


@pytest.mark.parametrize("how", ["setting", "failover"])
def test_what_can_only_be_read_runs_nothing_loses_nothing_and_goes_on_afterwards(how: str) -> None:
    result = run_suite("read_only", "--how", how, "--times", "1")
    assert result["wrong"] == []
    assert result["errors"]["store_unavailable"] >= 10
    assert result["succeeded"] >= result["operations"] / 2


def test_a_gate_that_opens_when_nothing_can_be_recorded_would_be_noticed() -> None:
    """The red control."""
    assert is_caught("read_only", "--times", "2", "--broken", "fail-open", noticed=NOTICED["fail-open"])


async def test_a_program_that_was_led_to_a_standby_finds_its_way_back_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody cuts the connection to the standby: it is given up because it does not take what is written."""
    monkeypatch.setattr(retry_on_lost_connection, "__defaults__", (0.3,))
    with Server(durable=False) as primary, start_standby(primary) as standby:
        primary.create_database("readonly", migrated_template(primary))
        with CuttingProxy(tmp_path, primary.sockets / SOCKET, random.Random(0), 0) as led:
            services = build_services(f"postgresql://postgres@/readonly?host={quote(str(tmp_path), safe='')}")
            await services.store.open()
            try:
                approval_id = await propose_pending(services)
                wait_for_standby(primary, standby)
                led.server = standby.sockets / SOCKET
                led.end()
                assert await status(services, approval_id) == "pending"  # the standby can be read
                with pytest.raises(StoreUnavailable, match="read-only"):
                    await approve(services, approval_id)
                led.server = primary.sockets / SOCKET
                assert await approve(services, approval_id) == "approved"
                assert await ledger_violations(services) == []
            finally:
                await services.store.close()


def wait_for_standby(primary: Server, standby: Server) -> None:
    """Waits until the standby has all that the primary has now."""
    with primary.connect() as connection:
        target = connection.execute("select pg_current_wal_lsn()").fetchall()[0]
    with standby.connect() as connection:
        while not connection.execute("select pg_last_wal_replay_lsn() >= %s", target).fetchall()[0][0]:
            time.sleep(0.01)


async def test_a_file_that_cannot_be_written_is_said_to_be_so_and_opens_again_later(
    tmp_path: Path, clock: Clock
) -> None:
    database = SqliteFile(tmp_path / "interlock.db")
    async with open_services(database, clock) as services:
        approval_id = await propose_pending(services)
    assert "interlock.db.lock cannot be opened: " in run_look(tmp_path, database.url)
    async with open_services(database, clock) as services:
        assert await approve(services, approval_id) == "approved"
        assert await ledger_violations(services) == []


def run_look(folder: Path, url: str) -> str:
    """What a program says that opens the file while its folder cannot be written; root may write everywhere else."""
    look = [sys.executable, "-c", LOOK, url]
    if os.geteuid() != 0:
        for path in (*folder.iterdir(), folder):
            path.chmod(path.stat().st_mode & ~0o222)
        done = subprocess.run(look, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        for path in (folder, *folder.iterdir()):
            path.chmod(path.stat().st_mode | 0o200)
        return done.stdout + done.stderr
    mounts = f'mount --bind {folder} {folder} && mount -o remount,bind,ro {folder} && exec "$@"'
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("root cannot be kept from writing here")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mounts, "-", *look], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr
