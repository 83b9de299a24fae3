"""Allowed reads are counted in memory and written with the next batch: a read must cost next to nothing."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field

from interlock.core.call import ToolSpec
from interlock.core.ports import Clock
from interlock.stores.transaction import Transaction

MINUTE = 60_000
MAX_NOTED = 1_000  # definitions that one process notes: programs elsewhere make them up, and no quota holds their reads
MAX_DEFINITION = 65_536  # bytes

Noted = tuple[str, str, str]  # workspace, definition, agent


@dataclass
class Counted:
    """`reads` by workspace, tool and minute; `tools` with when each was seen."""

    reads: dict[tuple[str, str, int], int] = field(default_factory=lambda: defaultdict(int))
    tools: dict[Noted, tuple[ToolSpec, int]] = field(default_factory=dict)


class Counts:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counted = Counted()
        self._nothing = Counted()  # which nobody writes to
        self._looked: dict[tuple[str, str, str], int] = {}  # workspace, tool and agent → in which minute
        self._noted: set[Noted] = set()

    def count(self, workspace: str, tool: str) -> None:
        with self._lock:
            self._counted.reads[workspace, tool, self._clock() // MINUTE] += 1

    def note(self, workspace: str, spec: ToolSpec, agent: str) -> None:
        """How an agent declares a tool where no call is recorded: looked at once a minute, and kept up to a bound."""
        now, place = self._clock(), (workspace, spec.name, agent)
        if self._looked.get(place) == now // MINUTE or len(self._noted) >= MAX_NOTED:
            return
        with self._lock:
            if len(self._looked) >= MAX_NOTED:
                self._looked.clear()
            self._looked[place] = now // MINUTE
        noted = (workspace, spec.sha256, agent)
        with self._lock:
            if noted not in self._noted and len(spec.definition) <= MAX_DEFINITION:
                self._noted.add(noted)
                self._counted.tools[noted] = (spec, now)

    def __bool__(self) -> bool:
        return bool(self._counted.reads or self._counted.tools)

    def take(self) -> Counted:
        if not self:
            return self._nothing
        with self._lock:
            taken, self._counted = self._counted, Counted()
        return taken

    def give_back(self, taken: Counted) -> None:
        with self._lock:
            for key, n in taken.reads.items():
                self._counted.reads[key] += n
            self._counted.tools = {**taken.tools, **self._counted.tools}


def write_counts(taken: Counted, transaction: Transaction) -> None:
    for key in sorted(taken.reads):  # always in the same order: two processes that count must not wait for each other
        transaction.write("write_reads", *key, taken.reads[key])
    for noted in sorted(taken.tools):
        (workspace, _, agent), (spec, at) = noted, taken.tools[noted]
        transaction.keep_tool(workspace, spec, agent, at)
