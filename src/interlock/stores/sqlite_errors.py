"""What SQLite complains of, as one clear sentence each."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from interlock.core.errors import InvalidRequest, StoreUnavailable


class translated:
    """Driver errors become one clear sentence each."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.Error):
            raise unavailable(error, self._path.name) from error
        if isinstance(error, UnicodeEncodeError):
            raise InvalidRequest("A text holds half a surrogate pair, which is not a character.") from None


_SENTENCES: tuple[tuple[str, str], ...] = (
    ("readonly", "The database {name} is read-only. Make the file and its folder writable for this user."),
    ("full", "The disk of the database {name} is full. Free some space; nothing was lost."),
    ("disk i/o", "The disk of the database {name} fails, or files there may not grow. Look at it; nothing was lost."),
    ("unable to open", "The database {name} cannot be opened. Check that its folder exists and may be read."),
    ("locked", "The database {name} is locked by another program. Close it and try again."),
    ("not a database", "The file {name} is not a database. Give Interlock a file of its own."),
    ("malformed", "The database {name} is damaged. Restore a backup, then run `interlock audit verify`."),
    ("illegal transition", "The database {name} refused an illegal transition. Nothing was changed."),
)


def unavailable(error: sqlite3.Error, name: str) -> StoreUnavailable:
    text = str(error).lower()
    for mark, sentence in _SENTENCES:
        if mark in text:
            return StoreUnavailable(sentence.format(name=name))
    return StoreUnavailable(f"The database {name} answered: {error}.")
