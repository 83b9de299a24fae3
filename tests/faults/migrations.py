"""Kills a migration at every statement, lets another program finish it, and compares. Run as a program:

    python -m tests.faults.migrations [--database sqlite|postgresql] [--most N] [--broken no-transaction]

Databases are an empty one, one of the first version with calls in it, and one of today; the program that migrates them
knows one migration more than there is. It is killed before and after each of its statements; PostgreSQL also ends
its connection behind each statement that defines something, inside the migration. Then it is started again; and the
same with a second one that starts at the same moment. What comes out has to be what an undisturbed migration makes, to
the last row. `--most` tries so many points of each database, spread evenly. It forks, so it must stay without threads.
Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlock.app.audit import verify
from interlock.app.bootstrap import build_services
from interlock.storage import migrate
from interlock.storage.migrate import Migration
from tests.faults.migration_databases import MigrationDatabase, PostgresDatabases, SqliteFiles
from tests.postgres import Server
from tests.support import OK, approve, propose_pending

NOTICED = ("who came after it ended with", "another database came out")  # where each statement commits by itself
NEXT = Migration(
    99,
    "colours",
    """-- since: 3
alter table policies add column colour text not null default '';
create index policies_colour on policies (colour);
update policies set colour = 'grey';
create table colours (name text primary key);
insert into colours values ('grey');
""",
    3,
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--broken", default="")
    options = parser.parse_args()
    began = time.monotonic()
    tally = MigrationCounts()
    with tempfile.TemporaryDirectory() as folder, open_databases(options.database, Path(folder)) as databases:
        for name, template in templates(databases).items():
            know_migrations(ALL + 1)
            databases.broken = options.broken
            MigrationTrial(databases, name, template, tally).run(options.most)
    shape = {"suite": "migrations", "database": options.database}
    print(json.dumps({**shape, **vars(tally), "seconds": round(time.monotonic() - began, 1)}))


@contextmanager
def open_databases(database: str, folder: Path) -> Iterator[MigrationDatabase]:
    if database == "sqlite":
        yield SqliteFiles(folder)
        return
    with Server(durable=False, in_memory=True) as server:
        yield PostgresDatabases(server)


@dataclass
class MigrationCounts:
    points: int = 0
    faults: int = 0
    missed: int = 0
    operations: int = 0
    succeeded: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass
class MigrationTrial:
    """One kind of database, migrated over and over."""

    ground: MigrationDatabase
    name: str
    template: str
    tally: MigrationCounts
    clean: list[str] = field(default_factory=list)

    def run(self, most: int) -> None:
        whole = self.ground.copy(self.template)
        plans = self.ground.plans(whole, self.migrate_undisturbed)
        self.clean = self.ground.dump(whole)
        self.tally.points += len(plans)
        step = -(-len(plans) // most)
        for plan, name in plans[step // 2 :: step]:
            self.migrate_with_fault(plan, f"{self.name}, {name}", alone=True)
            self.migrate_with_fault(plan, f"{self.name}, {name}, two at once", alone=False)
        self.tally.wrong += [f"{self.name}: {law}" for law in run_child(lambda: self.use_database(whole))[1]]
        self.ground.drop(whole)

    def migrate_undisturbed(self, work: Callable[[], None]) -> None:
        code, _ = run_child(work)
        if code != 0:
            self.tally.wrong.append(f"{self.name}: not even an undisturbed migration comes to its end: {code}")

    def migrate_with_fault(self, plan: str, name: str, *, alone: bool) -> None:
        url = self.ground.copy(self.template)
        self.ground.arm(url, plan)
        first = [start(lambda: self.ground.migrate(url, plan))]
        first += [] if alone else [start(lambda: self.ground.migrate(url, ""))]
        ended = [wait(each) for each in first]
        self.ground.disarm(url)
        failed = [said for code, said in ended if code]
        self.tally.faults += len(failed)
        self.tally.missed += not failed  # the other one was first, and there was nothing left to do
        code, said = run_child(lambda: self.ground.migrate(url, ""))
        self.tally.operations += len(first)
        self.tally.succeeded += (code == 0) + len(first) - max(1, len(failed))
        if code or len(failed) > 1:
            self.tally.wrong.append(f"{name}: who came after it ended with {[*failed, said] if code else failed}")
        elif (found := self.ground.dump(url)) != self.clean:
            differs = sorted(set(found) ^ set(self.clean))
            self.tally.wrong.append(f"{name}: another database came out: {differs[:3]}")
        self.ground.drop(url)

    def use_database(self, url: str) -> list[str]:
        return asyncio.run(cycle(url))


async def cycle(url: str) -> list[str]:
    """A call from its proposal to its end, on top of what was there; gives what the verifier says."""
    services = build_services(url)
    await services.store.open()
    approval_id = await propose_pending(services, f"after{os.getpid()}")
    await approve(services, approval_id)
    execution = await services.gate.start("default", approval_id, "r")
    await services.gate.finish("default", approval_id, execution.fence, ok=True, payload=OK)
    report = await verify(services.store, "default")
    await services.store.close()
    return [fault.message for fault in report.violations]


def templates(databases: MigrationDatabase) -> dict[str, str]:
    """An empty database, one of the first version with calls, one of today with calls."""
    know_migrations(ALL)
    today = databases.copy("")
    run_child(lambda: databases.migrate(today, ""))
    for _ in range(2):
        run_child(lambda: asyncio.run(cycle(today)))
    know_migrations(1)
    first = databases.copy("")
    run_child(lambda: databases.migrate(first, ""))
    databases.transfer(today, first)
    return {"empty": "", "of the first version": first, "of today": today}


def know_migrations(count: int) -> None:
    """So many migrations, in this process and its children."""
    for module in (migrate, sys.modules.get("interlock.storage.postgres.database")):
        if module is not None:
            module.load_migrations = lambda database: [*LOAD(database), NEXT][:count]  # type: ignore[attr-defined]


LOAD = migrate.load_migrations
ALL = len(LOAD("sqlite"))


# Processes


def start(work: Callable[[], Any]) -> tuple[int, int]:
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, read
    code = 1
    try:
        os.write(write, json.dumps(work()).encode())
        code = 0
    except BaseException as error:  # noqa: BLE001  a forked child must end here, not in its parent's code
        os.write(write, json.dumps([f"{type(error).__name__}: {error}"[:500]]).encode())
    finally:
        os._exit(code)


def wait(started: tuple[int, int]) -> tuple[int, Any]:
    pid, read = started
    signal.alarm(60)  # ends this program too: something is stuck
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    signal.alarm(0)
    return code, json.loads(said) if said else [f"ended with {code}"]


def run_child(work: Callable[[], Any]) -> tuple[int, Any]:
    return wait(start(work))


if __name__ == "__main__":
    main()
