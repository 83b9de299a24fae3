"""Counts of allowed reads, kept in memory and written with the next batch: a read must cost next to nothing.

Remote programs choose the names and definitions of tools, and no quota limits their reads. So the limits are per key: a
key can only hide its own tools among others, which is reported, and no other key's.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from interlock.core.call import ToolSpec
from interlock.core.pins import OTHER_TOOLS
from interlock.core.ports import Clock
from interlock.runtime.durations import MINUTE
from interlock.storage.engine.transaction import Transaction

FLUSH_INTERVAL = 1.0  # seconds that a count of allowed reads may be late
MAX_NAMES = 200  # tools whose reads are counted by name, in one workspace and minute
MAX_UNWRITTEN = 100  # definitions of one key between two batches
MAX_REMEMBERED = 10_000  # definitions known to be recorded; recording an evicted one again changes nothing
MAX_DEFINITION = 65_536  # bytes

KeyRef = tuple[str, str]  # workspace, and the id of a key
ToolSighting = tuple[str, str, str, str]  # workspace, key, definition, agent


@dataclass
class UnwrittenCounts:
    """Counts that are not written yet: `reads` by workspace, tool and minute; `tools` with their time."""

    reads: dict[tuple[str, str, int], int] = field(default_factory=lambda: defaultdict(int))
    tools: dict[ToolSighting, tuple[ToolSpec, int]] = field(default_factory=dict)


class ReadCounter:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._unwritten = UnwrittenCounts()
        self._nothing = UnwrittenCounts()  # shared, never written to
        self._names: dict[str, tuple[int, set[str]]] = {}  # tools of the current minute, by workspace
        self._last_checked: dict[tuple[str, str, str, str], int] = {}  # workspace, key, tool and agent → last minute
        self._recorded: dict[ToolSighting, None] = {}  # oldest first
        self._unwritten_per_key: dict[KeyRef, int] = defaultdict(int)

    def count(self, workspace: str, tool: str) -> None:
        minute = self._clock() // MINUTE
        key = (workspace, tool, minute)
        with self._lock:
            reads = self._unwritten.reads
            if key in reads:  # counted by name before
                reads[key] += 1
            else:
                reads[workspace, self._name(workspace, tool, minute), minute] += 1

    def note(self, workspace: str, spec: ToolSpec, agent: str, key: str) -> None:
        """Record a tool declaration without a recorded call: checked once a minute, with a limit for each key."""
        now, tool_ref, source = self._clock(), (workspace, key, spec.name, agent), (workspace, key)
        if self._last_checked.get(tool_ref) == now // MINUTE:
            return
        sighting = (workspace, key, spec.sha256, agent)
        with self._lock:
            if sighting not in self._recorded and self._unwritten_per_key[source] >= MAX_UNWRITTEN:
                return  # checked again as soon as these are written
            _put_bounded(self._last_checked, tool_ref, now // MINUTE)
            if sighting in self._recorded or len(spec.definition) > MAX_DEFINITION:
                return
            _put_bounded(self._recorded, sighting, None)
            self._unwritten_per_key[source] += 1
            self._unwritten.tools[sighting] = (spec, now)

    def __bool__(self) -> bool:
        return bool(self._unwritten.reads or self._unwritten.tools)

    def drain(self) -> UnwrittenCounts:
        if not self:
            return self._nothing
        with self._lock:
            counts, self._unwritten = self._unwritten, UnwrittenCounts()
            self._unwritten_per_key.clear()
        return counts

    def restore(self, counts: UnwrittenCounts) -> None:
        with self._lock:
            for key, n in counts.reads.items():
                self._unwritten.reads[key] += n
            self._unwritten.tools = {**counts.tools, **self._unwritten.tools}
            for workspace, key_id, *_ in counts.tools:
                self._unwritten_per_key[workspace, key_id] += 1

    def _name(self, workspace: str, tool: str, minute: int) -> str:
        """Return the name under which a read is counted: the tool's, unless there are too many tools in this minute."""
        since, names = self._names.get(workspace, (-1, set()))
        if since != minute:
            names = set()
            self._names[workspace] = minute, names
        if tool not in names and len(names) >= MAX_NAMES:
            return OTHER_TOOLS
        names.add(tool)
        return tool


def write_counts(counts: UnwrittenCounts, transaction: Transaction) -> None:
    for key in sorted(counts.reads):  # sorted: two processes that write counts must not deadlock
        transaction.write("write_read_counts", *key, counts.reads[key])
    for sighting in sorted(counts.tools):
        (workspace, key_id, _, agent), (spec, at) = sighting, counts.tools[sighting]
        transaction.note_tool(workspace, spec, agent, at, key_id)


def _put_bounded(known: dict[Any, Any], key: object, value: object) -> None:
    """Add an item at the end, and evict the oldest if there are too many."""
    known.pop(key, None)
    if len(known) >= MAX_REMEMBERED:
        del known[next(iter(known))]
    known[key] = value
