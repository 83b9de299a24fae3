"""A team's first hour with PostgreSQL: migrate, an agent, a decision, the record."""

import json
import subprocess
import sys

import psycopg
import pytest

from interlock.storage.migrate import load_migrations
from interlock.storage.postgres import database
from tests.interlock_server import run_server
from tests.journeys.shell import TIMEOUT, Shell, wait_until

AGENT = """
import os
from interlock import Interlock

lock = Interlock(os.environ["INTERLOCK_DATABASE_URL"], policy="version: 1\\n", agent="deployer")

@lock.tool(effect="write", describe="Create issue {title!r}")
def create_issue(title: str) -> str:
    return f"made {title}"

print(create_issue(title="Fix login"))
lock.close()
"""


@pytest.fixture
def team(shell: Shell, postgres_url: str) -> Shell:
    shell.url = postgres_url
    return shell


def wait_pending(team: Shell) -> list[str]:
    found: list[str] = []

    def some() -> bool:
        found[:] = [item["id"] for item in team("approvals", "list", "--json").json["items"]]
        return bool(found)

    wait_until(some, "something waits", pause=0.05)
    return found


@pytest.mark.smoke
def test_an_agent_and_a_person_meet_on_postgresql(team: Shell) -> None:  # R31
    names = [migration.name for migration in load_migrations("postgres")]
    assert f"applied {len(names)} migrations: {', '.join(names)}." in team("migrate").out
    assert "up to date" in team("migrate").out
    agent = team.program(sys.executable, "-c", AGENT, stdout=subprocess.PIPE, text=True)
    [approval_id] = wait_pending(team)
    assert "may start" in team("approvals", "approve", approval_id, "--user", "bob").out
    assert agent.communicate(timeout=TIMEOUT)[0] == "made Fix login\n"
    shown = team("approvals", "show", approval_id, "--json").json
    assert (shown["status"], shown["decision"]["by"]) == ("succeeded", "bob")
    assert team("audit", "verify").out.startswith("valid: 7 entries")
    head = team("audit", "head").out
    assert json.loads(head)["seq"] == 7


def test_a_server_migrates_a_database_of_before_where_it_is_told_to(
    team: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = load_migrations("postgres")[-1].name
    with psycopg.connect(team.url, autocommit=True) as connection, monkeypatch.context() as patch:
        patch.setattr(database, "load_migrations", lambda kind: load_migrations(kind)[:-1])
        database.migrate(connection)
    refused = team.process("serve", "--port", "0")
    assert refused.code == 2
    assert f"lacks {newest}. Run interlock migrate, or start the server with --migrate." in refused.err
    with run_server(team.url, team.folder, "--migrate") as served:
        assert any(f"applied 1 migration: {newest}." in line for line in served.output)
        with served.client() as client:
            assert client.get("/readyz").status_code == 200
    with run_server(team.url, team.folder, "--migrate") as served:
        assert not any("applied" in line for line in served.output)


def test_doctor_says_how_the_server_is(team: Shell) -> None:
    assert team("migrate").code == 0
    found = team("doctor", "--json").json
    assert found["ok"]
    assert {"database", "postgresql", "clock", "ledger"} <= {check["what"] for check in found["checks"]}


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://127.0.0.1:1/x", "cannot be reached"),
        ("postgresql://127.0.0.1:1/x?nonsense=1", "not one that PostgreSQL understands"),
    ],
)
def test_a_server_that_cannot_be_reached_is_one_line_and_what_to_do(shell: Shell, url: str, words: str) -> None:
    shell.url = url
    done = shell("approvals", "list")
    assert done.code in (1, 2)
    assert words in done.err
    assert "Traceback" not in done.err


def test_a_database_that_does_not_exist_is_said_to_be_missing(team: Shell) -> None:
    team.url = team.url.replace("/test_", "/no_such_")
    done = team("approvals", "list")
    assert done.code != 0
    assert "does not exist" in done.err
