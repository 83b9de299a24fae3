"""Upgrades a database while programs of the old and the new versions work on it. Run as a program of its own:

    python -m tests.faults.upgrades [--database sqlite|postgresql] [--upgrades N] [--broken taken-away]

Each upgrade is a copy of the program that knows one migration more. It migrates under load; then one program of the
new version and one more of the oldest begin to work, and all go on. `taken-away` renames what old programs use, and
says that they can live with it: the red control. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.databases import migrated_template
from tests.faults.load_runner import REPOSITORY, check_load, run_load, start_program
from tests.postgres import Server

FIRST = 90  # the first of the migrations that are made up; beyond all that there are
AGENTS = ("--agents", "4")
EXPANDED = """-- since: 3
alter table approvals add column colour{n} text;
alter table events add column colour{n} text;
create index approvals_colour{n} on approvals (colour{n}) where colour{n} is not null;
create table colours{n} (name text primary key);
insert into colours{n} values ('grey');
"""
NOTICED = (  # what old programs are told of the column that they miss, by SQLite and of PostgreSQL
    "no such column: p.preview",
    "payloads has no column named preview",
    "lacks a table, column or function",
)
DROP_COLUMN = "-- since: 3\nalter table payloads rename column preview to previews{n};\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--upgrades", type=int, default=3)
    parser.add_argument("--broken", default="")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, make_database(options.database, Path(folder)) as url:
        result = run(url, Path(folder), options)
    shape = {"suite": "upgrades", "database": options.database, "faults": options.upgrades}
    print(json.dumps({**shape, **result, "seconds": round(time.monotonic() - began, 1)}))


@contextmanager
def make_database(database: str, folder: Path) -> Iterator[str]:
    if database == "sqlite":
        yield f"sqlite:///{folder}/interlock.db"
        return
    with Server(durable=False) as server:
        yield server.create_database("upgrades", migrated_template(server))


def run(url: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    said = []
    with run_load(url, folder, 1, *AGENTS) as made:
        for number in range(FIRST, FIRST + options.upgrades):
            made.wait_for_lines(what="succeeded")
            made.patience = 10 if options.broken else made.patience  # from here on they are stuck, and not only slow
            newer = newer_program(folder, number, DROP_COLUMN if options.broken else EXPANDED)
            said.append(migrate(newer, url))
            start_program(made, url, folder, *AGENTS, source=newer)
            start_program(made, url, folder, *AGENTS)
        made.wait_for_lines(what="succeeded")
    judged = check_load(url, made)
    wanted = [f"applied 1 migration: colours{n}" for n in range(FIRST, FIRST + options.upgrades)]
    judged["wrong"] += [answers for answers, due in zip(said, wanted, strict=False) if due not in answers]
    return judged


def newer_program(folder: Path, number: int, migration: str) -> Path:
    """A copy of the program as it will be, which knows this migration and those before it."""
    copy, before = folder / f"newer{number}", folder / f"newer{number - 1}"
    source = before if before.exists() else REPOSITORY / "src"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for kind in ("sqlite", "postgres"):
        file = copy / "interlock/storage/migrations" / kind / f"{number:04}_colours{number}.sql"
        file.write_text(migration.format(n=number))
    return copy


def migrate(source: Path, url: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-m", "interlock", "migrate", "--database", url]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


if __name__ == "__main__":
    main()
