"""Programs in the environment of each framework, and the server that counts their effects."""

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

from tests.frameworks.reviewer import DatabaseReviewer
from tests.journeys.shell import Shell, wait_until

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"
TIMEOUT = 110.0  # seconds that a program may take on a loaded machine


class EffectServer:
    """Records the effects of tools in order of arrival; `hold` delays its responses."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._open = threading.Event()
        self._open.set()
        self._barrier = threading.Barrier(2)
        effects = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                effects._record(self.path, body)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def calls_to(self, tool: str) -> list[dict[str, Any]]:
        return [args for name, args in self.calls if name == tool]

    @contextmanager
    def hold(self) -> Iterator[None]:
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    @contextmanager
    def serve(self) -> Iterator[EffectServer]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._open.set()
            self._barrier.abort()
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def _record(self, path: str, body: dict[str, Any]) -> None:
        if path == "/meet":
            with suppress(threading.BrokenBarrierError):
                self._barrier.wait(TIMEOUT)
            return
        self.calls.append((body["tool"], body["args"]))
        self._open.wait(TIMEOUT)


@dataclass(frozen=True)
class ProgramResult:
    """The last line that a program printed, as JSON."""

    report: Mapping[str, Any]

    @property
    def paused(self) -> bool:
        return bool(self.report["paused"])

    @property
    def results(self) -> list[str]:
        return list(self.report["results"])


@dataclass
class Framework:
    """A program in its own environment, on its own database. Some cannot pause: they wait inline."""

    name: str
    shell: Shell
    effects: EffectServer
    inline: bool
    more: dict[str, Any] = field(default_factory=dict)

    def start(self, story: str, run: str = "run-1", **more: Any) -> subprocess.Popen[str]:
        job = {"url": self.shell.url, "effects": self.effects.url, "run": run, "story": story}
        job |= {"folder": str(self.shell.folder), **self.more, **more}
        return start_program(self.name, PROGRAMS / f"{self.name}.py", json.dumps(job), folder=self.shell.folder)

    def run(self, story: str, run: str = "run-1", **more: Any) -> ProgramResult:
        return read_result(self.start(story, run, **more))

    def run_to_end(self, story: str, *decisions: tuple[str, ...]) -> ProgramResult:
        """Start, decide each pending call in order, and resume to the end."""
        program = self.start(story)
        if not self.inline:
            assert read_result(program).paused
        for decision in decisions:
            self.decide(*decision)
        return read_result(program) if self.inline else self.run(story)

    @property
    def reviewer(self) -> DatabaseReviewer:
        return DatabaseReviewer(self.shell.url)

    def decide(self, verb: str, *words: str) -> None:
        """Decide the first pending call."""
        self.reviewer.decide(self.wait_pending()[0]["id"], verb, *words)

    def wait_pending(self) -> list[dict[str, Any]]:
        """The pending calls, once there is one."""
        found: list[dict[str, Any]] = []

        def one() -> bool:
            found[:] = self.list_approvals("pending")
            return bool(found)

        wait_until(one, "a call waits", TIMEOUT)
        return found

    def list_approvals(self, status: str) -> list[dict[str, Any]]:
        return self.reviewer.list_approvals(status)

    def put_policy(self, text: str) -> None:
        self.reviewer.put_policy(text)


def find_python(name: str) -> Path:
    """The interpreter of a framework's environment; what is part of our own runs in this one."""
    own = ROOT / ".venv-frameworks" / name / "bin" / "python"
    if (ROOT / "requirements" / "frameworks" / f"{name}.txt").exists():
        assert own.exists(), f"{name} is not installed: make frameworks"
        return own
    return Path(sys.executable)


def start_program(name: str, *words: str | Path, folder: Path, **env: str) -> subprocess.Popen[str]:
    """A program in the environment of a framework. Its folder is not searched: it may be called like the framework."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    quiet = {"OTEL_SDK_DISABLED": "true", "PYTHONWARNINGS": "ignore", "NO_COLOR": "1"}
    return subprocess.Popen(
        [str(find_python(name)), "-P", *map(str, words)],
        cwd=folder,
        env={**os.environ, **quiet, **env, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read_result(program: subprocess.Popen[str]) -> ProgramResult:
    return ProgramResult(read_json(program))


def read_json(program: subprocess.Popen[str]) -> dict[str, Any]:
    """The last line of a program that ended well, read as JSON."""
    out, err = wait_finished(program)
    assert program.returncode == 0, f"{out}\n{err}"
    found: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return found


def wait_finished(program: subprocess.Popen[str]) -> tuple[str, str]:
    try:
        return program.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        program.kill()
        out, err = program.communicate()
        raise AssertionError(f"It did not end.\n{out}\n{err}") from None
