"""Whether the record can be trusted: the chain, the laws, and that the rows say what the ledger says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from interlock.core.canonical import digest
from interlock.core.event import Stored
from interlock.core.ledger import Fault, Head, Standing, Verifier
from interlock.core.ports import Query, Store

PAGE = 500


@dataclass(frozen=True, slots=True)
class Report:
    entries: int
    approvals: int
    erased: int
    head: Head
    faults: tuple[Fault, ...]

    @property
    def valid(self) -> bool:
        return not self.faults


async def verify(
    store: Store, workspace: str, head: Head | None = None, progress: Callable[[int], None] = lambda seq: None
) -> Report:
    """Reads the ledger in order, then every row beside it; `head` is one that was exported earlier."""
    verifier = Verifier(workspace, head)
    async for entries in store.entries(workspace):
        verifier.feed(entries)
        progress(verifier.head.seq)
    verifier.finish(await store.head(workspace))
    approvals, faults = await _check_rows(store, workspace, verifier)
    return Report(verifier.head.seq, approvals, verifier.erased, verifier.head, (*verifier.faults, *faults))


async def _check_rows(store: Store, workspace: str, verifier: Verifier) -> tuple[int, list[Fault]]:
    faults: list[Fault] = []
    unseen = set(verifier.approvals)
    cursor: str | None = ""
    while cursor is not None:
        page = await store.list(workspace, Query(cursor=cursor, limit=PAGE, payload="whole"))
        for stored in page.items:
            unseen.discard(stored.approval.id)
            standing = verifier.approvals.get(stored.approval.id)
            faults += [
                Fault(0, f"Approval {stored.approval.id}: {words}") for words in _disagreements(stored, standing)
            ]
        cursor = page.next
    faults += [
        Fault(0, f"Approval {approval_id}: the ledger speaks of it, but its row is gone.") for approval_id in unseen
    ]
    return len(verifier.approvals), faults


def _disagreements(stored: Stored, standing: Standing | None) -> list[str]:
    approval, payload = stored.approval, stored.payload
    if standing is None:
        return ["the ledger does not know it."]
    words = []
    if approval.status != standing.status:
        words.append(f"the row says {approval.status}, the ledger says {standing.status}.")
    bound = approval.subject.binding(approval.args_sha256, approval.terms.sha256)
    if approval.binding != standing.binding or bound != approval.binding:
        words.append("the row is not bound to what the ledger says.")
    shown = payload.shown if payload.shown is not None else payload.args
    if shown is not None and digest(shown) != approval.args_sha256:
        words.append("the stored arguments are not the ones that people saw.")
    return words
