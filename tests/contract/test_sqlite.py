"""SQLite alone: file errors and file permissions."""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.errors import Misconfigured, StoreUnavailable
from interlock.storage.migrate import migrate_sqlite
from tests.databases import Database, SqliteFile
from tests.support import OK, WRITE, Clock, approve, call, ledger_violations, open_services, propose_pending, status


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return SqliteFile(tmp_path / "interlock.db")


def make_read_only(services: AppServices, path: Path) -> Callable[[], Any]:
    connection = services.store._database._connection  # type: ignore[attr-defined]
    connection.execute("pragma query_only = on")
    return lambda: connection.execute("pragma query_only = off")


def fill_disk(services: AppServices, path: Path) -> Callable[[], Any]:
    connection = services.store._database._connection  # type: ignore[attr-defined]
    pages = connection.execute("pragma page_count").fetchone()[0]
    connection.execute(f"pragma max_page_count = {pages}")
    return lambda: connection.execute("pragma max_page_count = 1000000")


def remove_folder(services: AppServices, path: Path) -> Callable[[], Any]:
    os.rename(path, path.with_name("away"))
    return lambda: os.rename(path.with_name("away"), path)


@pytest.mark.parametrize(
    ("trouble", "words"), [(make_read_only, "read-only"), (fill_disk, "full"), (remove_folder, "gone")]
)
async def test_a_database_in_trouble_runs_nothing_and_loses_nothing(
    services: AppServices, tmp_path: Path, trouble: Callable[[AppServices, Path], Callable[[], Any]], words: str
) -> None:
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    mend = trouble(services, tmp_path / "interlock.db")
    large = {"path": "x" * 200_000}
    with pytest.raises(StoreUnavailable, match=words):
        await services.gate.check(call(2, large), WRITE)
    if trouble is not fill_disk:  # a small change may still fit
        with pytest.raises(StoreUnavailable, match=words):
            await services.gate.start("default", approval_id, "r")
    mend()
    execution = await services.gate.start("default", approval_id, "r")
    await services.gate.finish("default", approval_id, execution.fence, ok=True, payload=OK)
    assert await status(services, approval_id) == "succeeded"
    await propose_pending(services, 2, args=large)
    assert await ledger_violations(services) == []


async def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "a.db").write_text("hello, I am a text file and certainly not a database\n" * 10)
    with pytest.raises(StoreUnavailable, match="not a database"):
        async with open_services(tmp_path / "a.db", clock):
            pass
    assert "hello" in (tmp_path / "a.db").read_text()


async def test_another_programs_database_is_not_touched(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "theirs.db"
    with sqlite3.connect(path) as raw:
        raw.execute("create table theirs (x)")
    raw.close()
    with pytest.raises(Misconfigured, match="another program"):
        async with open_services(path, clock):
            pass


def test_a_migration_that_dies_half_way_runs_again_from_the_start(tmp_path: Path) -> None:
    class Dies:
        """Fails at the n-th statement, as a killed process would: nothing after it is heard."""

        def __init__(self, connection: sqlite3.Connection, at: int) -> None:
            self.connection, self.left = connection, at

        def execute(self, text: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
            self.left -= 1
            if self.left <= 0:
                raise InterruptedError
            return self.connection.execute(text, values)

    died = 0
    for at in range(1, 200):
        path = tmp_path / f"{at}.db"
        raw = sqlite3.connect(path, isolation_level=None)
        try:
            migrate_sqlite(Dies(raw, at), 0)
            break
        except InterruptedError:
            died += 1
        finally:
            raw.close()
        with sqlite3.connect(path, isolation_level=None) as again:
            migrate_sqlite(again, 0)
            assert again.execute("select count(*) from transitions").fetchone() == (16,)
        again.close()
    assert died > 20


async def test_nothing_private_is_left_readable_by_others(services: AppServices, tmp_path: Path) -> None:
    await propose_pending(services)
    for name in ("interlock.db", "interlock.db.lock"):
        assert os.stat(tmp_path / name).st_mode & 0o077 == 0, name


async def test_a_large_batch_writes_its_log_and_nothing_else(services: AppServices, tmp_path: Path) -> None:
    """To take back one statement SQLite copies the pages that it changes, for many rows into a temporary file."""
    log = tmp_path / "interlock.db-wal"
    ids = await asyncio.gather(*(propose_pending(services, n) for n in range(200)))
    begun = _bytes_written() - log.stat().st_size
    await asyncio.gather(*(approve(services, approval_id) for approval_id in ids))
    await asyncio.gather(*(propose_pending(services, n) for n in range(200, 400)))
    assert _bytes_written() - log.stat().st_size - begun < 64 * 1024


def _bytes_written() -> int:
    """By this process, whatever the file."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("wchar")).split()[1])
