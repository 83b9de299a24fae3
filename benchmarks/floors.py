"""The same-statement floor: the statements that Interlock sent, replayed by a loop that does nothing else."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg

from interlock.app.bootstrap import wall_clock
from interlock.storage.postgres.connection import PostgresConnection
from interlock.storage.postgres.database import WRITER_SETTINGS, PostgresDatabase
from interlock.storage.postgres.pipeline import Pipeline, PipelineResult
from interlock.storage.sqlite.database import SqliteDatabase
from tests.databases import migrated_template
from tests.postgres import Server

_NEVER_STALE = (
    "create or replace function interlock_stale() returns bigint language plpgsql volatile as 'begin return 0; end'"
)


class Bench(Protocol):
    """A kind of database, and how its floor is found."""

    name: str

    @contextmanager
    def database(self, folder: Path) -> Iterator[Any]:
        """An empty one."""

    def record(self, database: Any, folder: Path) -> None:
        """From now on every statement is written down."""

    def replay(self) -> float:
        """Seconds that the statements take by themselves."""


class Sqlite:
    name = "SQLite"

    @contextmanager
    def database(self, folder: Path) -> Iterator[SqliteDatabase]:
        yield SqliteDatabase(folder / "bench.db", wall_clock)

    def record(self, database: SqliteDatabase, folder: Path) -> None:
        self._before = folder / "before.db"
        self._sent: list[tuple[str, str, Sequence[Any]]] = []
        copy_database(database.path, self._before)
        database.wrap_connection(lambda connection: Recorder(connection, self._sent))

    def replay(self) -> float:
        connection = sqlite3.connect(self._before, isolation_level=None)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.execute("pragma wal_autocheckpoint = 4000")
        start_time = time.perf_counter()
        for kind, text, values in self._sent:
            if kind == "one":
                connection.execute(text, values).fetchall()
            else:
                connection.executemany(text, values)
        spent = time.perf_counter() - start_time
        connection.close()
        return spent


class Recorder:
    """A connection of SQLite that writes down what it is asked."""

    def __init__(self, connection: Any, sent: list[tuple[str, str, Sequence[Any]]]) -> None:
        self._connection = connection
        self._sent = sent

    def execute(self, text: str, values: Sequence[Any] = ()) -> Any:
        self._sent.append(("one", text, values))
        return self._connection.execute(text, values)

    def executemany(self, text: str, values: Sequence[Any]) -> Any:
        self._sent.append(("many", text, values))
        return self._connection.executemany(text, values)

    def close(self) -> None:
        self._connection.close()


class Postgres:
    """The server is one that the tests carry, with its disk's real fsync."""

    name = "PostgreSQL"

    def __init__(self, server: Server) -> None:
        self._server = server
        self._number = 0

    @contextmanager
    def database(self, folder: Path) -> Iterator[PostgresDatabase]:
        with self._fresh() as url:
            yield PostgresDatabase(url)

    def record(self, database: PostgresDatabase, folder: Path) -> None:
        """The warm-up is written down too, since a replay begins with an empty database; `replay` skips its time."""
        self._sent: list[tuple[str, Sequence[Any]] | None] = []
        self._warm = 0
        recorder = PipelineRecorder(self._sent)
        database.wrap_connection(recorder.around)

    def warmed_up(self) -> None:
        self._warm = len(self._sent)

    def replay(self) -> float:
        with self._fresh() as url:
            connection = PostgresConnection(url, WRITER_SETTINGS)
            pipeline = connection.get_pipeline()
            pipeline.query(_NEVER_STALE)  # the recorded times are over
            _play(pipeline, self._sent[: self._warm])
            start_time = time.perf_counter()
            _play(pipeline, self._sent[self._warm :])
            spent = time.perf_counter() - start_time
            connection.close()
        return spent

    @contextmanager
    def _fresh(self) -> Iterator[str]:
        self._number += 1
        name = f"bench{self._number}"
        yield self._server.create_database(name, migrated_template(self._server))
        self._server.drop_database(name)


class PipelineRecorder:
    """A pipeline that writes down what is sent, and where it waits for the answers."""

    def __init__(self, sent: list[tuple[str, Sequence[Any]] | None]) -> None:
        self._sent = sent
        self._heard = 0
        self._pipeline: Pipeline

    def around(self, pipeline: Pipeline) -> PipelineRecorder:
        self._pipeline = pipeline
        return self

    def send(self, text: str, values: Sequence[object] = ()) -> PipelineResult:
        self._sent.append((text, values))
        return self._pipeline.send(text, values)

    def sync(self) -> None:
        self._sent.append(None)
        try:
            self._pipeline.sync()
        except psycopg.Error:  # what the server threw away is not part of the floor
            del self._sent[self._heard :]
            raise
        self._heard = len(self._sent)

    def discard(self) -> None:
        self._pipeline.discard()


def _play(pipeline: Pipeline, sent: Sequence[tuple[str, Sequence[Any]] | None]) -> None:
    for each in sent:
        if each is None:
            pipeline.sync()
        else:
            pipeline.send(*each)


def copy_database(source: Path, target: Path) -> None:
    with sqlite3.connect(source) as old, sqlite3.connect(target) as new:
        old.backup(new)
    old.close()
    new.close()
