"""The Database protocol: named reads, batch items run in a transaction, a clock, and wake-ups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from interlock.core.call import ToolSpec
    from interlock.core.ledger.invariants import Violation
    from interlock.core.ports import Clock
    from interlock.storage.engine.cache import Interned
    from interlock.storage.engine.metrics import CheckResult, WriterStats
    from interlock.storage.engine.rows import Row
    from interlock.storage.engine.watch import WatchRegistry
    from interlock.storage.engine.writer import BatchItem
    from interlock.storage.tables.search import FullTextIndex


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
