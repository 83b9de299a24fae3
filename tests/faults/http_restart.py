"""A server that is started over a database with very many pending approvals. Run as a program of its own:

    python -m tests.faults.http_restart [--database sqlite|postgresql] [--pending N] [--times N]

The rows are made by the database itself. Measured is the time from the start of the process to the first `/readyz` that
is 200 and the first page of what is pending, each time after a SIGKILL; and how much is read meanwhile, which must not
grow with the database: bytes of the file, or rows of PostgreSQL. The times are reported and judge nothing: they also
tell what else the machine does. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import httpx2

from benchmarks.growth import fill_postgres, fill_sqlite
from interlock.app.bootstrap import build_services
from tests.faults import http_server
from tests.faults.storm import open_database
from tests.interlock_server import create_keys, run_server
from tests.postgres import Server
from tests.support import propose_pending

PAGE = 50
MORE = {"sqlite": 4 << 20, "postgresql": 2_000}  # bytes or rows that a start may read more than over one approval
NOTICED = "when there was one"  # how much more was read


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--pending", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--broken", choices=["counts-all"], default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, open_database(options.database, Path(folder)) as (database, server):
        keys = asyncio.run(prepare_database(database))
        setup = RestartSetup(database, server, Path(folder), keys["reviewer"], options.broken)
        print(json.dumps(run(setup, options)))


class ServerRun(NamedTuple):
    """Seconds until it was ready and until the first page was there, how much was on it, and how much was read."""

    ready: float
    page: float
    items: int
    read: int


@dataclass
class RestartSetup:
    database: str
    server: Server | None
    folder: Path
    key: str
    broken: str

    def fill(self, count: int) -> None:
        if self.server is None:
            fill_sqlite(self.folder / "storm.db", count)
        else:
            fill_postgres(self.database, count)

    def live(self) -> ServerRun:
        """Ends with a SIGKILL."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        program, environ = http_server.program(self.broken)
        before, begun = self._rows(), time.monotonic()
        with run_server(self.database, self.folder, port=port, program=program, environ=environ) as served:
            headers = {"authorization": f"Bearer {self.key}"}
            with httpx2.Client(base_url=served.url, headers=headers, timeout=60) as client:
                while client.get("/readyz").status_code != 200:
                    time.sleep(0.01)
                ready = time.monotonic() - begun
                items = client.get("/api/approvals/pending", params={"limit": PAGE}).json()["items"]
                page = time.monotonic() - begun
            read = 0 if self.server else bytes_read(served.process.pid)
            served.kill()
        return ServerRun(ready, page, len(items), read + self._rows() - before)

    def _rows(self) -> int:
        """As PostgreSQL counts them, once the connections of a dead server are gone."""
        if self.server is None:
            return 0
        with self.server.connect("storm") as connection:
            others = "select count(*) from pg_stat_activity where datname = 'storm' and pid <> pg_backend_pid()"
            while connection.execute(others).fetchone() != (0,):
                time.sleep(0.01)
            row = connection.execute(
                "select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint from pg_stat_user_tables"
            ).fetchone()
        return int(row[0]) if row else 0


def bytes_read(pid: int) -> int:
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("rchar")).split()[1])


async def prepare_database(database: str) -> dict[str, str]:
    """One real approval, whose terms the others share."""
    keys = await create_keys(database)
    services = build_services(database)
    await services.store.open()
    await propose_pending(services)
    await services.store.close()
    return keys


def run(setup: RestartSetup, options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    small = setup.live()
    setup.fill(options.pending)
    lives = [setup.live() for _ in range(options.times)]
    wrong = [f"{each.items} items on the first page" for each in lives if each.items != PAGE]
    most = small.read + MORE[options.database]
    wrong += [f"read {each.read:,}, and {small.read:,} when there was one" for each in lives if each.read > most]
    return {
        "suite": "http-restart",
        "database": options.database,
        "operations": len(lives),
        "succeeded": sum(1 for each in lives if each.items == PAGE),
        "faults": len(lives),
        "wrong": wrong,
        "seconds": round(time.monotonic() - began, 1),
        "pending": options.pending,
        "ready_ms": [round(each.ready * 1000) for each in lives],
        "page_ms": [round(each.page * 1000) for each in lives],
        "read": [small.read, *(each.read for each in lives)],
    }


if __name__ == "__main__":
    main()
