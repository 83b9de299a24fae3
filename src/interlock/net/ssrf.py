"""A transport that looks a name up once, checks every address it has, and connects to one of those, whatever the name
means a moment later. TLS still proves the name.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import httpcore2
import httpx2
from httpcore2 import AsyncNetworkBackend, AsyncNetworkStream

from interlock.core.errors import InvalidRequest
from interlock.net.address_policy import Address, EgressPolicy, check_address, check_host, parse_ip_literal

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]  # the addresses of a name, as text
MAX_ADDRESSES = 4  # that are tried, one after the other


async def resolve_host(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class HostNotFound(InvalidRequest):
    """The name means nothing now; it may be misspelled, or the resolver may be down for a while."""


class PinnedTransport(httpx2.AsyncBaseTransport):
    """For one client: it goes to no proxy, so that it is this program that connects. Raises InvalidRequest too."""

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
        asked = httpcore2.Request(
            request.method,
            httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions={"timeout": request.extensions.get("timeout", {})},  # no other: one could change TLS's name
        )
        with _map_errors(request):
            answer = await self._pool.handle_async_request(asked)
        return httpx2.Response(
            answer.status, headers=answer.headers, stream=_ResponseStream(answer, request), request=request
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


class _CheckedBackend(AsyncNetworkBackend):
    """The one place where connections are made: all checks are repeated here, on what is really connected to."""

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
        trouble: Exception = HostNotFound(f"{name} has no address.")
        for address in addresses[:MAX_ADDRESSES]:
            try:
                return await self._dial.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                trouble = error
        raise trouble

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> AsyncNetworkStream:
        raise InvalidRequest("Requests go to hosts only.")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _addresses(self, name: str, port: int) -> list[Address]:
        """Every one is checked: a name with one public and one private address is refused as a whole."""
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
    """In httpx2's words, since its users know no others."""
    try:
        yield
    except httpcore2.TimeoutException as error:
        raise httpx2.TimeoutException(str(error), request=request) from error
    except httpcore2.ConnectError as error:
        raise httpx2.ConnectError(str(error), request=request) from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        raise httpx2.TransportError(str(error), request=request) from error
