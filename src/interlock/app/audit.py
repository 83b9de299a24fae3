"""Whether the record can be trusted: the chain, the laws, and that the rows say what the ledger says.

Others may go on writing meanwhile: rows are compared with the ledger as it stood when they were read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from interlock.app.row_check import QUICK_CHECK_TABLES, RowCheck
from interlock.core.ledger.chain import Head, Verifier
from interlock.core.ledger.erasure import ErasureTotal, ErasureTracker
from interlock.core.ledger.expected_tables import ExpectedTables
from interlock.core.ledger.invariants import Violation
from interlock.core.ports import ApprovalQuery, Store

QUICK_CHECK_APPROVALS = 100  # approvals
ENTRIES_PER_READ = 1_000  # entries in one read
ProgressCallback = Callable[[int, int], None]  # how many entries are read, of how many


@dataclass(frozen=True, slots=True)
class AuditReport:
    """`since` is the entry before the first; `strangers` are entries of approvals that began before it."""

    entries: int
    approvals: int
    erased: int
    head: Head
    faults: tuple[Violation, ...]
    erasures: tuple[ErasureTotal, ...] = ()
    since: int = 0
    strangers: int = 0

    def to_json(self) -> dict[str, object]:
        return {
            "valid": not self.faults,
            "entries": self.entries,
            "erased": self.erased,
            "approvals": self.approvals,
            "head": self.head.to_json(),
            "faults": [fault.to_json() for fault in self.faults],
            "erasures": [taken.to_json() for taken in self.erasures],
            "since": self.since,
            "strangers": self.strangers,
        }


class ParallelVerifier(Protocol):
    """Verifies a long ledger in parts at the same time, by `verify_part` over a store of their own."""

    def __call__(
        self, workspace: str, end: int, head: Head | None, progress: ProgressCallback
    ) -> AsyncGenerator[Verifier | None, None]: ...


def _no_progress(seq: int, end: int) -> None:
    """Nobody looks at the progress."""


async def verify(
    store: Store,
    workspace: str,
    head: Head | None = None,
    progress: ProgressCallback = _no_progress,
    parts: ParallelVerifier | None = None,
) -> AuditReport:
    """Reads the ledger in order, then every row beside it; `head` is one that was kept elsewhere."""
    verifier = await verify_in_parallel(store, workspace, head, progress, parts) if parts else Verifier(workspace, head)
    await catch_up(store, verifier, progress)
    rows = [fault async for fault in compare_rows(store, verifier)]
    verifier.finish(await catch_up(store, verifier, progress))
    return make_report(verifier, rows)


def make_report(verifier: Verifier, rows: list[Violation]) -> AuditReport:
    head, since = verifier.head, verifier.start.seq
    return AuditReport(
        head.seq - since,
        len(verifier.laws),
        verifier.erased,
        head,
        (*sorted(verifier.faults, key=lambda fault: fault.seq), *rows),
        verifier.gaps.summary(),
        since,
        len(verifier.laws.strangers),
    )


async def verify_in_parallel(
    store: Store, workspace: str, head: Head | None, progress: ProgressCallback, parts: ParallelVerifier
) -> Verifier:
    """Where a part has a fault, or does not fit, all is read again in order: only that says what came first."""
    whole = Verifier(workspace, head)
    end = (await store.head(workspace)).seq
    async with aclosing(parts(workspace, end, head, progress)) as every:
        async for part in every:
            if part is None or not whole.join(part):
                return Verifier(workspace, head)
    return whole


async def verify_part(
    store: Store, workspace: str, after: int, until: int, head: Head | None, progress: ProgressCallback = _no_progress
) -> Verifier | None:
    """Entries after one number and up to another; None if the entry is missing that they have to follow on."""
    start = await head_at(store, workspace, after)
    if start is None:
        return None
    verifier = Verifier(workspace, head, start)
    async for entries in store.entries(workspace, after):
        verifier.feed(entry for entry in entries if entry.seq <= until)
        progress(verifier.head.seq - after, until - after)
        await asyncio.sleep(0)  # a store that answers at once must not keep Ctrl-C waiting
        if entries[-1].seq >= until:
            break
    return verifier


async def head_at(store: Store, workspace: str, seq: int) -> Head | None:
    """The head as it stood when an entry was the newest; None if there is no such entry."""
    if seq == 0:
        return Head(workspace)
    async for entries in store.entries(workspace, seq - 1):
        first = entries[0]
        return Head(workspace, seq, first.link, first.at) if first.seq == seq else None
    return None


async def catch_up(store: Store, verifier: Verifier, progress: ProgressCallback = _no_progress) -> Head:
    """Reads to the end of the ledger, and gives the stored head that belongs to what was read."""
    workspace = verifier.workspace
    head = await store.head(workspace)
    while True:
        async for entries in store.entries(workspace, verifier.head.seq):
            verifier.feed(entries)
            progress(verifier.head.seq, max(head.seq, verifier.head.seq))
            await asyncio.sleep(0)
        newest = await store.head(workspace)
        if newest in (head, verifier.head):
            return newest
        head = newest


async def quick_check(store: Store, workspace: str, newest: int = QUICK_CHECK_APPROVALS) -> list[Violation]:
    """Without the chain: the newest approvals, all people, keys, policies and freezes, with what entries say of it."""
    tables, gaps, read = ExpectedTables(), ErasureTracker(), 0

    async def read_up_to(seq: int) -> int:
        nonlocal read
        while read < seq and (entries := await store.checking.statements(workspace, read, seq, ENTRIES_PER_READ)):
            for entry in entries:
                gaps.note(entry) if entry.kind == "erased" else tables.take(entry)
            read = entries[-1].seq
        read = max(read, seq)
        return read

    await read_up_to((await store.head(workspace)).seq)
    check = RowCheck(store.checking, workspace, tables, gaps, read_up_to)
    page = await store.list(workspace, ApprovalQuery(limit=newest))
    found = [fault async for fault in check.tables(*QUICK_CHECK_TABLES)]
    for stored in page.items:
        name = stored.approval.id
        found += [fault async for fault in check.approvals(name[:-1], name)]
    return found


async def compare_rows(store: Store, verifier: Verifier) -> AsyncIterator[Violation]:
    """What the rows say otherwise than the ledger; leaves the ledger read up to the last rows that were compared."""

    async def read_up_to(seq: int) -> int:
        if seq > verifier.head.seq:
            async for entries in store.entries(verifier.workspace, verifier.head.seq):
                verifier.feed(entry for entry in entries if entry.seq <= seq)
                if entries[-1].seq >= seq:
                    break
        return verifier.head.seq

    check = RowCheck(store.checking, verifier.workspace, verifier.tables, verifier.gaps, read_up_to)
    async for fault in check.approvals():
        yield fault
    async for fault in check.tables():
        yield fault
