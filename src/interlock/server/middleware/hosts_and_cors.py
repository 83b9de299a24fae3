"""By which name a server may be called, and which other sites' pages may read what it answers."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from interlock.server.http import AsgiMessage, Header, HttpResponse, MisdirectedRequest, Send

PREFLIGHT_MAX_AGE = 600  # seconds for which a browser need not ask again
EXPOSED_HEADERS = b"content-location, etag, retry-after, x-request-id, x-thread-id, x-vercel-ai-ui-message-stream"
ALLOWED_METHODS = b"GET, POST, PUT, PATCH, DELETE"
_HOST = re.compile(rb"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?")
_HEADER_NAMES = re.compile(rb"[A-Za-z0-9_, -]{0,1000}")


@dataclass(frozen=True)
class HostAndCorsPolicy:
    """`origins` are pages of other sites. They come with a key: a browser sends no cookie of ours for them."""

    hosts: frozenset[str]
    origins: frozenset[bytes] = frozenset()

    def check_host(self, headers: Mapping[bytes, bytes]) -> None:
        """Another site's name that leads to this address must not reach it: a browser would take us for that site."""
        name = _host_name(headers.get(b"host", b""))
        if name in self.hosts or _is_ip_address(name):
            return
        raise MisdirectedRequest(
            "This server does not go by this name. Set server.public_url to the address that people use."
        )

    def guest(self, headers: Iterable[Header]) -> bytes:
        """The origin of the page that asks, if it is one of those; else nothing."""
        if not self.origins:
            return b""
        return next((value for name, value in headers if name == b"origin" and value in self.origins), b"")


def make_host_and_cors_policy(host: str, public_url: str, origins: Iterable[str] = ()) -> HostAndCorsPolicy:
    """At which port is nobody's trick."""
    hosts = frozenset({"localhost", host.lower(), urlsplit(public_url).hostname or "localhost"})
    return HostAndCorsPolicy(hosts, frozenset(origin.encode() for origin in origins))


def preflight_response(origin: bytes, headers: Iterable[Header]) -> HttpResponse:
    """What a browser asks before it sends a page's request; who may do what is said by the request itself."""
    wanted = dict(headers).get(b"access-control-request-headers", b"")
    more: tuple[Header, ...] = (
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-methods", ALLOWED_METHODS),
        (b"access-control-allow-headers", wanted if _HEADER_NAMES.fullmatch(wanted) else b""),
        (b"access-control-max-age", b"%d" % PREFLIGHT_MAX_AGE),
        (b"vary", b"origin"),
    )
    return HttpResponse(204, b"", more)


def with_cors_headers(origin: bytes, send: Send) -> Send:
    """Says with the answer that the page may read it."""
    more = (
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", EXPOSED_HEADERS),
        (b"vary", b"origin"),
    )

    async def told(message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *more]
        await send(message)

    return told


@lru_cache(maxsize=100)
def _host_name(host: bytes) -> str:
    """Without the port; empty for what is no host."""
    found = _HOST.fullmatch(host.lower())
    return (found[1] or found[2] or b"").decode() if found else ""


@lru_cache(maxsize=100)
def _is_ip_address(name: str) -> bool:
    """A number cannot be pointed elsewhere, as a name can."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
