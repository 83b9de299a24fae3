"""A copy of a SQLite database in one file, made while others go on writing."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from interlock.core.errors import InvalidRequest, Misconfigured, StoreUnavailable
from interlock.core.ledger.chain import Head
from interlock.storage.migrate import APPLICATION_ID
from interlock.storage.sqlite.database import connect, translate_errors

PAGES_PER_STEP = 2_000  # copied between two looks at whether to go on
BackupProgress = Callable[[int, int], object]  # pages done, and all of them; what it raises ends the copying


@dataclass(frozen=True, slots=True)
class BackupFile:
    """`heads` are the ends of its ledgers."""

    path: Path
    size: int
    heads: tuple[Head, ...]


def make_backup(source: Path, target: Path, told: BackupProgress) -> BackupFile:
    """The target appears whole, checked and on disk, or not at all."""
    target = target.absolute()
    if target.exists():
        raise InvalidRequest(f"{target} is there already, and a backup is never overwritten. Choose another name.")
    if not target.parent.is_dir():
        raise InvalidRequest(f"The folder {target.parent} does not exist. Create it first.")
    handle, name = tempfile.mkstemp(prefix=f"{target.name}.", suffix=".part", dir=target.parent)  # mode 0600
    os.close(handle)
    part = Path(name)
    try:
        heads = _copy_pages(source, part, told)
        _sync(part)
        part.rename(target)
        _sync(target.parent)
    finally:
        for leftover in (part, Path(f"{part}-journal")):
            leftover.unlink(missing_ok=True)
    return BackupFile(target, target.stat().st_size, heads)


def _copy_pages(source: Path, part: Path, told: BackupProgress) -> tuple[Head, ...]:
    with translate_errors(source), closing(connect(source)) as origin:
        origin.execute("begin")  # one moment of the database; else every write of others would start the copying over
        if origin.execute("pragma application_id").fetchall()[0][0] != APPLICATION_ID:
            raise Misconfigured(f"{source} is not a database of Interlock. Name the right one with --database.")
        origin.execute("select count(*) from heads").fetchall()
        with translate_errors(part), closing(sqlite3.connect(part, isolation_level=None)) as made:
            origin.backup(made, pages=PAGES_PER_STEP, progress=lambda _, left, total: told(total - left, total))
            made.execute("pragma journal_mode = delete")  # one file; the store turns its log on when it opens it
            found = made.execute("pragma quick_check").fetchall()
            if found != [("ok",)]:
                raise StoreUnavailable(
                    f"{source} is damaged: {found[0][0]}. No backup was made; keep the last good one."
                )
            rows = made.execute("select workspace, seq, link, at from heads order by workspace").fetchall()
    return tuple(Head(*row) for row in rows)


def _sync(path: Path) -> None:
    """On disk, name and content, before anybody is told that there is a backup."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
