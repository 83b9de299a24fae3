"""A newer SQLite under Python's own driver, for a peer that needs one; the SQLite of many systems is older.

A driver that brings its own SQLite (pysqlite3, sqlean) would distort the figures: it resets a statement later than
Python's driver does, and with it DBOS blocks itself until SQLite's busy timeout of 30 s is over.
"""

from __future__ import annotations

import sqlite3
import sysconfig
from pathlib import Path


def variables(needed: tuple[int, ...]) -> dict[str, str]:
    """The environment variables that give a process this SQLite or a newer one; none if Python's is new enough."""
    library = newer() if sqlite3.sqlite_version_info < needed else None
    return {} if library is None else {"LD_PRELOAD": str(library)}


def newer() -> Path | None:
    """The library that the wheel of pyproj carries, on Linux."""
    folder = Path(sysconfig.get_path("platlib")) / "pyproj.libs"
    return next(folder.glob("libsqlite3-*.so*"), None)
