"""A server to measure, and its load in a process of its own."""

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

from tests.interlock_server import RunningServer, create_keys, run_server
from tests.postgres import Server

CONNECTIONS = 64
DATABASES = ("sqlite", "postgresql")


@contextmanager
def make_database(server: Server, name: str, number: int = 0) -> Iterator[tuple[RunningServer, dict[str, str]]]:
    """`interlock serve` over an empty database of its own, with a key for each role."""
    with tempfile.TemporaryDirectory() as folder:
        base = f"http{number}"
        url = f"sqlite:///{folder}/interlock.db" if name == "sqlite" else server.create_database(base)
        keys = asyncio.run(create_keys(url))
        with run_server(url, Path(folder)) as served:
            yield served, keys
        if name != "sqlite":
            server.drop_database(base)


def run_load(served: RunningServer, keys: dict[str, str], seconds: float, *more: str) -> tuple[str, ...]:
    """The options of `cycles`."""
    result = (served.url, keys["agent"], keys["reviewer"])
    return (*result, "--seconds", str(seconds), "--connections", str(CONNECTIONS), *more)


def start_child(module: str, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", f"benchmarks.http.{module}", *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))
