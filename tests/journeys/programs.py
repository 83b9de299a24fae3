"""The real command, as a person or a script starts it: with pipes, or at a pseudo-terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

SOURCES = Path(__file__).resolve().parents[2] / "src"
Stream = int | IO[bytes]
PATIENCE = 30.0  # seconds that a condition may take on a busy machine; nothing waits that long when all is well
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>()][B0]?")


@dataclass(frozen=True)
class Done:
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

    def __call__(self, *words: str, stdin: str = "") -> Done:
        done = subprocess.run(
            self.command(*words),
            input=stdin.encode(),
            capture_output=True,
            env=self.env(),
            cwd=self.folder,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(
        self, *words: str, out: Stream = subprocess.PIPE, err: Stream = subprocess.PIPE
    ) -> subprocess.Popen[bytes]:
        command = self.command(*words)
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=self.env(), cwd=self.folder
        )

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "interlock", *words]

    def env(self) -> Mapping[str, str]:
        ours = ("INTERLOCK_", "COLUMNS", "LINES")  # the last two are the size of another terminal
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        path = os.pathsep.join(filter(None, [str(SOURCES), kept.get("PYTHONPATH")]))
        return {**kept, "INTERLOCK_DATABASE_URL": self.url, "PYTHONPATH": path, "TZ": "UTC", **self.extra}

    @contextmanager
    def terminal(self, *words: str) -> Iterator[Terminal]:
        terminal = Terminal(self.command(*words), {**self.env(), "TERM": "xterm-256color"}, self.folder)
        try:
            yield terminal
        finally:
            terminal.close()


class Terminal:
    """A program at a pseudo-terminal of 30 lines. Tests press keys and wait for what they expect to see."""

    def __init__(self, command: list[str], env: Mapping[str, str], folder: Path) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=folder, start_new_session=True
        )
        os.close(slave)
        self._written = b""

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def screen(self) -> str:
        """What the last frame shows; all that was written where there are no frames."""
        last = self._written.decode(errors="replace").rpartition("\x1b[H")[2]
        return _CONTROL.sub("", last).replace("\r", "")

    def assert_shows(self, *texts: str) -> str:
        """Waits for it."""
        return self.assert_becomes(lambda screen: all(text in screen for text in texts), f"{texts} on the screen")

    def assert_becomes(self, holds: Callable[[str], bool], what: str) -> str:
        end = time.monotonic() + PATIENCE
        while not holds(self.screen()):
            if time.monotonic() > end or not self._read():
                raise AssertionError(f"Waited in vain for {what}. The screen:\n{self.screen()}")
        return self.screen()

    def exit_code(self) -> int:
        end = time.monotonic() + PATIENCE
        while self._read() and time.monotonic() < end:
            pass
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
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
        self._written += data
        return bool(data)


def wait_until(holds: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    end = time.monotonic() + patience
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"Waited in vain until {what}.")
        time.sleep(0.01)
