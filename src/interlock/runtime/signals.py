"""Signals that end a program which owes an answer: the answer is ready before they come. Imports next to nothing."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from types import FrameType

TERMINATION_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
INTERRUPTED_MESSAGE = "Interlock did not let this run. The hook was ended before it had an answer."
DENIED_OUTPUT = (
    '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", '
    f'"permissionDecisionReason": "{INTERRUPTED_MESSAGE}"}}}}\n'
)
BLOCKED_EXIT_STATUS = (
    2  # the exit status that Claude Code takes for a no; with any other error it lets the call through
)


def answer_on_signal(
    out: str = DENIED_OUTPUT, err: str = INTERRUPTED_MESSAGE + "\n", status: int = BLOCKED_EXIT_STATUS
) -> None:
    """From now on a signal writes these, and ends the program at once: whatever it does, its database stands that."""

    def end(_: int, __: FrameType | None) -> None:
        for descriptor, text in ((1, out), (2, err)):
            with suppress(OSError):
                os.write(descriptor, text.encode())
        os._exit(status)

    _set_handler(end)


def ignore_signals() -> None:
    """The answer is being written: half of it, or two of them, would be none."""
    _set_handler(signal.SIG_IGN)


def _set_handler(handler: signal._HANDLER) -> None:
    if threading.current_thread() is threading.main_thread():  # elsewhere nobody may
        for each in TERMINATION_SIGNALS:
            signal.signal(each, handler)
