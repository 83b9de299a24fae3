"""Pool of reader threads for PostgreSQL: each sends all queued look-ups on its connection in one round trip."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import psycopg

from interlock.core.errors import StoreUnavailable
from interlock.storage.engine.rows import Row
from interlock.storage.engine.writer import AnyFuture, call_soon, resolve_future
from interlock.storage.postgres.connection import (
    PostgresConnection,
    is_outage,
    retry_on_lost_connection,
    to_store_error,
)


class Lookup(NamedTuple):
    text: str
    values: Sequence[object]
    future: AnyFuture
    loop: asyncio.AbstractEventLoop | None


class ReadPool:
    """Reader threads. `max_batch` look-ups in one round trip: many for fast ones, one for those that may be slow."""

    def __init__(self, name: str, connections: Sequence[PostgresConnection], database: str, max_batch: int) -> None:
        self._database = database
        self._max_batch = max_batch
        self._queue: SimpleQueue[Lookup | None] = SimpleQueue()
        self._stopping = threading.Event()
        self._connections = connections
        self._threads = [
            threading.Thread(target=self._loop, args=(connection,), name=f"interlock-{name}", daemon=True)
            for connection in connections
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        for connection in self._connections:
            connection.close()

    async def fetch(self, text: str, values: Sequence[object]) -> list[Row]:
        if self._stopping.is_set():
            raise StoreUnavailable("The store is closed.")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._queue.put(Lookup(text, values, future, loop))
        found: list[Row] = await future
        return found

    def send(self, text: str, values: Sequence[object]) -> Future[Any]:
        """Send a look-up from a thread without an event loop."""
        future: Future[Any] = Future()
        self._queue.put(Lookup(text, values, future, None))
        return future

    def _loop(self, connection: PostgresConnection) -> None:
        running = True
        while running:
            batch, running = self._next()
            if batch:
                _resolve_lookups(batch, self._fetch_results(batch, connection))

    def _next(self) -> tuple[list[Lookup], bool]:
        batch: list[Lookup] = []
        item = self._queue.get()
        while item is not None:
            batch.append(item)
            if len(batch) >= self._max_batch:
                return batch, True
            try:
                item = self._queue.get_nowait()
            except Empty:
                return batch, True
        return batch, False

    def _fetch_results(self, lookups: list[Lookup], connection: PostgresConnection) -> list[object]:
        try:
            answers: list[object] = retry_on_lost_connection(
                lambda: self._run_lookups(lookups, connection), connection, self._stopping
            )
            return answers
        except psycopg.Error as error:
            if len(lookups) == 1 or is_outage(error):
                return [to_store_error(error, self._database) for _ in lookups]
        except Exception as error:  # noqa: BLE001  every error is passed to the caller, and the thread must go on
            connection.close()  # a message may be half sent
            if len(lookups) == 1:
                return [error]
        return [answer for each in lookups for answer in self._fetch_results([each], connection)]  # which failed?

    def _run_lookups(self, lookups: list[Lookup], connection: PostgresConnection) -> list[object]:
        pipeline = connection.get_pipeline()
        if connection.is_pooled:  # settings hold for a transaction only
            pipeline.send("begin")
            connection.send_settings(pipeline)
        answers = [pipeline.send(each.text, each.values) for each in lookups]
        if connection.is_pooled:
            pipeline.send("commit")
        pipeline.sync()
        return [response.rows() for response in answers]


def _resolve_lookups(lookups: Sequence[Lookup], answers: Sequence[object]) -> None:
    """Resolve all futures of one event loop in one callback."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[AnyFuture, object]]] = defaultdict(list)
    for lookup, answer in zip(lookups, answers, strict=True):
        if lookup.loop is None:
            resolve_future(lookup.future, answer)
        else:
            by_loop[lookup.loop].append((lookup.future, answer))
    for loop, settled in by_loop.items():
        call_soon(loop, _resolve_futures, settled)


def _resolve_futures(settled: list[tuple[AnyFuture, object]]) -> None:
    for future, answer in settled:
        resolve_future(future, answer)
