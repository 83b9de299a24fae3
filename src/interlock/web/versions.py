"""Which version of something a person saw: an ETag with every look, If-Match with every change."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from interlock.core.errors import InvalidRequest, Stale
from interlock.web.asgi import encoded


def etag(value: object) -> str:
    """Of anything that is JSON; numbers are versions already."""
    return f'"{value}"' if isinstance(value, int) else f'"{sha256(encoded(value)).hexdigest()[:32]}"'


def check_match(headers: Mapping[bytes, bytes], current: str) -> bool:
    """Whether the change is bound to what was seen. Raises Stale if that is not what is there now."""
    given = headers.get(b"if-match", b"").decode("latin-1").strip()
    if given in ("", "*"):
        return False
    tags = [each.strip() for each in given.split(",")]
    if not all(len(tag) > 2 and tag.removeprefix("W/")[0] == tag[-1] == '"' for tag in tags):
        raise InvalidRequest('If-Match is the ETag of an answer, in double quotes: If-Match: "3"')
    if current not in tags:
        raise Stale("It was changed meanwhile. Look again, then change what is there now.", etag=current)
    return True
