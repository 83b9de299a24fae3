"""Statements in libpq's pipeline mode: sent and answered together, in one round trip.

psycopg's own pipeline looks at the socket at every statement; here a dozen of them cost one write and one read. The
figures are in docs/adr/0036-what-is-written-by-hand.md.
"""

from __future__ import annotations

import re
import select
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from operator import itemgetter
from types import NoneType
from typing import Any, cast

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from interlock.storage.engine.rows import Row

MAX_PREPARED = 500  # statements that are kept prepared
RESPONSE_TIMEOUT = 30_000  # milliseconds without any data from the server
DONE = ExecStatus.COMMAND_OK
FAILED = ExecStatus.FATAL_ERROR
SYNC = ExecStatus.PIPELINE_SYNC

Loader = Callable[[bytes], Any]


class PipelineResult:
    """Result of a statement, filled in by the next `sync`."""

    __slots__ = ("result",)

    def __init__(self) -> None:
        self.result: PGresult | None = None

    def rows(self) -> list[Row]:
        result = self.result
        if result is None:
            return []
        get, loaders = result.get_value, [_LOADERS.get(result.ftype(n), bytes.decode) for n in range(result.nfields)]
        columns = list(enumerate(loaders))
        return [
            tuple([None if (value := get(row, column)) is None else load(value) for column, load in columns])
            for row in range(result.ntuples)
        ]


class Pipeline:
    """For one thread. `prepare`: statements are parsed once for each connection, which a pooler would not preserve."""

    def __init__(self, connection: psycopg.Connection[Any], *, prepare: bool) -> None:
        self._pgconn: PGconn = connection.pgconn
        self._pgconn.enter_pipeline_mode()
        self._prepare = prepare
        self._names: dict[str, bytes] = {}
        self._numbers = count()
        self._sent: list[PipelineResult | str] = []  # a string for a statement that was only prepared
        self._poll = select.poll()
        self._poll.register(self._pgconn.socket, select.POLLIN)

    def send(self, text: str, values: Sequence[object] = ()) -> PipelineResult:
        """Queue a statement. Values are texts, numbers, bytes or None."""
        encoded = [_encode(value) for value in values] or None
        if self._prepare and (text in self._names or len(self._names) < MAX_PREPARED):
            self._pgconn.send_query_prepared(self._name(text), encoded)
        else:
            self._pgconn.send_query_params(text.encode(), encoded)
        response = PipelineResult()
        self._sent.append(response)
        return response

    def sync(self) -> None:
        """Wait for all results; raise the first error among them."""
        self.send_all()
        self.receive_all()

    def send_all(self) -> None:
        self._pgconn.pipeline_sync()
        self._flush()

    def receive_all(self) -> None:
        sent, self._sent = self._sent, []
        failed: PGresult | None = None
        for answer in sent:
            while (result := self._next()) is not None:
                if result.status == FAILED and failed is None:
                    failed = result
                if isinstance(answer, PipelineResult):
                    answer.result = result
                elif result.status != DONE:
                    self._names.pop(answer, None)  # after a statement that failed: it was not prepared
        if (end := self._next()) is None or end.status != SYNC:
            raise psycopg.OperationalError("the server's answers are out of step")
        if failed is not None:
            raise error_from_result(failed)

    def query(self, text: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement, in one round trip."""
        response = self.send(text, values)
        self.sync()
        return response.rows()

    def discard(self) -> None:
        """Drop what was sent but not synced, as far as the server allows it."""
        if self._sent:
            with suppress(psycopg.Error):
                self.sync()

    def _name(self, text: str) -> bytes:
        name = self._names.get(text)
        if name is None:
            name = self._names[text] = f"i{next(self._numbers)}".encode()
            self._pgconn.send_prepare(name, text.encode())
            self._sent.append(text)
        return name

    def _flush(self) -> None:
        """Send everything, and read meanwhile: a long batch may fill the socket in both directions."""
        while self._pgconn.flush():
            self._poll.modify(self._pgconn.socket, select.POLLIN | select.POLLOUT)
            for _, event in self._wait():
                if event & ~select.POLLOUT:
                    self._pgconn.consume_input()
        self._poll.modify(self._pgconn.socket, select.POLLIN)

    def _next(self) -> PGresult | None:
        while self._pgconn.is_busy():
            self._wait()
            self._pgconn.consume_input()
        return self._pgconn.get_result()

    def _wait(self) -> list[tuple[int, int]]:
        ready = self._poll.poll(RESPONSE_TIMEOUT)
        if not ready:
            raise psycopg.OperationalError("the server did not answer for 30 seconds")
        return ready


def _encode(value: object) -> bytes | None:
    match value:
        case str():
            if "\x00" in value:  # the protocol ends a text there
                raise psycopg.DataError("a text holds NUL")
            return value.encode()
        case None:
            return None
        case int():
            return b"%d" % value
        case bytes():
            return b"\\x" + value.hex().encode()
        case _:
            raise TypeError(f"{type(value).__name__} is not kept in a database.")


def _bytea(text: bytes) -> bytes:
    return bytes.fromhex(text[2:].decode())


_LOADERS: dict[int, Loader] = {16: lambda text: text == b"t", 17: _bytea, 20: int, 21: int, 23: int}  # by type


ColumnTypes = Mapping[tuple[str, str], str]  # (table, column) → type

_INSERT = re.compile(r"insert into (\w+)\s*\((.*?)\)\s*values\s*\(.*?\)\s*(.*)", re.DOTALL)
_UPDATE = re.compile(r"update (\w+) set\s+(.*?)\s+where\s+(.*)", re.DOTALL)
_DELETE = re.compile(r"delete from (\w+) where\s+(.*)", re.DOTALL)
_EQUALS = re.compile(r"(\w+) = \?")
_VERSION = " and version = ?"
_CONFLICT = re.compile(r"on conflict \((.*?)\) do update")


@dataclass(frozen=True, slots=True)
class BulkWrite:
    """One statement for a whole set; `key` are the positions of the values that identify the row.

    `is_compare_and_set`: the last value is the version that was read. It is not sent: the database itself rejects an
    update whose version does not follow the stored one, and with it the whole transaction.
    """

    text: str
    single: str
    key: tuple[int, ...]
    is_compare_and_set: bool

    def rounds(self, values: Sequence[tuple[object, ...]]) -> list[Sequence[tuple[object, ...]]]:
        """Split the values into rounds, since a statement can touch a row only once."""
        if len(values) == 1 or not self.key:
            return [values]
        key_of = itemgetter(*self.key)
        rows = {key_of(row): row for row in values}
        if len(rows) == len(values):  # the usual case
            return [[rows[key] for key in sorted(rows)]]
        rounds: list[dict[Any, tuple[object, ...]]] = [{}]
        times: dict[Any, int] = {}
        for row in values:
            key = key_of(row)
            number = times[key] = times.get(key, -1) + 1
            if number == len(rounds):
                rounds.append({})
            rounds[number][key] = row
        return [[each[key] for key in sorted(each)] for each in rounds]


def placeholders(statement: str) -> str:
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", _force_primary_key(statement))


def _force_primary_key(statement: str) -> str:
    """Force a look-up by an approval's primary key: `workspace || ''` fits no index that begins with the workspace.

    On a table that was never analysed the planner considers those indexes as good and keeps the plan, and each look-up
    then scans the whole workspace.
    """
    if statement.startswith("update approvals"):
        return re.sub(
            r"\b((?:approvals\.)?)workspace = (\S+) and \1id = ", r"\1workspace || '' = \2 and \1id = ", statement
        )
    return re.sub(r"\ba\.workspace = (\S+) and a\.(id|run_id) = ", r"a.workspace || '' = \1 and a.\2 = ", statement)


def bulk_read(statement: str) -> str:
    """Build the same look-up for many keys; each row begins with the number of its key, counted from 1."""
    numbers = count(1)
    inner = re.sub(r"\?", lambda _: f"k.c{next(numbers)}", statement)
    names = ", ".join(f"c{n}" for n in range(1, statement.count("?") + 1))
    arrays = ", ".join(["?::text[]"] * statement.count("?"))
    return placeholders(
        f"select k.n, q.* from unnest({arrays}) with ordinality as k({names}, n) "  # noqa: S608  our own statements
        f"cross join lateral ({inner}) q order by k.n"
    )


def bulk_write(statement: str, types: ColumnTypes) -> BulkWrite:
    compared = statement.endswith(_VERSION)
    plain = statement.removesuffix(_VERSION)
    for pattern, make in ((_INSERT, _insert), (_UPDATE, _update), (_DELETE, _delete)):
        match = pattern.fullmatch(plain)
        if match:
            text, key = make(match, types)
            return BulkWrite(placeholders(text), placeholders(plain), key, compared)
    raise ValueError(f"There is no set for: {statement}")


def array_literal(values: Sequence[object]) -> str:
    """Encode a PostgreSQL array as text. Whole columns are quoted at once: that is most of a batch's encoding."""
    kinds = set(map(type, values))
    if kinds == {str}:
        joined = "\0".join(cast(Sequence[str], values))
        if joined.count("\0") >= len(values):
            raise psycopg.DataError("a text holds NUL")
        if "\\" in joined or '"' in joined:
            joined = joined.replace("\\", "\\\\").replace('"', '\\"')
        return '{"' + joined.replace("\0", '","') + '"}'
    if kinds == {int}:
        return "{" + ",".join(map(str, values)) + "}"
    if kinds == {NoneType}:
        return "{" + ",".join(["null"] * len(values)) + "}"
    if kinds == {bytes}:
        return '{"\\\\x' + '","\\\\x'.join([value.hex() for value in cast(Sequence[bytes], values)]) + '"}'
    return "{" + ",".join([_array_element(value) for value in values]) + "}"


def _array_element(value: object) -> str:
    match value:
        case str():
            return array_literal((value,))[1:-1]
        case int():
            return str(value)
        case None:
            return "null"
        case bytes():
            return f'"\\\\x{value.hex()}"'
        case _:
            raise TypeError(f"{type(value).__name__} is not kept in a database.")


def _insert(match: re.Match[str], types: ColumnTypes) -> tuple[str, tuple[int, ...]]:
    table, listed, tail = match.groups()
    columns = [column.strip() for column in listed.split(",")]
    arrays = ", ".join(f"?::{types[table, column]}[]" for column in columns)
    conflict = _CONFLICT.search(tail)
    keys = [column.strip() for column in conflict.group(1).split(",")] if conflict else []
    text = f"insert into {table} ({', '.join(columns)}) select * from unnest({arrays}) {tail}"  # noqa: S608  ours
    return text.strip(), tuple(columns.index(key) for key in keys)


def _update(match: re.Match[str], types: ColumnTypes) -> tuple[str, tuple[int, ...]]:
    table, assigned, where = match.groups()
    columns = _EQUALS.findall(assigned)
    keys = _EQUALS.findall(where)
    given = [f"s{n}" for n in range(len(columns))] + [f"k{n}" for n in range(len(keys))]
    names = iter(given)
    assigned = _EQUALS.sub(lambda found: f"{found.group(1)} = v.{next(names)}", assigned)
    where = _EQUALS.sub(lambda found: f"{table}.{found.group(1)} = v.{next(names)}", where)
    arrays = ", ".join(f"?::{types[table, column]}[]" for column in (*columns, *keys))
    text = f"update {table} set {assigned} from unnest({arrays}) as v({', '.join(given)}) where {where}"  # noqa: S608
    first = len(columns)
    return text, tuple(range(first, first + len(keys)))


def _delete(match: re.Match[str], types: ColumnTypes) -> tuple[str, tuple[int, ...]]:
    table, where = match.groups()
    keys = _EQUALS.findall(where)
    names = iter(range(len(keys)))
    where = _EQUALS.sub(lambda found: f"{table}.{found.group(1)} = v.k{next(names)}", where)
    arrays = ", ".join(f"?::{types[table, key]}[]" for key in keys)
    given = ", ".join(f"k{n}" for n in range(len(keys)))
    text = f"delete from {table} using unnest({arrays}) as v({given}) where {where}"  # noqa: S608  our own statements
    return text, tuple(range(len(keys)))
