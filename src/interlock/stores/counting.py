"""Allowed reads are counted in memory and written with the next batch: a read must cost next to nothing."""

from __future__ import annotations

import threading
from collections import defaultdict

from interlock.core.ports import Clock
from interlock.stores.transaction import Transaction

Counted = dict[tuple[str, str, int], int]


class Counts:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counted: Counted = defaultdict(int)

    def count(self, workspace: str, tool: str) -> None:
        with self._lock:
            self._counted[workspace, tool, self._clock() // 60_000] += 1

    def __bool__(self) -> bool:
        return bool(self._counted)

    def take(self) -> Counted:
        with self._lock:
            taken, self._counted = self._counted, defaultdict(int)
        return taken

    def give_back(self, taken: Counted) -> None:
        with self._lock:
            for key, n in taken.items():
                self._counted[key] += n


def write_counts(taken: Counted, transaction: Transaction) -> None:
    for key in sorted(taken):  # always in the same order: two processes that count must not wait for each other
        transaction.write("write_reads", *key, taken[key])
