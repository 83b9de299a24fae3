"""A server process for tests that is removed however the tests end.

The keeper makes a folder, runs one server in it, and does what the `Kept` at the other end of its standard input asks.
When that end closes (the tests are done, were interrupted or were killed with -9), it ends the server and removes the
folder. When the keeper itself is killed, the system ends the server. Servers never run as root: as root, the folder
belongs to `nobody` and so does what runs in it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MAX_FOLDER_LENGTH = 70  # the path of a socket has room for 107 bytes
MEMORY_FOLDER = Path("/dev/shm")
MIN_FREE_BYTES = 2 << 30  # bytes
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


class ServerProcess:
    """The tests' side of one supervised server."""

    def __init__(self, name: str, *, in_memory: bool = False) -> None:
        self._supervisor = subprocess.Popen(
            [sys.executable, "-IS", __file__, name, *(["in memory"] if in_memory else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # what the keeper dies of is its last answer
            text=True,
            start_new_session=True,  # Ctrl-C is for the tests, which then close this end
        )
        self.folder = Path(self._read_reply())
        self.log = self.folder / "log"

    def run(self, *command: str | Path) -> None:
        """Run a program to its end, as the user who owns the folder."""
        status, output = self._request("run", command)
        if status != 0:
            raise RuntimeError(f"{command[0]} ended with status {status}:\n{output}")

    def spawn(self, *command: str | Path) -> int:
        """Start the server; the process id."""
        return int(self._request("spawn", command))

    def is_running(self) -> bool:
        return bool(self._request("running"))

    def end(self, number: signal.Signals) -> None:
        """Send a signal to the server and wait until it is gone; nothing if it is gone already."""
        self._request("end", number)

    def close(self) -> None:
        """End the server and remove the folder."""
        self._supervisor.communicate()

    def _request(self, verb: str, value: Any = None) -> Any:
        assert self._supervisor.stdin is not None
        self._supervisor.stdin.write(json.dumps([verb, value], default=str) + "\n")
        self._supervisor.stdin.flush()
        return self._read_reply()

    def _read_reply(self) -> Any:
        assert self._supervisor.stdout is not None
        line = self._supervisor.stdout.readline()
        try:
            return json.loads(line)
        except ValueError:
            rest = self._supervisor.communicate()[0]
            raise RuntimeError(f"The keeper of a test server ended:\n{line}{rest}") from None


class Supervisor:
    """The supervising process: owns the folder and the server."""

    def __init__(self, folder: Path, user: int | None) -> None:
        self.folder = folder
        self.user = user
        self.server: subprocess.Popen[bytes] | None = None

    def handle(self, verb: str, value: Any) -> Any:
        match verb:
            case "run":
                done = self._popen(value, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                output = done.communicate()[0]
                return done.returncode, output.decode(errors="replace")
            case "spawn":
                with (self.folder / "log").open("ab") as log:
                    self.server = self._popen(value, stdout=log, stderr=log)
                return self.server.pid
            case "running":
                return self.server is not None and self.server.poll() is None
            case "end":
                return self.end(signal.Signals(value))
            case _:
                raise ValueError(verb)

    def end(self, number: signal.Signals) -> None:
        if self.server is None:
            return
        self.server.send_signal(number)
        self.server.wait()
        self._wait_for_orphans()

    def clean_up(self) -> None:
        if self.server is not None:
            self.server.send_signal(signal.SIGQUIT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.server.wait(10)
            self.end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait_for_orphans(self) -> None:
        """The processes of a server that was killed notice it soon; as its heir the keeper sees them end."""
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()

    def _popen(self, command: Sequence[str], **streams: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env={"PATH": os.defpath, "LC_ALL": "C"},  # what is set for the user's own server is not for this one
            user=self.user,
            group=None if self.user is None else pwd.getpwuid(self.user).pw_gid,
            extra_groups=None if self.user is None else [],
            stdin=subprocess.DEVNULL,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - the keeper has one thread
            **streams,
        )


def main() -> None:
    """Write one JSON line for each line read; the first is the path of the folder."""
    user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    places = [Path(tempfile.gettempdir()).resolve(), Path("/tmp"), Path("/var/tmp")]
    if "in memory" in sys.argv and has_room(MEMORY_FOLDER):
        places.insert(0, MEMORY_FOLDER)
    keeper = Supervisor(new_folder(sys.argv[1], places, user), user)
    try:
        reply(str(keeper.folder))
        for line in sys.stdin:
            reply(keeper.handle(*json.loads(line)))
    finally:
        keeper.clean_up()


def reply(value: Any) -> None:
    print(json.dumps(value), flush=True)


def new_folder(name: str, places: Sequence[Path], user: int | None) -> Path:
    """A folder with a short path that the user of the server can reach, and nobody else but root."""
    for place in places:
        if len(str(place)) <= MAX_FOLDER_LENGTH and (user is None or is_reachable(place)):
            folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=place))
            if user is not None:
                shutil.chown(folder, user, pwd.getpwuid(user).pw_gid)
            return folder
    raise RuntimeError("There is no temporary folder with a short path. Set TMPDIR to one.")


def has_room(place: Path) -> bool:
    """Containers often have a small one, in which programs may not run."""
    if not place.is_dir():
        return False
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize >= MIN_FREE_BYTES and not found.f_flag & os.ST_NOEXEC


def is_reachable(path: Path) -> bool:
    """Whether every user may go there."""
    return all(above.stat().st_mode & 0o001 for above in (path, *path.parents))


def die_with_parent() -> None:
    prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def prctl(option: int, value: int) -> None:
    """Linux only; elsewhere a keeper that is killed with -9 leaves its server running."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(option, value)


if __name__ == "__main__":
    main()
