"""Runner ids: a name for this process, whether another runner's process is certainly dead, and signal handlers."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import threading
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import FrameType

PROC = Path("/proc")


def make_runner_id() -> str:
    """A runner id, unique for each caller, so that two in one process are distinct."""
    pid = os.getpid()
    return f"runner:{_machine_id()}:{pid}:{_start_time(pid)}:{secrets.token_hex(4)}"


def is_dead(runner: str) -> bool:
    """True only for a process of this machine that has ended; if uncertain, it is alive until its lease expires."""
    parts = runner.split(":")
    if len(parts) != 5 or parts[0] != "runner" or parts[1] != _machine_id() or not parts[2].isdigit():
        return False
    pid = int(parts[2])
    return not _exists(pid) or (parts[3] != "" and _start_time(pid) != parts[3])


def is_running_here(runner: str) -> bool:
    """True only for a process of this machine that runs; if uncertain, False."""
    return runner.startswith(f"runner:{_machine_id()}:") and not is_dead(runner)


def _machine_id() -> str:
    """An id of this boot and this process namespace: a container sees other process ids."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        seen = os.stat(PROC / "self/ns/pid").st_ino
    except OSError:
        boot, seen = socket.gethostname(), 0
    return sha256(f"{boot}/{seen}".encode()).hexdigest()[:12]


def _start_time(pid: int) -> str:
    """When a process started, as the system counts it: process ids are reused."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _process_state(pid) != "Z"


def _process_state(pid: int) -> str:
    """The state of a process; a killed one whose parent has not waited for it is still listed, as a zombie."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


TERMINATION_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
INTERRUPTED_MESSAGE = "Interlock blocked this call. The hook was ended before it had an answer."
DENIED_OUTPUT = (
    '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", '
    f'"permissionDecisionReason": "{INTERRUPTED_MESSAGE}"}}}}\n'
)
BLOCKED_EXIT_STATUS = (
    2  # Claude Code takes this exit status for a denial; with any other error it lets the call through
)


def answer_on_signal(
    out: str = DENIED_OUTPUT, err: str = INTERRUPTED_MESSAGE + "\n", status: int = BLOCKED_EXIT_STATUS
) -> None:
    """From now on a signal writes these and ends the program at once, which the database tolerates at any point."""

    def end(_: int, __: FrameType | None) -> None:
        for descriptor, text in ((1, out), (2, err)):
            with suppress(OSError):
                os.write(descriptor, text.encode())
        os._exit(status)

    _set_handler(end)


def ignore_signals() -> None:
    """Ignore signals while the answer is written: half of it, or two of them, would be invalid."""
    _set_handler(signal.SIG_IGN)


def _set_handler(handler: signal._HANDLER) -> None:
    if threading.current_thread() is threading.main_thread():  # only the main thread may set handlers
        for each in TERMINATION_SIGNALS:
            signal.signal(each, handler)
