"""What one hook process leaves for the next, as small files that nobody else can read."""

from __future__ import annotations

import os
from pathlib import Path

from interlock.core.errors import Misconfigured

MAX_NOTE = 1_000  # characters
KEPT = 10_000  # files; a call whose end was never told leaves one behind


class Notes:
    def __init__(self, folder: Path) -> None:
        """Raises Misconfigured for a folder in which others could write."""
        self._folder = folder.expanduser()
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        seen = self._folder.stat()
        if seen.st_uid != os.getuid() or seen.st_mode & 0o022:
            raise Misconfigured(f"Others may write in {self._folder}. Name a folder of your own with --notes.")

    def note(self, key: str, text: str) -> None:
        """Whole or not at all, whoever reads meanwhile."""
        path = self._folder / f"{key}.{os.getpid()}"
        path.write_text(text, encoding="utf-8")
        path.replace(self._folder / key)
        self._tidy()

    def find(self, key: str) -> str:
        try:
            return (self._folder / key).read_text(encoding="utf-8")[:MAX_NOTE]
        except FileNotFoundError:
            return ""

    def drop(self, key: str) -> None:
        (self._folder / key).unlink(missing_ok=True)

    def _tidy(self) -> None:
        """The oldest go once there are too many: theirs is long shown as unknown."""
        found = list(os.scandir(self._folder))
        if len(found) > KEPT:
            for each in sorted(found, key=lambda entry: entry.stat().st_mtime)[: KEPT // 2]:
                Path(each).unlink(missing_ok=True)
