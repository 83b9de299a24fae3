"""A connection pooler in transaction mode (pgbouncer) in front of the PostgreSQL server of the tests."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import psycopg

from tests.postgres import Server
from tests.server_process import ServerProcess

TIMEOUT = 30.0  # seconds
MISSING = "There is no pgbouncer. On Debian, as root: apt-get install -y --no-install-recommends pgbouncer"
SETTINGS = {
    "pool_mode": "transaction",
    "listen_addr": "",
    "listen_port": "6432",
    "auth_type": "trust",
    "max_client_conn": "500",
    "default_pool_size": "20",
}


class Pooler:
    """One pgbouncer in a temporary folder; every database of the server is reached through it."""

    def __init__(self, server: Server, settings: Mapping[str, str] | None = None) -> None:
        self._process = ServerProcess("interlock-pooler")
        try:
            self.folder = self._process.folder
            self._write(server, SETTINGS | dict(settings or {}))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Pooler:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def start(self) -> None:
        """Returns when connections get through to the server."""
        (self.folder / ".s.PGSQL.6432").unlink(missing_ok=True)  # a pooler that was killed leaves it
        self._process.spawn(find_pgbouncer() or MISSING, self.folder / "pgbouncer.ini")
        deadline = time.monotonic() + TIMEOUT
        while not self._accepts_connections():
            if time.monotonic() > deadline or not self._process.is_running():
                raise RuntimeError(f"pgbouncer did not start:\n{self.log()[-4000:]}")
            time.sleep(0.01)

    def stop(self) -> None:
        """Cuts every connection."""
        self._process.end(signal.SIGTERM)

    def close(self) -> None:
        self._process.close()

    def log(self) -> str:
        return self._process.log.read_text(errors="replace")

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@:6432/{quote(database, safe='')}?host={quote(str(self.folder), safe='')}"

    def _write(self, server: Server, settings: Mapping[str, str]) -> None:
        names = self.folder / "users.txt"
        names.write_text('"postgres" ""\n')
        lines = ["[databases]", f"* = host={server.sockets}", "[pgbouncer]"]
        own = {"unix_socket_dir": str(self.folder), "auth_file": str(names)}
        lines += [f"{name} = {value}" for name, value in (dict(settings) | own).items()]
        (self.folder / "pgbouncer.ini").write_text("\n".join(lines) + "\n")

    def _accepts_connections(self) -> bool:
        try:
            psycopg.connect(self.url()).close()
        except psycopg.OperationalError:
            return False
        return True


def find_pgbouncer() -> Path | None:
    """Debian keeps it where only root's PATH leads."""
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    return None if found is None else Path(found)
