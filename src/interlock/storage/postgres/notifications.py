"""LISTEN and NOTIFY between processes: a coalesced hint that something changed, with slow polling as a fallback."""

from __future__ import annotations

import os
import secrets
import select
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import psycopg

from interlock.core.errors import Error
from interlock.storage.engine.rows import Row
from interlock.storage.engine.watch import ChangeReader, WatchRegistry
from interlock.storage.engine.writer import ChangedIds
from interlock.storage.postgres.connection import PostgresConnection, retry_on_lost_connection
from interlock.storage.postgres.read_pool import ReadPool

Fetch = Callable[..., list[Row]]
CHANNEL = "interlock"
FALLBACK_INTERVAL = 1.0  # seconds between polls if no notification arrives
COALESCE_DELAY = 0.003  # seconds between notifications
POOLER_POLL_INTERVAL = 0.025  # seconds between polls behind a pooler, where LISTEN does not work
_NOTIFY = "select pg_notify($1, $2)"


class Notifier:
    """Sends notifications: the first change at once, changes in the next moment coalesced into one more."""

    def __init__(self, pool: ReadPool) -> None:
        self.origin = secrets.token_hex(8)
        self._pool = pool
        self._lock = threading.Lock()
        self._waiting = False
        self._busy = False
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def notify(self, changed: ChangedIds) -> None:
        if not changed:
            return
        with self._lock:
            self._waiting = True
            if self._busy:
                return
            self._busy, self._waiting = True, False
        self._send()

    def _send(self) -> None:
        self._pool.send(_NOTIFY, (CHANNEL, self.origin)).add_done_callback(self._sent)

    def _sent(self, done: Future[Any]) -> None:
        lost = done.exception() is not None  # only a hint: other processes also poll
        self._stopping.wait(COALESCE_DELAY)  # in the pool's own thread
        with self._lock:
            again = self._waiting and not lost
            self._busy, self._waiting = again, False
        if again:
            self._send()


class Listener:
    """Receives notifications of other processes' commits and wakes the waiters in this process."""

    def __init__(self, connection: PostgresConnection, fetch: Fetch, registry: WatchRegistry, origin: str) -> None:
        self._connection = connection
        self._registry = registry
        self._origin = origin
        self._change_reader = ChangeReader(fetch, registry)
        self._stopping = threading.Event()
        self._wake = os.pipe()  # interrupts a wait when the listener stops
        self._thread = threading.Thread(target=self._loop, name="interlock-listener", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._registry.has_waiters.set()
        os.write(self._wake[1], b"stop")
        self._thread.join()
        self._connection.close()
        for end in self._wake:
            os.close(end)

    def _loop(self) -> None:
        while not self._stopping.is_set():
            try:
                retry_on_lost_connection(self._listen, self._connection, self._stopping)
            except (psycopg.Error, Error):
                self._stopping.wait(FALLBACK_INTERVAL)  # the server has trouble: waiters also poll

    def _listen(self) -> None:
        connection = self._connection.get_connection()
        if not self._connection.is_pooled:
            connection.execute(f"listen {CHANNEL}")
        while not self._stopping.is_set():
            self._poll_changes()  # at once after a reconnect: notifications were missed meanwhile
            self._wait(connection)

    def _poll_changes(self) -> None:
        while self._registry.has_waiters.is_set() and self._change_reader.poll():
            pass

    def _wait(self, connection: psycopg.Connection[Any]) -> None:
        """Wait until another process sends a notification, or for the polling interval."""
        if self._connection.is_pooled:
            if self._registry.has_waiters.wait(FALLBACK_INTERVAL):
                self._stopping.wait(POOLER_POLL_INTERVAL)
            return
        ready, _, _ = select.select([connection.fileno(), self._wake[0]], [], [], FALLBACK_INTERVAL)
        while ready and not self._stopping.is_set():
            heard = list(connection.notifies(timeout=0))
            if any(message.payload != self._origin for message in heard):
                return
            ready, _, _ = select.select([connection.fileno(), self._wake[0]], [], [], FALLBACK_INTERVAL)
