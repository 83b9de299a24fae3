"""Forked processes that are killed, stopped and restarted. The parent has no threads."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.points import FaultPoint

STUCK_AFTER = 60.0  # seconds after which something counts as stuck
STUCK_STATUS = 99


@dataclass(frozen=True)
class Scenario:
    """One scenario: a workspace of its own, and a folder for effects and acknowledgements outside the database."""

    url: str
    workspace: str
    folder: Path
    lease: int = 60_000  # milliseconds
    point: FaultPoint | None = None

    @property
    def effects(self) -> Path:
        return self.folder / "effects.txt"

    @property
    def acknowledgements(self) -> Path:
        return self.folder / "told.txt"


def append_line(path: Path, *words: str) -> None:
    """Appends durably, outside of the database: an effect, or an acknowledgement."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, (" ".join(words) + "\n").encode())
    finally:
        os.close(handle)


def read_lines(path: Path) -> list[list[str]]:
    return [line.split(" ") for line in path.read_text().splitlines()] if path.exists() else []


def fork_child(work: Callable[[], object]) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException as error:  # noqa: BLE001  a forked child must end here, not in its parent's code
        if "INTERLOCK_SHOW" in os.environ:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(code)


def wait_with_timeout(pid: int) -> int:
    """The exit status, negative for a signal."""
    handle = os.pidfd_open(pid)
    try:
        if not select.select([handle], [], [], STUCK_AFTER)[0]:
            kill_child(pid)
            return STUCK_STATUS
    finally:
        os.close(handle)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def wait_for_exit(pid: int) -> int:
    """As `wait_with_timeout`, without a timeout."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def wait_until_stopped(pid: int) -> int | None:
    """None once it is stopped, else its exit status."""
    deadline = time.monotonic() + STUCK_AFTER
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if done:
            return None if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    kill_child(pid)
    return STUCK_STATUS


def kill_child(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


class RequestProcess:
    """A child process that answers requests, one line each."""

    def __init__(self, work: Callable[[socket.socket], object]) -> None:
        ours, theirs = socket.socketpair()

        def run() -> None:
            ours.close()
            work(theirs)

        self._pid = fork_child(run)
        theirs.close()
        ours.settimeout(STUCK_AFTER)
        self._socket = ours
        self._file = ours.makefile("rb")

    def ask(self, verb: str, *values: object) -> Any:
        self._socket.sendall(json.dumps([verb, *values], default=str).encode() + b"\n")
        line = self._file.readline()
        if not line:
            raise RuntimeError(f"the peer process ended when it was asked to {verb}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"the peer process could not {verb}: {answer['error']}")
        return answer["result"]

    def close(self) -> None:
        self._file.close()
        self._socket.close()
        kill_child(self._pid)
