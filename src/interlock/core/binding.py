"""Proof that somebody came from a channel: a link with which a person who is signed in says that this is them there."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import NamedTuple

from interlock.core.errors import NotFound

LIVES = 15 * 60_000  # milliseconds
MAX_TOKEN = 2_000


class Claim(NamedTuple):
    """Whoever was given it is `outside` for the channel, until then."""

    channel: str
    outside: str
    expires_at: int


def signed(key: bytes, workspace: str, claim: Claim) -> str:
    body = urlsafe_b64encode(json.dumps(claim, separators=(",", ":")).encode()).decode().rstrip("=")
    return f"{body}.{_proof(key, workspace, body)}"


def read(key: bytes, workspace: str, token: str, now: int) -> Claim:
    """Raises NotFound for whatever is not a link of ours that still holds."""
    refusal = NotFound("This link does not hold any more. Ask for a new one where you got it.")
    body, _, proof = token.partition(".")
    if len(token) > MAX_TOKEN or not token.isascii() or not hmac.compare_digest(proof, _proof(key, workspace, body)):
        raise refusal
    claim = Claim(*json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4))))
    if now >= claim.expires_at:
        raise refusal
    return claim


def _proof(key: bytes, workspace: str, body: str) -> str:
    return hmac.digest(hmac.digest(key, b"identities", sha256), f"{workspace}\n{body}".encode(), sha256).hex()
