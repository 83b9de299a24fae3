"""The machine that the figures were taken on."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from tests.postgres import Server


def describe() -> dict[str, str]:
    return {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()} {platform.release()}",
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        "interlock": version("interlock-gate"),
        "fsync": f"{fsyncs_per_second():,.0f} a second",
    }


def postgres(server: Server) -> str:
    with server.connect() as connection:
        return str(connection.execute("show server_version").fetchall()[0][0])


def fsyncs_per_second(seconds: float = 0.5) -> float:
    """How fast this disk makes a page durable: the limit of everything that commits one at a time."""
    with tempfile.TemporaryDirectory() as folder:
        descriptor = os.open(Path(folder) / "page", os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            count, start_time = 0, time.perf_counter()
            while (spent := time.perf_counter() - start_time) < seconds:
                os.pwrite(descriptor, b"x" * 4096, 0)
                os.fdatasync(descriptor)
                count += 1
        finally:
            os.close(descriptor)
    return count / spent
