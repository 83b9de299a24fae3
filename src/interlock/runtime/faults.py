"""Fault injection: named points before and after every statement and effect. Costs nothing when off.

A plan is one line: `record:FILE` writes the name of every point that is passed; `kill:N`, `raise:N`, `stop:N` and
`delay:N:MILLISECONDS` act at the N-th point, counted from 1. Instead of N, `NAME#K` is the K-th time that this name
comes: the order of threads varies, so that number N in one run may be another point in the next.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from interlock.core.errors import Misconfigured

FaultPoint = Callable[[str], None]


class InjectedFault(Exception):
    """The exception of a `raise` plan."""


def parse_fault_plan(text: str) -> FaultPoint | None:
    """The hook for a plan; None without one, so that nothing is wrapped."""
    if not text:
        return None
    action, _, rest = text.partition(":")
    if action == "record":
        log = os.open(rest, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return lambda name: _record(log, name)
    where, _, extra = rest.rpartition(":") if action == "delay" else (rest, "", "0")
    act = {"kill": _kill, "raise": _raise, "stop": _stop, "delay": lambda _: time.sleep(int(extra) / 1000)}.get(action)
    name, _, number = where.rpartition("#")
    if act is None or not number.isdigit() or not extra.isdigit():
        raise Misconfigured(
            f"The fault plan {text!r} is not record:FILE, kill:N, raise:N, stop:N or delay:N:MS, with N or NAME#K."
        )
    return _nth_pass(name, int(number), act)


def with_fault_points(point: FaultPoint | None, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function with two points; the function itself without a plan."""
    if point is None:
        return function

    def faulty(*args: Any, **kwargs: Any) -> Any:
        point(f"before {name}")
        result = function(*args, **kwargs)
        point(f"after {name}")
        return result

    return faulty


def with_fault_points_async(point: FaultPoint | None, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if point is None:
        return function

    async def faulty(*args: Any, **kwargs: Any) -> Any:
        point(f"before {name}")
        result = await function(*args, **kwargs)
        point(f"after {name}")
        return result

    return faulty


def raise_faults_as(point: FaultPoint | None, error: Callable[[str], Exception]) -> FaultPoint | None:
    """The same point, but a fault is raised as an error of the database."""
    if point is None:
        return None

    def failed(name: str) -> None:
        try:
            point(name)
        except InjectedFault as fault:
            raise error(f"injected {fault}") from fault

    return failed


def connection_wrapper(point: FaultPoint | None, names: dict[str, str]) -> Callable[[Any], Any]:
    """Add points to a connection; returns the connection itself without a plan."""
    return (lambda same: same) if point is None else (lambda each: FaultyConnection(each, point, names))


class FaultyConnection:
    """A database connection with two points for every statement, named after the statement."""

    def __init__(self, connection: Any, point: FaultPoint, names: dict[str, str]) -> None:
        self._connection = connection
        self._point = point
        self._names = names

    def execute(self, statement: Any, *args: Any, **kwargs: Any) -> Any:
        return with_fault_points(self._point, self._name(statement), self._connection.execute)(
            statement, *args, **kwargs
        )

    def executemany(self, statement: str, values: Any) -> Any:
        return with_fault_points(self._point, self._name(statement), self._connection.executemany)(statement, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._point("before begin")
        with self._connection.transaction():
            self._point("after begin")
            yield
            self._point("before commit")
        self._point("after commit")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def _name(self, statement: str | bytes) -> str:
        text = statement.decode() if isinstance(statement, bytes) else statement
        words = " ".join(line for line in text.splitlines() if not line.startswith("--")).split()
        return self._names.get(text) or " ".join(words[:4]).lower()


def _nth_pass(name: str, number: int, act: FaultPoint) -> FaultPoint:
    passed = itertools.count(1)

    def point(here: str) -> None:
        if name in ("", here) and next(passed) == number:
            act(here)

    return point


def _record(log: int, name: str) -> None:
    os.write(log, f"{name}\n".encode())


def _kill(_: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop(_: str) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _raise(name: str) -> None:
    raise InjectedFault(name)
