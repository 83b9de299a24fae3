"""Signals that end a program which owes an answer: the answer is ready before they come. Imports next to nothing."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
WHY = "Interlock did not let this run. The hook was ended before it had an answer."
DENIED = (
    '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", '
    f'"permissionDecisionReason": "{WHY}"}}}}\n'
)
BLOCKED = 2  # the exit status that Claude Code takes for a no; with any other error it lets the call through


def answer_on_signal(out: str = DENIED, err: str = WHY + "\n", status: int = BLOCKED) -> None:
    """From now on a signal writes these, and ends the program at once: whatever it does, its database stands that."""

    def end(_: int, __: FrameType | None) -> None:
        for descriptor, text in ((1, out), (2, err)):
            with suppress(OSError):
                os.write(descriptor, text.encode())
        os._exit(status)

    _set(end)


def ignore_signals() -> None:
    """The answer is being written: half of it, or two of them, would be none."""
    _set(signal.SIG_IGN)


def _set(handler: signal._HANDLER) -> None:
    if threading.current_thread() is threading.main_thread():  # elsewhere nobody may
        for each in ENDING:
            signal.signal(each, handler)
