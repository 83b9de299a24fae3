"""All figures of the server, each database in turn: `python -m benchmarks.http.figures` takes these alone."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.postgres import Server
from tests.serving import Served, keys_at, serving

CONNECTIONS = 64


def figures(server: Server, rounds: int, seconds: float) -> dict[str, Any]:
    """By database; within a round both have their turn."""
    found: dict[str, dict[str, list[Any]]] = {"sqlite": {"cycles": []}, "postgresql": {"cycles": []}}
    for number in range(rounds):
        for name, taken in found.items():
            with place(server, name, number) as (served, keys):
                options = (served.url, keys["agent"], keys["reviewer"], "--seconds", str(seconds))
                taken["cycles"].append(child("cycles", *options, "--connections", str(CONNECTIONS)))
    return found


@contextmanager
def place(server: Server, name: str, number: int) -> Iterator[tuple[Served, dict[str, str]]]:
    """A server of its own over an empty database, with a key for each role."""
    with tempfile.TemporaryDirectory() as folder:
        base = f"http{number}"
        url = f"sqlite:///{folder}/interlock.db" if name == "sqlite" else server.create_database(base)
        keys = asyncio.run(keys_at(url))
        with serving(url, Path(folder)) as served:
            yield served, keys
        if name != "sqlite":
            server.drop_database(base)


def child(module: str, *options: str) -> dict[str, Any]:
    """The load comes from a process of its own, as it would."""
    command = [sys.executable, "-m", f"benchmarks.http.{module}", *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    with Server() as server:
        print(json.dumps(figures(server, 3, 3.0), indent=2))


if __name__ == "__main__":
    main()
