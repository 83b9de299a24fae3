"""Keys of a terminal, one by one, without blocking the event loop."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import sys
import termios
import tty
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

NAMES = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x1b": "escape",
}
_KEYS = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])|.", re.DOTALL)


class Keyboard:
    """`pressed` is called when there is something to take."""

    def __init__(self, pressed: Callable[[], None]) -> None:
        self._fd = sys.stdin.fileno()
        self._pressed = pressed
        self._before = termios.tcgetattr(self._fd)
        self._keys: deque[str] = deque()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self) -> str | None:
        return self._keys.popleft() if self._keys else None

    def forget(self) -> None:
        """Drops what was typed ahead: it was no answer to a question that nobody had read yet."""
        self._keys.clear()
        termios.tcflush(self._fd, termios.TCIFLUSH)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Each key comes at once and is not echoed; Ctrl-C still interrupts, Ctrl-Z does nothing."""
        self._start()
        try:
            yield
        finally:
            self._stop()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Another program has the keyboard meanwhile."""
        self._stop()
        try:
            yield
        finally:
            self._start()

    def _start(self) -> None:
        tty.setcbreak(self._fd)
        settings = termios.tcgetattr(self._fd)
        settings[6][termios.VSUSP] = b"\0"
        termios.tcsetattr(self._fd, termios.TCSANOW, settings)
        asyncio.get_running_loop().add_reader(self._fd, self._read)

    def _stop(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def _read(self) -> None:
        text = self._decoder.decode(os.read(self._fd, 1024))
        self._keys.extend(key for found in _KEYS.findall(text) if (key := _name(found)))
        self._pressed()


def _name(found: str) -> str:
    """Names for special keys, the character for others, nothing for what we do not know."""
    return NAMES.get(found) or (found if found.isprintable() else "")
