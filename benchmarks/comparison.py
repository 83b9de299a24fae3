"""The comparison in rounds: every participant runs in each round, so that noise affects all of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import newer_sqlite, peers
from tests.postgres import Server

PATIENCE = 60.0  # seconds beyond what a task is given, for imports and a server that starts
LABELS = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "own": "its own"}


@dataclass
class Participant:
    """One peer on one database, and what its turns gave."""

    about: peers.PeerInfo
    database: str
    turns: list[dict[str, Any]] = field(default_factory=list)
    twice: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def ours(self) -> bool:
        return self.about.name == "interlock_gate"

    @property
    def title(self) -> str:
        return f"{self.about.title}, {LABELS[self.database]}"

    def all(self, at_once: int, figure: str) -> list[float]:
        return [turn[str(at_once)][figure] for turn in self.turns]


def participants(only: Sequence[str] | None = None) -> list[Participant]:
    found = [peers.peer_info(name) for name in peers.peer_names() if only is None or name in only]
    return [Participant(about, database) for about in found for database in about.databases]


class Comparison:
    """Where turns are run: a folder and a database of its own for each."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._number = 0

    def turn(self, who: Participant, seconds: float, at_once: Sequence[int]) -> None:
        """A participant that failed once is not run again."""
        if not who.error:
            options = ("--seconds", str(seconds), "--at-once", *map(str, at_once))
            found = self.run(who, "cycles", *options, patience=seconds * len(at_once))
            who.error = found.get("error", "")
            who.turns += [] if who.error else [found]

    def resume_twice(self, who: Participant) -> None:
        if not who.error:
            who.twice = self.run(who, "twice")

    def run(self, who: Participant, task: str, *options: str, patience: float = 0.0) -> dict[str, Any]:
        """What the peer's own process printed, in the environment that it needs, or the error that it had."""
        interpreter = who.about.interpreter()
        if not interpreter.exists():
            return {"error": f"not installed (there is no {who.about.environment}; `make bench` makes it)"}
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, self.database() as url:
            command = [str(interpreter), "-m", "benchmarks.peer_process", who.about.name, who.database, task]
            places = ["--folder", folder, "--url", url]
            more = newer_sqlite.environment(who.about.sqlite_needed) if who.database == "sqlite" else {}
            return run_child([*command, *places, *options], patience + PATIENCE, Path(folder) / "errors", more)

    @contextmanager
    def database(self) -> Iterator[str]:
        """An empty one of PostgreSQL."""
        self._number += 1
        name = f"turn{self._number}"
        yield self.server.create_database(name)
        self.server.drop_database(name)


def run_child(
    command: Sequence[str], patience: float, errors: Path, variables: Mapping[str, str] | None = None
) -> dict[str, Any]:
    environment = os.environ | dict(variables or {})
    with errors.open("wb") as log:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, start_new_session=True, env=environment)
    try:
        said, _ = running.communicate(timeout=patience)
        return dict(json.loads(said.splitlines()[-1]))
    except subprocess.TimeoutExpired:
        return {"error": f"took longer than {patience:.0f} s"}
    except (IndexError, ValueError):
        last = errors.read_text(errors="replace").strip().splitlines()[-1:]
        return {"error": f"ended with {running.wait()}: {' '.join(last)[:120]}"}
    finally:
        with suppress(ProcessLookupError):  # servers that it started are of its group
            os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
