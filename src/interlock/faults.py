"""Named points before and after every statement and effect, where tests make things go wrong. Costs nothing when off.

A plan is one line: `record:FILE` writes the name of every point that is passed; `kill:N`, `raise:N`, `stop:N` and
`delay:N:MILLISECONDS` act at the N-th point, counted from 1.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from interlock.core.errors import Misconfigured

Point = Callable[[str], None]


class InjectedFault(Exception):
    """What a `raise` plan throws."""


def plan(text: str) -> Point | None:
    """The hook for a plan; None when there is none, so that nothing is wrapped."""
    if not text:
        return None
    action, _, rest = text.partition(":")
    if action == "record":
        return lambda name: _record(rest, name)
    number, _, extra = rest.partition(":")
    act = {"kill": _kill, "raise": _raise, "stop": _stop, "delay": lambda name: time.sleep(int(extra) / 1000)}.get(
        action
    )
    if act is None or not number.isdigit():
        raise Misconfigured(f"The fault plan {text!r} is not record:FILE, kill:N, raise:N, stop:N or delay:N:MS.")
    return _at(int(number), act)


def around(point: Point | None, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself when there is no plan."""
    if point is None:
        return function

    def faulty(*args: Any, **kwargs: Any) -> Any:
        point(f"before {name}")
        result = function(*args, **kwargs)
        point(f"after {name}")
        return result

    return faulty


def around_async(point: Point | None, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if point is None:
        return function

    async def faulty(*args: Any, **kwargs: Any) -> Any:
        point(f"before {name}")
        result = await function(*args, **kwargs)
        point(f"after {name}")
        return result

    return faulty


class FaultyConnection:
    """A database connection whose every statement is two points, named after the statement."""

    def __init__(self, connection: Any, point: Point, names: dict[str, str]) -> None:
        self._connection = connection
        self._point = point
        self._names = names

    def execute(self, statement: str, values: Sequence[object] = ()) -> Any:
        return around(self._point, self._name(statement), self._connection.execute)(statement, values)

    def executemany(self, statement: str, values: Sequence[Sequence[object]]) -> Any:
        return around(self._point, self._name(statement), self._connection.executemany)(statement, values)

    def close(self) -> None:
        self._connection.close()

    def _name(self, statement: str) -> str:
        return self._names.get(statement) or " ".join(statement.split()[:4]).lower()


def _at(number: int, act: Point) -> Point:
    passed = itertools.count(1)

    def point(name: str) -> None:
        if next(passed) == number:
            act(name)

    return point


def _record(path: str, name: str) -> None:
    with open(path, "a") as file:
        file.write(f"{name}\n")


def _kill(_: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop(_: str) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _raise(name: str) -> None:
    raise InjectedFault(name)
