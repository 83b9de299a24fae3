"""Processes: a name for this one, whether another is certainly dead, the server of a database, and signal handlers.

The address of the server that runs on a database file is noted in a file beside it, which counts only if it belongs to
the owner of the database or to this user: in a folder like /tmp others could write one. A database elsewhere has none.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

PROC = Path("/proc")
NOTE_SUFFIX = ".server"
MAX_NOTE_BYTES = 4_096


# Runners


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


# Signals

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


# The server of a database file


@contextmanager
def publish_address(database: Path, url: str) -> Iterator[None]:
    """Note the address while the server runs. A folder that cannot be written is no error."""
    note, runner = _note_path(database), make_runner_id()
    with suppress(OSError):
        _write_note(note, {"url": url, "runner": runner})
    try:
        yield
    finally:
        with suppress(OSError):
            if _read_note(database).get("runner") == runner:  # a later server has noted itself
                note.unlink()


def read_running_address(database: Path) -> str:
    """The address of the server, or "" if none runs on this database, as far as this machine can tell."""
    found = _read_note(database)
    url, runner = found.get("url"), found.get("runner")
    if not isinstance(url, str) or not isinstance(runner, str) or not is_running_here(runner):
        return ""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return url if url.isprintable() and parts.scheme in ("http", "https") and parts.netloc else ""


def is_any_address(host: str) -> bool:
    """Whether a server that listens there is reached at all addresses of its machine; it does not know which."""
    return host in ("0.0.0.0", "::")  # noqa: S104  compared, not listened on


def local_url(host: str, port: int) -> str:
    """The address of a server that listens there, for a program on the same machine."""
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  as above
    return f"http://{f'[{local}]' if ':' in local else local}:{port}"


def _note_path(database: Path) -> Path:
    return database.with_name(database.name + NOTE_SUFFIX)


def _write_note(note: Path, body: Mapping[str, str]) -> None:
    fresh = note.with_name(f"{note.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(body, file)
        fresh.replace(note)
    finally:
        fresh.unlink(missing_ok=True)


def _read_note(database: Path) -> dict[str, object]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(_note_path(database), flags), "rb") as file:
            owner = os.fstat(file.fileno()).st_uid
            if owner != os.getuid() and owner != database.stat().st_uid:
                return {}
            found = json.loads(file.read(MAX_NOTE_BYTES) or b"")
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
