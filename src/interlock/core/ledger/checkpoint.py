"""Heads as they are handed out: as JSON, and signed where there is a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from interlock.core.canonical import plain_json
from interlock.core.ledger.chain import Head

if TYPE_CHECKING:
    from interlock.core.ports import HeadSigner

HEAD_FIELDS = frozenset({"workspace", "seq", "link", "at"})
SIGNED_HEAD_FIELDS = HEAD_FIELDS | {"signed_at", "key", "fingerprint", "signature"}


@dataclass(frozen=True, slots=True)
class SignedHead:
    """Without a key it is only a head, and proves as much as the place where it was kept."""

    head: Head
    signed_at: int = 0
    key: str = ""
    signature: str = ""

    def to_json(self) -> dict[str, object]:
        return {**self._claims(), "signature": self.signature} if self.key else self.head.to_json()

    @property
    def signed_bytes(self) -> bytes:
        """What the signature is over: the canonical JSON of all the other members."""
        return plain_json(self._claims()).encode()

    def _claims(self) -> dict[str, object]:
        return {
            **self.head.to_json(),
            "signed_at": self.signed_at,
            "key": self.key,
            "fingerprint": key_fingerprint(self.key),
        }


def sign(head: Head, signer: HeadSigner | None, now: int) -> SignedHead:
    """Without a signer the head stays as it is."""
    if signer is None:
        return SignedHead(head)
    unsigned = SignedHead(head, now, signer.key)
    return SignedHead(head, now, signer.key, signer.sign(unsigned.signed_bytes))


def read_head(body: object) -> SignedHead | None:
    """None for what `to_json` never gives: nothing may stand in a signed head that the signature does not cover."""
    if not isinstance(body, Mapping) or body.keys() not in (HEAD_FIELDS, SIGNED_HEAD_FIELDS):
        return None
    match body:
        case {"workspace": str(workspace), "seq": int(seq), "link": str(link), "at": int(at)}:
            head = Head(workspace, seq, link, at)
        case _:
            return None
    return SignedHead(head) if body.keys() == HEAD_FIELDS else _read_signed(head, body)


def key_fingerprint(key: str) -> str:
    """Short enough to be compared by eye."""
    return sha256(key.encode()).hexdigest()[:16]


def _read_signed(head: Head, body: Mapping[str, object]) -> SignedHead | None:
    match body:
        case {"signed_at": int(signed_at), "key": str(key), "fingerprint": str(shown), "signature": str(signature)}:
            return SignedHead(head, signed_at, key, signature) if key and shown == key_fingerprint(key) else None
        case _:
            return None
