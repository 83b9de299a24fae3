"""Statements that are sent together and answered together, in libpq's pipeline mode: one round trip for all of them.

psycopg's own pipeline looks at the socket at every statement; here a dozen of them cost one write and one read.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from interlock.storage.engine.rows import Row

MAX_PREPARED = 500  # statements that are kept prepared
RESPONSE_TIMEOUT = 30_000  # milliseconds without any sign of life from the server
DONE = ExecStatus.COMMAND_OK
FAILED = ExecStatus.FATAL_ERROR
SYNC = ExecStatus.PIPELINE_SYNC

Loader = Callable[[bytes], Any]


class PipelineResult:
    """Filled by the next `sync`."""

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
    """For one thread. `prepare`: statements are parsed once for each connection, which a pooler would not keep."""

    def __init__(self, connection: psycopg.Connection[Any], *, prepare: bool) -> None:
        self._pgconn: PGconn = connection.pgconn
        self._pgconn.enter_pipeline_mode()
        self._prepare = prepare
        self._names: dict[str, bytes] = {}
        self._numbers = count()
        self._sent: list[PipelineResult | str] = []  # a text for a statement that was only prepared
        self._poll = select.poll()
        self._poll.register(self._pgconn.socket, select.POLLIN)

    def send(self, text: str, values: Sequence[object] = ()) -> PipelineResult:
        """Values are texts, numbers, bytes or None."""
        encoded = [_encode(value) for value in values] or None
        if self._prepare and (text in self._names or len(self._names) < MAX_PREPARED):
            self._pgconn.send_query_prepared(self._name(text), encoded)
        else:
            self._pgconn.send_query_params(text.encode(), encoded)
        answer = PipelineResult()
        self._sent.append(answer)
        return answer

    def sync(self) -> None:
        """Waits for all answers; raises the first error among them."""
        self.push()
        self.take()

    def push(self) -> None:
        self._pgconn.pipeline_sync()
        self._flush()

    def take(self) -> None:
        sent, self._sent = self._sent, []
        failed: PGresult | None = None
        for answer in sent:
            while (result := self._next()) is not None:
                if result.status == FAILED and failed is None:
                    failed = result
                if isinstance(answer, PipelineResult):
                    answer.result = result
                elif result.status != DONE:
                    self._names.pop(answer, None)  # behind something that failed: it was not prepared
        if (end := self._next()) is None or end.status != SYNC:
            raise psycopg.OperationalError("the server's answers are out of step")
        if failed is not None:
            raise error_from_result(failed)

    def ask(self, text: str, values: Sequence[object] = ()) -> list[Row]:
        """One statement, one round trip."""
        answer = self.send(text, values)
        self.sync()
        return answer.rows()

    def abandon(self) -> None:
        """Forgets what was sent but not synced, as far as the server lets us."""
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
        """A long batch may fill the socket both ways, so what comes back is taken in while sending."""
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
