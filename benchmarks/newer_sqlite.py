"""A newer SQLite under Python's own driver, for a framework that needs one.

A driver that brings its own SQLite (pysqlite3, sqlean) would distort the figures: it resets a statement later than
Python's driver does, and with it DBOS blocks itself until SQLite's busy timeout of 30 s is over.
"""

from __future__ import annotations

import sqlite3
import sysconfig
from pathlib import Path


def environment(needed: tuple[int, ...]) -> dict[str, str]:
    """The environment variables that give a process this SQLite or a newer one; none if Python's is new enough."""
    library = find_newer() if sqlite3.sqlite_version_info < needed else None
    return {} if library is None else {"LD_PRELOAD": str(library)}


def find_newer() -> Path | None:
    """The library that the wheel of pyproj carries, on Linux."""
    folder = Path(sysconfig.get_path("platlib")) / "pyproj.libs"
    return next(folder.glob("libsqlite3-*.so*"), None)
