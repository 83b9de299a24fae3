"""Allowed reads are counted in memory and written with the next batch: a read must cost next to nothing.

Programs elsewhere make up names and definitions, and no quota holds their reads. So what one key brings is bounded by
itself: it can hide its own tools among others, which is told, and nobody else's.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from interlock.core.call import ToolSpec
from interlock.core.pins import OTHER_TOOLS
from interlock.core.ports import Clock
from interlock.storage.engine.transaction import Transaction

MINUTE = 60_000
MAX_NAMES = 200  # tools whose reads are counted by name, in one workspace and minute
MAX_UNWRITTEN = 100  # definitions of one key between two batches
MAX_REMEMBERED = 10_000  # definitions that are known to be noted; what falls out is noted again, which changes nothing
MAX_DEFINITION = 65_536  # bytes

KeyRef = tuple[str, str]  # workspace, and the id of a key
ToolSighting = tuple[str, str, str, str]  # workspace, key, definition, agent


@dataclass
class UnwrittenCounts:
    """`reads` by workspace, tool and minute; `tools` with when each was seen."""

    reads: dict[tuple[str, str, int], int] = field(default_factory=lambda: defaultdict(int))
    tools: dict[ToolSighting, tuple[ToolSpec, int]] = field(default_factory=dict)


class ReadCounter:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counted = UnwrittenCounts()
        self._nothing = UnwrittenCounts()  # which nobody writes to
        self._names: dict[str, tuple[int, set[str]]] = {}  # tools of a minute, by workspace
        self._looked: dict[tuple[str, str, str, str], int] = {}  # workspace, key, tool and agent → in which minute
        self._noted: dict[ToolSighting, None] = {}  # the oldest first
        self._waiting: dict[KeyRef, int] = defaultdict(int)

    def count(self, workspace: str, tool: str) -> None:
        minute = self._clock() // MINUTE
        with self._lock:
            self._counted.reads[workspace, self._name(workspace, tool, minute), minute] += 1

    def note(self, workspace: str, spec: ToolSpec, agent: str, key: str) -> None:
        """How an agent declares a tool where no call is recorded: looked at once a minute, and kept up to a bound."""
        now, place, source = self._clock(), (workspace, key, spec.name, agent), (workspace, key)
        if self._looked.get(place) == now // MINUTE:
            return
        noted = (workspace, key, spec.sha256, agent)
        with self._lock:
            if noted not in self._noted and self._waiting[source] >= MAX_UNWRITTEN:
                return  # looked at again as soon as these are written
            _put_bounded(self._looked, place, now // MINUTE)
            if noted in self._noted or len(spec.definition) > MAX_DEFINITION:
                return
            _put_bounded(self._noted, noted, None)
            self._waiting[source] += 1
            self._counted.tools[noted] = (spec, now)

    def __bool__(self) -> bool:
        return bool(self._counted.reads or self._counted.tools)

    def take(self) -> UnwrittenCounts:
        if not self:
            return self._nothing
        with self._lock:
            taken, self._counted = self._counted, UnwrittenCounts()
            self._waiting.clear()
        return taken

    def give_back(self, taken: UnwrittenCounts) -> None:
        with self._lock:
            for key, n in taken.reads.items():
                self._counted.reads[key] += n
            self._counted.tools = {**taken.tools, **self._counted.tools}
            for workspace, key_id, *_ in taken.tools:
                self._waiting[workspace, key_id] += 1

    def _name(self, workspace: str, tool: str, minute: int) -> str:
        """That under which a read is counted: its own, unless there are too many of them in this minute."""
        since, names = self._names.get(workspace, (-1, set()))
        if since != minute:
            names = set()
            self._names[workspace] = minute, names
        if tool not in names and len(names) >= MAX_NAMES:
            return OTHER_TOOLS
        names.add(tool)
        return tool


def write_counts(taken: UnwrittenCounts, transaction: Transaction) -> None:
    for key in sorted(taken.reads):  # always in the same order: two processes that count must not wait for each other
        transaction.write("write_reads", *key, taken.reads[key])
    for noted in sorted(taken.tools):
        (workspace, key_id, _, agent), (spec, at) = noted, taken.tools[noted]
        transaction.note_tool(workspace, spec, agent, at, key_id)


def _put_bounded(known: dict[Any, Any], key: object, value: object) -> None:
    """The newest last; the oldest goes when there are too many."""
    known.pop(key, None)
    if len(known) >= MAX_REMEMBERED:
        del known[next(iter(known))]
    known[key] = value
