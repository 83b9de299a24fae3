"""The hash chain over events, its signed heads (checkpoints), and the verifier, which also checks the invariants.

An entry's `digest` is sha256(salt + content): salt and content are stored apart and can be erased together. Its `link`
is sha256(previous link + skeleton), and the skeleton holds the digest, so erasure leaves the chain intact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from json.encoder import encode_basestring as quoted
from typing import TYPE_CHECKING, NamedTuple

from interlock.core.canonical import plain_json
from interlock.core.ledger.erasure import ErasureTracker
from interlock.core.ledger.event import Event
from interlock.core.ledger.expected_tables import TABLE_KINDS, ExpectedTables
from interlock.core.ledger.invariants import InvariantChecker, Violation
from interlock.core.ledger.row_digests import CREATION_KINDS

if TYPE_CHECKING:
    from interlock.core.ports import HeadSigner


GENESIS = "0" * 64
FREEZE_KINDS = frozenset({"frozen", "unfrozen"})
TRACKED_KINDS = TABLE_KINDS | {
    "erased",
    *CREATION_KINDS,
}  # kinds that describe rows of other tables, or other entries


class Head(NamedTuple):
    """The newest entry of a workspace's chain; a copy kept elsewhere reveals a cut or rewritten tail."""

    workspace: str
    seq: int = 0
    link: str = GENESIS
    at: int = 0

    def to_json(self) -> dict[str, object]:
        return {"workspace": self.workspace, "seq": self.seq, "link": self.link, "at": self.at}


class Entry(NamedTuple):
    """One row of the ledger. `content` is None if there was none, and if it was erased with its salt."""

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


def make_entry(event: Event, head: Head, at: int, salt: bytes) -> Entry:
    """The next entry of the chain; the store writes entry and head in the transaction of the change."""
    kind, actor, facts, approval_id, said = event
    workspace, before, previous, _ = head
    seq, data = before + 1, plain_json(facts)
    fields = (workspace, seq, at, kind, actor, approval_id, data)
    if said is None:
        link = hash_link(previous, skeleton(*fields))
        return _new(Entry, (*fields, "", link, None, None))
    content = plain_json(said).encode()
    digest = sha256(salt + content).hexdigest()
    link = hash_link(previous, skeleton(*fields, digest))
    return _new(Entry, (*fields, digest, link, salt, content))


_new = tuple.__new__  # used for every entry: a named tuple's constructor takes three times as long


def skeleton(
    workspace: str, seq: int, at: int, kind: str, actor: str, approval_id: str, data: str, digest: str = ""
) -> bytes:
    """The exact bytes that are hashed: canonical JSON, built by hand because a million of them are verified at once."""
    return (
        f'{{"actor":{quoted(actor)},"approval":{quoted(approval_id)},"at":{at},"data":{data},'
        f'"digest":"{digest}","kind":{quoted(kind)},"seq":{seq},"workspace":{quoted(workspace)}}}'
    ).encode()


def hash_link(previous: str, body: bytes) -> str:
    return sha256(previous.encode() + body).hexdigest()


PARSE_ERRORS = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)  # raised by forged rows


class Verifier:
    """Verifier of entries fed in order; collects violations. Memory grows with approvals, not with entries.

    `head` is a head that was kept elsewhere; `start` is the entry before the first, if that is not the beginning.
    """

    def __init__(self, workspace: str, head: Head | None = None, start: Head | None = None) -> None:
        self.workspace = workspace
        self.start = start or Head(workspace)
        self.violations: list[Violation] = []
        self.invariants = InvariantChecker(self.violations, starts_at_genesis=self.start.seq == 0)
        self.erasures = ErasureTracker()
        self.tables = ExpectedTables()
        self.erased = 0  # known after `finish`
        self._seq, self._link, self._at = self.start[1:]
        self._trusted_head = head
        self._trusted_seq = -1 if head is None else head.seq
        if head is not None:
            self._check_trusted_head(self.start, head)

    @property
    def head(self) -> Head:
        return Head(self.workspace, self._seq, self._link, self._at)

    def feed(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            try:
                self._verify_entry(entry, skeleton(*entry[:8]))
            except PARSE_ERRORS as error:
                self.add_unreadable(entry.seq, entry.link, error)

    def feed_raw(self, entries: Iterable[tuple[Entry, bytes]]) -> None:
        """Feed entries with the exact bytes of their skeletons: those are hashed, not the parsed values."""
        for entry, body in entries:
            try:
                self._verify_entry(entry, body)
            except PARSE_ERRORS as error:
                self.add_unreadable(entry.seq, entry.link, error)

    def join(self, later: Verifier) -> bool:
        """Join a part that was verified separately; False if it has to be verified again sequentially."""
        if (
            later.start != self.head
            or self.violations
            or later.violations
            or not self.invariants.join(later.invariants)
        ):
            return False
        self._seq, self._link, self._at = later.head[1:]
        self.erasures.join(later.erasures)
        return self.tables.join(later.tables) and not self.violations

    def finish(self, stored: Head | None = None) -> None:
        """Compare the end of the chain with the head in the database and with the head that was kept elsewhere."""
        trusted_head = self._trusted_head
        if stored is not None and (stored.seq, stored.link) != (self._seq, self._link):
            self.add_violation(
                stored.seq, "The stored head is not the end of the chain: the tail was cut or rewritten."
            )
        if trusted_head is not None and trusted_head.seq > self._seq:
            self.add_violation(trusted_head.seq, "The chain ends before the saved head: the tail was cut.")
        if trusted_head is not None and trusted_head.seq < self.start.seq:
            self.add_violation(
                trusted_head.seq, "The saved head is older than the first entry here: verify from that head on."
            )
        self.erased = len(self.erasures.missing)
        for first, last in self.erasures.unexplained():
            self.erased -= last - first + 1
            self.add_violation(first, _missing_content_message(first, last))

    def add_unreadable(self, seq: int, link: str, error: Exception) -> None:
        """Record an unreadable entry as a violation."""
        self.add_violation(seq, f"The entry was altered: it cannot be read: {error}.")
        self._seq, self._link = seq, link

    def add_violation(self, seq: int, message: str) -> None:
        self.violations.append(Violation(seq, message))

    def _verify_entry(self, entry: Entry, body: bytes) -> None:
        workspace, seq, at, kind, _, approval_id, _, digest, link, salt, content = entry
        fits = sha256(self._link.encode() + body).hexdigest() == link
        if not fits or seq != self._seq + 1 or at < self._at or workspace != self.workspace or seq == self._trusted_seq:
            self._report_mismatch(entry, fits=fits)
        self._seq, self._link, self._at = seq, link, at
        if not digest:
            if content is not None:
                self.add_violation(seq, "Content was added to an entry that had none.")
        elif salt is None or content is None:
            self.erasures.missing.append(seq)
        elif sha256(salt + content).hexdigest() != digest:
            self.add_violation(seq, "The content of the entry was altered.")
        if approval_id:
            self.invariants.check(entry)
        if kind in TRACKED_KINDS and bool(approval_id) is (kind in CREATION_KINDS):
            self._track_entry(entry)

    def _track_entry(self, entry: Entry) -> None:
        """Track statements about other tables: created approvals use grants, and show which version wrote them."""
        if entry.kind == "erased":
            if complaint := self.erasures.note(entry):
                self.add_violation(entry.seq, complaint)
            return
        if entry.kind in FREEZE_KINDS:
            self.invariants.apply_freeze(entry)
        if not self.tables.first_full_entry and entry.kind in CREATION_KINDS and '"subject":"' in entry.data:
            self.tables.first_full_entry = entry.seq
        if entry.kind not in CREATION_KINDS or '"by":"grant"' in entry.data:
            self.tables.apply(entry)

    def _report_mismatch(self, entry: Entry, *, fits: bool) -> None:
        if entry.seq != self._seq + 1:
            self.add_violation(entry.seq, f"Entry {self._seq + 1} is missing or out of order.")
        if entry.workspace != self.workspace:
            self.add_violation(entry.seq, f"The entry belongs to the workspace {entry.workspace!r}.")
        if not fits:
            self.add_violation(entry.seq, "The entry, or one before it, was altered: its link does not match.")
        if entry.at < self._at:
            self.add_violation(entry.seq, "Its time is before that of the previous entry.")
        if self._trusted_head is not None:
            self._check_trusted_head(entry, self._trusted_head)

    def _check_trusted_head(self, passed: Entry | Head, trusted_head: Head) -> None:
        if passed.seq == trusted_head.seq and passed.link != trusted_head.link:
            message = "The chain does not contain the saved head: it was rewritten."
            self.add_violation(trusted_head.seq, message)


def _missing_content_message(first: int, last: int) -> str:
    if first == last:
        return f"The content of entry {first} is missing, and no entry records an erasure."
    return f"The contents of entries {first} to {last} are missing, and no entry records an erasure."


HEAD_FIELDS = frozenset({"workspace", "seq", "link", "at"})
SIGNED_HEAD_FIELDS = HEAD_FIELDS | {"signed_at", "key", "fingerprint", "signature"}


@dataclass(frozen=True, slots=True)
class SignedHead:
    """A signed head; without a key it is only a head, and proves as much as the place where it was kept."""

    head: Head
    signed_at: int = 0
    key: str = ""
    signature: str = ""

    def to_json(self) -> dict[str, object]:
        return {**self._claims(), "signature": self.signature} if self.key else self.head.to_json()

    @property
    def signed_bytes(self) -> bytes:
        """The bytes that are signed: the canonical JSON of all other members."""
        return plain_json(self._claims()).encode()

    def _claims(self) -> dict[str, object]:
        return {
            **self.head.to_json(),
            "signed_at": self.signed_at,
            "key": self.key,
            "fingerprint": key_fingerprint(self.key),
        }


def sign(head: Head, signer: HeadSigner | None, now: int) -> SignedHead:
    """Sign a head; without a signer it stays unsigned."""
    if signer is None:
        return SignedHead(head)
    unsigned = SignedHead(head, now, signer.key)
    return SignedHead(head, now, signer.key, signer.sign(unsigned.signed_bytes))


def read_head(body: object) -> SignedHead | None:
    """Parse a head; None for other members than `to_json` gives, as the signature has to cover everything."""
    if not isinstance(body, Mapping) or body.keys() not in (HEAD_FIELDS, SIGNED_HEAD_FIELDS):
        return None
    match body:
        case {"workspace": str(workspace), "seq": int(seq), "link": str(link), "at": int(at)}:
            head = Head(workspace, seq, link, at)
        case _:
            return None
    return SignedHead(head) if body.keys() == HEAD_FIELDS else _read_signed(head, body)


def key_fingerprint(key: str) -> str:
    """A short digest of the key, to compare by eye."""
    return sha256(key.encode()).hexdigest()[:16]


def _read_signed(head: Head, body: Mapping[str, object]) -> SignedHead | None:
    match body:
        case {"signed_at": int(signed_at), "key": str(key), "fingerprint": str(shown), "signature": str(signature)}:
            return SignedHead(head, signed_at, key, signature) if key and shown == key_fingerprint(key) else None
        case _:
            return None
