"""Limits of the database itself: insert a row and commit, update it and commit."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg

from benchmarks.peers import TOOL, arguments

MAKE = "create table calls (id text primary key, args text not null, status text not null)"
ARGS = json.dumps({"tool": TOOL, "args": arguments("1")})


def sqlite(folder: Path, batch: int, seconds: float) -> float:
    """Calls per second, so many in a transaction."""
    with closing(sqlite3.connect(folder / "limit.db", isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.execute(MAKE)

        def turn(names: list[str]) -> None:
            connection.execute("begin immediate")
            connection.executemany("insert into calls values (?, ?, 'pending')", [(name, ARGS) for name in names])
            connection.execute("commit")
            connection.execute("begin immediate")
            connection.executemany("update calls set status = 'done' where id = ?", [(name,) for name in names])
            connection.execute("commit")

        return _commits_per_second(turn, batch, seconds)


def postgres(url: str, batch: int, seconds: float) -> float:
    """The same; a batch is one statement, and a statement is a transaction."""
    with psycopg.connect(url, autocommit=True, prepare_threshold=0) as connection:
        connection.execute(MAKE)
        insert = "insert into calls select id, %s, 'pending' from unnest(%s::text[]) id"
        update = "update calls set status = 'done' where id = any(%s::text[])"

        def turn(names: list[str]) -> None:
            connection.execute(insert, (ARGS, names))
            connection.execute(update, (names,))

        return _commits_per_second(turn, batch, seconds)


def _commits_per_second(turn: Callable[[list[str]], None], batch: int, seconds: float) -> float:
    turn(_names(batch))
    done, start_time = 0, time.perf_counter()
    while (spent := time.perf_counter() - start_time) < seconds:
        turn(_names(batch))
        done += batch
    return done / spent


def _names(batch: int) -> list[str]:
    """In the order of time, which is the kindest to an index."""
    now = time.time_ns()
    return [f"{now + number:016x}{os.urandom(8).hex()}" for number in range(batch)]
