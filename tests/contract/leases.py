"""Leases that a test moves in their rows, so that none lapses on a slow machine."""

from __future__ import annotations

from tests.databases import Database

FAR = 9_000_000_000_000  # the end of a lease that no test outlives


def move_lease(database: Database, approval_id: str, until: int) -> None:
    database.sql_without_triggers("update approvals set lease_until = ? where id = ?", until, approval_id)


def lease_end(database: Database, approval_id: str) -> int:
    return int(database.sql("select lease_until from approvals where id = ?", approval_id)[0][0])


def move_pause_lease(database: Database, run_id: str, until: int) -> None:
    database.sql_without_triggers("update pauses set lease_until = ? where run_id = ?", until, run_id)


def pause_lease_end(database: Database, run_id: str) -> int:
    return int(database.sql("select lease_until from pauses where run_id = ?", run_id)[0][0])
