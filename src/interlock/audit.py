"""Whether the record can be trusted: the chain, the laws, and that the rows say what the ledger says.

Others may go on writing meanwhile: what differs is looked at again before it counts as a fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from interlock.core.approval import Approval
from interlock.core.canonical import digest
from interlock.core.errors import NotFound
from interlock.core.event import Payload, Stored
from interlock.core.gaps import Taken
from interlock.core.laws import Fault
from interlock.core.ledger import UNREADABLE, Head, Verifier
from interlock.core.ports import Query, Store

PAGE = 500
Progress = Callable[[int, int], None]  # how many entries are read, of how many


@dataclass(frozen=True, slots=True)
class Report:
    """`since` is the entry before the first; `strangers` are entries of approvals that began before it."""

    entries: int
    approvals: int
    erased: int
    head: Head
    faults: tuple[Fault, ...]
    erasures: tuple[Taken, ...] = ()
    since: int = 0
    strangers: int = 0

    def to_json(self) -> dict[str, object]:
        return {
            "valid": not self.faults,
            "entries": self.entries,
            "erased": self.erased,
            "approvals": self.approvals,
            "head": self.head.to_json(),
            "faults": [{"seq": fault.seq, "message": fault.message} for fault in self.faults],
            "erasures": [taken.to_json() for taken in self.erasures],
            "since": self.since,
            "strangers": self.strangers,
        }


class Parts(Protocol):
    """Verifies a long ledger in parts at the same time, by `verify_part` over a store of their own."""

    def __call__(
        self, workspace: str, end: int, head: Head | None, progress: Progress
    ) -> AsyncGenerator[Verifier | None, None]: ...


def _unseen(seq: int, end: int) -> None:
    """Nobody looks at the progress."""


async def verify(
    store: Store, workspace: str, head: Head | None = None, progress: Progress = _unseen, parts: Parts | None = None
) -> Report:
    """Reads the ledger in order, then every row beside it; `head` is one that was kept elsewhere."""
    verifier = await joined(store, workspace, head, progress, parts) if parts else Verifier(workspace, head)
    await catch_up(store, verifier, progress)
    rows = [Fault(0, message) async for message in disagreements(store, verifier)]
    verifier.finish(await catch_up(store, verifier, progress))
    return report_of(verifier, rows)


def report_of(verifier: Verifier, rows: list[Fault]) -> Report:
    head, since = verifier.head, verifier.start.seq
    return Report(
        head.seq - since,
        len(verifier.laws),
        verifier.erased,
        head,
        (*sorted(verifier.faults, key=lambda fault: fault.seq), *rows),
        verifier.gaps.summary(),
        since,
        len(verifier.laws.strangers),
    )


async def joined(store: Store, workspace: str, head: Head | None, progress: Progress, parts: Parts) -> Verifier:
    """Where a part has a fault, or does not fit, all is read again in order: only that says what came first."""
    whole = Verifier(workspace, head)
    end = (await store.head(workspace)).seq
    async with aclosing(parts(workspace, end, head, progress)) as every:
        async for part in every:
            if part is None or not whole.join(part):
                return Verifier(workspace, head)
    return whole


async def verify_part(
    store: Store, workspace: str, after: int, until: int, head: Head | None, progress: Progress = _unseen
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


async def catch_up(store: Store, verifier: Verifier, progress: Progress = _unseen) -> Head:
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


async def disagreements(store: Store, verifier: Verifier) -> AsyncIterator[str]:
    """What the rows of the approvals say otherwise than the ledger."""
    workspace, missing = verifier.workspace, set(verifier.laws)
    try:
        async for stored in _every(store, workspace):
            missing.discard(stored.approval.id)
            if _complaint(stored, verifier):
                again = await _look_again(store, verifier, stored.approval.id)
                if again:
                    yield f"approval {stored.approval.id}: {again}"
    except UNREADABLE as error:
        yield f"A row of the approvals cannot be read, so the rest was not checked: {error}."
        return
    for approval_id in sorted(missing):
        yield f"approval {approval_id}: The ledger speaks of it, but its row is gone."


async def _every(store: Store, workspace: str) -> AsyncIterator[Stored]:
    cursor: str | None = ""
    while cursor is not None:
        page = await store.list(workspace, Query(cursor=cursor, limit=PAGE, payload="whole"))
        for stored in page.items:
            yield stored
        cursor = page.next
        await asyncio.sleep(0)


async def _look_again(store: Store, verifier: Verifier, approval_id: str) -> str:
    """Row and ledger are read one after the other, until nothing changed in between."""
    while True:
        try:
            stored = await store.get(verifier.workspace, approval_id)
            await catch_up(store, verifier)
            newest = await store.get(verifier.workspace, approval_id)
        except NotFound:
            return "Its row is gone."
        if newest.approval.version == stored.approval.version:
            return _complaint(stored, verifier)


def _complaint(stored: Stored, verifier: Verifier) -> str:
    approval = stored.approval
    standing = verifier.laws.standing(approval.id)
    if standing is None:
        return "The ledger knows nothing of it."
    if approval.status != standing.status:
        return f"Its row says {approval.status}, the ledger says {standing.status}."
    if approval.binding != standing.binding:
        return "Its row is bound to other arguments than the ledger says."
    if stored.payload.args is None:
        erased = verifier.gaps.covers(standing.first)
        return "" if erased else "Its arguments are gone and nothing says who erased them."
    try:
        return _altered(approval, stored.payload, stored.payload.args)
    except UNREADABLE as error:
        return f"Its row cannot be read: {error}."


def _altered(approval: Approval, payload: Payload, args: bytes) -> str:
    """What can only be checked while the arguments are kept."""
    shown, secret_args = (args, None) if payload.shown is None else (payload.shown, args)
    if digest(shown) != approval.args_sha256:
        return "Its arguments were altered: they do not have the digest that people saw."
    if approval.subject.binding(approval.args_sha256, approval.terms.sha256, secret_args) != approval.binding:
        return "Its row was altered: call, terms and arguments do not give its binding."
    return ""
