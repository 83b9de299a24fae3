"""Whether the record can be trusted: the chain, the laws, and that the rows say what the ledger says.

Others may go on writing meanwhile: what differs is looked at again before it counts as a fault.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from interlock.core.approval import FINAL, Approval
from interlock.core.canonical import digest
from interlock.core.errors import NotFound
from interlock.core.event import Payload, Stored
from interlock.core.ledger import Entry, Fault, Head, Standing, Verifier
from interlock.core.ports import Query, Store

PAGE = 500
ENDED = FINAL | {"rejected"}
UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError)  # what a forged row makes of a reader


@dataclass(frozen=True, slots=True)
class Report:
    entries: int
    approvals: int
    erased: int
    head: Head
    faults: tuple[Fault, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "valid": not self.faults,
            "entries": self.entries,
            "erased": self.erased,
            "approvals": self.approvals,
            "head": self.head.to_json(),
            "faults": [{"seq": fault.seq, "message": fault.message} for fault in self.faults],
        }


async def verify(
    store: Store, workspace: str, head: Head | None = None, progress: Callable[[int, int], None] = lambda seq, end: None
) -> Report:
    """Reads the ledger in order, then every row beside it; `head` is one that was exported earlier."""
    verifier = Verifier(workspace, head)
    verifier.finish(await _feed(store, verifier, progress))
    rows = [Fault(0, message) async for message in _disagreements(store, verifier)]
    faults = (*verifier.faults, *rows)
    return Report(verifier.head.seq, len(verifier.approvals), verifier.erased, verifier.head, faults)


async def _feed(store: Store, verifier: Verifier, progress: Callable[[int, int], None]) -> Head:
    """Gives the stored head that belongs to what was read."""
    workspace = verifier.head.workspace
    head = await store.head(workspace)
    while True:
        async for entries in store.entries(workspace, verifier.head.seq):
            _feed_page(verifier, entries)
            progress(verifier.head.seq, max(head.seq, verifier.head.seq))
        newest = await store.head(workspace)
        if newest in (head, verifier.head):
            return newest
        head = newest


def _feed_page(verifier: Verifier, entries: Sequence[Entry]) -> None:
    """An entry that cannot even be read is a fault like any other."""
    for entry in entries:
        try:
            verifier.feed([entry])
        except UNREADABLE as error:
            verifier.faults.append(Fault(entry.seq, f"The entry was altered: it cannot be read: {error}."))
            verifier.head = Head(entry.workspace, entry.seq, entry.link, verifier.head.at)


async def _disagreements(store: Store, verifier: Verifier) -> AsyncIterator[str]:
    workspace, missing = verifier.head.workspace, set(verifier.approvals)
    try:
        async for stored in _every(store, workspace):
            missing.discard(stored.approval.id)
            if _complaint(stored, verifier.approvals.get(stored.approval.id)):
                again = await _look_again(store, workspace, stored.approval.id)
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


async def _look_again(store: Store, workspace: str, approval_id: str) -> str:
    """Row and ledger are read one after the other, until nothing changed in between."""
    while True:
        try:
            stored = await store.get(workspace, approval_id)
            alone = Verifier(workspace)
            alone.feed(await store.timeline(workspace, approval_id))
            newest = await store.get(workspace, approval_id)
        except NotFound:
            return "Its row is gone."
        if newest.approval.version == stored.approval.version:
            return _complaint(stored, alone.approvals.get(approval_id))


def _complaint(stored: Stored, standing: Standing | None) -> str:
    approval = stored.approval
    if standing is None:
        return "The ledger knows nothing of it."
    if approval.status != standing.status:
        return f"Its row says {approval.status}, the ledger says {standing.status}."
    if approval.binding != standing.binding:
        return "Its row is bound to other arguments than the ledger says."
    try:
        return _altered(approval, stored.payload)
    except UNREADABLE as error:
        return f"Its row cannot be read: {error}."


def _altered(approval: Approval, payload: Payload) -> str:
    """What can only be checked while the arguments are kept."""
    if payload.args is None:
        return "" if approval.status in ENDED else "Its arguments are gone, though it has not ended."
    shown, secret_args = (payload.args, None) if payload.shown is None else (payload.shown, payload.args)
    if digest(shown) != approval.args_sha256:
        return "Its arguments were altered: they do not have the digest that people saw."
    if approval.subject.binding(approval.args_sha256, approval.terms.sha256, secret_args) != approval.binding:
        return "Its row was altered: call, terms and arguments do not give its binding."
    return ""
