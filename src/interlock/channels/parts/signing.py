"""Signatures by Standard Webhooks: made with every secret there is, and taken if they were made with one of them.

What is signed is the id, the time and the body. An id has no full stop and no brace, so that nobody can move the
borders between the three.
"""

from __future__ import annotations

import binascii
import hmac
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from standardwebhooks import Webhook

from interlock.core.errors import Misconfigured, Unauthenticated

TOLERANCE = 300_000  # milliseconds, both ways
SHORTEST, LONGEST = 24, 64  # bytes of a secret, by the standard
MOST_SIGNATURES = 10
PREFIX = "whsec_"
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_SECONDS = re.compile(r"[0-9]{1,12}")


class Signer:
    """`secrets` are the one in use first, then those that are on their way out."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._hooks = [Webhook(_key(secret)) for secret in secrets]

    def headers(self, message_id: str, content: str, at: int) -> dict[str, str]:
        name, seconds = message_id.replace(".", "_"), at // 1000
        return {
            "webhook-id": name,
            "webhook-timestamp": str(seconds),
            "webhook-signature": " ".join(self._signatures(name, seconds, content)),
        }

    def proven(self, headers: Mapping[str, str], body: bytes, now: int) -> str:
        """The id of a request from the other side. Raises Unauthenticated, which does not say what was wrong."""
        refusal = Unauthenticated("The signature is missing, wrong, or older than five minutes.")
        name, seconds = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        if not _ID.fullmatch(name) or not _SECONDS.fullmatch(seconds) or abs(now - int(seconds) * 1000) > TOLERANCE:
            raise refusal
        try:
            expected = self._signatures(name, int(seconds), body.decode())
        except UnicodeDecodeError:
            raise refusal from None
        given = headers.get("webhook-signature", "").encode("latin-1", "replace").split(b" ")[:MOST_SIGNATURES]
        matches = [hmac.compare_digest(each, one.encode()) for each in given for one in expected]
        if not any(matches):
            raise refusal
        return name

    def _signatures(self, name: str, seconds: int, content: str) -> list[str]:
        at = datetime.fromtimestamp(seconds, UTC)
        return [hook.sign(name, at, content) for hook in self._hooks]


def _key(secret: str) -> bytes:
    """Strictly: what the library skips would be a weaker secret than it looks."""
    text = secret.removeprefix(PREFIX)
    try:
        key = b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not SHORTEST <= len(key) <= LONGEST:
        raise Misconfigured(f"a secret is {PREFIX} and base64 of {SHORTEST} to {LONGEST} bytes")
    return key
