"""The statements of one batch on a PostgreSQL connection: look-ups made beforehand, writes as whole sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from interlock.faults import Point, around
from interlock.stores.postgres.link import Link
from interlock.stores.postgres.sets import SetWrite, Types, array, placeholders, plain, set_read, set_write
from interlock.stores.rows import Row
from interlock.stores.transaction import COMPARED, NAMES

_BEGIN = "begin isolation level read committed"


class Statements:
    """The named statements in all the shapes that a batch needs; made once."""

    def __init__(self, queries: Mapping[str, str], types: Types) -> None:
        self.queries = queries
        self.one = {name: placeholders(text) for name, text in queries.items()}
        self.many = {name: set_read(text) for name, text in queries.items() if "?" in text and "values" not in text}
        self.sets: dict[str, SetWrite] = {
            name: set_write(queries[name], types, compared=name in COMPARED) for name in NAMES
        }
        self.names = {text: name for shape in (self.one, self.many) for name, text in shape.items()}
        self.names |= {made.text: name for name, made in self.sets.items()}
        self.names |= {made.one: name for name, made in self.sets.items()}


class Session:
    def __init__(self, connection: Any, statements: Statements, point: Point | None) -> None:
        self._connection = connection
        self._statements = statements
        self._point = point
        self._found: dict[tuple[object, ...], list[Row]] = {}
        self._asked: list[tuple[str, list[tuple[str, ...]], Any]] = []

    def pipeline(self) -> AbstractContextManager[Any]:
        """What is executed inside is sent without waiting for the answers."""
        made: AbstractContextManager[Any] = self._connection.pipeline()
        return made

    def begin(self, link: Link) -> None:
        self._found.clear()
        self._asked.clear()
        self.execute(_BEGIN)
        if link.pooled:
            for name, value in link.settings.items():
                self.execute("select set_config(%s, %s, true)", (name, value))

    def end(self) -> None:
        self.execute("rollback")

    def look_up(self, reads: Sequence[tuple[str, ...]]) -> None:
        """Sends the look-ups of a whole batch, one statement for each kind; `fetch` then finds the answers."""
        by_name: dict[str, dict[tuple[str, ...], None]] = {}
        for name, *values in reads:
            by_name.setdefault(name, {})[tuple(values)] = None
        for name, wanted in by_name.items():
            keys = list(wanted)
            if len(keys) == 1:
                cursor = self.execute(self._statements.one[name], keys[0])
            else:
                cursor = self.execute(
                    self._statements.many[name], [array(column) for column in zip(*keys, strict=True)]
                )
            self._asked.append((name, keys, cursor))

    def fetch(self, name: str, *values: object) -> list[Row]:
        if self._asked:
            self._collect()
        found = self._found.get((name, *values))
        if found is None:
            found = self.execute(self._statements.one[name], [plain(value) for value in values]).fetchall()
        return found

    def write(self, name: str, values: Sequence[tuple[object, ...]]) -> int:
        """The server itself checks that every compare-and-set met its row, so the count need not be waited for."""
        made = self._statements.sets[name]
        for rows in made.rounds(values):
            if len(rows) == 1:
                text, sent = made.one, [plain(value) for value in rows[0]]
            else:
                text, sent = made.text, [array(column) for column in zip(*rows, strict=True)]
            self.execute(text, [*sent, str(len(rows))] if made.compared else sent)
        return len(values)

    def execute(self, text: str, values: Sequence[object] = ()) -> Any:
        if self._point is None:
            return self._connection.execute(text, values)
        name = self._statements.names.get(text) or " ".join(text.split()[:4])
        return around(self._point, name, self._connection.execute)(text, values)

    def _collect(self) -> None:
        for name, keys, cursor in self._asked:
            found = cursor.fetchall()
            if len(keys) == 1:
                self._found[name, *keys[0]] = found
                continue
            for key in keys:
                self._found[name, *key] = []
            for number, *row in found:
                self._found[name, *keys[number - 1]].append(row)
        self._asked.clear()
