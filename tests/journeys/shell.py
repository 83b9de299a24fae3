"""The command line in this process; and programs as processes, with pipes or a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyte

from tests.journeys.cli_in_process import run_main

SOURCES = Path(__file__).resolve().parents[2] / "src"
OutputStream = int | IO[bytes]
ALTERNATE_SCREEN = b"\x1b[?1049h"
TIMEOUT = 120.0  # seconds that a condition may take on a loaded machine; nothing waits that long when all is well
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>()][B0]?")


@dataclass(frozen=True)
class CommandResult:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """Runs `interlock` in a folder of its own, on a database of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "approvals.db"
        self.url = f"sqlite:///{self.path}"
        self.extra: dict[str, str] = {}
        self._started: list[subprocess.Popen[Any]] = []

    def __call__(self, *words: str, stdin: str = "") -> CommandResult:
        """In this process. What does not end by itself, and whatever is about being a process, is a real one."""
        return CommandResult(*run_main(words, stdin, self.env(), self.folder))

    def process(self, *words: str, stdin: str = "") -> CommandResult:
        """The same in a process of its own, with pipes."""
        command, pipe = self.command(*words), subprocess.PIPE
        process = self.program(*command, stdin=pipe, stdout=pipe, stderr=pipe)
        out, err = process.communicate(stdin.encode(), timeout=TIMEOUT)
        return CommandResult(process.returncode, out.decode(), err.decode())

    def start(
        self, *words: str, out: OutputStream = subprocess.PIPE, err: OutputStream = subprocess.PIPE
    ) -> subprocess.Popen[bytes]:
        return self.program(*self.command(*words), stdout=out, stderr=err)

    def program(self, *command: str, more: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[Any]:
        """Any program, in the folder and with the environment, until the test is over at most."""
        given = {"stdin": subprocess.DEVNULL, "env": {**self.env(), **(more or {})}, "cwd": self.folder, **options}
        process = subprocess.Popen(command, process_group=0, **given)
        self._started.append(process)
        return process

    def end_programs(self) -> None:
        while self._started:
            end_group(self._started.pop())

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "interlock", *words]

    def env(self) -> Mapping[str, str]:
        ours = ("INTERLOCK_", "COLUMNS", "LINES")  # the last two are the size of another terminal
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        path = os.pathsep.join(filter(None, [str(SOURCES), kept.get("PYTHONPATH")]))
        own = str(self.folder / "configuration")  # a login of the person who runs the tests must not count
        ours_now = {"INTERLOCK_DATABASE_URL": self.url, "XDG_CONFIG_HOME": own, "PYTHONPATH": path, "TZ": "UTC"}
        return {**kept, **ours_now, **self.extra}

    @contextmanager
    def terminal(self, *words: str) -> Iterator[Terminal]:
        terminal = Terminal(self.command(*words), {**self.env(), "TERM": "xterm-256color"}, self.folder)
        try:
            yield terminal
        finally:
            terminal.close()


class Terminal:
    """A program at a pseudo-terminal of 30 lines. Tests press keys and wait for what they expect to see."""

    LINES, COLUMNS = 30, 120

    def __init__(self, command: list[str], env: Mapping[str, str], folder: Path) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", self.LINES, self.COLUMNS, 0, 0))
        self._modes = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=folder, start_new_session=True
        )
        os.close(slave)
        self.written = b""
        self._screen = pyte.Screen(self.COLUMNS, self.LINES)
        self._emulator = pyte.ByteStream(self._screen)

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def screen(self) -> str:
        """What is on the screen; all that was written where the program does not take the whole screen."""
        if ALTERNATE_SCREEN in self.written:
            return "\n".join(self._screen.display)
        return _CONTROL.sub("", self.written.decode(errors="replace")).replace("\r", "")

    def assert_shows(self, *texts: str) -> str:
        """Waits for it."""
        return self.assert_becomes(lambda screen: all(text in screen for text in texts), f"{texts} on the screen")

    def assert_becomes(self, holds: Callable[[str], bool], what: str) -> str:
        end = time.monotonic() + TIMEOUT
        while not holds(self.screen()):
            if time.monotonic() > end or not self._read():
                raise AssertionError(f"Waited in vain for {what}. The screen:\n{self.screen()}")
        return self.screen()

    def exit_code(self) -> int:
        end = time.monotonic() + TIMEOUT
        while self._read() and time.monotonic() < end:
            pass
        return self.process.wait(TIMEOUT)

    def is_restored(self) -> bool:
        """Whether keys are echoed, lines are edited, and the screen is the one from before."""
        modes = termios.tcgetattr(self._master)
        is_plain = self.written.rfind(b"\x1b[?1049l") >= self.written.rfind(ALTERNATE_SCREEN)
        return modes == self._modes and is_plain

    def close(self) -> None:
        end_group(self.process)
        os.close(self._master)

    def _read(self) -> bool:
        """False once the program has closed its terminal."""
        ready, _, _ = select.select([self._master], [], [], 0.1)
        if not ready:
            return True
        try:
            data = os.read(self._master, 65_536)
        except OSError:
            return False
        self.written += data
        self._emulator.feed(data)
        return bool(data)


def end_group(process: subprocess.Popen[Any]) -> None:
    """Whatever it started too: it leads a group of its own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def wait_until(holds: Callable[[], bool], what: str, patience: float = TIMEOUT, pause: float = 0.01) -> None:
    """A condition that costs something to look at takes a longer pause."""
    end = time.monotonic() + patience
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"Waited in vain until {what}.")
        time.sleep(pause)
