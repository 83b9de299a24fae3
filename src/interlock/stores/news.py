"""What other processes committed since the last look, for those who wait here."""

from __future__ import annotations

import json
from collections.abc import Callable

from interlock.stores.rows import Row
from interlock.stores.watching import Watchers

MOST = 1000  # events in one look


class News:
    def __init__(self, fetch: Callable[..., list[Row]], watchers: Watchers) -> None:
        self._fetch = fetch
        self._watchers = watchers
        self._seen: dict[str, int] = {}

    def look(self) -> bool:
        """Wakes whoever waits for what changed; True if there is more to look at."""
        news = {name: self._of(name) for name in self._watchers.workspaces()}
        self._watchers.announce({name: _about(found) for name, found in news.items() if found})
        return any(len(found) == MOST for found in news.values())

    def _of(self, workspace: str) -> list[Row]:
        found = self._fetch("head", workspace)
        newest = found[0][1] if found else 0
        last = self._seen.get(workspace, max(0, newest - MOST))
        news = self._fetch("changed_since", workspace, last) if newest > last else []
        self._seen[workspace] = news[-1][1] if news else max(newest, last)
        return news


def _about(found: list[Row]) -> set[str]:
    """The approvals and the threads that the entries are about."""
    approvals = {row[2] for row in found if row[2]}
    return approvals | {json.loads(row[3])["thread_id"] for row in found if row[3]}
