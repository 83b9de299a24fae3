"""Query plans: no lookup of the hot path scans a table, with any statistics."""

import re
import sqlite3
from contextlib import closing

import psycopg
import pytest

from interlock.storage.engine.queries import load_queries
from interlock.storage.migrate import migrate_sqlite
from interlock.storage.postgres.batches import Statements
from interlock.storage.postgres.database import FAST_QUERIES, READER_SETTINGS, WRITER_SETTINGS, column_types, migrate

SMALL = {"status_counts", "users", "policy", "next_due"}  # a few rows in all, or the first of an index
DELIVERIES = {"deliveries_of", "due_deliveries", "recent_send_counts", "finished_deliveries_of"}
PAUSES = {"pause", "pause_state", "paused_runs", "paused_runs_of", "ready_pauses", "waits_for", "held_pauses"}
SEARCH_QUERIES = {"SCAN k", "SCAN counted"}  # rows that a part of the statement found by an index
LIST_QUERIES = ("approvals_newest", "approvals_pending", "Seq Scan")


@pytest.mark.parametrize(
    "name",
    sorted(
        (
            FAST_QUERIES
            | {"timeline", "approval_events", "usable_grants_of_tool", "due", "running"}
            | {"deliveries_of", "finished_deliveries_of"}
        )
        - SMALL
    ),
)
def test_sqlite_searches_by_an_index(name: str) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate_sqlite(connection, 0)
        query = load_queries()[name]
        plan = connection.execute(f"explain query plan {query}", [1] * query.count("?")).fetchall()
    steps = [row[3] for row in plan]
    assert any(step.startswith("SEARCH") for step in steps), steps
    assert [step for step in steps if step.startswith("SCAN") and step not in SEARCH_QUERIES] == []
    assert name == "head" or "(workspace=?)" not in " ".join(steps), "that is a walk through the workspace"


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("ended_deliveries", "deliveries_by (workspace=? AND status=? AND created_at<?)"),
        ("waiting_deliveries", "deliveries_due (channel=? AND workspace=?"),
        ("next_delivery", "deliveries_due (channel=? AND workspace=? AND priority=?"),
        ("due_channels", "deliveries_due (channel>?"),
        ("parked_deliveries", "deliveries_by (workspace=? AND status=?)"),
        ("last_sent_at", "deliveries_lately (workspace=? AND channel=?"),
    ],
)
def test_what_is_asked_of_deliveries_again_and_again_costs_the_same_however_many_there_are(
    name: str, index: str
) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate_sqlite(connection, 0)
        query = load_queries()[name]
        plan = connection.execute(f"explain query plan {query}", [1] * query.count("?")).fetchall()
    assert index in "\n".join(row[3] for row in plan)


def test_a_released_freeze_finds_rejections_that_can_be_undone_without_the_others() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate_sqlite(connection, 0)
        query = load_queries()["open_approvals"]
        steps = [row[3] for row in connection.execute(f"explain query plan {query}", [1] * query.count("?"))]
    assert "SEARCH approvals USING INDEX approvals_by_release (workspace=? AND release_at>?)" in steps
    assert [step for step in steps if "PRIMARY KEY" in step or step.startswith("SCAN")] == []


@pytest.mark.parametrize("name", ["checked_approvals", "checked_entries"])
def test_a_page_of_what_is_verified_costs_the_same_however_much_comes_after_it(name: str) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate_sqlite(connection, 0)
        query = load_queries()[name]
        steps = [row[3] for row in connection.execute(f"explain query plan {query}", [1] * query.count("?"))]
    assert [step for step in steps if step.startswith(("SCAN", "USE TEMP"))] == []


def test_postgresql_plans_are_right_before_the_first_statistics(postgres_url: str) -> None:
    """Plans are made once for each connection, perhaps while the tables are still empty."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        migrate(connection)
        statements = Statements(load_queries(), column_types(connection))
        wrong = {}
        for settings, shapes in (
            (WRITER_SETTINGS, write_statements(statements)),
            (READER_SETTINGS, lookup_statements(statements)),
        ):
            for name, value in settings.items():
                connection.execute("select set_config(%s, %s, false)", (name, value))
            for number, (name, text) in enumerate(shapes):
                plan = query_plan(connection, f"p{len(settings)}_{number}", text)
                if any(word in plan for word in LIST_QUERIES):
                    wrong[name] = plan
    assert wrong == {}


@pytest.mark.parametrize("name", ["agent_calls", "outcomes_of_agent", "call_times_of_agent", "newest_agents"])
def test_postgresql_finds_the_calls_of_an_agent_by_an_index_of_calls_with_one(name: str, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        migrate(connection)
        for setting, value in READER_SETTINGS.items():
            connection.execute("select set_config(%s, %s, false)", (setting, value))
        plan = query_plan(connection, "looked_up", Statements(load_queries(), column_types(connection)).single[name])
    scans = [line for line in plan.splitlines() if " on approvals" in line and "approvals_newest" not in line]
    assert scans
    assert [line for line in scans if "approvals_by_agent" not in line] == []


def write_statements(statements: Statements) -> list[tuple[str, str]]:
    found = []
    for name, made in statements.bulk_writes.items():
        if name not in ("write_doc", "forget_doc"):
            found += [(f"{name}, one", made.single), (f"{name}, many", made.text)]
    return found


def lookup_statements(statements: Statements) -> list[tuple[str, str]]:
    names = sorted((FAST_QUERIES | DELIVERIES | PAUSES) - SMALL)
    return [(f"{name}, one", statements.single[name]) for name in names] + [
        (f"{name}, many", statements.bulk_reads[name])
        for name in ("approval", "stored", "approval_by_call", "payload", "run")
    ]


def query_plan(connection: psycopg.Connection[tuple[str]], name: str, text: str) -> str:
    connection.execute(f"prepare {name} as {text}".encode())
    count = max(map(int, re.findall(r"\$(\d+)", text)), default=0)
    values = f"({', '.join(['null'] * count)})" if count else ""
    rows = connection.execute(f"explain execute {name}{values}".encode()).fetchall()
    return "\n".join(row[0] for row in rows)


@pytest.mark.parametrize("name", ["paused_runs", "paused_runs_of", "ready_pauses", "waits_for", "old_pauses"])
def test_what_a_paused_run_waits_for_is_looked_up_by_its_run(name: str) -> None:  # R9
    """Not among all that is pending, once for each run that is paused."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate_sqlite(connection, 0)
        query = load_queries()[name]
        plan = connection.execute(f"explain query plan {query}", [1] * query.count("?")).fetchall()
    steps = "\n".join(row[3] for row in plan)
    assert "SEARCH a USING COVERING INDEX approvals_by_call (workspace=? AND run_id=?)" in steps
    assert "(workspace=? AND id=?)" in steps
