"""SSRF protection: egress rules for hosts and addresses, and an HTTP transport that enforces them.

The transport resolves a name once, checks every address, and connects to one of those, regardless of later DNS changes
(DNS rebinding). TLS still verifies the name.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpcore2
import httpx2
from httpcore2 import AsyncNetworkBackend, AsyncNetworkStream

from interlock.core.errors import InvalidRequest

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]  # the addresses of a name, as text
MAX_ADDRESSES = 4  # tried one after the other


async def resolve_host(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class HostNotFound(InvalidRequest):
    """The name does not resolve now; it may be misspelled, or the resolver may be down for a while."""


class PinnedTransport(httpx2.AsyncBaseTransport):
    """Transport for one client, without a proxy, so that this program itself connects. Raises InvalidRequest too."""

    def __init__(
        self,
        egress: EgressPolicy,
        resolve: Resolver = resolve_host,
        dial: AsyncNetworkBackend | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls or httpx2.create_ssl_context(),
            network_backend=_CheckedBackend(egress, resolve, dial or httpcore2.AnyIOBackend()),
            max_keepalive_connections=0,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        core_request = httpcore2.Request(
            request.method,
            httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions={"timeout": request.extensions.get("timeout", {})},  # no other: one could change TLS's name
        )
        with _map_errors(request):
            core_response = await self._pool.handle_async_request(core_request)
        return httpx2.Response(
            core_response.status,
            headers=core_response.headers,
            stream=_ResponseStream(core_response, request),
            request=request,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


class _CheckedBackend(AsyncNetworkBackend):
    """The one place that opens connections: all checks are repeated here, on the actual address."""

    def __init__(self, egress: EgressPolicy, resolve: Resolver, dial: AsyncNetworkBackend) -> None:
        self._egress, self._resolve, self._dial = egress, resolve, dial

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> AsyncNetworkStream:
        name = host.lower().removesuffix(".")
        check_host(name, port, self._egress)
        addresses = await self._addresses(name, port)
        last_error: Exception = HostNotFound(f"{name} has no address.")
        for address in addresses[:MAX_ADDRESSES]:
            try:
                return await self._dial.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                last_error = error
        raise last_error

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> AsyncNetworkStream:
        raise InvalidRequest("Requests go to hosts only.")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _addresses(self, name: str, port: int) -> list[Address]:
        """Resolve and check every address: a name with one public and one private address is refused as a whole."""
        literal = parse_ip_literal(name)
        if literal is not None:
            return [literal]
        try:
            addresses = [ip_address(found) for found in dict.fromkeys(await self._resolve(name, port))]
        except (OSError, ValueError):  # ValueError: an address with a zone, or a name that DNS cannot hold
            raise HostNotFound(f"{name} has no address. Check the spelling of the host.") from None
        for address in addresses:
            check_address(name, address, self._egress)
        return addresses


class _ResponseStream(httpx2.AsyncByteStream):
    def __init__(self, answer: httpcore2.Response, request: httpx2.Request) -> None:
        self._answer, self._request = answer, request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _map_errors(self._request):
            async for piece in self._answer.aiter_stream():
                yield piece

    async def aclose(self) -> None:
        await self._answer.aclose()


@contextmanager
def _map_errors(request: httpx2.Request) -> Iterator[None]:
    """Map errors to httpx2's, which its users handle."""
    try:
        yield
    except httpcore2.TimeoutException as error:
        raise httpx2.TimeoutException(str(error), request=request) from error
    except httpcore2.ConnectError as error:
        raise httpx2.ConnectError(str(error), request=request) from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        raise httpx2.TransportError(str(error), request=request) from error


Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_URL = 8_000

# From IANA's special-purpose registries. `allow_private` opens these and no others.
PRIVATE_NETWORKS = tuple(
    map(
        ip_network, ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1", "fc00::/7")
    )
)
# Never: this host, link-local (cloud metadata with credentials), protocol assignments, documentation, 6to4 relays,
# benchmarks, multicast, reserved, broadcast; and Azure's public address for what others have at link-local ones.
FORBIDDEN_V4 = tuple(
    map(
        IPv4Network,
        (
            *("0.0.0.0/8", "168.63.129.16", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24"),
            *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        ),
    )
)
# The only public part of IPv6: mapped, NAT64, link-local, site-local and multicast are outside of it.
PUBLIC_V6 = IPv6Network("2000::/3")
# Never, inside of that: protocol assignments (Teredo among them), documentation, 6to4.
FORBIDDEN_V6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
ISATAP = 0x5EFE  # an IPv4 address in the last 32 bits, after this mark

_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\.?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """Where a program may connect. `hosts`, if any, are the only ones: `name` or `name:port`."""

    hosts: frozenset[str] = frozenset()
    private: bool = False

    def allows(self, host: str, port: int) -> bool:
        if not self.hosts:
            return port in DEFAULT_PORTS.values()
        return f"{host}:{port}" in self.hosts or (host in self.hosts and port in DEFAULT_PORTS.values())


class Endpoint(NamedTuple):
    """`host` is in lower case, without a trailing dot, and an IPv6 address without brackets."""

    scheme: str
    host: str
    port: int


def check_endpoint(url: str, egress: EgressPolicy) -> Endpoint:
    """Check a URL without resolving its name. Raises InvalidRequest with the reason."""
    target = _parse_url(url)
    check_host(target.host, target.port, egress)
    return target


def check_host(host: str, port: int, egress: EgressPolicy) -> None:
    """Raise InvalidRequest unless the host may be resolved, or is an address that may be connected to."""
    literal = parse_ip_literal(host)
    if literal is None and not _NAME.fullmatch(host):
        raise InvalidRequest(f'"{host[:100]}" is not the name of a host.')
    if literal is None and _NUMBER.fullmatch(host.rpartition(".")[2]):
        raise InvalidRequest(
            f'"{host[:100]}" is an odd spelling of an address. Write the host\'s name, or 203.0.113.7.'
        )
    if not egress.allows(host, port):
        raise InvalidRequest(_not_allowed_message(host, port, egress))
    if literal is not None:
        check_address(host, literal, egress)


def check_address(host: str, address: Address, egress: EgressPolicy) -> None:
    """Raise InvalidRequest unless a request to `host` may connect to this address."""
    if not is_allowed_address(
        address, egress
    ):  # the address is not revealed: names of a private network are confidential
        raise InvalidRequest(f"{host} is not at a public address. Requests go to public addresses only.")


def is_allowed_address(address: Address, egress: EgressPolicy) -> bool:
    if any(address in network for network in PRIVATE_NETWORKS):
        return egress.private
    match address:
        case IPv4Address():
            return not any(address in network for network in FORBIDDEN_V4)
        case IPv6Address():
            return (
                address in PUBLIC_V6
                and not any(address in network for network in FORBIDDEN_V6)
                and not _is_isatap(address)
            )


def parse_ip_literal(host: str) -> Address | None:
    """The address that the host spells in the usual way, or None; one with a zone is None."""
    try:
        return None if "%" in host else ip_address(host)
    except ValueError:
        return None


def _parse_url(url: str) -> Endpoint:
    if len(url) > MAX_URL or not url.isascii() or any(sign <= " " or sign in '"<>\\^`{|}\x7f' for sign in url):
        raise InvalidRequest(f"A URL is at most {MAX_URL:,} ASCII characters, with %20 for a space.")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removesuffix("."), parts.port
    except ValueError:
        raise InvalidRequest("This is not a URL. Write it like https://example.com/path.") from None
    if "[" in parts.netloc and ":" not in host:
        raise InvalidRequest("Only an IPv6 address stands in brackets.")
    if parts.scheme not in DEFAULT_PORTS or not url.lower().startswith(f"{parts.scheme}://") or not host:
        raise InvalidRequest("A URL begins with https:// or http:// and the name of a host.")
    if "@" in parts.netloc:
        raise InvalidRequest("Leave the name and the password out of the URL.")
    return Endpoint(parts.scheme, host, DEFAULT_PORTS[parts.scheme] if port is None else port)


def _not_allowed_message(host: str, port: int, egress: EgressPolicy) -> str:
    if not egress.hosts:
        return f"Port {port} is not open to requests. An admin can list {host}:{port} under `allow`."
    return f"{host}:{port} is not among the hosts that the settings allow. An admin can add it under `allow`."


def _is_isatap(address: IPv6Address) -> bool:
    return (int(address) >> 32) & 0xFCFFFFFF == ISATAP
