"""JSON logging to standard error, one line per event: never arguments, keys, cookies or the text of an exception."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Mapping
from traceback import extract_tb
from types import TracebackType
from typing import Literal

from interlock.config.models import RequestLogLevel
from interlock.core.ports import Clock
from interlock.runtime.durations import rfc3339

LogLevel = Literal["info", "warning", "error"]
WriteLine = Callable[[str], object]
MAX_LINES_PER_SECOND = 100  # log lines a second about requests; refused clients could send more than a disk takes
SECOND = 1_000


class JsonLogger:
    """`request_level` selects which requests are logged; the server's own start and stop are always logged."""

    def __init__(
        self, clock: Clock, request_level: RequestLogLevel = "problems", write: WriteLine | None = None
    ) -> None:
        self.every_request = request_level == "requests"
        self.logs_refusals = request_level != "none"
        self._clock = clock
        self._write = write or _to_stderr
        self._second = 0
        self._told = 0

    def write(self, level: LogLevel, event: str, **facts: object) -> None:
        self._line(self._clock(), level, event, facts)

    def write_limited(self, level: LogLevel, event: str, **facts: object) -> None:
        """As `write`, with a rate limit per second; the number of dropped lines is logged before the next line."""
        now = self._clock()
        if now // SECOND != self._second:
            left_out, self._told, self._second = self._told - MAX_LINES_PER_SECOND, 0, now // SECOND
            if left_out > 0:
                self._line(now, "warning", "lines_left_out", {"lines": left_out})
        self._told += 1
        if self._told <= MAX_LINES_PER_SECOND:
            self._line(now, level, event, facts)

    def write_exception(self, event: str, error: BaseException, **facts: object) -> None:
        """Log an unexpected error: its class and location, but not its text, which may be a secret."""
        self.write_limited(
            "error", event, **facts, exception=type(error).__name__, at_line=error_location(error.__traceback__)
        )

    def handle_loop_exception(self, _: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        """Exception handler for an event loop: a background task failed."""
        error = context.get("exception")
        if isinstance(error, BaseException):
            self.write_exception("background_failed", error)
        else:
            self.write("error", "background_failed", message=str(context.get("message", "")))

    def _line(self, now: int, level: LogLevel, event: str, facts: Mapping[str, object]) -> None:
        self._write(json.dumps({"at": rfc3339(now), "level": level, "event": event, **facts}, ensure_ascii=True) + "\n")


class LibraryLogHandler(logging.Handler):
    """Forwards the logs of libraries: the message template without its values, since those can be anything."""

    def __init__(self, log: JsonLogger) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        level: LogLevel = "error" if record.levelno >= logging.ERROR else "warning"
        lines = str(record.msg).splitlines() or [""]
        facts: dict[str, object] = {"logger": record.name, "message": lines[0]}
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            facts |= {"exception": type(error).__name__, "at_line": error_location(error.__traceback__)}
        self._log.write_limited(level, "library", **facts)


def error_location(traceback: TracebackType | None) -> str:
    """Where the error was raised: file and line number, without the line's text."""
    frames = extract_tb(traceback, limit=-1) if traceback else []
    if not frames:
        return ""
    name = frames[-1].filename.replace("\\", "/").rpartition("/src/")[2] or frames[-1].filename
    return f"{'/'.join(name.split('/')[-3:])}:{frames[-1].lineno}"


def _to_stderr(line: str) -> None:
    """Write a line; a broken pipe is no reason to stop serving."""
    try:
        sys.stderr.write(line)
        sys.stderr.flush()
    except (OSError, ValueError):
        return
