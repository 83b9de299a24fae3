"""Fills the disk under a database while programs work on it, and frees it again. Run as a program of its own:

    python -m tests.faults.disks [--database sqlite|postgresql] [--disk limit|small] [--times N]
                                 [--broken fail-open|unheard]

`limit` forbids the processes that write to make files any longer (RLIMIT_FSIZE), which works for everybody; `small`
is a file system in memory that is filled to its last byte, for which one has to be root. While it is full nothing may
run that is not recorded, and looking has to work; afterwards the programs go on by themselves. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.databases import migrated_template
from tests.faults.load_runner import LoadPrograms, check_load, run_load
from tests.postgres import Server

ALLOWED = ("store_unavailable",)
BULK = ("--bytes", "6000")  # of each call, so that a full disk is soon felt
ROOM = 192 << 20  # bytes of a small disk, enough for what the programs write
INSIDE = "INTERLOCK_TEST_MOUNTS"  # set in a process whose mounts nobody else sees
Fill = Callable[[LoadPrograms], None]


@dataclass(frozen=True)
class Disk:
    url: str
    fill: Fill
    free: Fill


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--disk", choices=["limit", "small"], default="limit")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--programs", type=int, default=2)
    parser.add_argument("--broken", default="")
    options = parser.parse_args()
    if options.disk == "small" and INSIDE not in os.environ:
        os.execvpe(  # noqa: S606  it needs none
            "unshare", ["unshare", "-m", sys.executable, "-m", "tests.faults.disks", *sys.argv[1:]], run_in_mount()
        )
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)  # noqa: S103  the server is somebody else, who has to pass
        made = {("sqlite", "limit"): limited_file, ("sqlite", "small"): small_file}
        made |= {("postgresql", "limit"): limited_server, ("postgresql", "small"): small_server}
        with made[options.database, options.disk](Path(folder)) as disk:
            result = run(disk, Path(folder), options)
    print(json.dumps({**result, "seconds": round(time.monotonic() - began, 1)}))


def run_in_mount() -> dict[str, str]:
    return {**os.environ, INSIDE: "1"}


def run(disk: Disk, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    broken = ["--broken", options.broken] if options.broken else []
    with run_load(disk.url, folder, options.programs, *BULK, *broken) as made:
        for _ in range(options.times):
            made.wait_for_lines(what="succeeded")
            disk.fill(made)
            made.wait_for_lines(4, "error ")
            disk.free(made)
        made.wait_for_lines(what="succeeded")
    suite = f"full disk, {options.disk}"
    return {"suite": suite, "database": options.database, "faults": options.times} | check_load(disk.url, made, ALLOWED)


# A limit on the length of files


@contextmanager
def limited_file(folder: Path) -> Iterator[Disk]:
    def limit(made: LoadPrograms, size: str) -> None:
        for program in made.programs:
            set_limit(program.pid, size)

    def fill(made: LoadPrograms) -> None:
        """What the programs write down of it goes to files too, and needs some room."""
        limit(made, str(max(path.stat().st_size for path in made.logs) + (512 << 10)))

    yield Disk(f"sqlite:///{folder}/interlock.db", fill, lambda made: limit(made, "unlimited"))


@contextmanager
def limited_server(folder: Path) -> Iterator[Disk]:
    """The log has short files here, so that the limit meets tables; a log that cannot be written ends the server."""
    with Server(durable=False, initdb=["--wal-segsize=1"]) as server:
        server.create_database("disks", migrated_template(server))

        def limit(size: str) -> None:
            find = "select pid from pg_stat_activity where datname = 'disks' and application_name = 'interlock'"
            with server.connect() as connection:
                for (pid,) in connection.execute(find).fetchall():
                    set_limit(pid, size)

        yield Disk(server.url("disks"), lambda _: limit(str(1 << 20)), lambda _: limit("unlimited"))


def set_limit(pid: int, size: str) -> None:
    """By the owner of the process, who may always."""
    owner = os.stat(f"/proc/{pid}").st_uid
    other = {"user": owner, "group": pwd.getpwuid(owner).pw_gid, "extra_groups": []} if owner != os.geteuid() else {}
    command = ["prlimit", "--pid", str(pid), f"--fsize={size}:unlimited"]
    subprocess.run(command, check=True, **other)  # type: ignore[call-overload]


# A small file system


@contextmanager
def small_file(folder: Path) -> Iterator[Disk]:
    with small_mount(folder / "small") as room:
        yield Disk(f"sqlite:///{room}/interlock.db", lambda _: fill_mount(room), lambda _: free_mount(room))


@contextmanager
def small_server(folder: Path) -> Iterator[Disk]:
    """Tables are on the small disk; the log is not, since without a log there is no server."""
    with small_mount(folder / "small") as room, Server(durable=False) as server:
        shutil.chown(room, server.data.stat().st_uid)
        with server.connect() as connection:
            connection.execute(f"create tablespace small location '{room}'".encode())
            connection.execute(f"create database disks template {migrated_template(server)} tablespace small".encode())
        yield Disk(server.url("disks"), lambda _: fill_mount(room), lambda _: free_mount(room))


@contextmanager
def small_mount(room: Path) -> Iterator[Path]:
    room.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "small", room], check=True)
    try:
        yield room
    finally:
        subprocess.run(["umount", "-l", room], check=True)


def fill_mount(room: Path) -> None:
    with (room / "ballast").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def free_mount(room: Path) -> None:
    (room / "ballast").unlink()


if __name__ == "__main__":
    main()
