"""By which name a server may be called, and which other sites' pages may read what it answers."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from interlock.server.http import Answer, Header, Message, Misdirected, Send

REMEMBERED = 600  # seconds for which a browser need not ask again
EXPOSED = b"content-location, etag, retry-after, x-request-id, x-thread-id, x-vercel-ai-ui-message-stream"
VERBS = b"GET, POST, PUT, PATCH, DELETE"
_HOST = re.compile(rb"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?")
_NAMES = re.compile(rb"[A-Za-z0-9_, -]{0,1000}")


@dataclass(frozen=True)
class Doorway:
    """`origins` are pages of other sites. They come with a key: a browser sends no cookie of ours for them."""

    hosts: frozenset[str]
    origins: frozenset[bytes] = frozenset()

    def check_host(self, headers: Mapping[bytes, bytes]) -> None:
        """Another site's name that leads to this address must not reach it: a browser would take us for that site."""
        name = _name(headers.get(b"host", b""))
        if name in self.hosts or _is_address(name):
            return
        raise Misdirected("This server does not go by this name. Set server.public_url to the address that people use.")

    def guest(self, headers: Iterable[Header]) -> bytes:
        """The origin of the page that asks, if it is one of those; else nothing."""
        if not self.origins:
            return b""
        return next((value for name, value in headers if name == b"origin" and value in self.origins), b"")


def doorway_of(host: str, public_url: str, origins: Iterable[str] = ()) -> Doorway:
    """At which port is nobody's trick."""
    hosts = frozenset({"localhost", host.lower(), urlsplit(public_url).hostname or "localhost"})
    return Doorway(hosts, frozenset(origin.encode() for origin in origins))


def preflight(origin: bytes, headers: Iterable[Header]) -> Answer:
    """What a browser asks before it sends a page's request; who may do what is said by the request itself."""
    wanted = dict(headers).get(b"access-control-request-headers", b"")
    more: tuple[Header, ...] = (
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-methods", VERBS),
        (b"access-control-allow-headers", wanted if _NAMES.fullmatch(wanted) else b""),
        (b"access-control-max-age", b"%d" % REMEMBERED),
        (b"vary", b"origin"),
    )
    return Answer(204, b"", more)


def readable(origin: bytes, send: Send) -> Send:
    """Says with the answer that the page may read it."""
    more = (
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", EXPOSED),
        (b"vary", b"origin"),
    )

    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *more]
        await send(message)

    return told


@lru_cache(maxsize=100)
def _name(host: bytes) -> str:
    """Without the port; empty for what is no host."""
    found = _HOST.fullmatch(host.lower())
    return (found[1] or found[2] or b"").decode() if found else ""


@lru_cache(maxsize=100)
def _is_address(name: str) -> bool:
    """A number cannot be pointed elsewhere, as a name can."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
