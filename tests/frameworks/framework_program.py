"""Outside of the program: the server that counts effects, the environment of each framework, and what programs say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.frameworks.reviewer import Desk
from tests.journeys.shell import Shell, wait_until

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"
PATIENCE = 110.0  # seconds that a program may take on a busy machine


class Effects:
    """What tools really did, in the order in which it arrived. While it is `closed`, whoever arrives is held."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self._open = threading.Event()
        self._open.set()
        self._meeting = threading.Barrier(2)
        effects = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                effects._arrived(self.path, body)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def of(self, tool: str) -> list[dict[str, Any]]:
        return [args for name, args in self.seen if name == tool]

    @contextmanager
    def closed(self) -> Iterator[None]:
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    @contextmanager
    def counting(self) -> Iterator[Effects]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._open.set()
            self._meeting.abort()
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def _arrived(self, path: str, body: dict[str, Any]) -> None:
        if path == "/meet":
            with suppress(threading.BrokenBarrierError):
                self._meeting.wait(PATIENCE)
            return
        self.seen.append((body["tool"], body["args"]))
        self._open.wait(PATIENCE)


@dataclass(frozen=True)
class Said:
    """What a program printed last, as JSON."""

    told: Mapping[str, Any]

    @property
    def paused(self) -> bool:
        return bool(self.told["paused"])

    @property
    def results(self) -> list[str]:
        return list(self.told["results"])


@dataclass
class Framework:
    """A program in its own environment, on a database of its own. Some cannot pause: they wait where they stand."""

    name: str
    shell: Shell
    effects: Effects
    inline: bool
    more: dict[str, Any] = field(default_factory=dict)

    def start(self, story: str, run: str = "run-1", **more: Any) -> subprocess.Popen[str]:
        job = {"url": self.shell.url, "effects": self.effects.url, "run": run, "story": story}
        job |= {"folder": str(self.shell.folder), **self.more, **more}
        return started(self.name, PROGRAMS / f"{self.name}.py", json.dumps(job), folder=self.shell.folder)

    def run(self, story: str, run: str = "run-1", **more: Any) -> Said:
        return said(self.start(story, run, **more))

    def carried(self, story: str, *decisions: tuple[str, ...]) -> Said:
        """Begins, decides on what waits, one decision for each, and goes on to the end."""
        program = self.start(story)
        if not self.inline:
            assert said(program).paused
        for decision in decisions:
            self.decide(*decision)
        return said(program) if self.inline else self.run(story)

    @property
    def desk(self) -> Desk:
        return Desk(self.shell.url)

    def decide(self, verb: str, *words: str) -> None:
        """On the first one that waits."""
        self.desk.decide(self.waiting()[0]["id"], verb, *words)

    def waiting(self) -> list[dict[str, Any]]:
        """Those that wait, once there is one."""
        found: list[dict[str, Any]] = []

        def one() -> bool:
            found[:] = self.listed("pending")
            return bool(found)

        wait_until(one, "a call waits", PATIENCE)
        return found

    def listed(self, status: str) -> list[dict[str, Any]]:
        return self.desk.listed(status)

    def policy(self, text: str) -> None:
        self.desk.policy(text)


def python_of(name: str) -> Path:
    """The interpreter of a framework's environment; what is part of our own runs in this one."""
    own = ROOT / ".venv-frameworks" / name / "bin" / "python"
    if (ROOT / "requirements" / "frameworks" / f"{name}.txt").exists():
        assert own.exists(), f"{name} is not installed: make frameworks"
        return own
    return Path(sys.executable)


def started(name: str, *words: str | Path, folder: Path, **env: str) -> subprocess.Popen[str]:
    """A program in the environment of a framework. Its folder is not searched: it may be called like the framework."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    quiet = {"OTEL_SDK_DISABLED": "true", "PYTHONWARNINGS": "ignore", "NO_COLOR": "1"}
    return subprocess.Popen(
        [str(python_of(name)), "-P", *map(str, words)],
        cwd=folder,
        env={**os.environ, **quiet, **env, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(program: subprocess.Popen[str]) -> Said:
    return Said(printed(program))


def printed(program: subprocess.Popen[str]) -> dict[str, Any]:
    """The last line of a program that ended well, read as JSON."""
    out, err = finished(program)
    assert program.returncode == 0, f"{out}\n{err}"
    found: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return found


def finished(program: subprocess.Popen[str]) -> tuple[str, str]:
    try:
        return program.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        program.kill()
        out, err = program.communicate()
        raise AssertionError(f"It did not end.\n{out}\n{err}") from None
