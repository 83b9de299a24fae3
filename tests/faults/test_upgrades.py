"""Old and new programs on one database: an additive migration is applied while old ones run and start."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from interlock.core.errors import Misconfigured
from interlock.storage import migrate
from interlock.storage.postgres.pipeline import placeholders
from tests.databases import Database
from tests.faults.reports import is_caught, run_suite
from tests.faults.upgrades import NOTICED
from tests.support import Clock, open_services, propose_pending

REPOSITORY = Path(__file__).resolve().parents[2]
EXPANDED = """-- since: 3
alter table approvals add column colour text;
create index approvals_colour on approvals (colour) where colour is not null;
create table colours (name text primary key);
"""
CONTRACTED = "-- since: 99\ndrop table colours;\n"


@pytest.fixture
def newer_source(tmp_path: Path) -> Path:
    """The program as it will be: it knows one migration more."""
    copy = tmp_path / "newer"
    shutil.copytree(REPOSITORY / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for kind in ("sqlite", "postgres"):
        (copy / "interlock/storage/migrations" / kind / "0098_colours.sql").write_text(EXPANDED)
    return copy


def interlock(source: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-m", "interlock", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_old_and_new_programs_work_on_one_database_while_it_is_migrated(database: str) -> None:
    result = run_suite("upgrades", "--database", database, "--upgrades", "1")
    assert result["wrong"] == []
    assert result["succeeded"] == result["operations"]


def test_a_migration_that_takes_away_what_old_programs_use_would_be_noticed() -> None:
    """The red control."""
    assert is_caught("upgrades", "--upgrades", "1", "--broken", "taken-away", noticed=NOTICED)


async def test_a_program_that_is_too_old_for_a_contraction_does_not_start(
    database: Database, clock: Clock, newer_source: Path
) -> None:
    async with open_services(database, clock) as services:
        await propose_pending(services)
    for kind in ("sqlite", "postgres"):
        (newer_source / "interlock/storage/migrations" / kind / "0099_contracted.sql").write_text(CONTRACTED)
    done = interlock(newer_source, "migrate", "--database", database.url)
    assert "colours, contracted" in done.stdout, done.stderr
    with pytest.raises(Misconfigured, match="Upgrade this program"):
        async with open_services(database, clock):
            pass


@pytest.mark.smoke
def test_every_statement_of_older_programs_still_fits(database: Database) -> None:
    """Released statements are kept in tests/upgrades; a migration with a lower `since` must not break them."""
    newest = migrate.load_migrations(database.kind)[-1]
    releases = [
        path for path in sorted((REPOSITORY / "tests/upgrades").glob("*.sql")) if int(path.stem) >= newest.since
    ]
    assert releases
    for release in releases:
        for name, statement in statements(release.read_text()).items():
            prepare(database, name, statement)


def statements(text: str) -> dict[str, str]:
    services = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)[1:]
    return {name: statement.strip() for name, statement in zip(services[::2], services[1::2], strict=True)}


def prepare(database: Database, name: str, statement: str) -> None:
    if database.kind == "sqlite":
        raw = sqlite3.connect(":memory:", isolation_level=None)
        migrate.migrate_sqlite(raw, 0)
        raw.execute(f"explain {statement}", [None] * statement.count("?")).fetchall()
        raw.close()
        return
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(f"prepare old_{name} as {placeholders(statement)}".encode())


@pytest.mark.smoke
def test_data_of_the_first_schema_is_brought_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    first = migrate.load_migrations("sqlite")[:1]
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "load_migrations", lambda _: first)
        migrate.migrate_sqlite(raw, 0)
    raw.execute("alter table migrations drop column since")  # as the first program made it
    raw.execute("insert into policies values ('default', 1, 'abc', 'version: 1', 'ada', 5)")
    raw.execute("insert into grants values ('default','g','pay','s','ada','[]','admin',1,9,'*','',null,0,null,'')")
    assert migrate.migrate_sqlite(raw, 1) == [migration.name for migration in migrate.load_migrations("sqlite")[1:]]
    assert raw.execute("select author, reason from policies").fetchall() == [("ada", "")]
    assert raw.execute("select id, budget, spent from grants").fetchall() == [("g", "", "0")]
    raw.close()
