"""A full disk; `python -m tests.faults.disks --times 50` for longer runs."""

import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from interlock.core.errors import StoreUnavailable
from interlock.storage.sqlite.database import translate_errors
from tests.faults.database_controls import NOTICED
from tests.faults.reports import is_caught, run_suite


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_full_disk_runs_nothing_loses_nothing_and_is_forgotten_when_there_is_room(database: str) -> None:
    assert run_full_disk(database, "limit") == []


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_the_last_byte_of_a_file_system_is_no_other_than_a_limit(database: str) -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("only root makes file systems, where the system lets it")
    assert run_full_disk(database, "small") == []


@pytest.mark.parametrize(("database", "control"), [("sqlite", "fail-open"), ("postgresql", "unheard")])
def test_a_call_that_ran_although_it_could_not_be_recorded_would_be_noticed(database: str, control: str) -> None:
    assert is_caught("disks", "--database", database, "--times", "4", "--broken", control, noticed=NOTICED[control])


def test_a_disk_that_fails_is_named() -> None:
    with pytest.raises(StoreUnavailable, match=r"The disk of the database a.db failed"), translate_errors(Path("a.db")):
        raise sqlite3.OperationalError("disk I/O error")


def run_full_disk(database: str, disk: str) -> list[str]:
    """What was wrong, once it is certain that something could have been."""
    result = run_suite("disks", "--database", database, "--disk", disk, "--times", "2")
    assert result["errors"]["store_unavailable"] >= 4
    assert result["succeeded"] >= result["operations"] / 2
    wrong: list[str] = result["wrong"]
    return wrong
