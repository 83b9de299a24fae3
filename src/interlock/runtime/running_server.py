"""The address of the server that runs on a database file, noted in a file beside it.

Whoever can write this note can write the database too, so that it is trusted as much. A database elsewhere has none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from interlock.runtime.process_identity import is_running_here, make_runner_id

SUFFIX = ".server"
MAX_BYTES = 4_096


@contextmanager
def noted_server(database: Path, url: str) -> Iterator[None]:
    """Note the address while the server runs. A folder that cannot be written is no error."""
    note, runner = _note(database), make_runner_id()
    with suppress(OSError):
        fresh = note.with_name(f"{note.name}.{os.getpid()}")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump({"url": url, "runner": runner}, file)
        fresh.replace(note)
    try:
        yield
    finally:
        with suppress(OSError):
            if _read(note).get("runner") == runner:  # a later server has noted itself
                note.unlink()


def running_server(database: Path) -> str:
    """The address of the server, or "" if none runs on this database, as far as this machine can tell."""
    found = _read(_note(database))
    url, runner = found.get("url"), found.get("runner")
    if not isinstance(url, str) or not isinstance(runner, str) or not is_running_here(runner):
        return ""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return url if url.isprintable() and parts.scheme in ("http", "https") and parts.netloc else ""


def _note(database: Path) -> Path:
    return database.with_name(database.name + SUFFIX)


def _read(note: Path) -> dict[str, object]:
    try:
        with note.open("rb") as file:
            found = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
