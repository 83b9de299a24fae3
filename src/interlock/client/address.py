"""Where the server is and with which key: checked before anything is sent, and never shown with the key."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from interlock.core.errors import Misconfigured

HOW_TO_GET_A_KEY = "Make one on the server: interlock keys create --name NAME --role agent --agent NAME"


@dataclass(frozen=True, slots=True)
class Address:
    url: str
    key: str = field(repr=False)
    is_local: bool


def address_of(url: str, key: str | None, *, insecure: bool = False) -> Address:
    """`insecure` allows http:// to another machine, where the key and the arguments can be read on the way."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise Misconfigured(f"{_bare(url)!r} is not the address of a server. Write it like https://interlock.example.")
    if "@" in parts.netloc:
        raise Misconfigured(
            f"Leave the name and the password out of the address {_bare(url)!r}. The key goes in key=…."
        )
    local = _is_loopback(parts.hostname)
    if parts.scheme == "http" and not local and not insecure:
        raise Misconfigured(
            f"{url} is not encrypted: the key and all arguments could be read on the way. Use https://, "
            "or give insecure=True if the network is your own."
        )
    return Address(url.rstrip("/"), _checked(key, url), local)


def _checked(key: str | None, url: str) -> str:
    if not key:
        raise Misconfigured(f"A server wants a key: Interlock({url!r}, key=…). {HOW_TO_GET_A_KEY}")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise Misconfigured(f"What was given as key is not a key: it holds spaces or other signs. {HOW_TO_GET_A_KEY}")
    return key


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bare(url: str) -> str:
    """Without what may be a password."""
    head, at, tail = url.partition("@")
    return f"{head.partition('://')[0]}://…@{tail}" if at else url
