"""Many processes, one database."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.databases import Database, ServerDatabase, migrated_template
from tests.faults.race_controls import NOTICED
from tests.faults.reports import is_caught, run_suite
from tests.postgres import Server

REPOSITORY = Path(__file__).resolve().parents[2]


def run_contention(database: Database, contest: str, count: int, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.faults.contention", database.url, contest, str(count), *options]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["faults"] == []
    return result


@pytest.mark.smoke
def test_of_processes_that_claim_a_thread_one_has_it(database: Database) -> None:  # R32
    won = [each for report in run_contention(database, "claim", 40)["reports"] for each in report["won"]]
    assert sorted(won) == sorted(f"thread-{number}" for number in range(40))


@pytest.mark.smoke
def test_two_processes_that_start_a_thousand_calls_start_each_once(database: Database) -> None:  # R46
    one, two = run_contention(database, "start", 1000)["reports"]
    assert len(one["won"]) + len(two["won"]) == 1000
    assert set(one["won"]) == set(two["lost"])
    assert set(two["won"]) == set(one["lost"])


@pytest.mark.smoke
def test_of_32_processes_that_decide_one_wins_and_all_others_get_its_decision(database: Database) -> None:  # R24
    reports = run_contention(database, "decide", 32)["reports"]
    winners = [report["won"] for report in reports if "won" in report]
    assert len(winners) == 1
    assert {report["standing"]["by"] for report in reports if "standing" in report} == set(winners)


def test_racing_batches_never_deadlock_and_no_event_appears_behind_a_cursor() -> None:
    """10,000 batches by 8 processes over four ledgers, each in an order of its own."""
    with Server(durable=False) as server:
        *writers, follower = race(server, 10_000)
        assert [report["failed"] for report in writers] == [0] * 8
        assert sum(report["batches"] for report in writers) >= 10_000
        assert follower == {"followed": sum(report["events"] for report in writers), "skipped": 0}
        assert deadlocks(server) == 0


def test_batches_that_lock_in_another_order_would_deadlock() -> None:
    """The red control of the test above."""
    with Server(durable=False, settings={"deadlock_timeout": "50ms"}) as server:
        race(server, 400, "--broken")
        assert deadlocks(server) > 0


def race(server: Server, count: int, *options: str, database: str = "races") -> list[dict[str, Any]]:
    server.create_database(database, migrated_template(server))
    reports: list[dict[str, Any]] = run_contention(ServerDatabase(server, database), "batches", count, *options)[
        "reports"
    ]
    return reports


def deadlocks(server: Server) -> int:
    """As the server itself counts them."""
    with server.connect() as connection:
        row = connection.execute("select sum(deadlocks) from pg_stat_database").fetchone()
    assert row is not None
    return int(row[0])


SCENES = 11


@pytest.mark.timeout(600)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_every_race_at_one_approval_is_linearizable(database: str) -> None:  # R24, R46
    """From threads and processes: decisions, votes, edits, undo, cancel, starts, resumes, workers, deadlines."""
    result = run_suite("races", "--database", database, "--rounds", "6", "--crowd", "1000")
    assert result["wrong"] == []
    assert result["linearizable"] == result["answers"] > 1000
    assert (result["operations"], len(result["won"])) == (6 * SCENES, SCENES)
    assert result["succeeded"] * 2 >= result["operations"]
    assert result["crowd"]["clients"] == 1000
    assert (result["crowd"]["winners"], result["crowd"]["told the winner"]) == (1, 999)
    assert result["won"]["two executors"] == {"start": 6}
    assert sum(result["won"]["two resumes"].values()) <= 6, "the next fence, or an end in time, and never both"
    assert result["won"]["two of two"] == {"approve": 12, "look": 6}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("broken", ["early-answer", "old-votes"])
def test_races_over_a_broken_copy_have_no_explanation(broken: str) -> None:
    """The red control."""
    assert is_caught("races", "--rounds", "10", "--broken", broken, noticed=NOTICED[broken])
