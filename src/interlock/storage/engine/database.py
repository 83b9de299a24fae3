"""The Database protocol: named reads, batch items run in a transaction, a clock, and wake-ups.

Waiters for an approval or a thread are woken. A wake-up is only a hint: the waiter reads the state itself.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from interlock.storage.engine.rows import Row
from interlock.storage.engine.writer import BatchItem, ChangedIds, call_soon

if TYPE_CHECKING:
    from interlock.core.call import ToolSpec
    from interlock.core.ledger.invariants import Violation
    from interlock.core.ports import Clock
    from interlock.storage.engine.cache import Interned
    from interlock.storage.engine.metrics import CheckResult, WriterStats
    from interlock.storage.tables.search import FullTextIndex

MAX_EVENTS = 1000  # events in one poll


class DatabaseReader(Protocol):
    async def fetch(self, name: str, *values: object) -> list[Row]: ...
    async def fetch_text(self, statement: str, values: Any) -> list[Row]: ...
    async def fetch_in_thread(self, statement: str, values: Any) -> list[Row]: ...
    async def due(self, now: int, limit: int) -> list[Row]: ...
    async def check_health(self) -> Sequence[CheckResult]: ...
    async def find_schema_violations(self) -> Sequence[Violation]: ...


class Database(DatabaseReader, Protocol):
    """A database. `clock` is the one that counts for deadlines; `name` is the database's name as people know it."""

    interned: Interned
    full_text_index: FullTextIndex
    watch_registry: WatchRegistry
    writer_stats: WriterStats
    clock: Clock
    name: str

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    async def migrate(self) -> list[str]: ...
    def check_same_database(self) -> None: ...
    def count_read(self, workspace: str, tool: str) -> None: ...
    def note_tool(self, workspace: str, spec: ToolSpec, agent: str, key: str) -> None: ...
    async def write(self, item: BatchItem) -> Any: ...


# Wake-ups


class TaskWatch:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._event = asyncio.Event()

    async def wait(self, timeout: float | None) -> None:
        try:
            async with asyncio.timeout(timeout):
                await self._event.wait()
        except TimeoutError:
            pass
        self._event.clear()

    def wake(self) -> None:
        self._event.set()


class CallbackWatch:
    """A watch that calls a callback, for waiters without a task."""

    __slots__ = ("loop", "wake")

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        self.loop = loop
        self.wake = callback


class WatchRegistry:
    """Registry of watches, thread-safe. An id is that of an approval or a thread; empty for the whole workspace."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: dict[tuple[str, str], set[TaskWatch | CallbackWatch]] = defaultdict(set)
        self._workspaces: Counter[str] = Counter()
        self.has_waiters = threading.Event()  # set while anything waits

    @asynccontextmanager
    async def watch(self, workspace: str, approval_id: str) -> AsyncIterator[TaskWatch]:
        watch = TaskWatch(asyncio.get_running_loop())
        with self._registered((workspace, approval_id), watch):
            yield watch

    @contextmanager
    def listen(self, workspace: str, approval_id: str, callback: Callable[[], None]) -> Iterator[None]:
        """Call `callback` in this event loop on every wake-up."""
        with self._registered((workspace, approval_id), CallbackWatch(asyncio.get_running_loop(), callback)):
            yield

    @contextmanager
    def _registered(self, key: tuple[str, str], watch: TaskWatch | CallbackWatch) -> Iterator[None]:
        with self._lock:
            self._watches[key].add(watch)
            self._count(key[0], 1)
        try:
            yield
        finally:
            self._unregister(key, watch)

    def _unregister(self, key: tuple[str, str], watch: TaskWatch | CallbackWatch) -> None:
        with self._lock:
            self._watches[key].discard(watch)
            if not self._watches[key]:
                del self._watches[key]
            self._count(key[0], -1)

    def workspaces(self) -> set[str]:
        with self._lock:
            return set(self._workspaces)

    def _count(self, workspace: str, more: int) -> None:
        """Count waiters by workspace. One without a workspace is woken by this process only, without polling."""
        if workspace:
            self._workspaces[workspace] += more
            if not self._workspaces[workspace]:
                del self._workspaces[workspace]
        if self._workspaces:
            self.has_waiters.set()
        else:
            self.has_waiters.clear()

    def announce(self, changed: ChangedIds) -> None:
        if not self._watches:
            return
        with self._lock:
            woken = [watch for key in _watch_keys(changed) for watch in self._watches.get(key, ())]
        by_loop: dict[asyncio.AbstractEventLoop, list[TaskWatch | CallbackWatch]] = defaultdict(list)
        for watch in woken:
            by_loop[watch.loop].append(watch)
        for loop, watches in by_loop.items():
            call_soon(loop, _wake_all, watches)


def _watch_keys(changed: ChangedIds) -> Iterable[tuple[str, str]]:
    for workspace, approval_ids in changed.items():
        yield workspace, ""
        for approval_id in approval_ids:
            yield workspace, approval_id


def _wake_all(watches: list[TaskWatch | CallbackWatch]) -> None:
    for watch in watches:
        watch.wake()


class ChangeReader:
    def __init__(self, fetch: Callable[..., list[Row]], registry: WatchRegistry) -> None:
        self._fetch = fetch
        self._registry = registry
        self._seen: dict[str, int] = {}

    def poll(self) -> bool:
        """Wake the waiters of what changed; return True if there are more changes to read."""
        changes = {name: self._read_changes(name) for name in self._registry.workspaces()}
        self._registry.announce({name: _changed_ids(found) for name, found in changes.items() if found})
        return any(len(found) == MAX_EVENTS for found in changes.values())

    def _read_changes(self, workspace: str) -> list[Row]:
        found = self._fetch("head", workspace)
        newest = found[0][1] if found else 0
        last = self._seen.get(workspace, max(0, newest - MAX_EVENTS))
        changes = self._fetch("changed_since", workspace, last) if newest > last else []
        self._seen[workspace] = changes[-1][1] if changes else max(newest, last)
        return changes


def _changed_ids(found: list[Row]) -> set[str]:
    """Return the ids of the approvals and threads that the entries are about."""
    approvals = {row[2] for row in found if row[2]}
    return approvals | {json.loads(row[3])["thread_id"] for row in found if row[3]}
