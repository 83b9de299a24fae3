"""The statements of one batch on a PostgreSQL connection: look-ups made beforehand, writes as whole sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from interlock.core.ledger.event import Payload
from interlock.runtime.faults import FaultPoint, with_fault_points
from interlock.storage.engine.cache import BatchCache
from interlock.storage.engine.rows import Row
from interlock.storage.engine.write_order import WRITE_NAMES
from interlock.storage.postgres.bulk import BulkWrite, ColumnTypes, array_literal, bulk_read, bulk_write, placeholders
from interlock.storage.postgres.connection import PostgresConnection
from interlock.storage.postgres.pipeline import Pipeline, PipelineResult

_CHECK_PAYLOADS = placeholders(
    "with found as (select from unnest(?::text[], ?::text[], ?::bytea[], ?::bytea[]) as k(workspace, id, args, shown) "
    "join payloads p on p.workspace = k.workspace and p.id = k.id "
    "and p.args is not distinct from k.args and p.shown is not distinct from k.shown) "
    "select case when count(*) = ?::bigint then 0 else interlock_stale() end from found"
)
_BEGIN = "begin isolation level read committed"


class Statements:
    """The named statements in all the shapes that a batch needs; made once."""

    def __init__(self, queries: Mapping[str, str], types: ColumnTypes) -> None:
        self.queries = queries
        self.one = {name: placeholders(text) for name, text in queries.items()}
        self.many = {name: bulk_read(text) for name, text in queries.items() if "?" in text and "values" not in text}
        self.sets: dict[str, BulkWrite] = {name: bulk_write(queries[name], types) for name in WRITE_NAMES}
        self._names = {text: name for shape in (self.one, self.many) for name, text in shape.items()}
        self._names |= {made.text: name for name, made in self.sets.items()}
        self._names |= {made.one: name for name, made in self.sets.items()}

    def called(self, text: str) -> str:
        return self._names.get(text) or " ".join(text.split()[:4])


SentLookups = tuple[str, list[tuple[str, ...]], PipelineResult]


class BatchSession:
    """One batch. What is sent is answered by `sync`; `fetch` finds what was looked up, or asks."""

    def __init__(self, pipe: Pipeline, statements: Statements, point: FaultPoint | None) -> None:
        self._pipe = pipe
        self._statements = statements
        self._point = point
        self._found: dict[tuple[object, ...], list[Row]] = {}

    def begin(self, link: PostgresConnection) -> None:
        self._found.clear()
        self.send(_BEGIN)
        if link.pooled:
            link.set_up(self._pipe)

    def end(self) -> None:
        self._pipe.abandon()
        self.ask("rollback")

    def send(self, text: str, values: Sequence[object] = ()) -> PipelineResult:
        if self._point is None:
            return self._pipe.send(text, values)
        sent: PipelineResult = with_fault_points(self._point, self._statements.called(text), self._pipe.send)(
            text, values
        )
        return sent

    def sync(self) -> None:
        if self._point is None:
            self._pipe.sync()
            return
        with_fault_points(self._point, "all is sent", self._pipe.push)()
        with_fault_points(self._point, "all is answered", self._pipe.take)()

    def ask(self, text: str, values: Sequence[object] = ()) -> list[Row]:
        answer = self.send(text, values)
        self.sync()
        return answer.rows()

    def look_up(self, reads: Sequence[tuple[str, ...]]) -> list[SentLookups]:
        """Sends the look-ups of a whole batch, one statement for each kind."""
        by_name: dict[str, dict[tuple[str, ...], None]] = {}
        for name, *values in reads:
            by_name.setdefault(name, {})[tuple(values)] = None
        return [self._look_up(name, list(keys)) for name, keys in by_name.items()]

    def remember(self, lookups: Sequence[SentLookups]) -> None:
        """Takes in what `look_up` asked for, once it is answered."""
        for name, keys, answer in lookups:
            found = answer.rows()
            if len(keys) == 1:
                self._found[name, *keys[0]] = found
                continue
            for key in keys:
                self._found[name, *key] = []
            for number, *row in found:
                self._found[name, *keys[number - 1]].append(row)

    def fetch(self, name: str, *values: object) -> list[Row]:
        found = self._found.get((name, *values))
        return self.ask(self._statements.one[name], values) if found is None else found

    def write(self, name: str, values: Sequence[tuple[object, ...]]) -> int:
        """The database itself refuses a compare-and-set that was lost, so the count need not be waited for."""
        made = self._statements.sets[name]
        sent = [row[:-1] for row in values] if made.compared else values
        for rows in made.rounds(sent):
            if len(rows) == 1:
                self.send(made.one, rows[0])
            else:
                self.send(made.text, [array_literal(column) for column in zip(*rows, strict=True)])
        return len(values)

    def _look_up(self, name: str, keys: list[tuple[str, ...]]) -> SentLookups:
        if len(keys) == 1:
            return name, keys, self.send(self._statements.one[name], keys[0])
        columns = [array_literal(column) for column in zip(*keys, strict=True)]
        return name, keys, self.send(self._statements.many[name], columns)


class CacheMiss(Exception):
    """A step looked for something that is not remembered."""


class CachedSession:
    """Stands in for a session before anything is sent: answers from memory, and has the server check it later."""

    def __init__(self, memory: BatchCache) -> None:
        self._memory = memory
        self._assumed: dict[tuple[str, str], Payload] = {}
        self.session: BatchSession

    def fetch(self, name: str, *values: object) -> list[Row]:
        key = cast(tuple[str, str], values)
        if name != "payload" or key not in self._memory.payloads:
            raise CacheMiss(name)
        payload = self._assumed[key] = self._memory.payloads[key]
        return [payload]

    def check(self, session: BatchSession) -> None:
        """What runs is what is stored: the bytes that were remembered have to be the ones that are there."""
        if self._assumed:
            columns = zip(*((*key, kept.args, kept.shown) for key, kept in self._assumed.items()), strict=True)
            session.send(_CHECK_PAYLOADS, (*map(array_literal, columns), len(self._assumed)))

    def write(self, name: str, values: Sequence[tuple[object, ...]]) -> int:
        return self.session.write(name, values)
