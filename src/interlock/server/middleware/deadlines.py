"""How long a request may take. One timer looks at all of them: one for each cost as much as half of a short answer."""

from __future__ import annotations

import asyncio
from types import TracebackType

CHECK_INTERVAL = 0.5  # seconds, by which a deadline may be late


class Deadlines:
    def __init__(self) -> None:
        self._open: dict[Deadline, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def within(self, seconds: float) -> Deadline:
        """For a `with` inside a task: whatever takes longer is given up, and TimeoutError is raised."""
        return Deadline(self, seconds)

    def add(self, each: Deadline) -> None:
        self._open[each] = None
        if self._timer is None:
            self._timer = each.loop.call_later(CHECK_INTERVAL, self._look)

    def remove(self, each: Deadline) -> None:
        self._open.pop(each, None)

    def _look(self) -> None:
        self._timer = None
        for each in [each for each in self._open if each.loop.time() >= each.end]:
            self.remove(each)
            each.give_up()
        if self._open:
            first = next(iter(self._open))
            self._timer = first.loop.call_later(CHECK_INTERVAL, self._look)


class Deadline:
    __slots__ = ("_deadlines", "_gave_up", "_seconds", "_task", "end", "loop")

    def __init__(self, deadlines: Deadlines, seconds: float) -> None:
        self._deadlines = deadlines
        self._seconds = seconds
        self._gave_up = False

    def __enter__(self) -> Deadline:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  a request is a task
        self._task, self.loop = task, task.get_loop()
        self.end = self.loop.time() + self._seconds
        self._deadlines.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._deadlines.remove(self)
        if self._gave_up and self._task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def lift(self) -> None:
        """From now on it may take as long as it takes."""
        self._deadlines.remove(self)

    def give_up(self) -> None:
        self._gave_up = True
        self._task.cancel()
