"""The durability settings of a connection: a comparison needs all sides to wait for the disk."""

from __future__ import annotations

from typing import Any

PRAGMAS = ("journal_mode", "synchronous")  # what decides whether a commit survives a loss of power
SETTINGS = ("fsync", "synchronous_commit")


def sqlite_durability(journal: object, synchronous: object) -> str:
    level = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}[int(str(synchronous))]
    return f"journal_mode={str(journal).upper()}, synchronous={level}"


async def postgres_durability(connection: Any) -> str:
    found = []
    for name in SETTINGS:
        cursor = await connection.execute(f"select current_setting('{name}') as it")
        row = await cursor.fetchone()
        found.append(f"{name}={row['it'] if isinstance(row, dict) else row[0]}")
    return ", ".join(found)
