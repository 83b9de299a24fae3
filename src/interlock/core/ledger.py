"""The hash chain over events, its heads, and the verifier, which checks the laws as well as the hashes.

An entry's `digest` is sha256(salt + content): salt and content lie apart and can be erased together. Its `link`
is sha256(previous link + skeleton), and the skeleton holds the digest, so erasure leaves the chain whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from json.encoder import encode_basestring as quoted
from typing import NamedTuple

from interlock.core.approval import TRANSITIONS
from interlock.core.canonical import plain_json
from interlock.core.event import Event

GENESIS = "0" * 64


class Head(NamedTuple):
    """The newest entry of a workspace's chain; kept elsewhere, it shows a cut or rewritten tail."""

    workspace: str
    seq: int = 0
    link: str = GENESIS
    at: int = 0

    def to_json(self) -> dict[str, object]:
        return {"workspace": self.workspace, "seq": self.seq, "link": self.link, "at": self.at}


class Entry(NamedTuple):
    """One row of the ledger. `content` is None when there was none, and when it was erased with its salt."""

    workspace: str
    seq: int
    at: int
    kind: str
    actor: str
    approval_id: str
    data: str
    digest: str
    link: str
    salt: bytes | None = None
    content: bytes | None = None


def seal(event: Event, head: Head, at: int, salt: bytes) -> Entry:
    """The next entry of the chain; the store writes entry and head in the transaction of the change."""
    data = plain_json(event.data)
    content = None if event.content is None else plain_json(event.content).encode()
    digest = "" if content is None else sha256(salt + content).hexdigest()
    seq = head.seq + 1
    body = skeleton(head.workspace, seq, at, event.kind, event.actor, event.approval_id, data, digest)
    link = linked(head.link, body)
    kept = None if content is None else salt
    return Entry(head.workspace, seq, at, event.kind, event.actor, event.approval_id, data, digest, link, kept, content)


def skeleton(
    workspace: str, seq: int, at: int, kind: str, actor: str, approval_id: str, data: str, digest: str
) -> bytes:
    """The very bytes that are hashed: canonical JSON, spelled out because a million of them are verified at once."""
    return (
        f'{{"actor":{quoted(actor)},"approval":{quoted(approval_id)},"at":{at},"data":{data},'
        f'"digest":"{digest}","kind":{quoted(kind)},"seq":{seq},"workspace":{quoted(workspace)}}}'
    ).encode()


def linked(previous: str, body: bytes) -> str:
    return sha256(previous.encode() + body).hexdigest()


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with the record, and where."""

    seq: int
    message: str


@dataclass(slots=True)
class Standing:
    """What the ledger alone says of one approval."""

    status: str = ""
    binding: str = ""
    approved_binding: str = ""
    idempotent: bool = False
    quorum: int = 1
    fence: int = 0
    voters: frozenset[str] = frozenset()
    expires_at: int | None = None


# What each kind of entry makes of an approval.
LEADS_TO: Mapping[str, tuple[str, ...]] = {
    "proposed": ("pending",),
    "allowed": ("approved",),
    "voted": ("pending",),
    "edited": ("pending",),
    "delegated": ("pending",),
    "reminded": ("pending",),
    "escalated": ("pending",),
    "undone": ("pending",),
    "approved": ("approved",),
    "rejected": ("rejected",),
    "responded": ("responded",),
    "expired": ("expired",),
    "lapsed": ("expired",),
    "cancelled": ("cancelled",),
    "started": ("running",),
    "succeeded": ("succeeded",),
    "failed": ("failed",),
    "lost": ("unknown",),
    "resolved": ("succeeded", "failed"),
}
CHANGES_NOTHING = frozenset({"decision_refused", "finished_late"})  # a refused attempt, a piece of evidence


class Verifier:
    """Fed with entries in order, it collects faults; memory grows with approvals, not with entries."""

    def __init__(self, workspace: str, head: Head | None = None) -> None:
        self.head = Head(workspace)
        self.faults: list[Fault] = []
        self.erased = 0
        self.approvals: dict[str, Standing] = {}
        self._claimed = head

    def feed(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._check_chain(entry)
            self._check_content(entry)
            if entry.approval_id:
                self._check_laws(entry)

    def finish(self, stored: Head) -> None:
        """Compares the end of the chain with the head that the database keeps and the one that was exported."""
        if (stored.seq, stored.link) != (self.head.seq, self.head.link):
            self._fault(stored.seq, "The stored head is not the end of the chain: the tail was cut or rewritten.")
        if self._claimed is not None and self._claimed.seq > self.head.seq:
            self._fault(self._claimed.seq, "The chain ends before the head that was exported: the tail was cut.")

    def _check_chain(self, entry: Entry) -> None:
        expected = self.head.seq + 1
        if entry.seq != expected:
            self._fault(entry.seq, f"Entry {expected} is missing or out of order.")
        body = skeleton(
            entry.workspace, entry.seq, entry.at, entry.kind, entry.actor, entry.approval_id, entry.data, entry.digest
        )
        if entry.workspace != self.head.workspace:
            self._fault(entry.seq, f"The entry belongs to the workspace {entry.workspace!r}.")
        if linked(self.head.link, body) != entry.link:
            self._fault(entry.seq, "The entry was altered, or one before it was: its link does not fit.")
        if entry.at < self.head.at:
            self._fault(entry.seq, "Time runs backwards.")
        self.head = Head(self.head.workspace, entry.seq, entry.link, entry.at)
        claimed = self._claimed
        if claimed is not None and claimed.seq == entry.seq and claimed.link != entry.link:
            self._fault(entry.seq, "The chain does not pass through the head that was exported: it was rewritten.")

    def _check_content(self, entry: Entry) -> None:
        if not entry.digest:
            if entry.content is not None:
                self._fault(entry.seq, "Content was added to an entry that had none.")
        elif entry.salt is None or entry.content is None:
            self.erased += 1
        elif sha256(entry.salt + entry.content).hexdigest() != entry.digest:
            self._fault(entry.seq, "The content of the entry was altered.")

    def _check_laws(self, entry: Entry) -> None:
        try:
            data = json.loads(entry.data)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            self._fault(entry.seq, "The data of the entry is not a JSON object.")
            return
        status = data.get("status")
        if entry.kind in CHANGES_NOTHING and status is None:
            return
        if not isinstance(status, str) or status not in LEADS_TO.get(entry.kind, ()):
            self._fault(entry.seq, f"An entry of the kind {entry.kind} cannot lead to {status}.")
            return
        standing = self.approvals.setdefault(entry.approval_id, Standing())
        if status not in TRANSITIONS.get(standing.status, frozenset()):
            self._fault(entry.seq, f"{standing.status or 'nothing'} became {status}: that is not a legal transition.")
        if (entry.kind in ("proposed", "allowed")) == bool(standing.status):
            self._fault(entry.seq, "An approval is proposed once, and before all else.")
        self._check_kind(entry, data, standing)
        standing.status = status

    def _check_kind(self, entry: Entry, data: Mapping[str, object], standing: Standing) -> None:
        binding = str(data.get("binding", ""))
        match entry.kind:
            case "proposed" | "allowed":
                standing.idempotent = data.get("idempotent") is True
                standing.quorum = _quorum(data)
                standing.expires_at = expires if isinstance(expires := data.get("expires_at"), int) else None
                standing.binding = binding
                standing.approved_binding = binding if entry.kind == "allowed" else ""
            case "edited":
                standing.voters, standing.binding = frozenset(), binding
                standing.quorum = max(standing.quorum, _quorum(data))  # an edit never loosens
            case "voted":
                standing.voters |= {entry.actor}
            case "approved":
                self._check_votes(entry, data, standing)
                standing.approved_binding = binding
            case "started":
                self._check_start(entry, data, standing, binding)
            case _:
                pass  # the transition itself is all there is to check
        if binding != standing.binding:
            self._fault(entry.seq, "The entry speaks of other arguments than the ones that were proposed or edited.")

    def _check_votes(self, entry: Entry, data: Mapping[str, object], standing: Standing) -> None:
        voters = standing.voters | {entry.actor}
        if data.get("by") == "expiry":
            return
        if len(voters) < standing.quorum:
            self._fault(entry.seq, f"Approved by {len(voters)} of {standing.quorum} people.")
        if standing.expires_at is not None and entry.at >= standing.expires_at:
            self._fault(entry.seq, "Approved after the deadline.")

    def _check_start(self, entry: Entry, data: Mapping[str, object], standing: Standing, binding: str) -> None:
        fence = data.get("fence")
        if standing.status == "running" and not standing.idempotent:
            self._fault(entry.seq, "Started a second time, though the tool is not idempotent.")
        if binding != standing.approved_binding:
            self._fault(entry.seq, "What ran is not what was approved.")
        if fence != standing.fence + 1:
            self._fault(entry.seq, f"The fence is {fence} where {standing.fence + 1} comes next.")
        standing.fence += 1

    def _fault(self, seq: int, message: str) -> None:
        self.faults.append(Fault(seq, message))


def _quorum(data: Mapping[str, object]) -> int:
    stages = data.get("quorum")
    return sum(each for each in stages if isinstance(each, int)) if isinstance(stages, list) else 1
