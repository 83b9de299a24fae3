"""Erasure and retention in batches: each transaction removes content and writes the event about it, or does nothing.

An interrupted erasure is simply run again: content that is gone is not found a second time.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from interlock.core.approval.approval import Approval
from interlock.core.errors import InvalidRequest, NotFound
from interlock.core.ledger.erasure import (
    RETENTION,
    Erasure,
    ErasureResult,
    erase_content,
    erase_words_by,
    erased_event,
    is_final,
)
from interlock.core.ports import ApprovalPage, ApprovalQuery
from interlock.storage.engine.rows import Row
from interlock.storage.engine.transaction import Transaction
from interlock.storage.engine.writer import BatchItem, NamedRead
from interlock.storage.tables.pauses import drop_pause

BATCH_SIZE = 100  # approvals in a transaction: more would block the ledger for others
ENTRIES_PER_BATCH = 1_000  # entries read for one batch
CONSUMER = "retention"
EXPIRING_KINDS = frozenset({"denied", "erased", "sign_in_failed"})  # entries about no approval whose content expires

Fetch = Callable[..., Awaitable[list[Row]]]
Write = Callable[[BatchItem], Awaitable[Any]]
ListApprovals = Callable[[str, ApprovalQuery], Awaitable[ApprovalPage]]


@dataclass(frozen=True, slots=True)
class ErasureBatch:
    """The scope of one transaction: whole approvals, and single entries with the approval they are about, or ""."""

    approvals: tuple[str, ...] = ()
    entries: tuple[tuple[int, str], ...] = ()

    def prefetch(self, workspace: str) -> tuple[NamedRead, ...]:
        """Return the look-ups. `content_of` takes its number as text, since look-ups of a batch are sent as text."""
        about = {approval_id for _, approval_id in self.entries if approval_id} | set(self.approvals)
        rows: list[NamedRead] = [("approval", workspace, approval_id) for approval_id in sorted(about)]
        rows += [
            (name, workspace, each) for name in ("approval_events", "finished_deliveries_of") for each in self.approvals
        ]
        return (*rows, *(("content_of", workspace, str(seq)) for seq, _ in self.entries))


async def find_batches(
    fetch: Fetch, list_approvals: ListApprovals, workspace: str, erasure: Erasure
) -> AsyncIterator[ErasureBatch]:
    """Find what to erase. Of a person: their requests, their words about others' calls, and mentions of them."""
    if not erasure.target:  # an empty filter would find everything
        raise InvalidRequest("Name what to erase: the id of an approval, a thread or a person's name.")
    match erasure.scope:
        case "approval":
            yield ErasureBatch((erasure.target,))
        case "thread":
            async for batch in _approval_batches(
                list_approvals, workspace, ApprovalQuery(thread_id=erasure.target, limit=BATCH_SIZE)
            ):
                yield batch
            async for batch in _thread_batches(fetch, workspace, erasure.target):
                yield batch
        case _:
            async for batch in _person_batches(fetch, list_approvals, workspace, erasure.target):
                yield batch


def erase_batch(workspace: str, erasure: Erasure, batch: ErasureBatch, *, dry_run: bool) -> BatchItem:
    def run(tx: Transaction) -> ErasureResult:
        plan = ErasurePlan(tx=tx, workspace=workspace, erasure=erasure)
        plan.collect(batch)
        if not dry_run:
            plan.write()
        return plan.result()

    return BatchItem(run, workspace, batch.prefetch(workspace), is_short=False)


async def forget_user(fetch: Fetch, write: Write, workspace: str, name: str) -> None:
    """Erase the rows of a removed person and of their old keys; rows in use stay.

    Their identities on channels and their deliveries are erased in any case, except deliveries of pending calls.
    """

    def run(tx: Transaction) -> None:
        tx.write("erase_user", workspace, name)
        tx.write("erase_keys", workspace, name)
        for channel, outside in tx.fetch("identities_of", workspace, name):
            tx.write("drop_identity", workspace, channel, outside)

    await write(BatchItem(run, workspace))
    while found := await fetch("deliveries_to_person", workspace, name, BATCH_SIZE):
        await write(_drop_deliveries(workspace, found))


def _drop_deliveries(workspace: str, found: Sequence[Row]) -> BatchItem:
    def run(tx: Transaction) -> None:
        for row in found:
            tx.write("drop_delivery", workspace, row[0])

    return BatchItem(run, workspace, is_short=False)


async def overdue_workspaces(fetch: Fetch, before: int, grace_period: int) -> list[tuple[str, int]]:
    """Return workspaces whose ledger has content older than `before` to erase, each with its mark.

    A batch that is not full waits for `grace_period`: a busy ledger must not get an entry for every single approval.
    """
    return [
        (workspace, mark)
        for workspace, mark, oldest, filled in await fetch("retained", ENTRIES_PER_BATCH)
        if oldest < before - grace_period or (filled is not None and filled < before)
    ]


async def apply_retention(fetch: Fetch, workspace: str, mark: int, before: int) -> BatchItem:
    """Erase the next batch after the mark. A skipped approval has a later entry, which brings it up again."""
    approvals: dict[str, int] = {}
    loose: list[tuple[int, str]] = []
    end = mark
    for seq, at, kind, approval_id in await fetch("retained_entries", workspace, mark, ENTRIES_PER_BATCH):
        if at >= before or (len(approvals) == BATCH_SIZE and approval_id not in approvals):
            break
        if approval_id:
            approvals.setdefault(approval_id, seq)
        elif kind in EXPIRING_KINDS:
            loose.append((seq, ""))
        end = seq
    batch = ErasureBatch(tuple(approvals), tuple(loose))

    def run(tx: Transaction) -> tuple[ErasureResult, int]:
        found = tx.fetch("consumer_offset", workspace, CONSUMER)
        if (found[0][0] if found else 0) != mark:
            return ErasureResult(), mark  # another worker was faster
        plan = ErasurePlan(tx=tx, workspace=workspace, erasure=RETENTION, end=end)
        plan.collect(batch)
        plan.write()
        undoable = [approvals[each] - 1 for each, status in plan.skipped.items() if status == "rejected"]
        reached = min([end, *undoable])  # no later entry tells that a rejection can no longer be undone
        tx.write("write_consumer_offset", workspace, CONSUMER, reached)
        return replace(plan.result(), skipped=()), reached

    return BatchItem(
        run, workspace, (("consumer_offset", workspace, CONSUMER), *batch.prefetch(workspace)), is_short=False
    )


@dataclass(slots=True, kw_only=True)
class ErasurePlan:
    """The changes of one batch, computed under the lock. `end`: only approvals whose last entry comes no later."""

    tx: Transaction
    workspace: str
    erasure: Erasure
    end: int | None = None
    rows: dict[str, tuple[Approval, Approval]] = field(default_factory=dict)
    entries: set[int] = field(default_factory=set)
    skipped: dict[str, str] = field(default_factory=dict)
    runs: set[str] = field(default_factory=set)

    def collect(self, batch: ErasureBatch) -> None:
        unwritten = self.tx.unwritten_entries(self.workspace)
        for approval_id in batch.approvals:
            trail = self.tx.fetch("approval_events", self.workspace, approval_id)
            if not self._is_recent(trail, unwritten.get(approval_id, [])):
                self._add_approval(approval_id, [row[1] for row in trail if row[1]] + unwritten.get(approval_id, []))
        for seq, approval_id in batch.entries:
            if self.tx.fetch("content_of", self.workspace, str(seq)):
                self._add_entry(seq, approval_id)

    def write(self) -> None:
        for old, new in self.rows.values():
            self.tx.erase(old, new)
            if new.erasure:
                for row in self.tx.fetch("finished_deliveries_of", self.workspace, new.id):
                    self.tx.write("drop_delivery", self.workspace, row[0])
        for seq in sorted(self.entries):
            self.tx.write("erase_content", self.workspace, seq)
        for run_id in sorted(self.runs):
            drop_pause(self.tx, self.workspace, run_id)
        taken = self.result()
        if taken.approvals or taken.entries:
            self.tx.append_events(self.workspace, [erased_event(self.erasure, self.entries, taken.approvals)])

    def result(self) -> ErasureResult:
        whole = sum(new.erasure is not None and old.erasure is None for old, new in self.rows.values())
        return ErasureResult(whole, len(self.entries), tuple(self.skipped.items()))

    def _is_recent(self, trail: Sequence[Row], unwritten: Sequence[int]) -> bool:
        return self.end is not None and (bool(unwritten) or any(row[0] > self.end for row in trail[-1:]))

    def _add_approval(self, approval_id: str, entries: Sequence[int]) -> None:
        approval, now = self._find_final(approval_id), self.tx.moment(self.workspace).now
        if approval is not None:
            self.entries.update(entries)
            if self.erasure is not RETENTION:  # the state of a paused run holds the arguments of its calls
                self.runs.add(approval.subject.run_id)
            if not approval.erasure:
                self.rows[approval_id] = (approval, erase_content(approval, self.erasure.by, now))

    def _add_entry(self, seq: int, approval_id: str) -> None:
        """Add an entry; a person's words are in it, and in the approval's row if they decided it."""
        if not approval_id:
            self.entries.add(seq)
        elif (approval := self._find_final(approval_id)) is not None:
            self.entries.add(seq)
            without = erase_words_by(approval, self.erasure.target)
            if without is not approval:
                self.rows[approval_id] = (approval, without)

    def _find_final(self, approval_id: str) -> Approval | None:
        """Return a final approval; None if it is still open, or if its row is missing, which the verifier reports."""
        try:
            approval = self.tx.approval(self.workspace, approval_id)
        except NotFound:
            if self.erasure.scope == "approval":
                raise
            return None
        if is_final(approval, self.tx.moment(self.workspace).now):
            return approval
        self.skipped[approval_id] = approval.status
        return None


async def _person_batches(
    fetch: Fetch, list_approvals: ListApprovals, workspace: str, person: str
) -> AsyncIterator[ErasureBatch]:
    async for batch in _approval_batches(list_approvals, workspace, ApprovalQuery(requester=person, limit=BATCH_SIZE)):
        yield batch
    async for batch in _authored_batches(fetch, workspace, person):
        yield batch
    async for batch in _mention_batches(fetch, workspace, person):
        yield batch


async def _approval_batches(
    list_approvals: ListApprovals, workspace: str, query: ApprovalQuery
) -> AsyncIterator[ErasureBatch]:
    cursor: str | None = ""
    while cursor is not None:
        page = await list_approvals(workspace, replace(query, cursor=cursor))
        if page.items:
            yield ErasureBatch(tuple(stored.approval.id for stored in page.items))
        cursor = page.next


async def _authored_batches(fetch: Fetch, workspace: str, person: str) -> AsyncIterator[ErasureBatch]:
    after, end = 0, (await fetch("head", workspace) or [(workspace, 0)])[0][1]
    # Entries after the end were written by this erasure itself.
    while found := [
        row for row in await fetch("contents_by_actor", workspace, person, after, ENTRIES_PER_BATCH) if row[0] <= end
    ]:
        yield ErasureBatch(entries=tuple((row[0], row[1]) for row in found))
        after = found[-1][0]


async def _thread_batches(fetch: Fetch, workspace: str, thread_id: str) -> AsyncIterator[ErasureBatch]:
    """Yield a thread's answers to questions of its agent, and its calls that nobody was asked about."""
    after = 0
    while found := await fetch("contents_of_threads", workspace, after, ENTRIES_PER_BATCH):
        theirs = [
            seq
            for seq, data, content in found
            if thread_id in (json.loads(data).get("thread_id"), json.loads(bytes(content)).get("thread_id"))
        ]
        if theirs:
            yield ErasureBatch(entries=tuple((seq, "") for seq in theirs))
        after = found[-1][0]


async def _mention_batches(fetch: Fetch, workspace: str, person: str) -> AsyncIterator[ErasureBatch]:
    """Yield entries about no approval: calls that a policy denied a person, and changes of their account."""
    after = 0
    while found := await fetch("contents_about_people", workspace, after, ENTRIES_PER_BATCH):
        theirs = [
            seq for seq, data, content in found if _mentions(person, json.loads(data), json.loads(bytes(content)))
        ]
        if theirs:
            yield ErasureBatch(entries=tuple((seq, "") for seq in theirs))
        after = found[-1][0]


def _mentions(person: str, data: dict[str, Any], content: dict[str, Any]) -> bool:
    """Return whether an entry names a person: requester, failed sign-in, recipient, changed account or delegate."""
    named = (content.get("requester"), content.get("name"), content.get("person"), data.get("user"))
    return person in (*named, *content.get("to", {}).get("users", ()), *content.get("users", ()))
