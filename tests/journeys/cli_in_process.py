"""The command line, called in the test process with its own streams."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

LIMIT = 60.0  # seconds; a command that ends by itself takes a hundredth of that
ENDLESS_COMMANDS = ("serve", "worker", "mcp-gate")
SIZE = {"COLUMNS": "80", "LINES": "25"}  # what Rich and Typer take where no stream is a terminal

_one_at_a_time = threading.Lock()


class Streams(NamedTuple):
    stdin: io.TextIOWrapper
    stdout: io.TextIOWrapper
    stderr: io.TextIOWrapper

    @property
    def written(self) -> tuple[str, str]:
        for stream in (self.stdout, self.stderr):
            stream.flush()
        return tuple(stream.buffer.getvalue().decode() for stream in (self.stdout, self.stderr))


def run_main(words: Sequence[str], stdin: str, env: Mapping[str, str], folder: Path) -> tuple[int, str, str]:
    """The exit status, and what stood on standard output and standard error.

    It runs in a thread of its own, since whoever calls may have an event loop that runs.
    """
    refuse_endless_command(words)
    streams = Streams(*(io.TextIOWrapper(io.BytesIO(given), encoding="utf-8") for given in (stdin.encode(), b"", b"")))
    ended: Future[int] = Future()
    thread = threading.Thread(target=lambda: ended.set_result(exit_status()), name="interlock", daemon=True)
    with _one_at_a_time, process_state(words, streams, env, folder):
        thread.start()
        try:
            code = ended.result(LIMIT)
        except TimeoutError:
            raise AssertionError(f"interlock {' '.join(words)} did not end: {streams.written}") from None
        thread.join()
    return code, *streams.written


def refuse_endless_command(words: Sequence[str]) -> None:
    is_watch = "watch" in words[:2] and "--once" not in words
    if words and (words[0] in ENDLESS_COMMANDS or is_watch or tuple(words[:2]) == ("runs", "resume")):
        raise ValueError(f"{words[0]} runs until it is told to stop: take Shell.start, or Shell.process if it refuses.")


@contextmanager
def process_state(words: Sequence[str], streams: Streams, env: Mapping[str, str], folder: Path) -> Iterator[None]:
    """All that a process has for itself and the threads of one process share."""
    before = dict(os.environ), Path.cwd(), sys.argv, Streams(sys.stdin, sys.stdout, sys.stderr)
    try:
        set_process_state(env | SIZE, folder, ["interlock", *words], streams)
        yield
    finally:
        set_process_state(*before)


def set_process_state(env: Mapping[str, str], folder: Path, argv: list[str], streams: Streams) -> None:
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(folder)
    sys.argv = argv
    sys.stdin, sys.stdout, sys.stderr = streams


def exit_status() -> int:
    """As the interpreter has it: 0 without an exception, and a traceback for one that nobody expects."""
    try:
        from interlock.cli import main

        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:  # noqa: BLE001  whatever it is, the interpreter would end with it
        traceback.print_exc()
        return 1
    return 0
