"""From where a request comes when a proxy stands before the server: only named proxies are believed."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from interlock.web.asgi import Header, Scope


class Proxies:
    """`addresses` are those of the proxies, or networks such as 10.0.0.0/8."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self._networks: list[IPv4Network | IPv6Network] = [ip_network(each, strict=False) for each in addresses]

    def resolve(self, scope: Scope) -> None:
        """Puts the client's own address in the place of the proxy's: the last one that is no proxy of ours."""
        client = scope.get("client")
        if not self._networks or not client or not self._is_ours(client[0]):
            return
        hops = [each.strip() for each in _forwarded(scope["headers"]).split(",") if each.strip()]
        for hop in reversed(hops):
            if not _is_address(hop):
                return  # a proxy that writes what is no address cannot be believed
            scope["client"] = (hop, 0)
            if not self._is_ours(hop):
                return

    def _is_ours(self, address: str) -> bool:
        if not _is_address(address):
            return False
        parsed = ip_address(address)
        return any(parsed in network for network in self._networks)


def _forwarded(headers: list[Header]) -> str:
    return b",".join(value for name, value in headers if name == b"x-forwarded-for").decode("latin-1")


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
