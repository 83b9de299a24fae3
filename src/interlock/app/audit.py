"""Audit of the ledger: the hash chain, the invariants, and the comparison of rows with the ledger.

Others may go on writing meanwhile: rows are compared with the ledger as of when they were read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from interlock.core.approval.approval import Approval
from interlock.core.call import stored_caller
from interlock.core.canonical import digest
from interlock.core.card import unescape_invisible
from interlock.core.confusables import fold_confusables
from interlock.core.ledger.chain import PARSE_ERRORS, Entry, Head, Verifier
from interlock.core.ledger.erasure import ErasureTotal, ErasureTracker
from interlock.core.ledger.event import Payload, Stored
from interlock.core.ledger.expected_rows import ExpectedRow, RowDifference
from interlock.core.ledger.expected_tables import TABLES, ExpectedTables
from interlock.core.ledger.invariants import Violation
from interlock.core.ports import ApprovalQuery, AuditPage, AuditReader, LedgerReader, Store

QUICK_CHECK_APPROVALS = 100  # approvals
ENTRIES_PER_READ = 1_000  # entries in one read
ProgressCallback = Callable[[int, int], None]  # how many entries are read, of how many


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """Result of an audit; `since` is the entry before the first, `unknown_entries` are of approvals begun before it."""

    entries: int
    approvals: int
    erased: int
    head: Head
    violations: tuple[Violation, ...]
    erasures: tuple[ErasureTotal, ...] = ()
    since: int = 0
    unknown_entries: int = 0

    def to_json(self) -> dict[str, object]:
        return {
            "valid": not self.violations,
            "entries": self.entries,
            "erased": self.erased,
            "approvals": self.approvals,
            "head": self.head.to_json(),
            "faults": [violation.to_json() for violation in self.violations],
            "erasures": [total.to_json() for total in self.erasures],
            "since": self.since,
            "strangers": self.unknown_entries,
        }


class ParallelVerifier(Protocol):
    """Verifies a long ledger in parallel parts, each by `verify_part` over its own store."""

    def __call__(
        self, workspace: str, end: int, head: Head | None, progress: ProgressCallback
    ) -> AsyncGenerator[Verifier | None, None]: ...


def _no_progress(seq: int, end: int) -> None:
    """Ignore the progress."""


async def verify(
    store: Store,
    workspace: str,
    head: Head | None = None,
    progress: ProgressCallback = _no_progress,
    parts: ParallelVerifier | None = None,
) -> AuditReport:
    """Verify the ledger in order, then every row against it; `head` is one that was kept elsewhere."""
    verifier = await verify_in_parallel(store, workspace, head, progress, parts) if parts else Verifier(workspace, head)
    await catch_up(store, verifier, progress)
    rows = [violation async for violation in compare_rows(store, verifier)]
    verifier.finish(await catch_up(store, verifier, progress))
    return make_report(verifier, rows)


def make_report(verifier: Verifier, rows: list[Violation]) -> AuditReport:
    head, since = verifier.head, verifier.start.seq
    return AuditReport(
        entries=head.seq - since,
        approvals=len(verifier.invariants),
        erased=verifier.erased,
        head=head,
        violations=(*sorted(verifier.violations, key=lambda violation: violation.seq), *rows),
        erasures=verifier.erasures.summary(),
        since=since,
        unknown_entries=len(verifier.invariants.unknown_entries),
    )


async def verify_in_parallel(
    store: Store, workspace: str, head: Head | None, progress: ProgressCallback, parts: ParallelVerifier
) -> Verifier:
    """Verify in parallel; after a violation or mismatch everything is read again in order, to find the first one."""
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
    """Verify the entries after one number and up to another; None if the entry before them is missing."""
    start = await head_at(store, workspace, after)
    if start is None:
        return None
    verifier = Verifier(workspace, head, start)
    async for entries in store.entries(workspace, after):
        verifier.feed(entry for entry in entries if entry.seq <= until)
        progress(verifier.head.seq - after, until - after)
        await asyncio.sleep(0)  # a store that answers at once must not block Ctrl-C
        if entries[-1].seq >= until:
            break
    return verifier


async def head_at(store: LedgerReader, workspace: str, seq: int) -> Head | None:
    """The head when this entry was the newest; None if there is no such entry."""
    if seq == 0:
        return Head(workspace)
    async for entries in store.entries(workspace, seq - 1):
        first = entries[0]
        return Head(workspace, seq, first.link, first.at) if first.seq == seq else None
    return None


async def catch_up(store: Store, verifier: Verifier, progress: ProgressCallback = _no_progress) -> Head:
    """Read to the end of the ledger, and return the stored head that belongs to it."""
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
    """Check the newest approvals and the small tables against the ledger's statements, without the chain."""
    tables, erasures, read = ExpectedTables(), ErasureTracker(), 0

    async def read_up_to(seq: int) -> int:
        nonlocal read
        while read < seq and (entries := await store.audit_reader.statements(workspace, read, seq, ENTRIES_PER_READ)):
            for entry in entries:
                erasures.note(entry) if entry.kind == "erased" else tables.apply(entry)
            read = entries[-1].seq
        read = max(read, seq)
        return read

    await read_up_to((await store.head(workspace)).seq)
    check = RowCheck(store.audit_reader, workspace, tables, erasures, read_up_to)
    page = await store.list(workspace, ApprovalQuery(limit=newest))
    found = [violation async for violation in check.tables(*QUICK_CHECK_TABLES)]
    for stored in page.items:
        name = stored.approval.id
        found += [violation async for violation in check.approvals(name[:-1], name)]
    return [*found, *await store.audit_reader.schema_violations()]


async def compare_rows(store: Store, verifier: Verifier) -> AsyncIterator[Violation]:
    """Differences between rows and ledger; the ledger is then read up to the last rows compared."""

    async def read_up_to(seq: int) -> int:
        if seq > verifier.head.seq:
            async for entries in store.entries(verifier.workspace, verifier.head.seq):
                verifier.feed(entry for entry in entries if entry.seq <= seq)
                if entries[-1].seq >= seq:
                    break
        return verifier.head.seq

    reader = store.audit_reader
    check = RowCheck(reader, verifier.workspace, verifier.tables, verifier.erasures, read_up_to)
    for found in (check.approvals(), check.tables(), _compare_tallies(reader, verifier, read_up_to)):
        async for violation in found:
            yield violation
    for violation in await reader.schema_violations():
        yield violation


async def _compare_tallies(reader: AuditReader, verifier: Verifier, read_up_to: ReadUpTo) -> AsyncIterator[Violation]:
    """Differences between the stored numbers and the statuses by the ledger, both as of the same entry.

    An altered ledger gives no statuses to compare with.
    """
    newest, tallies = await reader.tallies(verifier.workspace)
    if await read_up_to(newest) != newest or verifier.violations:
        return
    counted = verifier.invariants.count_statuses()
    for status in sorted(tallies.keys() | counted.keys()):
        stored, expected = tallies.get(status, 0), counted.get(status, 0)
        if stored != expected:
            message = f"count of {status}: It is {stored}; the ledger gives {expected}."
            yield Violation(0, message, "tallies", status, "n")


PAGE_SIZE = 500  # rows
COMPARED_PER_READ = 5_000  # in one read
AFTER_ALL_ENTRIES = 2**62  # after every entry of an approval
MAX_ID = "\U0010ffff"  # after every id
QUICK_CHECK_TABLES = ("users", "keys", "policies", "freezes", "pins")  # the tables that a quick check compares

ReadUpTo = Callable[[int], Awaitable[int]]  # reads the ledger up to this entry, and returns how far it is read


class RowCheck:
    """Comparison of rows; `tables` and `erasures` are from the ledger read so far, `read_up_to` reads on."""

    def __init__(
        self,
        reader: AuditReader,
        workspace: str,
        tables: ExpectedTables,
        erasures: ErasureTracker,
        read_up_to: ReadUpTo,
    ) -> None:
        self._reader = reader
        self._workspace = workspace
        self._tables = tables
        self._erasures = erasures
        self._read_up_to = read_up_to
        self._used: set[tuple[str, str]] = set()  # keys with the names of agents that were checked for them

    # Approvals

    async def approvals(self, after: str = "", until: str = MAX_ID) -> AsyncIterator[Violation]:
        """Violations of approvals with ids after one and up to another, and of missing ones between them."""
        more = True
        while more:
            page = await self._reader.approvals(self._workspace, after, until, PAGE_SIZE)
            more = len(page.items) == PAGE_SIZE
            end = page.items[-1][0] if more else until
            async for violation in self._page(page, after, end):
                yield violation
            after = end
            await asyncio.sleep(0)  # a store that answers at once must not block Ctrl-C

    async def _page(self, page: AuditPage, after: str, end: str) -> AsyncIterator[Violation]:
        newest = await self._read_up_to(page.newest)
        found = dict(page.items)
        expected: dict[str, ExpectedRow] = {}
        async for entries in self._entries(after, end, newest):
            for violation in _apply_entries(entries, expected):
                yield violation
        for approval_id, row in found.items():
            faults = list(self._approval(approval_id, row, expected.get(approval_id)))
            if not faults and isinstance(row, Stored) and expected[approval_id].first > self._tables.baseline_entry:
                faults = [violation async for violation in self._unnoted(row.approval, expected[approval_id].first)]
            for violation in faults:
                yield violation
        for approval_id in sorted(expected.keys() - found.keys()):
            yield _approval_violation(
                approval_id,
                "Its row is missing, although the ledger has entries about it.",
                expected[approval_id].first,
            )

    async def _unnoted(self, approval: Approval, seq: int) -> AsyncIterator[Violation]:
        """Agents' names that a call used with its key but that are not recorded for the key, each once.

        They are recorded before the call is. Further recorded names may be from reads, which leave no entry.
        """
        subject, caller = approval.subject, stored_caller(approval.subject)
        if caller is None or not caller.credential:
            return
        for agent in subject.path:
            use = caller.credential, fold_confusables(agent)
            if use in self._used:
                continue
            self._used.add(use)
            if not await self._reader.has_used(self._workspace, *use):
                told = f"It used the agent name {agent!r}, which is not stored: a freeze of that agent would miss it."
                yield Violation(seq, f"key {caller.credential}: {told}", "key_agents", caller.credential, "agent")

    async def _entries(self, after: str, end: str, newest: int) -> AsyncIterator[Sequence[Entry]]:
        place = (after, AFTER_ALL_ENTRIES)
        while entries := await self._reader.entries(self._workspace, place, end, newest, COMPARED_PER_READ):
            yield entries
            if len(entries) < COMPARED_PER_READ:
                return
            place = (entries[-1].approval_id, entries[-1].seq)

    def _approval(self, approval_id: str, row: Stored | str, expected: ExpectedRow | None) -> Iterator[Violation]:
        if expected is None:
            yield _approval_violation(approval_id, "The ledger has no entry about it.", 0, "id")
            return
        if isinstance(row, str):
            yield _approval_violation(approval_id, row, expected.first)
            return
        if stated := self._tables.open_approvals.get(approval_id):
            expected.apply_baseline(self._tables.baseline_entry, *stated)
        try:
            differences = list(expected.differences(row))
            complaint = self._complaint(row, expected)
        except PARSE_ERRORS as error:
            yield _approval_violation(approval_id, f"Its row cannot be read: {error}.", expected.first)
            return
        for each in differences:
            yield _approval_violation(approval_id, str(each), each.seq, each.field)
        if complaint:
            yield _approval_violation(approval_id, complaint, expected.first, "args")

    def _complaint(self, stored: Stored, expected: ExpectedRow) -> str:
        args = stored.payload.args
        if args is not None:
            return tamper_reason(stored.approval, stored.payload, args)
        return (
            ""
            if self._erasures.covers(expected.first)
            else "Its arguments are missing, and no entry records an erasure."
        )

    # Other tables

    async def tables(self, *names: str) -> AsyncIterator[Violation]:
        for name in names or TABLES:
            async for violation in self._table(name):
                yield violation

    async def _table(self, name: str) -> AsyncIterator[Violation]:
        after, more = "", True
        while more:
            page = await self._reader.rows(name, self._workspace, after, PAGE_SIZE)
            await self._read_up_to(page.newest)
            more = len(page.items) == PAGE_SIZE
            end = page.last if more else ""
            for row_id, row in page.items:
                for each in self._row(name, row_id, row):
                    if each.seq == 0 or not await self._was_erased(each):
                        yield _row_violation(name, row_id, each)
            found = {row_id for row_id, _ in page.items}
            for row_id in self._tables.ids(name):
                if row_id not in found and _is_in_page(name, after, row_id, end):
                    yield _row_violation(name, row_id, RowDifference("gone", self._tables.last(name, row_id)))
            after = end

    def _row(self, table: str, row_id: str, row: Any) -> Iterator[RowDifference]:
        if isinstance(row, str):
            yield RowDifference("unreadable", 0, row)
            return
        yield from self._tables.differences(table, row_id, row)

    async def _was_erased(self, difference: RowDifference) -> bool:
        """Whether the entry's statement was erased after it was read here, and from the row too."""
        seq = difference.seq
        for entry in await self._reader.statements(self._workspace, seq - 1, seq, 1):
            return bool(entry.digest) and entry.content is None and not difference.actual
        return False


def _apply_entries(entries: Sequence[Entry], expected: dict[str, ExpectedRow]) -> Iterator[Violation]:
    for entry in entries:
        known = expected.get(entry.approval_id)
        if known is None:
            known = expected[entry.approval_id] = ExpectedRow()
        try:
            known.apply(entry)
        except PARSE_ERRORS as error:
            yield _entry_violation(f"approval {entry.approval_id}: The entry cannot be read: {error}.", entry.seq)


def tamper_reason(approval: Approval, payload: Payload, args: bytes) -> str:
    """Why a row was tampered with; can only be checked while the arguments are stored."""
    shown, secret_args = (args, None) if payload.shown is None else (payload.shown, args)
    if digest(shown) != approval.args_sha256:
        return "Its arguments were altered: their digest is not the one that people saw."
    if approval.subject.binding(approval.args_sha256, approval.terms.sha256, secret_args) != approval.binding:
        return "Its row was altered: call, terms and arguments do not match its binding."
    return ""


def _is_in_page(table: str, after: str, row_id: str, end: str) -> bool:
    """Compare as the database sorts: versions by number, names by bytes; entries escape the names of tools."""
    if table == "policies":
        return int(after or 0) < int(row_id) and (not end or int(row_id) <= int(end))
    place = unescape_invisible(row_id) if table == "pins" else row_id
    return after < place and (not end or place <= end)


def _approval_violation(approval_id: str, message: str, seq: int, field: str = "") -> Violation:
    return Violation(seq, f"approval {approval_id}: {message}", "approvals", approval_id, field)


def _row_violation(table: str, row_id: str, difference: RowDifference) -> Violation:
    name = f"{TABLES[table].label} {row_id}"
    match difference.field:
        case "id":
            message = "No entry of the ledger records its creation."
        case "gone":
            message = "Its row is missing, although the ledger has entries about it."
        case "unreadable":
            message = str(difference.actual)
        case _:
            message = str(difference)
    field = "" if difference.field in ("id", "gone", "unreadable") else difference.field
    return Violation(difference.seq, f"{name}: {message}", table, row_id, field)


def _entry_violation(message: str, seq: int) -> Violation:
    return Violation(seq, message, "events")
