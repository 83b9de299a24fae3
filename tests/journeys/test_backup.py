"""Backup and restore: a copy made while others write is whole, and an older one is noticed."""

from __future__ import annotations

import asyncio
import json
import shlex
import sqlite3
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from interlock.app import audit
from interlock.app.bootstrap import build_services, wall_clock
from interlock.core.errors import InvalidRequest, Misconfigured
from interlock.storage.sqlite import database as backup
from tests.databases import migrated_template
from tests.journeys.seeds import MAIL, propose_mail
from tests.journeys.shell import Shell
from tests.postgres import Server
from tests.support import Clock, open_services, propose_pending

pytestmark = pytest.mark.smoke

CUT = "The chain ends before the saved head"


def ignore_progress(done: int, pages: int) -> None:
    """For those who need not be told."""


async def fill(shell: Shell, count: int) -> None:
    async with open_services(shell.path, Clock(wall_clock())) as services:
        await asyncio.gather(
            *(propose_pending(services, f"full{n}", MAIL, args={"to": "x" * 500}) for n in range(count))
        )


def restore(shell: Shell, copy: str) -> None:
    """As the page on backups says: nobody has it open, and the old files are moved away together."""
    for suffix in ("", "-wal", "-shm"):
        old = Path(f"{shell.path}{suffix}")
        if old.exists():
            old.rename(f"{old}.broken")
    (shell.folder / copy).rename(shell.path)


def head_line(out: str) -> str:
    return out.splitlines()[-1]


async def test_a_copy_made_while_others_write_is_one_moment_of_the_database(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:  # R49
    """After each step of the copying somebody commits; without one moment held fast, it would start over each time."""
    monkeypatch.setattr(backup, "PAGES_PER_STEP", 20)
    await fill(shell, 300)
    async with open_services(shell.path, Clock(wall_clock())) as services:
        before, loop, seen = await services.store.head("default"), asyncio.get_running_loop(), []

        def told(done: int, pages: int) -> None:
            seen.append(done)
            written = asyncio.run_coroutine_threadsafe(propose_pending(services, f"busy{len(seen)}"), loop)
            written.result(30)

        copy = await asyncio.to_thread(backup.make_backup, shell.path, shell.folder / "copy.db", told)
        assert (await services.store.head("default")).seq == before.seq + len(seen)
    assert len(seen) > 5
    assert seen == sorted(set(seen))
    assert copy.heads == (before,)
    copied = build_services(f"sqlite:///{copy.path}")
    await copied.store.open()
    report = await audit.verify(copied.store, "default", before)
    await copied.store.close()
    assert (report.violations, report.entries) == ((), before.seq)


async def test_the_command_copies_while_others_write(shell: Shell) -> None:
    await fill(shell, 100)
    async with open_services(shell.path, Clock(wall_clock())) as services:
        copying, number = shell.start("backup", "copy.db"), 0
        while copying.poll() is None:
            number += 1
            await propose_pending(services, f"busy{number}")
    out, err = copying.communicate()
    assert (copying.returncode, err) == (0, b"")
    assert number > 1
    (shell.folder / "head.json").write_text(head_line(out.decode()))
    assert shell("audit", "verify", "--head", "head.json", "--database", "sqlite:///copy.db").code == 0


async def test_a_backup_is_one_file_for_its_owner_alone(shell: Shell) -> None:
    await propose_mail(shell)
    done = shell("backup", "copy.db", "--json")
    head = shell("audit", "head").json
    copy = shell.folder / "copy.db"
    assert done.json == {"file": str(copy), "bytes": copy.stat().st_size, "heads": [head]}
    assert copy.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in shell.folder.iterdir() if path.name.startswith("copy")] == ["copy.db"]
    told = shell("backup", "again.db").out.splitlines()
    assert told[0].endswith(f"again.db: {copy.stat().st_size:,} bytes, checked.")
    assert json.loads(told[-1]) == head


async def test_work_goes_on_from_a_restored_backup(shell: Shell) -> None:  # R49
    waiting = await propose_mail(shell)
    (shell.folder / "head.json").write_text(head_line(shell("backup", "copy.db").out))
    shell.path.write_bytes(b"a disk died")
    restore(shell, "copy.db")
    assert shell("audit", "verify", "--head", "head.json").code == 0
    assert shell("approvals", "approve", waiting).code == 0
    await propose_mail(shell, 2)
    assert shell("audit", "verify", "--head", "head.json").code == 0
    assert shell("doctor").code == 0


async def test_an_older_backup_is_noticed_by_a_newer_head(shell: Shell) -> None:  # R49
    waiting = await propose_mail(shell)
    shell("backup", "copy.db")
    shell("approvals", "approve", waiting)
    (shell.folder / "head.json").write_text(shell("audit", "head").out)
    restore(shell, "copy.db")
    assert shell("audit", "verify").code == 0
    done = shell("audit", "verify", "--head", "head.json")
    assert done.code == 1
    assert CUT in done.out


def test_a_backup_is_never_overwritten(shell: Shell) -> None:
    shell("migrate")
    (shell.folder / "copy.db").write_text("the last good one")
    done = shell("backup", "copy.db")
    assert (done.code, done.out) == (2, "")
    assert "never overwritten" in done.err
    assert (shell.folder / "copy.db").read_text() == "the last good one"
    before = shell.path.read_bytes()
    assert shell("backup", shell.path.name).code == 2
    assert shell.path.read_bytes() == before


def test_what_is_missing_is_named(shell: Shell) -> None:
    done = shell("backup", "copy.db")
    assert (done.code, "There is no database at" in done.err) == (2, True)
    shell("migrate")
    done = shell("backup", "nowhere/copy.db")
    assert (done.code, "Create it first" in done.err) == (2, True)
    assert not shell.path.with_name("copy.db").exists()


def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("create table heads (name text)")
    with pytest.raises(Misconfigured, match="not a database of Interlock"):
        backup.make_backup(tmp_path / "other.db", tmp_path / "copy.db", ignore_progress)
    assert [path.name for path in tmp_path.iterdir()] == ["other.db"]


async def test_a_copy_that_was_stopped_leaves_nothing(shell: Shell) -> None:
    await propose_mail(shell)

    def stop(done: int, pages: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        backup.make_backup(shell.path, shell.folder / "copy.db", stop)
    assert [path.name for path in shell.folder.iterdir() if path.name.startswith("copy")] == []
    with pytest.raises(InvalidRequest):
        backup.make_backup(shell.path, shell.path, ignore_progress)


async def test_a_database_is_copied_as_it_is_before_an_upgrade(shell: Shell) -> None:
    """An older one must not be brought up to date by the backup that is made for going back."""
    await propose_mail(shell)
    with closing(sqlite3.connect(shell.path)) as connection, connection:
        connection.execute("delete from migrations where number > 1")
    assert shell("backup", "copy.db").code == 0
    with closing(sqlite3.connect(shell.folder / "copy.db")) as copy:
        assert copy.execute("select number from migrations").fetchall() == [(1,)]


# PostgreSQL


@pytest.fixture
def based(shell: Shell, postgres_server: Server, postgres_database: str) -> Shell:
    """The command on a database of PostgreSQL."""
    postgres_server.drop_database(postgres_database)
    postgres_server.create_database(postgres_database, migrated_template(postgres_server))
    shell.extra["INTERLOCK_DATABASE_URL"] = postgres_server.url(postgres_database)
    return shell


@pytest.fixture
def restored(based: Shell, postgres_server: Server) -> Iterator[Callable[[str], None]]:
    """Restores a dump into a new database, and lets the command work on that."""
    name = f"restored_{uuid.uuid4().hex}"

    def restore(dump: str) -> None:
        url = postgres_server.create_database(name)
        program = [postgres_server.program("pg_restore"), "--exit-on-error", "--no-owner", f"--dbname={url}", dump]
        done = subprocess.run(program, cwd=based.folder, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        based.extra["INTERLOCK_DATABASE_URL"] = url

    yield restore
    postgres_server.drop_database(name)


async def mail_there(shell: Shell, number: int = 1) -> str:
    services = build_services(shell.extra["INTERLOCK_DATABASE_URL"])
    await services.store.open()
    try:
        return await propose_pending(services, number, MAIL, args={"to": "bob"})
    finally:
        await services.store.close()


def dump(shell: Shell, server: Server, name: str) -> None:
    """By the very command that `interlock backup` prints."""
    told = shell("backup", name)
    assert (told.code, told.out) == (2, "")
    program, *words = shlex.split(told.err.splitlines()[1])
    done = subprocess.run([server.program(program), *words], cwd=shell.folder, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.nightly
async def test_work_goes_on_from_a_restored_dump(
    based: Shell, postgres_server: Server, restored: Callable[[str], None]
) -> None:  # R49
    waiting = await mail_there(based)
    dump(based, postgres_server, "copy.dump")
    (based.folder / "head.json").write_text(based("audit", "head").out)
    restored("copy.dump")
    assert based("audit", "verify", "--head", "head.json").code == 0
    assert based("approvals", "approve", waiting).code == 0
    await mail_there(based, 2)
    done = based("audit", "verify", "--head", "head.json")
    assert (done.code, done.out.startswith("valid: 3 entries")) == (0, True), done


@pytest.mark.nightly
async def test_an_older_dump_is_noticed_by_a_newer_head(
    based: Shell, postgres_server: Server, restored: Callable[[str], None]
) -> None:  # R49
    waiting = await mail_there(based)
    dump(based, postgres_server, "copy.dump")
    assert based("approvals", "approve", waiting).code == 0
    (based.folder / "head.json").write_text(based("audit", "head").out)
    restored("copy.dump")
    assert based("audit", "verify").code == 0
    done = based("audit", "verify", "--head", "head.json")
    assert (done.code, CUT in done.out) == (1, True), done


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            "postgresql://app:hunter2@db.example:5433/interlock?sslmode=require",
            "postgresql://app@db.example:5433/interlock?sslmode=require",
        ),
        (
            "postgresql://app@db.example/interlock?password=hunter2&sslmode=require",
            "postgresql://app@db.example/interlock?sslmode=require",
        ),
        (
            "postgres:///interlock?host=/run/postgresql&user=app&password=hunter2",
            "postgres:///interlock?host=/run/postgresql&user=app",
        ),
        ("postgresql://db.example/a%20b", "postgresql://db.example/a%20b"),
    ],
)
def test_the_command_for_postgresql_holds_no_password(shell: Shell, url: str, shown: str) -> None:
    done = shell("backup", "copy.dump", "--database", url)
    assert (done.code, done.out, "hunter2" in done.err) == (2, "", False)
    assert "nothing was copied" in done.err
    words = ["pg_dump", "--format=custom", "--file=copy.dump", f"--dbname={shown}"]
    assert shlex.split(done.err.splitlines()[1]) == words
